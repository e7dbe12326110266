//! Figures that are recorded: measured by one command, kept in one file, quoted from there.
//!
//! ```text
//!  docs/figures.toml ──► record ──► docs/figures.json ──► docs/figures.md
//!  (which, and how        (runs)     (values, date,   └─► README.md, between markers
//!   they are written)                 commit, …)
//! ```
//!
//! Tests hold bounds; a figure is what came out on a day, of a commit, on a kernel. [`record`] runs what the
//! declaration names and writes all of the above; [`render`] writes the pages again without running
//! anything; [`check`] compares them, and finds fault with pages only: that an object or a scenario has
//! changed since is no mistake.

mod check;
mod command;
mod declaration;
mod evaluate;
mod file;
mod markers;
mod measured;
mod pages;
mod provenance;
mod run;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use andante_job::LabError;

use declaration::Declaration;
use file::Recorded;

/// The declaration, in the folder of the figures.
const DECLARED: &str = "figures.toml";
/// What was measured.
const FILE: &str = "figures.json";
/// The same for people.
const PAGE: &str = "figures.md";
/// How to measure anew.
const ANEW: &str = "make figures";
/// How to write the pages anew.
const AGAIN: &str = "andante lab figures --render";

/// What to record.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The folder of `figures.toml`, `figures.json` and `figures.md`; the pages that quote lie above it.
    pub folder: PathBuf,
    /// Only these entries; all if none is named.
    pub only: Vec<String>,
    /// Folder for what the runs leave.
    pub out: PathBuf,
    /// The laboratory's binary, see [`andante_job::RunOptions`].
    pub lab: PathBuf,
}

/// How many figures there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Entries of the declaration.
    pub declared: usize,
    /// Those that have been recorded.
    pub recorded: usize,
    /// Markers of pages, with a figure or a table each.
    pub quoted: usize,
}

/// Runs what the declaration names and writes what comes out: the file after every entry, the pages at
/// the end. What is not asked for stays as it is, with its own date and commit.
///
/// # Errors
/// If the declaration is wrong; else at the end, if some entries could not be recorded, since they could not
/// be run or did not keep their own bounds, or pages quote what has not been recorded.
pub fn record(options: &RecordOptions) -> Result<Counted, LabError> {
    let declaration = Declaration::load(&options.folder.join(DECLARED))?;
    let failed = run::record(&declaration, options)?;
    if failed.is_empty() {
        render(&options.folder)
    } else {
        // What was recorded is shown all the same.
        drop(render(&options.folder));
        Err(LabError::NotRecorded { failed })
    }
}

/// Writes the page of figures and every quotation again, from the file.
///
/// # Errors
/// If the declaration or the file is wrong, or a page quotes what there is not.
pub fn render(folder: &Path) -> Result<Counted, LabError> {
    let declaration = Declaration::load(&folder.join(DECLARED))?;
    let recorded = Recorded::load(&folder.join(FILE))?.settled(&declaration);
    recorded.write(&folder.join(FILE))?;
    let page = pages::page(&declaration, &recorded);
    andante_job::files::write_file(&folder.join(PAGE), page.as_bytes())?;
    for (file, text) in pages_that_quote(&declaration, folder)? {
        let (written, _) = markers::quote(&file, &text, &declaration, &recorded);
        if written != text {
            andante_job::files::write_file(&file, written.as_bytes())?;
        }
    }
    check(folder)
}

/// Compares the pages with the file, and the file with the declaration. Runs nothing.
///
/// # Errors
/// If the declaration is wrong, or something differs.
pub fn check(folder: &Path) -> Result<Counted, LabError> {
    let declaration = Declaration::load(&folder.join(DECLARED))?;
    let recorded = Recorded::load(&folder.join(FILE))?;
    let (differences, quoted) = check::differences(folder, &declaration, &recorded)?;
    if !differences.is_empty() {
        return Err(LabError::FiguresDiffer { differences });
    }
    Ok(Counted {
        declared: declaration.entries.len(),
        recorded: recorded.figures.len(),
        quoted,
    })
}

/// The pages that quote figures, and what they say.
fn pages_that_quote(
    declaration: &Declaration,
    folder: &Path,
) -> Result<Vec<(PathBuf, String)>, LabError> {
    let above = folder.parent().unwrap_or(Path::new(""));
    let read = |page: &String| {
        let file = above.join(page);
        let text =
            std::fs::read_to_string(&file).map_err(|error| LabError::file("read", &file, error))?;
        Ok((file, text))
    };
    declaration.quoted_in.iter().map(read).collect()
}
