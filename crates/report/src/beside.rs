//! All that goes with a report: the scenario's words about itself, and the files that lie beside the page.

use std::path::Path;

use andante_result::RunResult;
use maud::{Markup, html};

/// More cases than this have their files behind a fold.
const MOST_CASES: usize = 6;

/// All that is known of a run besides its results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// The scenario's words about itself, in paragraphs with an empty line between; may be empty.
    pub description: String,
    /// Files, by case.
    pub cases: Vec<CaseFiles>,
}

/// The files of one case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseFiles {
    /// Its name; empty where the scenario has no cases.
    pub case: String,
    /// Each one's title, and where it lies from the report's own folder.
    pub files: Vec<(String, String)>,
}

impl Beside {
    /// The scenario's own words, and those files of `results` that there are in the report's folder.
    pub fn of(description: &str, results: &[RunResult], folder: &Path) -> Self {
        let cases = results.iter().map(|result| case_files(result, folder));
        Self {
            description: description.to_owned(),
            cases: cases.filter(|case| !case.files.is_empty()).collect(),
        }
    }
}

fn case_files(result: &RunResult, folder: &Path) -> CaseFiles {
    let case = result.case.clone().unwrap_or_default();
    let (below, before) = match &result.case {
        Some(case) => (format!("{case}/"), format!("{case}-")),
        None => Default::default(),
    };
    let console = |name: &str| {
        (
            format!("console under {name}"),
            format!("logs/{before}{name}.console"),
        )
    };
    let mut files = vec![
        (
            "trace for Perfetto".to_owned(),
            format!("{below}{TRACE_FILE}"),
        ),
        ("result.json".to_owned(), format!("{below}result.json")),
    ];
    // Only what runs on a kernel of its own has a console.
    if matches!(result.on.as_str(), "vm" | "parallel") {
        files.extend(result.schedulers.iter().map(|one| console(&one.name)));
    }
    files.retain(|(_, path)| folder.join(path).is_file());
    CaseFiles { case, files }
}

/// How a trace is called in a case's folder.
pub const TRACE_FILE: &str = "trace.perfetto-trace";

/// The scenario in its own words; nothing if it has none.
pub(super) fn description(beside: &Beside) -> Markup {
    html! {
        @if !beside.description.trim().is_empty() {
            section.description {
                h2 { "What was run" }
                (prose(&beside.description))
            }
        }
    }
}

/// Paragraphs; one that is indented is code.
pub fn prose(text: &str) -> Markup {
    let paragraphs = text.split("\n\n").filter(|part| !part.trim().is_empty());
    html! {
        @for paragraph in paragraphs {
            @if paragraph.lines().all(|line| line.is_empty() || line.starts_with("    ")) {
                pre { code { (dedented(paragraph)) } }
            } @else {
                p { (marked(paragraph)) }
            }
        }
    }
}

fn dedented(paragraph: &str) -> String {
    let lines: Vec<&str> = paragraph
        .lines()
        .map(|line| line.get(4..).unwrap_or(""))
        .collect();
    lines.join("\n")
}

/// Text between backticks is code.
fn marked(paragraph: &str) -> Markup {
    let closed = paragraph.matches('`').count().is_multiple_of(2);
    html! {
        @for (place, part) in paragraph.trim().split('`').enumerate() {
            @if place % 2 == 1 && closed { code { (part) } }
            @else if place % 2 == 1 { "`" (part) }
            @else { (part) }
        }
    }
}

/// The files beside the report, and how to open the traces; nothing if there are none.
pub(super) fn files(beside: &Beside) -> Markup {
    let traces = beside.cases.iter().flat_map(|case| &case.files);
    let traced = traces.clone().any(|(_, path)| path.ends_with(TRACE_FILE));
    html! {
        @if !beside.cases.is_empty() {
            section {
                h2 { "Files of this run" }
                @if beside.cases.len() > MOST_CASES {
                    details { summary { "Of " (beside.cases.len()) " cases" } (list(beside)) }
                } @else { (list(beside)) }
                @if traced {
                    p { "A trace shows when each frame came and what every class had, and who ran where if the \
                         scenario asks for it. Open ui.perfetto.dev in a browser, choose “Open trace file”, and \
                         give it the file: it stays on this machine." }
                }
            }
        }
    }
}

fn list(beside: &Beside) -> Markup {
    html! {
        ul.files { @for case in &beside.cases { li {
            @if !case.case.is_empty() { (case.case) ": " }
            @for (place, (what, path)) in case.files.iter().enumerate() {
                @if place > 0 { ", " }
                a href=(address(path)) { (what) }
            }
        } } }
    }
}

/// A path as an address from here: whatever a name may have in it that an address may not is escaped.
pub fn address(path: &str) -> String {
    let mut address = String::new();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => address.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => address.push(byte.into()),
            byte => address += &format!("%{byte:02X}"),
        }
    }
    address
}
