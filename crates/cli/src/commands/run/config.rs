//! What `andante run` is told: by its options, else by files, else the defaults.
//!
//! The file that is installed with the program comes first (`share/andante/andante.toml` beside `bin`), for
//! distributors; then `/etc/andante.toml`, then `/etc/andante.d/*.toml` in the order of their names. Each is
//! laid over those before it. With `--config` only that file is read.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use andante_daemon::Choices;
use andante_terminal::exit::{Refusal, Status};

/// What is installed, from the folder with `bin`.
const INSTALLED: &str = "share/andante/andante.toml";
/// The file that is read if there is one.
pub(super) const FILE: &str = "/etc/andante.toml";
/// The folder whose files are laid over it.
pub(super) const FOLDER: &str = "/etc/andante.d";

/// What the files say, and which files these are.
///
/// # Errors
/// One cannot be read, or says what makes no sense: with its name, line and key.
pub(in crate::commands) fn from_files(
    only: Option<&Path>,
) -> Result<(Choices, Vec<PathBuf>), Refusal> {
    let files = match only {
        Some(path) => vec![path.to_owned()],
        None => {
            let mut files: Vec<_> = installed().into_iter().collect();
            files.extend(usual(Path::new(FILE), Path::new(FOLDER))?);
            files
        }
    };
    let mut choices = Choices::default();
    for path in &files {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let said = Choices::parse(&path.display().to_string(), &text)
            .map_err(|error| Refusal::new(Status::BadConfig, error.to_string()))?;
        choices = said.or(choices);
    }
    Ok((choices, files))
}

/// The file that is installed with this program, if it is installed.
fn installed() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let file = program.parent()?.parent()?.join(INSTALLED);
    file.is_file().then_some(file)
}

/// Those of the usual files that there are.
fn usual(file: &Path, folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut files = Vec::new();
    match fs::read_dir(folder) {
        Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(folder, &error)),
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    if file.exists() {
        files.insert(0, file.to_owned());
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Refusal {
    let message = format!("cannot read {}: {error}", path.display());
    Refusal::new(Status::BadConfig, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_laid_over_each_other_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (file, drop_ins) = (folder.path().join("a.toml"), folder.path().join("d"));
        assert_eq!(usual(&file, &drop_ins).unwrap(), [] as [PathBuf; 0]);
        fs::create_dir(&drop_ins).unwrap();
        for name in ["20-b.toml", "10-a.toml", "README"] {
            fs::write(drop_ins.join(name), "").unwrap();
        }
        fs::write(&file, "").unwrap();
        let found = usual(&file, &drop_ins).unwrap();
        let expected = [file, drop_ins.join("10-a.toml"), drop_ins.join("20-b.toml")];
        assert_eq!(found, expected);
    }
}
