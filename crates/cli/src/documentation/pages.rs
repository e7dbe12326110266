//! Pages of Markdown, as far as the checks need them: blocks of code, spans of code, links, headings.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page, under its path from the top of the repository.
pub struct Page {
    pub path: PathBuf,
    pub text: String,
}

/// A line of a block of code, or a span of code within a sentence.
pub struct Code {
    pub line: usize,
    pub text: String,
    pub in_block: bool,
}

/// The top of the repository.
pub fn top() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// Without `.` and `..`; nothing is asked of the file system.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// README and the guides beside it, and every page of the book.
pub fn all() -> Vec<Page> {
    let guides = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "core/README.md",
        "scenarios/README.md",
        "papers/README.md",
    ];
    let mut paths: Vec<PathBuf> = guides.iter().map(PathBuf::from).collect();
    paths.extend(below(&top().join("docs"), "md"));
    paths.into_iter().map(Page::read).collect()
}

/// The files below a folder whose names end so, by their paths from the top of the repository.
pub fn below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path, ending));
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path.strip_prefix(top()).unwrap().to_path_buf());
        }
    }
    found.sort();
    found
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(top().join(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    /// Where something of this page stands, for people.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// A path that the page names relative to itself.
    pub fn beside(&self, path: &str) -> PathBuf {
        normal(&self.path.parent().unwrap().join(path))
    }

    /// Blocks of code by lines, and spans of code.
    pub fn code(&self) -> Vec<Code> {
        let mut found = Vec::new();
        let mut prose = Vec::new();
        for (line, text, in_block) in self.lines() {
            if in_block {
                let text = text.trim().to_owned();
                found.push(Code {
                    line,
                    text,
                    in_block,
                });
            } else {
                prose.push((line, text));
            }
        }
        for paragraph in prose.split(|(_, text)| text.trim().is_empty()) {
            found.extend(spans(paragraph));
        }
        found
    }

    /// What links lead to, with the lines that they stand in.
    pub fn links(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (line, text, in_block) in self.lines() {
            if in_block {
                continue;
            }
            for (at, _) in text.match_indices("](") {
                let target = &text[at + 2..];
                if let Some(end) = target.find(')') {
                    found.push((line, target[..end].to_owned()));
                }
            }
        }
        found
    }

    /// The files that are included, by the paths that the page gives.
    pub fn included(&self) -> Vec<String> {
        let of = |line: &str| {
            let path = line.strip_prefix("{{#include ")?.strip_suffix("}}")?;
            Some(path.trim().to_owned())
        };
        self.text.lines().filter_map(of).collect()
    }

    /// The anchors of its headings, and of what it includes.
    pub fn anchors(&self) -> Vec<String> {
        let headings = self.lines().into_iter().filter(|(_, _, block)| !block);
        let mut anchors: Vec<String> = headings
            .filter_map(|(_, text, _)| text.strip_prefix('#').map(anchor))
            .collect();
        for path in self.included() {
            anchors.extend(Self::read(self.beside(&path)).anchors());
        }
        anchors
    }

    /// Lines by number from 1, and whether each is one of a block of code; fences are left out.
    fn lines(&self) -> Vec<(usize, &str, bool)> {
        let mut lines = Vec::new();
        let mut fenced = false;
        let mut after_blank = true;
        let mut indented = false;
        for (number, text) in self.text.lines().enumerate() {
            if text.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            indented = text.starts_with("    ") && (after_blank || indented);
            after_blank = text.trim().is_empty();
            lines.push((number + 1, text, fenced || indented));
        }
        lines
    }
}

/// The spans of code of a paragraph; they may go over the ends of lines.
fn spans(paragraph: &[(usize, &str)]) -> Vec<Code> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for &(line, text) in paragraph {
        for (nth, part) in text.split('`').enumerate() {
            if nth > 0 {
                open = match open.take() {
                    None => Some((line, String::new())),
                    Some((line, text)) => {
                        found.push(Code {
                            line,
                            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
                            in_block: false,
                        });
                        None
                    }
                };
            }
            if let Some((_, text)) = &mut open {
                text.push_str(part);
            }
        }
        if let Some((_, text)) = &mut open {
            text.push(' ');
        }
    }
    found
}

/// The anchor of a heading, as it is made from its text.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
