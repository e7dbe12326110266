//! `docs/figures.md`: all figures for people; and the tables that other pages quote.

use super::declaration::{Declaration, Entry, Source};
use super::file::{Recorded, RecordedEntry};
use super::provenance::Recording;

/// Digits of a hash that tell two apart.
const SHORT: usize = 12;

/// What stands for an entry that has not been recorded.
pub(crate) const NOT_YET: &str = "not recorded yet";

/// The whole page.
pub(crate) fn page(declaration: &Declaration, recorded: &Recorded) -> String {
    let mut page = String::from(
        "<!-- Generated from figures.json by `andante lab figures`; do not edit. -->\n\n\
         # Figures\n\n\
         What was measured, when, of which commit and on what. Figures of a virtual machine belong to one image \
         of kernel, emulator and\nprograms. They are no demands: `make test` holds the bounds that scenarios and \
         tests state. `make figures` measures\nall anew, `make figures ONLY=NAME,…` some; `figures.toml` declares \
         what, and how it is written.\n",
    );
    page += "\n## Recordings\n\n";
    page +=
        "| | date | commit | BPF objects (SHA-256) | kernel | QEMU |\n|---|---|---|---|---|---|\n";
    for (at, recording) in recorded.recordings.iter().enumerate() {
        page += &recording.row(at + 1);
    }
    page += "\n## Figures\n\n";
    page += "| name | | measured | command | recording |\n|---|---|---|---|---|\n";
    for entry in &declaration.entries {
        let known = recorded.entry(&entry.name);
        let number = match (&entry.source, known) {
            (Source::Asserted(_), _) => "asserted".to_owned(),
            (_, Some(known)) => known.recording.to_string(),
            (_, None) => String::new(),
        };
        page += &cells(&[
            &format!("`{}`", entry.name),
            &entry.title,
            &measured(entry, known),
            &code(&entry.command()),
            &number,
        ]);
    }
    page
}

/// Entries as a table for readers: what, the figures, how to measure them.
pub(crate) fn table(entries: &[(&Entry, Option<&RecordedEntry>)]) -> String {
    let mut table = String::from("| | measured | command |\n|---|---|---|\n");
    for (entry, known) in entries {
        let says = said(entry, *known);
        let says = says.as_deref().unwrap_or(NOT_YET);
        table += &cells(&[&entry.title, says, &code(&entry.command())]);
    }
    table
}

/// The sentence of an entry; none if it has not been recorded.
pub(crate) fn said(entry: &Entry, known: Option<&RecordedEntry>) -> Option<String> {
    match entry.source {
        Source::Asserted(_) => Some(entry.says.clone()),
        _ => known.map(|known| known.says.clone()),
    }
}

/// All values: the sentence, and those that it leaves out.
fn measured(entry: &Entry, known: Option<&RecordedEntry>) -> String {
    let Some(said) = said(entry, known) else {
        return NOT_YET.to_owned();
    };
    let unsaid = entry.unsaid().filter_map(|value| {
        let text = known?.text(&value.name)?;
        Some(format!("`{}` {text}", value.name))
    });
    std::iter::once(said)
        .chain(unsaid)
        .collect::<Vec<_>>()
        .join("; ")
}

impl Recording {
    fn row(&self, number: usize) -> String {
        let short = |hash: &str| format!("`{}`", &hash[..SHORT.min(hash.len())]);
        let changed = if self.changed { ", and changes" } else { "" };
        let objects = self.objects.iter();
        let objects: Vec<_> = objects
            .map(|(name, hash)| format!("{name} {}", short(hash)))
            .collect();
        cells(&[
            &number.to_string(),
            &self.date,
            &format!("{}{changed}", short(&self.commit)),
            &objects.join(", "),
            self.kernel.as_deref().unwrap_or("none needed"),
            self.qemu.as_deref().unwrap_or("none needed"),
        ])
    }
}

/// A row of a table.
fn cells(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// A command in a cell, where a bar would end it.
fn code(command: &str) -> String {
    format!("`{}`", command.replace('|', "\\|"))
}
