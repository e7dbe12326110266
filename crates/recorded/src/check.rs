//! Whether pages, file and declaration agree.

use std::path::Path;

use andante_job::{Difference, LabError};

use super::declaration::Declaration;
use super::file::Recorded;
use super::{AGAIN, ANEW, DECLARED, FILE, PAGE, markers, pages, pages_that_quote};

/// What differs, and how many figures are quoted.
pub(crate) fn differences(
    folder: &Path,
    declaration: &Declaration,
    recorded: &Recorded,
) -> Result<(Vec<Difference>, usize), LabError> {
    let settled = recorded.settled(declaration);
    let mut differences = declared_otherwise(folder, declaration, recorded);
    if differences.is_empty() && settled != *recorded {
        differences.push(Difference {
            file: folder.join(FILE),
            line: 1,
            message: format!("is not as {DECLARED} says: run `{AGAIN}`"),
        });
    }
    differences.extend(page(folder, declaration, &settled)?);
    let mut quoted = 0;
    for (file, text) in pages_that_quote(declaration, folder)? {
        quoted += markers::count(&text);
        differences.extend(markers::quote(&file, &text, declaration, &settled).1);
    }
    Ok((differences, quoted))
}

/// What has been recorded and is not declared so any more.
fn declared_otherwise(
    folder: &Path,
    declaration: &Declaration,
    recorded: &Recorded,
) -> Vec<Difference> {
    let differs = |file: &str, line, message| Difference {
        file: folder.join(file),
        line,
        message,
    };
    let mut differences = Vec::new();
    for known in &recorded.figures {
        let name = &known.name;
        match declaration.entry(name) {
            None => {
                let message = format!("`{name}` is not in {DECLARED} any more: run `{AGAIN}`");
                differences.push(differs(FILE, 1, message));
            }
            Some(entry) => {
                if let Err(otherwise) = known.values_of(entry) {
                    let mend = format!("run `{ANEW} ONLY={name}`, or `{AGAIN}` to forget it");
                    let message = format!("`{name}` {otherwise}: {mend}");
                    differences.push(differs(DECLARED, entry.line, message));
                }
            }
        }
    }
    differences
}

/// The first line in which the page of figures is not what it should be.
fn page(
    folder: &Path,
    declaration: &Declaration,
    settled: &Recorded,
) -> Result<Option<Difference>, LabError> {
    let file = folder.join(PAGE);
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| LabError::file("read", &file, error))?,
    };
    let should = pages::page(declaration, settled);
    if text == should {
        return Ok(None);
    }
    let same = text.lines().zip(should.lines());
    let line = 1 + same.take_while(|(says, should)| says == should).count();
    let says = text.lines().nth(line - 1).unwrap_or("nothing");
    let should = should.lines().nth(line - 1).unwrap_or("nothing");
    Ok(Some(Difference {
        message: format!("says \"{says}\", by {FILE} it is \"{should}\": run `{AGAIN}`"),
        file,
        line,
    }))
}
