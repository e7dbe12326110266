//! What people see of a run: a table or a few lines on a terminal ([`table`], [`brief`]), a trace for Perfetto
//! ([`trace`]), and the report, one HTML file that needs nothing but itself.
//!
//! The figures and their rounding come from [`andante_result::figures`]; nothing is computed here that the
//! result does not hold. In the report, `verdict` says first what came out, `frames`, `shares` and `bars`
//! show it, `quality` sets programs beside others against the same alone, `sweep` shows how it goes over many
//! cases, and `tables` lists every figure, what was expected, and what each measure means; [`beside`] has the
//! scenario's own words and names the files of the run. No script, and no address but theirs, which are
//! relative: the page opens offline, prints, and follows the reader's choice of light or dark.

mod bars;
pub mod beside;
pub mod brief;
pub mod contour;
mod frames;
mod quality;
mod shares;
pub mod svg;
mod sweep;
pub mod table;
mod tables;
pub mod trace;
mod verdict;

use crate::beside::Beside;
use andante_result::cases::{Cases, scheduler_names};
use andante_result::figures::machine_line;
use andante_result::title::scheduler_title;
use andante_result::{Judgement, RunResult, SchedulerResult, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Something that was expected of a run, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was looked at, e.g. the case; may be empty if that goes without saying.
    pub what: String,
    /// What was expected of it, e.g. `andante: dropped of film at most 0`.
    pub wanted: String,
    /// What came out; empty if there was nothing to measure.
    pub measured: String,
    /// Whether that is as wanted.
    pub passed: bool,
}

impl Check {
    /// The expectations of `results` that were judged, in their order. Those whose scheduler was
    /// left out of the run on purpose are no checks.
    pub fn of(results: &[RunResult]) -> Vec<Self> {
        let judged = results.iter().flat_map(|result| {
            let judged = result
                .expectations
                .iter()
                .filter(|e| e.verdict != Verdict::NotJudged);
            judged.map(|e| (result.case.clone().unwrap_or_default(), e))
        });
        let check = |(what, judgement): (String, &Judgement)| Self {
            what,
            wanted: judgement.expectation.clone(),
            measured: match &judgement.reason {
                Some(reason) => reason.clone(),
                None => judgement.measured_text().unwrap_or_default(),
            },
            passed: judgement.verdict == Verdict::Pass,
        };
        judged.map(check).collect()
    }
}

/// Up to so many cases are shown in full; of more, the sweep is shown and the cases can be opened.
const CASES_IN_FULL: usize = 3;

/// Colours that the style sheet has for series and labels.
const SERIES_COLOURS: usize = 8;

/// The style class of the colour of this number.
pub fn series_colour(number: usize) -> String {
    format!("series-{}", number % SERIES_COLOURS)
}

/// Colours the style sheet has for schedulers other than Andante and the stock one.
const OTHER_COLOURS: usize = 5;

/// The style class that gives a scheduler its colour: the same in every report for the two that are in
/// most, by place among `schedulers` for others.
pub fn colour_of(name: &str, schedulers: &[String]) -> String {
    let known = |name: &str| matches!(name, "andante" | "eevdf" | "stock");
    match name {
        "andante" => "andante".into(),
        "stock" => "stock".into(),
        "eevdf" if !schedulers.iter().any(|name| name == "stock") => "stock".into(),
        "eevdf" => "other-0".into(),
        _ => {
            let mut others = schedulers.iter().filter(|other| !known(other));
            let place = others.position(|other| other == name).unwrap_or(0);
            format!("other-{}", place % OTHER_COLOURS)
        }
    }
}

/// The report of `results`, the cases of one scenario, as a whole HTML document.
///
/// Every name in it is escaped. `checks` may be empty, and so may `results`.
pub fn html(results: &[RunResult], checks: &[Check]) -> String {
    html_beside(results, checks, &Beside::default())
}

/// The same with the scenario's own words, and with the files that lie beside it.
pub fn html_beside(results: &[RunResult], checks: &[Check], beside: &Beside) -> String {
    let schedulers = scheduler_names(results);
    let cases = Cases::of(results);
    let page = Page {
        results,
        schedulers: &schedulers,
        cases: &cases,
    };
    let title = page.title();
    let body = html! {
        header {
            p.kicker { "Andante laboratory" @if let Some(first) = results.first() { " · " (first.scenario) } }
            h1 { (title) }
            @if let Some(first) = results.first() { p.machine { (machine_line(first)) } }
        }
        main {
            @if results.is_empty() { p.lead { "This run brought no results." } }
            (verdict::overall(&page))
            (beside::description(beside))
            (tables::checks(checks))
            (quality::section(&page))
            (sweep::section(&page))
            @for (index, result) in results.iter().enumerate() { (page.case(index, result)) }
            @if !results.is_empty() {
                (tables::definitions(results))
                (beside::files(beside))
                (tables::reproduction(results))
            }
        }
    };
    document(&title, "", body).into_string()
}

/// A whole document that needs nothing but itself, in the report's style and `style` after it.
pub fn document(title: &str, style: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Andante" }
                style { (PreEscaped(include_str!("style.css"))) (PreEscaped(style)) }
            }
            body { (body) }
        }
    }
}

/// What every part of the report looks at.
struct Page<'a> {
    results: &'a [RunResult],
    /// The names of all schedulers; their places give them their colours.
    schedulers: &'a [String],
    cases: &'a Cases,
}

impl Page<'_> {
    /// The title of the scenario; of several scenarios, all of theirs.
    fn title(&self) -> String {
        let mut titles: Vec<&str> = self.results.iter().map(|r| r.title.as_str()).collect();
        titles.dedup();
        if titles.is_empty() {
            "No results".into()
        } else {
            titles.join(" · ")
        }
    }

    fn colour(&self, name: &str) -> String {
        colour_of(name, self.schedulers)
    }

    /// The name of a scheduler, marked with its colour.
    fn name(&self, name: &str) -> Markup {
        html! { span class=(format!("name {}", self.colour(name))) { (scheduler_title(name)) } }
    }

    /// The legend for plots with a line or bar for each of `schedulers`.
    fn legend<'b>(&self, schedulers: impl Iterator<Item = &'b SchedulerResult>) -> Markup {
        html! {
            ul.legend { @for scheduler in schedulers { li { (self.name(&scheduler.name)) } } }
        }
    }

    fn case(&self, index: usize, result: &RunResult) -> Markup {
        let content = html! {
            (frames::section(self, result))
            (shares::section(self, result))
            (bars::section(self, result))
            (tables::figures(self, result))
        };
        if self.results.len() == 1 {
            return content;
        }
        let heading = self.cases.title(index);
        if self.results.len() > CASES_IN_FULL {
            return html! { details.case { summary { (heading) } (content) } };
        }
        html! { section.case { h2.case-title { (heading) } (verdict::case(self, result)) (content) } }
    }
}
