//! Real C sources to compile: zlib and libbpf, as the crate libbpf-sys carries them. The build
//! script puts them into this binary, so that they are at hand without a network.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use andante_job::LabError;

use super::tool;

// FILES: &[(&str, &[u8])], path and content of every source file.
include!(concat!(env!("OUT_DIR"), "/sources.rs"));

const MAKEFILE: &str = include_str!("sources.mk");

/// Writes the sources and their makefile below the folder of assets, anew if another version of
/// Andante left others there: make would compile what it finds.
pub(super) fn write(assets: &Path) -> Result<(), LabError> {
    let folder = assets.join("sources");
    let makefile = ("Makefile", MAKEFILE.as_bytes());
    let files = || FILES.iter().copied().chain([makefile]);
    let complete = files()
        .all(|(path, content)| fs::read(folder.join(path)).is_ok_and(|there| there == content));
    if complete && count_files(&folder) == files().count() {
        return Ok(());
    }
    match fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(LabError::file("remove", &folder, e));
        }
        _ => {}
    }
    for (path, content) in files() {
        let file = folder.join(path);
        let parent = file.parent().expect("a source lies in a folder");
        fs::create_dir_all(parent).map_err(|e| LabError::file("create", parent, e))?;
        fs::write(&file, content).map_err(|e| LabError::file("write", &file, e))?;
    }
    Ok(())
}

/// Files in the folder and below.
fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => count_files(&entry.path()),
            _ => 1,
        })
        .sum()
}

/// The command that compiles them into the folder it is run in.
pub fn make_command(assets: &Path, jobs: u32) -> Vec<String> {
    let folder = assets.join("sources");
    vec![
        "make".to_owned(),
        format!("-j{jobs}"),
        "-f".to_owned(),
        folder.join("Makefile").display().to_string(),
        format!("SOURCES={}", folder.display()),
        "CC=gcc".to_owned(),
    ]
}

/// Finished objects in the folder of a build.
pub fn count_objects(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "o"))
        .count() as u64
}

/// make, the shell, and the parts of the compiler.
pub(super) fn compiler() -> Result<Vec<PathBuf>, LabError> {
    const PURPOSE: &str = "to compile the sources";
    let gcc = tool("gcc", PURPOSE, "gcc")?;
    let mut programs = vec![
        tool("make", PURPOSE, "make")?,
        tool("as", PURPOSE, "binutils")?,
    ];
    let cc1 = run(Command::new(&gcc).arg("-print-prog-name=cc1"))?;
    programs.push(PathBuf::from(String::from_utf8_lossy(&cc1.stdout).trim()));
    programs.push(gcc);
    Ok(programs)
}

/// Every header of this machine that the sources include.
pub(super) fn headers(assets: &Path) -> Result<Vec<PathBuf>, LabError> {
    let folder = assets.join("sources");
    let gcc = tool("gcc", "to compile the sources", "gcc")?;
    let mut command = Command::new(gcc);
    // As they are asked for: some are links (all of asm/, on Debian 13), and the image needs those and what they name.
    command.args(["-M", "-fno-canonical-system-headers"]);
    for include in [
        "zlib",
        "libbpf/src",
        "libbpf/include",
        "libbpf/include/uapi",
        "libelf",
    ] {
        command.arg("-I").arg(folder.join(include));
    }
    let units = FILES
        .iter()
        .map(|(path, _)| path)
        .filter(|path| path.ends_with(".c"));
    let rules = run(command.args(units.map(|path| folder.join(path))))?;
    let rules = String::from_utf8_lossy(&rules.stdout);
    let words = rules.split_whitespace().map(Path::new);
    let mut headers: Vec<PathBuf> = words
        .filter(|word| word.is_absolute() && !word.starts_with(assets))
        .flat_map(|word| [Some(word.to_owned()), word.canonicalize().ok()])
        .flatten()
        .collect();
    headers.sort();
    headers.dedup();
    Ok(headers)
}

fn run(command: &mut Command) -> Result<Output, LabError> {
    let name = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|e| LabError::io(format!("run {name}"), e))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("no message").to_owned();
    Err(LabError::io(format!("run {name}"), io::Error::other(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_enough_to_compile() {
        let units = FILES
            .iter()
            .filter(|(path, _)| path.ends_with(".c"))
            .count();
        assert!(units >= 20, "only {units} compile units");
        assert!(
            FILES
                .iter()
                .all(|(path, content)| !path.starts_with('/') && !content.is_empty())
        );
    }

    #[test]
    fn the_sources_compile_with_what_is_said_to_be_needed() {
        let Ok(programs) = compiler() else { return };
        assert!(programs.iter().all(|program| program.is_absolute()));
        let assets = tempfile::tempdir().unwrap();
        write(assets.path()).unwrap();
        let headers = headers(assets.path()).unwrap();
        assert!(
            headers.iter().any(|header| header.ends_with("stdio.h")),
            "{headers:?}"
        );
        let objects = tempfile::tempdir().unwrap();
        let argv = make_command(assets.path(), 2);
        let status = Command::new(&argv[0])
            .args(&argv[1..])
            .args(["01-adler32.o", "02-hashmap.o", "40-ringbuf.o"])
            .current_dir(objects.path())
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
        assert_eq!(count_objects(objects.path()), 3);
    }
}
