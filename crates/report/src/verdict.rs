//! What came out, in one sentence and a few large numbers.

use andante_result::cases::base_name;
use andante_result::figures::{Measure, not_in_time, number};
use andante_result::title::scheduler_title;
use andante_result::{ProgramResult, RunResult, SchedulerResult};
use maud::{Markup, html};

use super::Page;

/// One number that decides, of one scheduler.
struct Highlight {
    number: String,
    unit: &'static str,
    /// Under the large number.
    caption: String,
    /// In the sentence.
    phrase: String,
}

/// Between a number and its unit.
const NO_BREAK: char = '\u{a0}';

/// Measures of a player that say whether it was in time.
const IN_TIME: [&str; 4] = ["late", "late_share", "missed", "lateness_us.max"];

/// One scheduler in one case.
struct Run<'a> {
    case: &'a RunResult,
    scheduler: &'a SchedulerResult,
}

impl<'a> Run<'a> {
    fn programs(&self) -> &'a [ProgramResult] {
        &self.scheduler.programs
    }

    /// The players that the scenario asks to be in time, and whether it asks that of any: one that
    /// overruns its contract on purpose is late, and that is no failure. All players, if it does not.
    fn players(&self) -> (Vec<&'a ProgramResult>, bool) {
        let players = || self.programs().iter().filter(|p| p.frames.is_some());
        let asked = |program: &&ProgramResult| {
            let mut of_program = self.case.expectations.iter().filter(|e| {
                let named = e.program.as_deref();
                named == Some(base_name(program)) || named == Some(&program.name)
            });
            let in_time = |measure: &str| IN_TIME.contains(&measure);
            not_in_time(program).is_some()
                && of_program.any(|e| e.measure.as_deref().is_some_and(in_time))
        };
        let judged: Vec<_> = players().filter(asked).collect();
        if judged.is_empty() {
            (players().collect(), false)
        } else {
            (judged, true)
        }
    }
}

/// What the highlights are about; the first of these that a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Film,
    Latency,
    Shares,
    Work,
}

/// What is said of one scheduler.
struct Column<'a> {
    name: &'a str,
    highlights: Vec<Highlight>,
    /// What went wrong, so that no number is read without it.
    trouble: Vec<String>,
}

impl<'a> Column<'a> {
    /// Over the cases in `runs`, all of the scheduler `name`.
    fn of(name: &'a str, subject: Subject, runs: &[Run]) -> Self {
        let highlights = match subject {
            Subject::Film => film(runs),
            Subject::Latency => latency(runs),
            Subject::Shares => shares(runs),
            Subject::Work => work(runs),
        };
        let mut trouble: Vec<String> = Vec::new();
        if runs.iter().any(|run| run.scheduler.ejected.is_some()) {
            trouble.push("left before the end".into());
        }
        let failed = runs
            .iter()
            .flat_map(Run::programs)
            .filter(|p| p.failed.is_some());
        for program in failed.map(base_name) {
            let text = format!("{program} ended early");
            if !trouble.contains(&text) {
                trouble.push(text);
            }
        }
        Self {
            name,
            highlights,
            trouble,
        }
    }

    /// The words for the sentence: what went wrong and the two figures that matter most.
    fn phrases(&self) -> String {
        let highlights = self.highlights.iter().take(2).map(|h| &h.phrase);
        let phrases: Vec<_> = self
            .trouble
            .iter()
            .chain(highlights)
            .map(String::as_str)
            .collect();
        phrases.join(", ")
    }
}

/// The verdict over all cases, the worst of each scheduler; of a single one, its verdict.
pub(super) fn overall(page: &Page) -> Markup {
    let Some(subject) = subject(page.results) else {
        return html! {};
    };
    let runs = |name: &str| -> Vec<Run> {
        let of = |case| runs_of(case).filter(|run: &Run| run.scheduler.name == name);
        page.results.iter().flat_map(of).collect()
    };
    let names = page.schedulers.iter().map(String::as_str);
    let columns: Vec<Column> = names
        .map(|name| Column::of(name, subject, &runs(name)))
        .collect();
    let count = page.results.len();
    let note = (count > 1).then(|| format!("The worst of {count} cases."));
    show(page, &columns, note.as_deref())
}

