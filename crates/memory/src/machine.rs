// SPDX-License-Identifier: GPL-2.0
//! The memory of the machine as a whole. All amounts are in bytes.

use std::fs;
use std::io;
use std::path::Path;

use andante_admission::memory::Memory;

use crate::cgroup::{Cgroup, value};
use crate::error::{MemoryError, file};
use crate::sysctl::{BOOST, Sysctl};

/// The machine as reservations find it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// All memory that the kernel manages.
    pub total: u64,
    /// Below so much free memory the kernel takes some from programs, and those who want more may have to wait: the
    /// high watermarks of all zones, and what zones keep for those who can use no other.
    pub floor: u64,
    /// Memory that the kernel has for itself and cannot give back.
    pub kernel: u64,
    /// Pages of programs that are locked.
    pub locked: u64,
    /// Room in the swap.
    pub swap: u64,
}

impl Machine {
    /// This one, now.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn now() -> Result<Self, MemoryError> {
        let floor = floor(&read("/proc/zoneinfo")?, boost()) * page();
        Ok(parse(&read("/proc/meminfo")?, floor))
    }

    /// The same later, with the floor as it was. Only an administrator changes that, and the kernel keeps a zone locked while
    /// it tells of it.
    ///
    /// # Errors
    /// As for [`Machine::now`].
    pub fn later(self) -> Result<Self, MemoryError> {
        Ok(parse(&read("/proc/meminfo")?, self.floor))
    }

    /// The same for admission, with so much locked by ourselves, which is within reservations.
    pub fn for_admission(
        &self,
        held: u64,
        protected_by_others: u64,
        left_for_others_per_mille: u32,
    ) -> Memory {
        Memory {
            total: self.total,
            kept_by_kernel: self.floor + self.kernel + self.locked.saturating_sub(held),
            protected_by_others,
            left_for_others_per_mille,
        }
    }
}

/// The amounts that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Free {
    /// Of memory.
    pub memory: u64,
    /// Of the swap.
    pub swap: u64,
}

/// The amounts that nobody uses now.
pub fn free() -> Free {
    // SAFETY: the structure is plain data, which the kernel fills in.
    let info = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&raw mut info);
        info
    };
    let unit = u64::from(info.mem_unit);
    Free {
        memory: info.freeram * unit,
        swap: info.freeswap * unit,
    }
}

/// The size of a page.
pub fn page() -> u64 {
    // SAFETY: it takes no memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Whether memory can be counted for classes apart.
///
/// # Errors
/// [`MemoryError::NoController`].
pub fn has_controller(root: &Path) -> Result<(), MemoryError> {
    let names = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let found = names.split_whitespace().any(|name| name == "memory");
    found.then_some(()).ok_or(MemoryError::NoController)
}

/// The sum that is protected in the classes directly below the root.
pub fn protected(root: &Path) -> u64 {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let min = |entry: fs::DirEntry| -> io::Result<u64> { Cgroup::new(entry.path()).protected() };
    folders
        .filter_map(|folder| min(folder).ok())
        .fold(0, u64::saturating_add)
}

/// How far watermarks may be raised while something is reserved [1/10,000 of the highest].
fn boost() -> u64 {
    let sysctl = Sysctl::of_kernel();
    match sysctl.can_be_changed(BOOST) {
        true => 0,
        false => sysctl
            .read(BOOST)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
    }
}

fn read(path: &str) -> Result<String, MemoryError> {
    fs::read_to_string(path).map_err(file(Path::new(path)))
}

fn parse(meminfo: &str, floor: u64) -> Machine {
    let of = |word| value(meminfo, word).unwrap_or(0) * 1024;
    Machine {
        total: of("MemTotal"),
        floor,
        kernel: of("SUnreclaim") + of("KernelStack") + of("PageTables") + of("Percpu"),
        locked: of("Unevictable"),
        swap: of("SwapTotal"),
    }
}

/// Pages that ordinary programs are not given without the kernel taking some from others. A zone's watermarks are
/// raised for a while, by so many ten-thousandths of the highest at most, as soon as large pieces of it become rare
/// (`vm.watermark_boost_factor`): that is when memory becomes short.
fn floor(zoneinfo: &str, boost: u64) -> u64 {
    let mut sum = 0;
    let (mut boosted, mut high, mut reserve) = (0_u64, 0_u64, 0_u64);
    for line in zoneinfo.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            // Not there before Linux 6.1.
            Some("boost") => {
                boosted = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            }
            // The order of a zone's lines: watermarks, `managed`, `protection`.
            Some("high") => high = words.next().and_then(|word| word.parse().ok()).unwrap_or(0),
            Some("managed") => {
                reserve = words
                    .next()
                    .and_then(|word| word.parse::<u64>().ok())
                    .unwrap_or(0);
            }
            Some("protection:") => {
                let text = line.split('(').nth(1).unwrap_or_default();
                let kept = text.trim_end_matches(')').split(", ").last();
                let kept: u64 = kept.and_then(|kept| kept.trim().parse().ok()).unwrap_or(0);
                let usual = high.saturating_sub(boosted);
                sum += (usual + usual * boost / 10_000 + kept).min(reserve);
                (boosted, high, reserve) = (0, 0, 0);
            }
            _ => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: &str = "\
Node 0, zone      DMA
  pages free     3840
        boost    0
        min      91
        low      113
        high     135
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 450, 450, 450, 450)
Node 0, zone    DMA32
  pages free     1000
        min      2725
        low      3406
        high     4087
        spanned  126944
        present  126944
        managed  116000
        protection: (0, 0, 0, 0, 0)
  pagesets
    cpu: 0
              count:    0
              high:     44
Node 0, zone   Normal
  pages free     0
        min      0
        low      0
        high     0
        managed  0
        protection: (0, 0, 0, 0, 0)
";

    #[test]
    fn the_floor_is_that_of_all_zones() {
        assert_eq!(floor(ZONES, 0), 135 + 450 + 4087);
        let boosted = floor(ZONES, 15_000);
        assert_eq!(boosted, (135 + 202) + 450 + (4087 + 6130));
        // It is the same while they are.
        let now = ZONES.replace(
            "boost    0\n        min      91\n        low      113\n        high     135",
            "boost    100\n high 235",
        );
        assert_eq!(floor(&now, 15_000), boosted);
    }

    #[test]
    fn this_machine_is_read() {
        let machine = Machine::now().unwrap();
        assert!(machine.total > machine.floor && machine.floor > 0);
        assert_eq!(machine.later().unwrap().floor, machine.floor);
        let free = free();
        assert!(free.memory > 0 && free.memory < machine.total && free.swap <= machine.swap);
        let memory = machine.for_admission(machine.locked, 0, 200);
        assert_eq!(memory.kept_by_kernel, machine.floor + machine.kernel);
    }
}
