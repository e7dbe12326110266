// SPDX-License-Identifier: GPL-2.0
//! Pages of programs and libraries that are in memory, whether somebody has them mapped or not.
//!
//! The kernel reads a library in large pieces, and a program maps of them what it has run through so far. When it does something
//! for the first time, as a player does that is paused, it needs others, and should not wait for a disk then.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use crate::machine::page;
use crate::pages::{FileId, mappings};

/// A system call of Linux 6.5, of the same number everywhere [`mm/filemap.c`].
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    /// 0: to its end.
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Found {
    cached: u64,
    dirty: u64,
    written_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Of all programs and libraries that these processes have mapped, each counted once [bytes]; 0 of those that cannot be
/// seen.
pub fn of_programs(processes: &[i32]) -> u64 {
    let mut files: BTreeMap<FileId, String> = BTreeMap::new();
    for pid in processes {
        for mapping in mappings(*pid) {
            if let (Some((file, _)), true) = (mapping.file, mapping.program) {
                let path = format!(
                    "/proc/{pid}/map_files/{:x}-{:x}",
                    mapping.start, mapping.end
                );
                files.entry(file).or_insert(path);
            }
        }
    }
    let of = |path: &String| File::open(path).and_then(|file| cached(file.as_raw_fd()));
    files.values().filter_map(|path| of(path).ok()).sum()
}

/// Of one file [bytes].
fn cached(file: RawFd) -> io::Result<u64> {
    let range = Range {
        offset: 0,
        length: 0,
    };
    let mut found = Found::default();
    // SAFETY: both structures are as the kernel has them, and outlive the call.
    match unsafe { libc::syscall(CACHESTAT, file, &raw const range, &raw mut found, 0) } {
        0 => Ok(found.cached * page()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_in_memory_and_counted_once() {
        let own = i32::try_from(std::process::id()).unwrap();
        let once = of_programs(&[own]);
        // Root may see it, on Linux 6.5 and newer.
        let kernel = nix::sys::utsname::uname().unwrap();
        let is_new = kernel
            .release()
            .to_string_lossy()
            .split('.')
            .take(2)
            .map(|part| part.parse().unwrap_or(0))
            .ge([6, 5]);
        if is_new && nix::unistd::geteuid().is_root() {
            assert!(once >= page());
        }
        assert_eq!(of_programs(&[own, own]), once);
        assert_eq!(of_programs(&[]), 0);
    }
}