/// The verdict of one case among several.
pub(super) fn case(page: &Page, result: &RunResult) -> Markup {
    let Some(subject) = subject(std::slice::from_ref(result)) else {
        return html! {};
    };
    let columns = runs_of(result).map(|run| Column::of(&run.scheduler.name, subject, &[run]));
    show(page, &columns.collect::<Vec<_>>(), None)
}

/// Every scheduler in this case.
fn runs_of(case: &RunResult) -> impl Iterator<Item = Run<'_>> {
    let schedulers = case.schedulers.iter();
    schedulers.map(move |scheduler| Run { case, scheduler })
}

fn show(page: &Page, columns: &[Column], note: Option<&str>) -> Markup {
    html! {
        section.verdict {
            p.lead {
                @for (i, column) in columns.iter().enumerate() {
                    @if i > 0 { "; " }
                    span.nowrap { (page.name(column.name)) ":" } " " (column.phrases())
                }
                "." @if let Some(note) = note { " " span.quiet { (note) } }
            }
            div.columns { @for column in columns { (large(page, column)) } }
        }
    }
}

fn large(page: &Page, column: &Column) -> Markup {
    html! {
        section class=(format!("column {}", page.colour(column.name))) {
            h2 { (scheduler_title(column.name)) }
            @if !column.trouble.is_empty() { p.trouble { (column.trouble.join(", ")) } }
            dl { @for highlight in &column.highlights { div {
                dt { (highlight.caption) }
                dd {
                    (highlight.number)
                    @if !highlight.unit.is_empty() { span.unit { (highlight.unit) } }
                }
            } } }
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

/// The players are taken together; of several cases, the one with the most frames lost counts.
fn film(runs: &[Run]) -> Vec<Highlight> {
    let figure = |name: &str, run: &Run| {
        Measure::named(name)
            .of(&run.players().0)
            .unwrap_or_default()
    };
    let lost = |run: &Run| {
        let (players, in_time) = run.players();
        if in_time {
            let counts = players.into_iter().filter_map(not_in_time);
            let (lost, due) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (lost as f64, due as f64, "frames not in time")
        } else {
            let dropped = figure("frames dropped", run);
            let all = dropped + figure("frames shown", run);
            (dropped, all, "frames dropped")
        }
    };
    let mut all = Vec::new();
    let with_film = runs.iter().filter(|run| !run.players().0.is_empty());
    if let Some((lost, of, what)) = with_film.map(lost).max_by(|a, b| a.0.total_cmp(&b.0)) {
        let (lost, of) = (number(lost, 0), number(of, 0));
        let phrase = format!("{lost} of {of} {what}");
        all.push(Highlight {
            number: lost,
            unit: "",
            caption: format!("of {of} {what}"),
            phrase,
        });
    }
    let worst = |name: &str, pick: fn(f64, f64) -> f64| {
        runs.iter()
            .filter_map(|run| Measure::named(name).of(&run.players().0))
            .reduce(pick)
    };
    if let Some(freeze_ms) = worst("longest freeze", f64::max) {
        let freeze = number(freeze_ms, if freeze_ms < 100.0 { 1 } else { 0 });
        let phrase = format!("longest freeze {freeze}{NO_BREAK}ms");
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
fn latency(runs: &[Run]) -> Vec<Highlight> {
    let programs = || {
        runs.iter()
            .flat_map(Run::programs)
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
        let number = number(Measure::named(measure).of(&instances)?, 2);
        let phrase = format!("{name}: {what} {number}{NO_BREAK}µs");
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
fn shares(runs: &[Run]) -> Vec<Highlight> {
    let off = |run: &Run| {
        let asked = run.scheduler.classes.iter().filter(|c| c.share_asked > 0.0);
        asked
            .map(|c| (c.share_received / c.share_asked - 1.0).abs() * 100.0)
            .reduce(f64::max)
    };
    let Some(off) = runs.iter().filter_map(off).reduce(f64::max) else {
        return Vec::new();
    };
    let off = number(off, 2);
    let phrase = format!("every class within {off}{NO_BREAK}% of the share asked");
    let caption = "the most that a class is off the share asked".into();
    vec![Highlight {
        number: off,
        unit: "%",
        caption,
        phrase,
    }]
}

fn work(runs: &[Run]) -> Vec<Highlight> {
    let done =
        |run: &Run| Measure::named("iterations").of(&run.programs().iter().collect::<Vec<_>>());
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
