//! What came out, in one sentence and a few large numbers.

use maud::{Markup, html};

use super::Page;
use crate::cases::base_name;
use crate::figures::{Measure, number, scheduler_title};
use crate::result::{ProgramResult, RunResult, SchedulerResult};

/// One number that decides, of one scheduler.
struct Highlight {
    number: String,
    unit: &'static str,
    /// Under the large number.
    caption: String,
    /// In the sentence.
    phrase: String,
}

/// What the highlights are about; the first of these that a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Film,
    Latency,
    Shares,
    Work,
}

/// The verdict over all cases, the worst of each scheduler; of a single one, its verdict.
pub(super) fn overall(page: &Page) -> Markup {
    let Some(subject) = subject(page.results) else {
        return html! {};
    };
    let note =
        (page.results.len() > 1).then(|| format!("The worst of {} cases.", page.results.len()));
    let columns: Vec<(&str, Vec<Highlight>)> = page
        .schedulers
        .iter()
        .map(|name| {
            let runs = page.results.iter().flat_map(|r| &r.schedulers);
            (
                name.as_str(),
                highlights(subject, runs.filter(|s| s.name == *name).collect()),
            )
        })
        .collect();
    show(page, &columns, note.as_deref())
}

/// The verdict of one case among several.
pub(super) fn case(page: &Page, result: &RunResult) -> Markup {
    let Some(subject) = subject(std::slice::from_ref(result)) else {
        return html! {};
    };
    let columns: Vec<_> = result
        .schedulers
        .iter()
        .map(|s| (s.name.as_str(), highlights(subject, vec![s])))
        .collect();
    show(page, &columns, None)
}

