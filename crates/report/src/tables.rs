//! The parts of the report that are words and numbers: checks, figures, definitions, the command.

use std::borrow::Cow;
use std::collections::BTreeSet;

use andante_judge::unclocked::skipped_for_time;
use andante_result::figures::{Block, Detail, MEASURES, blocks};
use andante_result::{ProgramResult, RunResult};
use andante_scenario::choice::Choice;
use maud::{Markup, html};

use super::{Check, Page};

/// More checks than this are a wall: those that passed go behind a fold.
const MOST_CHECKS: usize = 20;

/// What was expected and what came out; nothing without checks.
pub(super) fn checks(checks: &[Check]) -> Markup {
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.passed).collect();
    let summary = match (failed.len(), checks.len()) {
        (0, 1) => "The one check passed.".into(),
        (0, all) => format!("All {all} checks passed."),
        (failed, all) => format!("{failed} of {all} checks failed."),
    };
    let all: Vec<&Check> = checks.iter().collect();
    html! {
        @if !checks.is_empty() {
            section {
                h2 { "Checks" }
                p { (summary) }
                @if checks.len() <= MOST_CHECKS {
                    (check_table(&all))
                } @else {
                    @if !failed.is_empty() { (check_table(&failed)) }
                    details { summary { "Every check" } (check_table(&all)) }
                }
            }
        }
    }
}

fn check_table(checks: &[&Check]) -> Markup {
    let says_what = checks.iter().any(|check| !check.what.is_empty());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Checks" {
            table.checks {
                thead { tr {
                    @if says_what { th scope="col" { "case" } }
                    th scope="col" { "wanted" }
                    th scope="col" { "measured" }
                    th scope="col" { "outcome" }
                } }
                tbody { @for check in checks { tr {
                    @if says_what { td.what { (check.what) } }
                    th scope="row" { (check.wanted) }
                    td { (check.measured) }
                    @if check.passed { td.passed { "✓ passed" } }
                    @else { td.failed { "✗ failed" } }
                } } }
            }
        }
    }
}

/// The deciding figures of `result`, and every figure behind a fold.
pub(super) fn figures(page: &Page, result: &RunResult) -> Markup {
    let (brief, full) = (
        blocks(result, page.schedulers, Detail::Brief),
        blocks(result, page.schedulers, Detail::Full),
    );
    html! {
        @if !brief.is_empty() {
            section {
                h2 { "Figures" }
                (table(page, &brief, "The figures that decide"))
                details { summary { "Every figure of every program" } (table(page, &full, "Every figure")) }
            }
        }
    }
}

fn table(page: &Page, blocks: &[Block], caption: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table.figures {
                caption { (caption) }
                thead { tr {
                    td {}
                    @for name in page.schedulers { th scope="col" { (page.name(name)) } }
                } }
                @for block in blocks {
                    tbody {
                        tr.block { th scope="rowgroup" colspan=(page.schedulers.len() + 1) {
                            span.stays { (block.title) " " span.note { (block.note) } }
                        } }
                        @for row in &block.rows {
                            tr class=[row.trouble.then_some("trouble")] {
                                th scope="row" { (row.label) }
                                @for cell in &row.cells { td class=[cell.best.then_some("best")] { (cell.text) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the measures of `results` mean; only those that occur.
pub(super) fn definitions(results: &[RunResult]) -> Markup {
    let programs: Vec<&ProgramResult> = results
        .iter()
        .flat_map(|r| &r.schedulers)
        .flat_map(|s| &s.programs)
        .collect();
    let classes = results
        .iter()
        .flat_map(|r| &r.schedulers)
        .any(|s| !s.classes.is_empty());
    html! {
        section {
            h2 { "What is measured" }
            dl.definitions {
                @for measure in MEASURES.iter().filter(|m| m.of(&programs).is_some()) {
                    dt { (measure.name) }
                    dd { (measure.meaning) }
                }
                @if classes {
                    dt { "share asked" }
                    dd { "What the weights give a class while all of its siblings, and those of every \
                          class above it, want to run; and what its tasks can use, where that is less: one \
                          CPU each." }
                    dt { "share received" }
                    dd { "CPU time of the class and all below it, over the CPU time of all CPUs in the \
                          measurement." }
                }
            }
            @if results.iter().any(|r| r.on == "parallel") {
                p.footnote {
                    "Every virtual CPU was a thread of the host, so that they really ran at once; none of the \
                     times says anything. " (skipped_for_time(results)) " expectations that depend on time \
                     were not judged."
                }
            }
            @if results.iter().any(|r| r.on == "vm") {
                p.footnote {
                    "All times are virtual. The real kernel and the real programs ran in a virtual machine \
                     that counts one nanosecond for one instruction, so the figures do not depend on the \
                     machine it ran on or what else that was doing, and a second run gives the same, to the \
                     last digit. Compare figures of one image only; on several CPUs, all share that one \
                     budget of instructions."
                }
            }
        }
    }
}

/// The command that gives `result` again, and those of `all` that came of the same run.
fn command(result: &RunResult, all: &[RunResult]) -> String {
    let mut command = format!("andante lab run {}", quoted(&result.scenario));
    let schedulers = result.schedulers.iter().map(|s| s.name.as_str());
    let on = match result.on.as_str() {
        "parallel" => "--parallel".to_owned(),
        on => format!("--on {on}"),
    };
    command += &format!(" --scheduler {} {on}", listed(schedulers));
    if result.cases_chosen {
        let same = all.iter().filter(|other| other.scenario == result.scenario);
        let cases = same.filter_map(|other| other.case.as_deref());
        command += &format!(" --case {}", listed(cases));
    }
    for line in &result.set {
        command += &format!(" --set {}", quoted(line));
    }
    command
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quoted).collect::<Vec<_>>().join(",")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> Cow<'_, str> {
    shlex::try_quote(word).expect("no argument that was given has a NUL")
}

/// The command that gives these results again.
pub(super) fn reproduction(results: &[RunResult]) -> Markup {
    let mut commands: Vec<String> = results.iter().map(|r| command(r, results)).collect();
    commands.dedup();
    let names = results
        .iter()
        .flat_map(|r| &r.schedulers)
        .map(|s| s.name.as_str());
    let files: BTreeSet<&str> = names.filter(|name| Choice::named(name).is_none()).collect();
    let files: Vec<&str> = files.into_iter().collect();
    html! {
        section {
            h2 { "To see it again" }
            pre { code { (commands.join("\n")) } }
            @if !files.is_empty() { p { "Give " (files.join(", ")) " with its path." } }
        }
    }
}
