//! Libandante's examples `film_server` and `film_player`, compiled on this machine: their sources are in this
//! binary. Beside them lies libandante, which the player loads when it runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use andante_job::LabError;
use andante_scenario::Kind;

use super::tool;

/// The name of the server.
pub const SERVER: &str = "film_server";
/// The name of the player.
pub const PLAYER: &str = "film_player";
/// The name by which the player asks the dynamic loader for libandante.
const LIBRARY: &str = "libandante.so.0";

const PURPOSE: &str = "for a film that is streamed";

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../app/", $path)))),*]
    };
}

/// What they are made of, by the paths in libandante's folder.
const SOURCES: &[(&str, &str)] = sources![
    "include/andante.h",
    "include/andante/optional.h",
    "examples/distributed/film_server.c",
    "examples/distributed/film_player.c",
    "examples/distributed/film.c",
    "examples/distributed/film.h",
    "examples/distributed/receive.c",
    "examples/distributed/receive.h",
    "examples/distributed/stream.h",
];

/// A program, its files, and what it links with.
const PROGRAMS: [(&str, &[&str], &[&str]); 2] = [
    (
        SERVER,
        &["film_server.c", "film.c"],
        &["libavformat", "libavcodec", "libavutil"],
    ),
    (
        PLAYER,
        &["film_player.c", "receive.c"],
        &["libavcodec", "libavutil"],
    ),
];

/// Whether a program of this kind is one of them.
pub(super) fn is(kind: &Kind) -> bool {
    matches!(kind, Kind::FilmServer { .. } | Kind::FilmPlayer { .. })
}

/// The folder of the programs below that of assets.
pub fn folder(assets: &Path) -> PathBuf {
    assets.join("streamed")
}

/// What lies there, and where in a guest.
pub(super) fn placed(assets: &Path, guest: &Path) -> Vec<(PathBuf, PathBuf)> {
    let names = [SERVER, PLAYER, LIBRARY];
    names
        .map(|name| (folder(assets).join(name), folder(guest).join(name)))
        .into()
}

/// Sees whether this machine can compile them.
pub(super) fn check() -> Result<(), LabError> {
    tool("gcc", PURPOSE, "gcc")?;
    flags(PROGRAMS[0].2)?;
    library()?;
    Ok(())
}

/// Compiles them, unless the same are there.
pub(super) fn make(assets: &Path, say: &mut dyn FnMut(String)) -> Result<(), LabError> {
    let folder = folder(assets);
    fs::create_dir_all(&folder).map_err(|e| LabError::file("create", &folder, e))?;
    let library = library()?;
    let same = |a: &Path, b: &Path| matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b);
    if !same(&library, &folder.join(LIBRARY)) {
        replace(&folder, LIBRARY, |staged| {
            fs::copy(&library, staged).map(|_| ())
        })?;
    }
    let made_of = made_of()?;
    let note = folder.join("made-of");
    let there = PROGRAMS.iter().all(|(name, ..)| folder.join(name).exists());
    if there && fs::read(&note).is_ok_and(|of| of == made_of.as_bytes()) {
        return Ok(());
    }
    say("compiling the film's server and its player".to_owned());
    let sources = tempfile::tempdir().map_err(|e| LabError::io("make a temporary folder", e))?;
    for (path, text) in SOURCES {
        let file = sources.path().join(path);
        let parent = file.parent().expect("a source lies in a folder");
        fs::create_dir_all(parent).map_err(|e| LabError::file("create", parent, e))?;
        fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))?;
    }
    for (name, files, libraries) in PROGRAMS {
        let flags = flags(libraries)?;
        replace(&folder, name, |staged| {
            compile(sources.path(), files, &flags, staged)
        })?;
    }
    replace(&folder, "made-of", |staged| fs::write(staged, &made_of))
}

/// All that decides what comes out: sources, and the libraries' versions.
fn made_of() -> Result<String, LabError> {
    let libraries = PROGRAMS[0].2;
    let mut text = pkg_config(&["--modversion"], libraries)?;
    SOURCES.iter().for_each(|(_, source)| text += source);
    Ok(text)
}

/// Written beside and renamed, so that no other run finds half a file.
fn replace(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), LabError> {
    let staged = folder.join(format!(".{name}.{}", std::process::id()));
    let file = folder.join(name);
    write(&staged)
        .and_then(|()| fs::rename(&staged, &file))
        .map_err(|e| LabError::file("make", &file, e))
}

fn compile(sources: &Path, files: &[&str], flags: &[String], out: &Path) -> io::Result<()> {
    let output = Command::new("gcc")
        .args(["-std=gnu99", "-O2", "-I"])
        .arg(sources.join("include"))
        .arg("-o")
        .arg(out)
        .args(
            files
                .iter()
                .map(|file| sources.join("examples/distributed").join(file)),
        )
        .args(flags)
        .arg("-ldl")
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

fn flags(libraries: &[&str]) -> Result<Vec<String>, LabError> {
    let flags = pkg_config(&["--cflags", "--libs"], libraries)?;
    Ok(flags.split_whitespace().map(str::to_owned).collect())
}

fn pkg_config(arguments: &[&str], libraries: &[&str]) -> Result<String, LabError> {
    tool("pkg-config", PURPOSE, "pkg-config")?;
    let output = Command::new("pkg-config")
        .args(arguments)
        .args(libraries)
        .output()
        .map_err(|e| LabError::io("run pkg-config", e))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(LabError::MissingTool {
            name: libraries[0].to_owned(),
            purpose: PURPOSE.to_owned(),
            mend: "`apt-get install libavcodec-dev libavformat-dev libavutil-dev`".to_owned(),
        }),
    }
}

/// Libandante: among what cargo has built with this binary, or where `make install` puts it.
fn library() -> Result<PathBuf, LabError> {
    let exe = std::env::current_exe().map_err(|e| LabError::io("find this binary", e))?;
    let beside = exe.parent().unwrap_or(Path::new("/"));
    let candidates = [
        // Of a build for this binary alone it is only there; what lies beside may be older.
        beside.join("deps/libandante.so"),
        beside.join("libandante.so"),
        beside.join("../lib").join(LIBRARY),
        // From libexec/andante.
        beside.join("../../lib").join(LIBRARY),
        Path::new("/usr/local/lib").join(LIBRARY),
    ];
    let found = candidates.into_iter().find(|file| file.is_file());
    found.ok_or_else(|| LabError::MissingTool {
        name: LIBRARY.to_owned(),
        purpose: PURPOSE.to_owned(),
        mend: "`make -C crates/app install`".to_owned(),
    })
}
