// SPDX-License-Identifier: GPL-2.0
//! The pages of a process: what it has mapped, whose they are, and asking for them before they are needed.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::machine::page;

/// A file, wherever it is called what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

#[cfg(test)]
pub(crate) fn file_id(inode: u64) -> FileId {
    FileId { device: 0, inode }
}

/// A part of the addresses of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// Whether it is read from a file, and from where in it on [bytes].
    pub file: Option<(FileId, u64)>,
    /// Whether programs run from it, or from another part of the same file.
    pub program: bool,
}

impl Mapping {
    fn pages(&self) -> u64 {
        (self.end - self.start) / page()
    }
}

/// The mappings of a process, without those that only the kernel can use.
pub fn mappings(pid: i32) -> Vec<Mapping> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    parse_maps(&String::from_utf8_lossy(&text))
}

/// Has this process's own instructions mapped no more: what it needs of them is mapped again as it runs.
pub fn unmap_own_program() {
    let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let instructions = text.lines().filter(|line| line.contains(" r-xp "));
    for mapping in instructions.filter_map(parse_mapping) {
        if mapping.file.is_some() {
            // SAFETY: the pages are those of a file, which nobody writes by this mapping.
            unsafe {
                let address = mapping.start as *mut libc::c_void;
                let length = (mapping.end - mapping.start) as usize;
                libc::madvise(address, length, libc::MADV_DONTNEED);
            }
        }
    }
}

/// `START-END rwxp OFFSET MAJOR:MINOR INODE PATH`, in hexadecimal but for the inode [proc(5)].
fn parse_maps(text: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = text.lines().filter_map(parse_mapping).collect();
    let programs: Vec<_> = (found.iter())
        .filter(|mapping| mapping.program)
        .filter_map(|mapping| Some(mapping.file?.0))
        .collect();
    for mapping in &mut found {
        let of_program = |(file, _): (FileId, u64)| programs.contains(&file);
        mapping.program |= mapping.file.is_some_and(of_program);
    }
    found
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (device, inode) = (words.next()?, words.next()?);
    let path = words.next().unwrap_or_default();
    if matches!(path, "[vvar]" | "[vvar_vclock]" | "[vdso]" | "[vsyscall]")
        || path.starts_with("/dev/dri")
    {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let inode: u64 = inode.parse().ok()?;
    let id = FileId {
        device: hex(major)? << 32 | hex(minor)?,
        inode,
    };
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        file: (inode != 0).then_some((id, hex(offset)?)),
        program: rights.contains('x'),
    })
}

/// The kernel's words on the pages of a process [`Documentation/admin-guide/mm/pagemap.rst`].
struct PageMap(File);

impl PageMap {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;
    const FRAME: u64 = (1 << 55) - 1;

    fn of(pid: i32) -> io::Result<Self> {
        Ok(Self(File::open(format!("/proc/{pid}/pagemap"))?))
    }

    fn read(&self, mapping: &Mapping) -> io::Result<Vec<u64>> {
        words(&self.0, mapping.start / page(), mapping.pages())
    }
}

/// So many of the eight-byte words of a file, from that one on; fewer if it ends.
fn words(file: &File, first: u64, count: u64) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; usize::try_from(count * 8).map_err(io::Error::other)?];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], first * 8 + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    let words = bytes[..done].as_chunks().0.iter();
    Ok(words.map(|word| u64::from_ne_bytes(*word)).collect())
}

/// Pages of a file that a process uses and others have read: where they are in the file [bytes].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The file.
    pub file: FileId,
    /// It can be opened by this name, whatever has become of its own.
    pub path: PathBuf,
    /// Whether it is a program or a library.
    pub program: bool,
    /// From where to where.
    pub ranges: Vec<(u64, u64)>,
}

/// The pages of files that a process uses, and that are counted for other classes than those of these inodes: whoever
/// reads a page first has it counted. Programs and libraries first.
///
/// # Errors
/// The process is gone, or we are not root.
pub fn elsewhere(pid: i32, own: &[u64]) -> io::Result<Vec<Elsewhere>> {
    let pages = PageMap::of(pid)?;
    let owners = File::open("/proc/kpagecgroup")?;
    let mut found: Vec<Elsewhere> = Vec::new();
    for mapping in mappings(pid) {
        let Some((file, offset)) = mapping.file else {
            continue;
        };
        let words = pages.read(&mapping)?;
        let foreign = foreign(&words, &owners, own)?;
        let ranges = ranges(&foreign, offset);
        if ranges.is_empty() {
            continue;
        }
        let path = format!(
            "/proc/{pid}/map_files/{:x}-{:x}",
            mapping.start, mapping.end
        );
        match found.iter_mut().find(|found| found.file == file) {
            Some(same) => same.ranges.extend(ranges),
            None => found.push(Elsewhere {
                file,
                path: path.into(),
                program: mapping.program,
                ranges,
            }),
        }
    }
    for one in &mut found {
        one.ranges = joined(std::mem::take(&mut one.ranges));
    }
    found.sort_by_key(|one| !one.program);
    Ok(found)
}

/// The files of several processes, each once.
pub fn of_all(used: Vec<Elsewhere>) -> Vec<Elsewhere> {
    let mut found: Vec<Elsewhere> = Vec::new();
    for one in used {
        match found.iter_mut().find(|found| found.file == one.file) {
            Some(same) => {
                same.ranges.extend(one.ranges);
                same.ranges = joined(std::mem::take(&mut same.ranges));
            }
            None => found.push(one),
        }
    }
    found.sort_by_key(|one| !one.program);
    found
}

