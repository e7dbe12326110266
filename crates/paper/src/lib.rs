//! Papers: what was published about scheduling media, run again, published beside measured.
//!
//! A folder of `papers/` holds what a paper claims and published (`paper.toml`, see
//! [`papers/README.md`](../../../papers/README.md)) and the scenarios to measure the same in the
//! simulator. [`run`] carries them out; [`text`] prints them; [`book::html`] makes one page of HTML
//! of them all.

pub mod book;
mod cell;
mod computed;
mod document;
mod figure;
pub mod result;
mod run;
mod runs;
mod source;
mod table;
mod terminal;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use andante_document::DocumentError;
use andante_document::closest;
use andante_job::LabError;
use andante_job::files::{folders, none_here, write_file};
use andante_job::progress::Count;

use document::Paper;
use result::{PaperResult, Tally};
pub use terminal::text;

/// A paper that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPaper {
    /// The folder's name.
    pub key: String,
    /// The paper's title.
    pub title: String,
    /// Its authors.
    pub authors: Vec<String>,
    /// Where it appeared.
    pub venue: String,
    /// When.
    pub year: u32,
    /// Where its files lie.
    pub folder: PathBuf,
}

/// Reads the text of a `paper.toml` as the paper in that folder; for those who only want to know
/// whether it is well formed.
///
/// # Errors
/// The first mistake in it, or in a scenario of the folder that it names.
pub fn check(folder: &Path, text: &str) -> Result<(), DocumentError> {
    Paper::read(folder, text).map(|_| ())
}

/// The papers that come with Andante, the oldest first.
///
/// # Errors
/// If one of them is not well formed.
pub fn known_papers() -> Result<Vec<KnownPaper>, LabError> {
    let mut known = Vec::new();
    for folder in paper_folders() {
        let paper = Paper::load(&folder)?;
        known.push(KnownPaper {
            key: paper.key,
            title: paper.title,
            authors: paper.authors,
            venue: paper.venue,
            year: paper.year,
            folder,
        });
    }
    known.sort_by(|a, b| (a.year, &a.key).cmp(&(b.year, &b.key)));
    Ok(known)
}

/// Runs papers, given by key or by folder; `all` stands for those that come with Andante.
///
/// What deviates is in the results; see [`verdict`].
///
/// # Errors
/// If there is no such paper, or it cannot be carried out.
pub fn run(names: &[String]) -> Result<Vec<PaperResult>, LabError> {
    let mut papers: Vec<Paper> = Vec::new();
    for name in names {
        let folders = match name.as_str() {
            "all" => known_papers()?
                .into_iter()
                .map(|paper| paper.folder)
                .collect(),
            name => vec![folder_of(name)?],
        };
        for folder in folders {
            let paper = Paper::load(&folder)?;
            if !papers.iter().any(|known| known.key == paper.key) {
                papers.push(paper);
            }
        }
    }
    run::run(&papers, &mut Count::on_stderr())
}

/// Writes the book of `papers`, which were asked for by `names`, below `out`: `book.html` for all of
/// them, `KEY.html` for a single one. Returns the file.
///
/// # Errors
/// If it cannot be written.
pub fn write_book(
    papers: &[PaperResult],
    names: &[String],
    out: &Path,
) -> Result<PathBuf, LabError> {
    let file = match (papers, names) {
        ([paper], [name]) if name != "all" => out.join(format!("{}.html", paper.key)),
        _ => out.join("book.html"),
    };
    write_file(&file, book::html(papers).as_bytes())?;
    Ok(file)
}

/// Whether every figure is as it should be, or its deviation explained.
///
/// # Errors
/// The number of those that are not.
pub fn verdict(papers: &[PaperResult]) -> Result<(), LabError> {
    let all = papers.iter().map(PaperResult::tally);
    let tally = all.fold(Tally::default(), |sum, one| sum + one);
    match tally.deviations {
        0 => Ok(()),
        deviations => Err(LabError::PapersDeviate {
            deviations,
            judged: tally.judged(),
        }),
    }
}

/// Folders with a paper, each key once.
fn paper_folders() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let entries = folders("papers");
    let entries = entries
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten();
    for folder in entries.map(|entry| entry.path()) {
        let known = |one: &PathBuf| one.file_name() == folder.file_name();
        if is_paper(&folder) && !found.iter().any(known) {
            found.push(folder);
        }
    }
    found
}

fn is_paper(folder: &Path) -> bool {
    folder.join(document::FILE).is_file()
}

/// The folder of one paper, given by key or by folder.
pub fn folder_of(name: &str) -> Result<PathBuf, LabError> {
    let path = PathBuf::from(name);
    if name.contains('/') && is_paper(&path) {
        return Ok(path);
    }
    let known = paper_folders();
    let named = |folder: &&PathBuf| folder.file_name().is_some_and(|known| known == name);
    if let Some(folder) = known.iter().find(named) {
        return Ok(folder.clone());
    }
    let mut keys: Vec<String> = known
        .iter()
        .filter_map(|folder| folder.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    keys.sort();
    let hint = match closest(name, keys.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if keys.is_empty() => none_here("a folder with a paper.toml"),
        None => "`andante paper list` lists them; or give all, or the path of a folder with a \
                 paper.toml"
            .to_owned(),
    };
    Err(LabError::NoPaper {
        name: name.to_owned(),
        hint,
    })
}
