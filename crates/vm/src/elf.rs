//! Parts of a program that it needs to run on another root: its shared libraries, and its segments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, pod};

/// Every shared library of a program with the loader, under the paths by which the loader opens
/// them; nothing for a static program or a script. The dynamic loader itself is asked (through
/// ldd), since only it knows its cache, its search path and what libraries ask for in turn.
pub(crate) fn libraries(program: &Path) -> io::Result<BTreeSet<PathBuf>> {
    if !fs::read(program)?.starts_with(b"\x7fELF") {
        return Ok(BTreeSet::new());
    }
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let is_static = |text: &str| {
        text.contains("not a dynamic executable") || text.contains("statically linked")
    };
    if is_static(&text) || is_static(&complaint) {
        return Ok(BTreeSet::new());
    }
    if !output.status.success() {
        return Err(io::Error::other(complaint.trim().to_owned()));
    }
    parse(&text).map_err(|library| {
        io::Error::other(format!(
            "it needs {library}, which is not on this machine: install the package with it"
        ))
    })
}

/// The file of a program up to the end of its last segment. The rest, tables of symbols and of lines, is for
/// debuggers: two thirds of ours, which a machine would unpack into its memory, and be saved with. A file that
/// is no program remains as it is.
pub(crate) fn loaded(mut file: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_segments(&file).filter(|end| *end < file.len()) else {
        return file;
    };
    if let Ok((header, _)) = pod::from_bytes_mut::<FileHeader64<LittleEndian>>(&mut file) {
        // It has no sections any more.
        header.e_shoff = Default::default();
        header.e_shnum = Default::default();
        header.e_shstrndx = Default::default();
        file.truncate(end);
    }
    file
}

/// Where in the file the last segment ends.
fn end_of_segments(file: &[u8]) -> Option<usize> {
    let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
    let segments = header.program_headers(LittleEndian, file).ok()?;
    let ends = segments.iter().map(|segment| {
        let begin = segment.p_offset(LittleEndian);
        begin.saturating_add(segment.p_filesz(LittleEndian))
    });
    usize::try_from(ends.max()?).ok()
}

/// Reads ldd's lines, `name => path (address)` or `path (address)`; the error is a library that
/// was not found.
fn parse(text: &str) -> Result<BTreeSet<PathBuf>, String> {
    let mut libraries = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        let (name, target) = line.split_once(" => ").unwrap_or((line, line));
        let path = target.split(" (").next().unwrap_or_default();
        if path == "not found" {
            return Err(name.to_owned());
        }
        // The kernel's own linux-vdso.so.1 has no path.
        if path.starts_with('/') {
            libraries.insert(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ldd_are_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<_> = parse(text).unwrap().into_iter().collect();
        assert_eq!(
            found,
            [
                Path::new("/lib/x86_64-linux-gnu/libc.so.6"),
                Path::new("/lib64/ld-linux-x86-64.so.2")
            ]
        );
        let missing = parse("\tlibfoo.so.1 => not found\n").unwrap_err();
        assert_eq!(missing, "libfoo.so.1");
    }

    #[test]
    fn this_test_program_needs_the_c_library() {
        let found = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(
            found
                .iter()
                .any(|path| path.to_string_lossy().contains("libc.")),
            "{found:?}"
        );
        assert!(found.iter().all(|path| path.exists()));
    }

    #[test]
    fn what_is_loaded_of_a_program_runs() {
        let own = std::env::current_exe().unwrap();
        let whole = fs::read(&own).unwrap();
        let length = whole.len();
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("loaded");
        let loaded = loaded(whole);
        assert!(loaded.len() < length);
        fs::write(&program, loaded).unwrap();
        fs::set_permissions(&program, own.metadata().unwrap().permissions()).unwrap();
        let listed = Command::new(&program).arg("--list").output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.contains("what_is_loaded_of_a_program_runs"));
        assert_eq!(super::loaded(b"#!/bin/sh\n".to_vec()), b"#!/bin/sh\n");
    }

    #[test]
    fn scripts_need_nothing_and_absent_programs_are_errors() {
        let script = tempfile::NamedTempFile::new().unwrap();
        fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(libraries(script.path()).unwrap().is_empty());
        assert!(libraries(Path::new("/no/such/program")).is_err());
    }
}
