//! What real programs work on: film clips to play, C sources to compile.
//!
//! Both are made on the machine that runs the laboratory and lie in one folder: `clips/` and
//! `sources/`.

mod clip;
mod sources;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::scenario::{Kind, Workload};

pub(crate) use clip::clip_file;
pub(crate) use sources::{count_objects, make_command};

/// Programs of this machine that the workload's real programs consist of, with all they run.
pub(crate) fn programs(workload: &Workload) -> Result<Vec<PathBuf>, LabError> {
    let mut found = Vec::new();
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        match &program.kind {
            Kind::Mpv { .. } => found.push(tool("mpv", "to play the film", "mpv")?),
            Kind::Make { .. } => found.extend(sources::compiler()?),
            Kind::Command { argv } => {
                let purpose = format!("as program {}", program.name);
                found.push(tool(&argv[0], &purpose, &argv[0])?);
            }
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The files that those programs read, each with its place in a guest; `folder` must hold what
/// [`make`] makes.
///
/// # Errors
/// If the compiler fails.
pub(crate) fn needed(
    workload: &Workload,
    folder: &Path,
) -> Result<Vec<(PathBuf, PathBuf)>, LabError> {
    let guest = Path::new(crate::guest::ASSETS);
    let mut files = Vec::new();
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        match &program.kind {
            Kind::Mpv { clip, .. } => files.push((clip_file(folder, clip), clip_file(guest, clip))),
            Kind::Make { .. } => {
                files.push((folder.join("sources"), guest.join("sources")));
                // Headers of the system keep their place.
                files.extend(
                    sources::headers(folder)?
                        .into_iter()
                        .map(|h| (h.clone(), h)),
                );
            }
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Makes everything the workload's programs work on, unless it is in `folder` already.
///
/// # Errors
/// If ffmpeg is missing or fails, or the folder cannot be written.
pub(crate) fn make(
    workload: &Workload,
    folder: &Path,
    say: &mut dyn FnMut(String),
) -> Result<(), LabError> {
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        match &program.kind {
            Kind::Mpv { clip, .. } => clip::make(clip, folder, say)?,
            Kind::Make { .. } => sources::write(folder)?,
            _ => {}
        }
    }
    Ok(())
}

/// The path of an installed program; `package` is Debian's, for the mend.
fn tool(name: &str, purpose: &str, package: &str) -> Result<PathBuf, LabError> {
    let missing = || LabError::MissingTool {
        name: name.to_owned(),
        purpose: purpose.to_owned(),
        mend: format!("`apt-get install {package}`, or name an installed program"),
    };
    if name.contains('/') {
        let file = PathBuf::from(name);
        return if file.is_file() {
            Ok(file)
        } else {
            Err(missing())
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(missing)
}
