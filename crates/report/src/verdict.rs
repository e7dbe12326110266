//! What came out, in one sentence and a few large numbers.

use andante_result::cases::base_name;
use andante_result::figures::{Measure, not_in_time, number};
use andante_result::title::scheduler_title;
use andante_result::units::{NO_BREAK, time};
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

/// A number of more characters than this is set smaller, so that two stand side by side on a phone.
const SHORT: usize = 6;

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
    /// In how many cases it was as it should be; nothing of a single case.
    tally: Option<String>,
}

impl<'a> Column<'a> {
    /// Of one scheduler in one case.
    fn of(subject: Subject, run: &Run<'a>) -> Self {
        let mut trouble: Vec<String> = Vec::new();
        if run.scheduler.ejected.is_some() {
            trouble.push("left before the end".into());
        }
        let failed = run.programs().iter().filter(|p| p.failed.is_some());
        for program in failed.map(base_name) {
            let text = format!("{program} ended early");
            if !trouble.contains(&text) {
                trouble.push(text);
            }
        }
        Self {
            name: &run.scheduler.name,
            highlights: subject.highlights(run),
            trouble,
            tally: None,
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

/// The verdict over all cases: the figures of one case, the same for every scheduler, since the worst of
/// each over different cases would compare what nobody ran beside each other. It is the one that is worst
/// for the scheduler that the report is about. Of a single case, its verdict.
pub(super) fn overall(page: &Page) -> Markup {
    let Some(subject) = subject(page.results) else {
        return html! {};
    };
    let compared = Compared::of(page, subject);
    let Some(case) = compared.worst() else {
        return html! {};
    };
    let columns = runs_of(&page.results[case]).map(|run| {
        let tally = compared.tally(&run.scheduler.name);
        let column = Column::of(subject, &run);
        Column { tally, ..column }
    });
    let columns: Vec<Column> = columns.collect();
    let note = (page.results.len() > 1).then(|| compared.note(case));
    show(page, &columns, note.as_deref())
}

/// The cases of which one is shown: those that all schedulers ran, and that have what is looked at.
struct Compared<'a> {
    page: &'a Page<'a>,
    subject: Subject,
    /// The scheduler that the report is about.
    about: &'a str,
    /// Places of the results.
    cases: Vec<usize>,
    /// Whether every scheduler of the report ran in all of them.
    by_all: bool,
}

impl<'a> Compared<'a> {
    fn of(page: &'a Page, subject: Subject) -> Self {
        let has_subject = |result: &RunResult| {
            let mut runs = runs_of(result);
            runs.any(|run| !subject.highlights(&run).is_empty())
        };
        let with_subject = |place: &usize| has_subject(&page.results[*place]);
        let ran = |place: &usize| page.results[*place].schedulers.len();
        let cases: Vec<usize> = (0..page.results.len()).filter(with_subject).collect();
        // Where no case was run under all, those that most ran.
        let most = cases.iter().map(ran).max().unwrap_or(0);
        let cases = cases.into_iter().filter(|place| ran(place) == most);
        let cases: Vec<usize> = cases.collect();
        let about = |name: &&String| *name == "andante";
        let about = page
            .schedulers
            .iter()
            .find(about)
            .or(page.schedulers.first());
        Self {
            page,
            subject,
            about: about.map_or("", String::as_str),
            cases,
            by_all: most == page.schedulers.len(),
        }
    }

    /// The figures that decide of a scheduler in a case, more being worse; nothing to compare is worst.
    fn badness(&self, place: usize, name: &str) -> [f64; 2] {
        let run = runs_of(&self.page.results[place]).find(|run| run.scheduler.name == name);
        run.map_or([f64::NEG_INFINITY; 2], |run| self.subject.badness(&run))
    }

    /// The first of the cases that are worst for the scheduler that the report is about.
    fn worst(&self) -> Option<usize> {
        self.cases.iter().copied().reduce(|worst, place| {
            let (one, other) = (
                self.badness(place, self.about),
                self.badness(worst, self.about),
            );
            match one.partial_cmp(&other) {
                Some(std::cmp::Ordering::Greater) => place,
                _ => worst,
            }
        })
    }

    /// In how many cases nothing of the film was lost.
    fn tally(&self, name: &str) -> Option<String> {
        if self.subject != Subject::Film || self.cases.len() < 2 {
            return None;
        }
        let runs = self.cases.iter().filter_map(|place| {
            runs_of(&self.page.results[*place]).find(|run| run.scheduler.name == name)
        });
        let runs: Vec<Run> = runs.collect();
        let good = runs.iter().filter(|run| lost(run).count == 0).count();
        let what = match runs.iter().any(|run| run.players().1) {
            true => "in time",
            false => "shown",
        };
        Some(format!(
            "every frame {what} in {good} of {} cases",
            runs.len()
        ))
    }

    /// Which case it is, and of which.
    fn note(&self, case: usize) -> String {
        let title = self.page.cases.title(case);
        let count = self.cases.len();
        let ran = match self.by_all {
            true => "all schedulers ran",
            false => "most schedulers ran",
        };
        let with = match self.subject {
            Subject::Film => " with a film",
            _ => "",
        };
        let others = match count {
            1 => format!("the one{with} that {ran}"),
            _ => format!(
                "the worst for {} of {count}{with} that {ran}",
                scheduler_title(self.about)
            ),
        };
        format!("In the case “{title}”, {others}.")
    }
}

/// The verdict of one case among several.
pub(super) fn case(page: &Page, result: &RunResult) -> Markup {
    let Some(subject) = subject(std::slice::from_ref(result)) else {
        return html! {};
    };
    let columns = runs_of(result).map(|run| Column::of(subject, &run));
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
                dd.long[highlight.number.chars().count() > SHORT] {
                    (highlight.number)
                    @if !highlight.unit.is_empty() { span.unit { (highlight.unit) } }
                }
            } } }
            @if let Some(tally) = &column.tally { p.tally { (tally) } }
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