fn show(page: &Page, columns: &[(&str, Vec<Highlight>)], note: Option<&str>) -> Markup {
    let columns: Vec<_> = columns.iter().filter(|(_, all)| !all.is_empty()).collect();
    let phrases = |all: &[Highlight]| {
        all.iter()
            .take(2)
            .map(|h| h.phrase.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    html! {
        @if !columns.is_empty() {
            section.verdict {
                p.lead {
                    @for (i, (name, all)) in columns.iter().enumerate() {
                        @if i > 0 { "; " }
                        span.nowrap { (page.name(name)) ":" } " " (phrases(all))
                    }
                    "." @if let Some(note) = note { " " span.quiet { (note) } }
                }
                div.columns {
                    @for (name, all) in &columns {
                        section class=(format!("column {}", page.colour(name))) {
                            h2 { (scheduler_title(name)) }
                            dl {
                                @for highlight in all {
                                    div {
                                        dt { (highlight.caption) }
                                        dd { (highlight.number) @if !highlight.unit.is_empty() { span.unit { (highlight.unit) } } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn subject(results: &[RunResult]) -> Option<Subject> {
    let schedulers = || results.iter().flat_map(|r| &r.schedulers);
    let any = |has: fn(&ProgramResult) -> bool| schedulers().flat_map(|s| &s.programs).any(has);
    if any(|p| p.frames.is_some()) {
        Some(Subject::Film)
    } else if any(|p| p.latency_us.is_some()) {
        Some(Subject::Latency)
    } else if schedulers().any(|s| !s.classes.is_empty()) {
        Some(Subject::Shares)
    } else {
        any(|p| p.iterations.is_some()).then_some(Subject::Work)
    }
}

/// The highlights of one scheduler over the cases in `runs`.
fn highlights(subject: Subject, runs: Vec<&SchedulerResult>) -> Vec<Highlight> {
    let mut all = match subject {
        Subject::Film => film(&runs),
        Subject::Latency => latency(&runs),
        Subject::Shares => shares(&runs),
        Subject::Work => work(&runs),
    };
    let ejected = runs.iter().filter(|run| run.ejected.is_some()).count();
    if ejected > 0 {
        all.insert(
            0,
            Highlight {
                number: number(ejected as f64, 0),
                unit: "",
                caption: "left before the end".into(),
                phrase: "left before the end".into(),
            },
        );
    }
    all
}

/// The players are taken together; of several cases, the one with the most frames lost counts.
fn film(runs: &[&SchedulerResult]) -> Vec<Highlight> {
    let players = |run: &SchedulerResult| -> Vec<ProgramResult> {
        run.programs
            .iter()
            .filter(|p| p.frames.is_some())
            .cloned()
            .collect()
    };
    let figure = |name: &str, run: &SchedulerResult| {
        Measure::named(name).of(&players(run).iter().collect::<Vec<_>>())
    };
    let mut all = Vec::new();
    let dropped = |run: &&&SchedulerResult| figure("frames dropped", run).unwrap_or(-1.0);
    if let Some(run) = runs.iter().max_by(|a, b| dropped(a).total_cmp(&dropped(b)))
        && let Some(lost) = figure("frames dropped", run)
    {
        let of = number(lost + figure("frames shown", run).unwrap_or(0.0), 0);
        let lost = number(lost, 0);
        let phrase = format!("{lost} of {of} frames dropped");
        all.push(Highlight {
            number: lost,
            unit: "",
            caption: format!("of {of} frames dropped"),
            phrase,
        });
    }
    let worst = |name: &str, pick: fn(f64, f64) -> f64| {
        runs.iter().filter_map(|run| figure(name, run)).reduce(pick)
    };
    if let Some(freeze_ms) = worst("longest freeze", f64::max) {
        let freeze = number(freeze_ms, if freeze_ms < 100.0 { 1 } else { 0 });
        let phrase = format!("longest freeze {freeze} ms");
        all.push(Highlight {
            number: freeze,
            unit: "ms",
            caption: "longest freeze".into(),
            phrase,
        });
    }
    if let Some(rate) = worst("frame rate", f64::min) {
        let rate = number(rate, 1);
        let phrase = format!("{rate} frames a second");
        all.push(Highlight {
            number: rate,
            unit: "",
            caption: "frames a second".into(),
            phrase,
        });
    }
    all
}

/// The worst case of each program that measures latency: round trips by their mean, since they
/// are a cost; waiting by its 99th percentile, since it is the tail that is felt.
fn latency(runs: &[&SchedulerResult]) -> Vec<Highlight> {
    let programs = || {
        runs.iter()
            .flat_map(|run| &run.programs)
            .filter(|p| p.latency_us.is_some())
    };
    let mut names: Vec<&str> = Vec::new();
    for program in programs() {
        if !names.contains(&base_name(program)) {
            names.push(base_name(program));
        }
    }
    let highlight = |name: &str| {
        let instances: Vec<_> = programs().filter(|p| base_name(p) == name).collect();
        let round_trip = instances.iter().all(|p| p.kind == "pingpong");
        let (measure, what) = if round_trip {
            ("latency, mean", "mean round trip")
        } else {
            ("latency, p99", "99th percentile")
        };
        let number = number(Measure::named(measure).of(&instances)?, 1);
        let phrase = format!("{name}: {what} {number} µs");
        Some(Highlight {
            number,
            unit: "µs",
            caption: format!("{name}: {what}"),
            phrase,
        })
    };
    names.into_iter().filter_map(highlight).collect()
}

/// How far the worst class is from what its weight asks, in per cent of that.
fn shares(runs: &[&SchedulerResult]) -> Vec<Highlight> {
    let off = |run: &&SchedulerResult| {
        let asked = run.classes.iter().filter(|c| c.share_asked > 0.0);
        asked
            .map(|c| (c.share_received / c.share_asked - 1.0).abs() * 100.0)
            .reduce(f64::max)
    };
    let Some(off) = runs.iter().filter_map(off).reduce(f64::max) else {
        return Vec::new();
    };
    let off = number(off, 2);
    let phrase = format!("every class within {off} % of the share asked");
    let caption = "the most that a class is off the share asked".into();
    vec![Highlight {
        number: off,
        unit: "%",
        caption,
        phrase,
    }]
}

fn work(runs: &[&SchedulerResult]) -> Vec<Highlight> {
    let done = |run: &&SchedulerResult| {
        Measure::named("iterations").of(&run.programs.iter().collect::<Vec<_>>())
    };
    let Some(done) = runs.iter().filter_map(done).reduce(f64::min) else {
        return Vec::new();
    };
    let done = number(done, 0);
    let phrase = format!("{done} iterations");
    vec![Highlight {
        number: done,
        unit: "",
        caption: "iterations".into(),
        phrase,
    }]
}