/// Of each page whether it is of a file, is there, and is counted for none of these classes.
fn foreign(pages: &[u64], owners: &File, own: &[u64]) -> io::Result<Vec<bool>> {
    let frame = |word: u64| {
        let is = word & PageMap::PRESENT != 0 && word & PageMap::OF_FILE != 0;
        // Without the right to know it is 0.
        (is && word & PageMap::FRAME != 0).then_some(word & PageMap::FRAME)
    };
    let mut found = vec![false; pages.len()];
    let mut at = 0;
    while at < pages.len() {
        let Some(first) = frame(pages[at]) else {
            at += 1;
            continue;
        };
        // Frames in a row are asked for together.
        let run = (at..pages.len())
            .take_while(|next| frame(pages[*next]) == Some(first + (next - at) as u64))
            .count();
        for (page, owner) in found[at..]
            .iter_mut()
            .zip(words(owners, first, run as u64)?)
        {
            *page = owner != 0 && !own.contains(&owner);
        }
        at += run;
    }
    Ok(found)
}

/// Runs of pages, in bytes from `offset` on.
fn ranges(pages: &[bool], offset: u64) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (at, _) in pages.iter().enumerate().filter(|(_, foreign)| **foreign) {
        let start = offset + at as u64 * page();
        match found.last_mut() {
            Some((_, end)) if *end == start => *end += page(),
            _ => found.push((start, start + page())),
        }
    }
    found
}

/// In order, each byte once.
pub(crate) fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match found.last_mut() {
            Some((_, last)) if *last >= start => *last = (*last).max(end),
            _ => found.push((start, end)),
        }
    }
    found
}

/// Asks the kernel to bring in what a process had and what was taken away: so much of it at most [bytes]. It does not
/// wait until it is there. Returns how much was asked for.
///
/// # Errors
/// The process is gone, or we are not root.
pub fn ask_for(pid: i32, most: u64) -> io::Result<u64> {
    let process = open_process(pid)?;
    let pages = PageMap::of(pid)?;
    let mut asked = 0;
    for mapping in mappings(pid) {
        if asked >= most {
            break;
        }
        let words = pages.read(&mapping)?;
        let is_gone: fn(&&u64) -> bool = match mapping.file {
            None => |word| **word & PageMap::SWAPPED != 0,
            // Of a file nobody knows which of the pages that are not there were used: of programs and libraries
            // those that were are in memory mostly, and are brought in at little cost.
            Some(_) if mapping.program => |word| **word & PageMap::PRESENT == 0,
            Some(_) => |word| **word & PageMap::SWAPPED != 0,
        };
        let gone = words.iter().filter(is_gone).count() as u64 * page();
        // The kernel would read all of a library, of which a program uses a part.
        let wanted = match mapping.file {
            Some(_) if !words.iter().any(|word| word & PageMap::PRESENT != 0) => 0,
            _ => gone,
        };
        if wanted > 0 && asked + wanted <= most {
            advise(&process, &mapping, libc::MADV_WILLNEED)?;
            asked += wanted;
        }
    }
    Ok(asked)
}

fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(fd) {
        // SAFETY: it was just opened, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn advise(process: &OwnedFd, mapping: &Mapping, advice: i32) -> io::Result<()> {
    let range = libc::iovec {
        iov_base: mapping.start as *mut libc::c_void,
        iov_len: (mapping.end - mapping.start) as usize,
    };
    // SAFETY: the kernel reads the one iovec; the addresses in it are another process's and not ours.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            &raw const range,
            1,
            advice,
            0,
        )
    };
    match done {
        -1 => match io::Error::last_os_error() {
            // A part that cannot be advised: a device's, say, or one that has been unmapped meanwhile.
            error
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINVAL | libc::ENOMEM | libc::EBADF)
                ) =>
            {
                Ok(())
            }
            error => Err(error),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0002000 r--p 00000000 08:01 1234       /usr/bin/mpv
55d0c0002000-55d0c0005000 r-xp 00002000 08:01 1234       /usr/bin/mpv
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0          [heap]
7f0000000000-7f0000004000 r--s 00001000 08:01 99         /films/a b (deleted)
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0          [vdso]
nonsense
";

    #[test]
    fn mappings_are_read_as_the_kernel_writes_them() {
        let found = parse_maps(MAPS);
        assert_eq!(found.len(), 4, "what only the kernel can use is left out");
        assert!(found[0].program && found[1].program && !found[2].program && !found[3].program);
        assert_eq!(found[2].file, None);
        assert_eq!(found[1].file.unwrap().1, 0x2000);
        assert_ne!(found[1].file.unwrap().0, found[3].file.unwrap().0);
    }

    #[test]
    fn runs_of_pages_are_joined() {
        let p = page();
        assert_eq!(
            ranges(&[true, true, false, true], 10 * p),
            [(10 * p, 12 * p), (13 * p, 14 * p)]
        );
        assert_eq!(joined(vec![(3, 5), (0, 2), (2, 3), (4, 9)]), [(0, 9)]);
        assert_eq!(joined(vec![(4, 5), (0, 2)]), [(0, 2), (4, 5)]);
    }

    #[test]
    fn this_process_is_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let all = mappings(own);
        assert!(all.iter().any(|mapping| mapping.program));
        let map = PageMap::of(own).unwrap();
        let words = map.read(&all[0]).unwrap();
        assert_eq!(words.len() as u64, all[0].pages());
        assert!(ask_for(i32::MAX, 0).is_err());
    }
}