impl Subject {
    /// The figures that are said of a run.
    fn highlights(self, run: &Run) -> Vec<Highlight> {
        match self {
            Subject::Film => film(run),
            Subject::Latency => latency(run),
            Subject::Shares => off(run).map(shares).into_iter().collect(),
            Subject::Work => done(run).map(work).into_iter().collect(),
        }
    }

    /// How bad the run is: by what decides, and of equal ones by what comes next.
    fn badness(self, run: &Run) -> [f64; 2] {
        let none = f64::NEG_INFINITY;
        match self {
            Subject::Film => [lost(run).share(), freeze_ms(run).unwrap_or(none)],
            Subject::Latency => {
                let figures = latencies(run).into_iter().map(|(_, _, us)| us);
                [figures.fold(none, f64::max), none]
            }
            Subject::Shares => [off(run).unwrap_or(none), none],
            Subject::Work => [done(run).map_or(none, |done| -done), none],
        }
    }
}

/// Frames of the players that count, taken together.
struct Lost {
    count: u64,
    of: u64,
    what: &'static str,
}

impl Lost {
    fn share(&self) -> f64 {
        self.count as f64 / self.of.max(1) as f64
    }
}

/// Frames that were not in time, where that is asked for; else those that were not shown. Of a player that
/// was starved most are neither shown nor dropped: those were due all the same.
fn lost(run: &Run) -> Lost {
    let (players, in_time) = run.players();
    let not_shown = |player: &ProgramResult| {
        let shown = player.frames.unwrap_or(0);
        let due = player.due.unwrap_or(0);
        let due = due.max(shown + player.dropped.unwrap_or(0));
        (due - shown, due)
    };
    let counts = players.into_iter().filter_map(|player| match in_time {
        true => not_in_time(player),
        false => Some(not_shown(player)),
    });
    let (count, of) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let what = match in_time {
        true => "frames not in time",
        false => "frames not shown",
    };
    Lost { count, of, what }
}

fn of_players(run: &Run, measure: &str) -> Option<f64> {
    Measure::named(measure).of(&run.players().0)
}

fn freeze_ms(run: &Run) -> Option<f64> {
    of_players(run, "longest freeze")
}

