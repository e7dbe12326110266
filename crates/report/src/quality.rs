//! Value contours: how well each program is served beside the others, the same program alone being 1
//! (J. Nieh, J. Hanko, J. Northcutt, G. Wall: *SVR4 UNIX Scheduler Unacceptable for Multimedia
//! Applications*, NOSSDAV 1993, figure 2).
//!
//! A scenario has them if two or more of its programs each have a case in which they run alone, but for
//! servers, and there is a case in which they all run. Alone is alone under one scheduler, the same for
//! all: the stock one if it was run.

use andante_result::cases::base_name;
use andante_result::title::scheduler_title;
use andante_result::{ProgramResult, RunResult, SchedulerResult, Spread};
use maud::{Markup, html};

use super::{Page, contour};
use crate::contour::{Application, Setting, Value, ValueContour, quality};

/// Kinds that work for others and have no quality of their own.
const SERVERS: [&str; 3] = ["server", "xvfb", "jack"];
/// What is compared of every program.
const MEASURES: [&str; 2] = ["mean", "standard deviation"];

/// A program whose quality is judged.
#[derive(Debug)]
struct Judged<'a> {
    name: &'a str,
    alone: Spread,
}

/// A panel for each scheduler and each case in which all run; nothing if the scenario has no such cases.
pub(super) fn section(page: &Page) -> Markup {
    let Some(reference) = reference(page.schedulers) else {
        return html! {};
    };
    let judged = judged(page.results, reference);
    let together: Vec<_> = page
        .results
        .iter()
        .enumerate()
        .filter(|(_, result)| judged.iter().all(|one| has(result, one.name)))
        .collect();
    if judged.len() < 2 || together.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Quality beside the others" }
            figure {
                @for (index, result) in &together {
                    @if together.len() > 1 { h3 { (page.cases.title(*index)) } }
                    (contour::draw(&contour(&judged, result), None))
                }
                figcaption {
                    "Value contours: the time a program needs alone, over the time it needs here; mean and \
                     standard deviation. The time is that between two frames, that from a key to its \
                     answer, or that of one job. A bar up to the dashed line is a program served as if it were \
                     alone under " (scheduler_title(reference)) "; one that is missing stands still. With \
                     several programs of a name it is the worst of them."
                }
            }
        }
    }
}

/// Under whom alone is alone.
fn reference(schedulers: &[String]) -> Option<&str> {
    let named = |name: &str| schedulers.iter().find(|one| *one == name);
    let first = named("stock").or_else(|| named("eevdf"));
    first.or(schedulers.first()).map(String::as_str)
}

/// Programs that run alone in some case, in the order of the cases.
fn judged<'a>(results: &'a [RunResult], reference: &str) -> Vec<Judged<'a>> {
    let mut judged: Vec<Judged<'a>> = Vec::new();
    for result in results {
        let run = result.schedulers.iter().find(|s| s.name == reference);
        let Some(run) = run else { continue };
        let Some(name) = alone(run) else { continue };
        if let Some(alone) = spread(run, name)
            && judged.iter().all(|one| one.name != name)
        {
            judged.push(Judged { name, alone });
        }
    }
    judged
}

/// The one program of the run that is no server.
fn alone(run: &SchedulerResult) -> Option<&str> {
    let mut others = run
        .programs
        .iter()
        .filter(|program| !SERVERS.contains(&program.kind.as_str()));
    let name = base_name(others.next()?);
    others.all(|other| base_name(other) == name).then_some(name)
}

fn has(result: &RunResult, name: &str) -> bool {
    let runs = result.schedulers.first();
    runs.is_some_and(|run| run.programs.iter().any(|p| base_name(p) == name))
}

/// The times of what the program does, of the worst of its instances.
fn spread(run: &SchedulerResult, name: &str) -> Option<Spread> {
    let same = |p: &&ProgramResult| base_name(p) == name;
    let times = |p: &ProgramResult| p.frame_ms.or(p.latency_us).or(p.iteration_ms);
    let all = run.programs.iter().filter(same).filter_map(times);
    all.max_by(|a, b| a.mean.total_cmp(&b.mean))
}

fn contour(judged: &[Judged<'_>], result: &RunResult) -> ValueContour {
    let application = |one: &Judged<'_>| Application {
        title: one.name.to_owned(),
        measures: MEASURES.map(str::to_owned).to_vec(),
    };
    let setting = |run: &SchedulerResult| {
        let values = |one: &Judged<'_>| {
            let beside = spread(run, one.name);
            let value = |of: fn(Spread) -> f64| Value {
                published: None,
                measured: quality(Some(of(one.alone)), beside.map(of), beside.is_none()),
            };
            vec![value(|spread| spread.mean), value(|spread| spread.sd)]
        };
        Setting {
            title: scheduler_title(&run.name),
            values: judged.iter().map(values).collect(),
        }
    };
    ValueContour {
        applications: judged.iter().map(application).collect(),
        settings: result.schedulers.iter().map(setting).collect(),
    }
}
