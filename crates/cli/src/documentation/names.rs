//! Paths, functions and pages that are named must be there.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::pages::{Page, all, below, top};

/// The folders of the repository; a path that begins with one of them is one of ours.
const FOLDERS: [&str; 7] = [
    "bpf",
    "core",
    "crates",
    "dist",
    "docs",
    "papers",
    "scenarios",
];
/// Functions of the kernel and of libc that pages name and no source of ours calls.
const OTHERS_FUNCTIONS: [&str; 1] = ["process_timer_func"];

/// The text of every source, read once.
pub fn sources() -> &'static [String] {
    static SOURCES: OnceLock<Vec<String>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let mut sources = Vec::new();
        for folder in ["bpf", "core", "crates"] {
            for ending in ["h", "c", "rs"] {
                let paths = below(&top().join(folder), ending);
                // Not these checks, which make names up.
                let paths = paths
                    .iter()
                    .filter(|p| !p.starts_with("crates/cli/src/documentation"));
                sources.extend(paths.map(|p| fs::read_to_string(top().join(p)).unwrap()));
            }
        }
        sources
    })
}

/// What is wrong with the paths and functions of a page.
pub fn complaints(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for code in page.code() {
        let mut complain =
            |what: String| complaints.push(format!("{}: {what}", page.at(code.line)));
        for word in code.text.split_whitespace() {
            let word =
                word.trim_matches(|c: char| matches!(c, '"' | '\'' | ',' | ';' | ':' | '(' | ')'));
            if is_ours(word) && !top().join(word).exists() {
                complain(format!("there is no {word}"));
            }
        }
        if let Some(name) = code.text.strip_suffix("()")
            && !code.in_block
            && is_name(name)
            && !is_defined(name)
        {
            complain(format!("no source has {name}()"));
        }
    }
    complaints
}

/// Is it the path of a file or folder here? Capital words and dots stand for any, as in papers/KEY.
fn is_ours(word: &str) -> bool {
    let mut parts = word.split('/');
    let any = |part: &str| {
        let capital = |c: char| c.is_ascii_uppercase() || c == '-';
        part.len() > 1 && part.chars().all(capital) && !["README", "SUMMARY"].contains(&part)
    };
    parts.next().is_some_and(|first| FOLDERS.contains(&first))
        && word.contains('/')
        && !word.contains(['*', '…', '<', '{'])
        && !word.split(['/', '.']).any(any)
        && !word.contains("NNN")
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_defined(name: &str) -> bool {
    let in_text = |text: &String| {
        let ends = |at: usize| text[at + name.len()..].chars().next();
        let begins = |at: usize| text[..at].chars().next_back();
        let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        text.match_indices(name)
            .any(|(at, _)| apart(begins(at)) && apart(ends(at)))
    };
    OTHERS_FUNCTIONS.contains(&name) || sources().iter().any(in_text)
}

/// What is wrong with the links of a page, and with what it includes. A link of the book's stays in the book.
pub fn links(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, link) in page.links() {
        if link.starts_with("https://") {
            continue;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = if path.is_empty() {
            page.path.clone()
        } else {
            page.beside(path)
        };
        let at = page.at(line);
        let in_book = page.path.starts_with("docs") && !page.path.ends_with("SUMMARY.md");
        if !path.is_empty() && !top().join(&target).exists() {
            complaints.push(format!("{at}: {link} leads nowhere"));
        } else if page.path.starts_with("docs") && !target.starts_with("docs") {
            complaints.push(format!("{at}: {link} leads out of the book"));
        } else if in_book && path.ends_with("README.md") {
            // mdBook writes index.html for it, and leaves links to README.html.
            complaints.push(format!(
                "{at}: {link} is no page of the book: name it index.md"
            ));
        } else if !anchor.is_empty() && !has_anchor(page, &target, anchor) {
            complaints.push(format!(
                "{at}: {} has no heading #{anchor}",
                target.display()
            ));
        }
    }
    for path in page.included() {
        if !top().join(page.beside(&path)).exists() {
            complaints.push(format!(
                "{}: includes {path}, which is not there",
                page.path.display()
            ));
        }
    }
    complaints
}

fn has_anchor(page: &Page, target: &Path, anchor: &str) -> bool {
    let has = |page: &Page| page.anchors().iter().any(|a| a == anchor);
    if target == page.path {
        return has(page);
    }
    all().iter().any(|other| other.path == target && has(other))
}