/// The players are taken together.
fn film(run: &Run) -> Vec<Highlight> {
    if run.players().0.is_empty() {
        return Vec::new();
    }
    let lost = lost(run);
    let (count, of) = (number(lost.count as f64, 0), number(lost.of as f64, 0));
    let mut all = vec![Highlight {
        phrase: format!("{count} of {of} {}", lost.what),
        caption: format!("of {of} {}", lost.what),
        number: count,
        unit: "",
    }];
    let freeze = freeze_ms(run).map(|ms| time(ms / 1e3));
    match freeze {
        Some((freeze, unit)) => all.push(Highlight {
            phrase: format!("longest freeze {freeze}{NO_BREAK}{unit}"),
            number: freeze,
            unit,
            caption: "longest freeze".into(),
        }),
        // A picture that never came does not freeze, and is no better for it.
        None => all.push(Highlight {
            number: "–".into(),
            unit: "",
            caption: "longest freeze: fewer than two frames were shown".into(),
            phrase: "fewer than two frames shown".into(),
        }),
    }
    if let Some(rate) = of_players(run, "frame rate") {
        let rate = number(rate, 1);
        all.push(Highlight {
            phrase: format!("{rate} frames a second"),
            number: rate,
            unit: "",
            caption: "frames a second".into(),
        });
    }
    all
}

/// Each program that measures latency, what is looked at, and the figure [µs]: round trips by their mean,
/// since they are a cost; waiting by its 99th percentile, since it is the tail that is felt.
fn latencies<'a>(run: &Run<'a>) -> Vec<(&'a str, &'static str, f64)> {
    let programs = || run.programs().iter().filter(|p| p.latency_us.is_some());
    let mut names: Vec<&str> = Vec::new();
    for program in programs() {
        if !names.contains(&base_name(program)) {
            names.push(base_name(program));
        }
    }
    let figure = |name: &'a str| {
        let instances: Vec<_> = programs().filter(|p| base_name(p) == name).collect();
        let round_trip = instances.iter().all(|p| p.kind == "pingpong");
        let (measure, what) = if round_trip {
            ("latency, mean", "mean round trip")
        } else {
            ("latency, p99", "99th percentile")
        };
        Some((name, what, Measure::named(measure).of(&instances)?))
    };
    let mut all: Vec<_> = names.into_iter().filter_map(figure).collect();
    // Of senders those come first that do not wait for a link which they want all of.
    if programs().all(|program| program.kind == "sender") {
        all.sort_by(|(.., one), (.., other)| one.total_cmp(other));
    }
    all
}

fn latency(run: &Run) -> Vec<Highlight> {
    let highlight = |(name, what, us): (&str, &str, f64)| {
        let (number, unit) = time(us / 1e6);
        Highlight {
            phrase: format!("{name}: {what} {number}{NO_BREAK}{unit}"),
            number,
            unit,
            caption: format!("{name}: {what}"),
        }
    };
    latencies(run).into_iter().map(highlight).collect()
}

/// How far the worst class is from what its weight asks, in per cent of that.
fn off(run: &Run) -> Option<f64> {
    // More than its tasks can use is not asked of anybody.
    let asked = run.scheduler.classes.iter().filter(|c| c.share_due() > 0.0);
    asked
        .map(|c| (c.share_received / c.share_due() - 1.0).abs() * 100.0)
        .reduce(f64::max)
}

fn shares(off: f64) -> Highlight {
    let off = number(off, 2);
    Highlight {
        phrase: format!("every class within {off}{NO_BREAK}% of the share asked"),
        number: off,
        unit: "%",
        caption: "the most that a class is off the share asked".into(),
    }
}

/// The work of all programs together.
fn done(run: &Run) -> Option<f64> {
    Measure::named("iterations").of(&run.programs().iter().collect::<Vec<_>>())
}

fn work(done: f64) -> Highlight {
    let done = number(done, 0);
    Highlight {
        phrase: format!("{done} iterations"),
        number: done,
        unit: "",
        caption: "iterations".into(),
    }
}
