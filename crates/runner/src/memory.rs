//! A machine with little memory: the device that it swaps to, how long requests take, what classes have of the memory by
//! the kernel's own settings, and what the kernel counts of it.
//!
//! ```text
//!   pages  ──► andante-swap ─┐ dm-delay: a request waits for so long, ──► NVDIMM: memory of the host
//!   files  ──► andante-root ─┘ whatever else waits
//! ```
//!
//! The virtual machine has made both devices, which take no time at first: so it boots as fast as any other, and the
//! same saved machine serves scenarios with other times. The root file system is below one of them as a whole: real
//! programs map files from anywhere in it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::process::Command;

use andante_daemon::{
    Client, Holder, MemoryAsk, Reply, Request, USUALLY_LENT_PER_MILLE, socket_path,
};
use andante_job::LabError;
use andante_scenario::choice::Choice;
use andante_scenario::{ClassMemory, Memory, Workload};

use super::classes::Classes;

/// The names that `/init` of the virtual machine has device mapper give them, and the device of the second; `andante_vm` has
/// the same (there is a test of it in `crates/experiment`).
pub const DEVICES: [&str; 2] = ["andante-root", "andante-swap"];
/// See [`DEVICES`].
pub const SWAP_DEVICE: &str = "/dev/dm-1";

const PAGE_BYTES: usize = 4096;

/// Makes the machine swap, and requests take their time.
///
/// # Errors
/// If the machine does not have the devices.
pub(super) fn prepare(memory: &Memory) -> Result<(), LabError> {
    // The laboratory measures, and is not what is measured.
    stay()?;
    swap_on(memory).map_err(|e| LabError::io("have the machine swap", e))?;
    DEVICES
        .iter()
        .try_for_each(|device| delay(device, memory.page_ms))
}

/// Keeps the memory of this process where it is; programs that it starts have theirs like any other.
fn stay() -> Result<(), LabError> {
    // SAFETY: no pointers.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => {
            let error = io::Error::last_os_error();
            Err(LabError::io("keep the laboratory in memory", error))
        }
    }
}

/// Does as mkswap and swapon do: the format is the kernel's (`union swap_header`).
fn swap_on(memory: &Memory) -> io::Result<()> {
    /// Of the header, after the room for a boot loader [bytes].
    const AT: usize = 1024;
    const MAGIC: &[u8] = b"SWAPSPACE2";
    let pages = (u64::from(memory.swap_mib) << 20) / PAGE_BYTES as u64;
    let mut header = vec![0; PAGE_BYTES];
    // The version, and the number of the last page.
    header[AT..AT + 4].copy_from_slice(&1_u32.to_le_bytes());
    header[AT + 4..AT + 8].copy_from_slice(&(pages as u32 - 1).to_le_bytes());
    header[PAGE_BYTES - MAGIC.len()..].copy_from_slice(MAGIC);
    let mut device = OpenOptions::new().write(true).open(SWAP_DEVICE)?;
    device.write_all(&header)?;
    device.sync_all()?;
    let path = std::ffi::CString::new(SWAP_DEVICE).expect("it has no zero byte");
    // SAFETY: the path is a live string.
    match unsafe { libc::swapon(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has requests to this device take so long from now on [ms].
fn delay(device: &str, ms: u32) -> Result<(), LabError> {
    let table = device_mapper(&["table", device])?;
    let slower = slower(&table, ms).ok_or_else(|| {
        let what = format!("device mapper says of {device}: {table}");
        LabError::io("make a device slower", io::Error::other(what))
    })?;
    // There is no udev that would have to be waited for. Nor are there requests to be waited for (noflush).
    device_mapper(&["load", device, "--table", &slower])?;
    device_mapper(&["suspend", "--noudevsync", "--nolockfs", "--noflush", device])?;
    device_mapper(&["resume", "--noudevsync", device])?;
    Ok(())
}

/// The table of a device of which nothing but the last figure, the delay, is another one.
fn slower(table: &str, ms: u32) -> Option<String> {
    let (rest, _) = table.trim().rsplit_once(' ')?;
    rest.contains(" delay ").then(|| format!("{rest} {ms}"))
}

fn device_mapper(arguments: &[&str]) -> Result<String, LabError> {
    let output = Command::new("dmsetup").args(arguments).output();
    let output = output.map_err(|e| LabError::io("run dmsetup", e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let what = format!("`dmsetup {}`: {}", arguments.join(" "), said.trim());
    Err(LabError::io("set up a device", io::Error::other(what)))
}

/// An amount that the scenario says of a class [bytes].
type Kept = fn(&ClassMemory) -> Option<u64>;

/// The files of a control group, and what each class of the workload is to have in them: what a class needs, all above
/// it need as well, for the kernel keeps no more for a class than for the one above it.
pub(super) fn settings(workload: &Workload) -> Vec<(&str, &'static str, u64)> {
    let mut settings = Vec::new();
    for class in &workload.classes {
        let path = class.path.as_str();
        let kept: [(_, Kept); 2] = [("memory.min", |it| it.min), ("memory.low", |it| it.low)];
        for (file, of) in kept {
            let bytes = needed(workload, path, of);
            settings.extend((bytes > 0).then_some((path, file, bytes)));
        }
        let high = class.memory.high.map(|bytes| (path, "memory.high", bytes));
        settings.extend(high);
    }
    settings
}

/// Has Andante reserve what classes are to have; under other schedulers nothing is reserved.
///
/// # Errors
/// It is refused, or nobody can be asked.
pub(super) fn reserve(
    workload: &Workload,
    classes: &Classes,
    choice: &Choice,
) -> Result<(), LabError> {
    if *choice != Choice::Andante {
        return Ok(());
    }
    for class in &workload.classes {
        let Some(wanted) = class.memory.reserved else {
            continue;
        };
        let ask = Request::ReserveMemory(MemoryAsk {
            holder: Holder::Class(classes.path_of(&class.path)),
            bytes: wanted.bytes,
            lend_per_mille: wanted.lend_per_mille.unwrap_or(USUALLY_LENT_PER_MILLE),
            until: None,
        });
        let reply = Client::connect(&socket_path()).and_then(|mut client| client.request(&ask));
        let fail = |why: String| {
            LabError::io(
                format!("reserve memory for {}", class.path),
                io::Error::other(why),
            )
        };
        match reply {
            Ok(Reply::MemoryReserved(_)) => {}
            Ok(Reply::MemoryRefused(refusal)) => {
                let most = refusal.most.unwrap_or(0) >> 20;
                return Err(fail(format!("it is refused; {most}M would do")));
            }
            Ok(_) => return Err(fail("Andante answered something else".to_owned())),
            Err(error) => return Err(fail(error.to_string())),
        }
    }
    Ok(())
}

/// The amount that is kept for the class, or for those below it together if that is more.
fn needed(workload: &Workload, path: &str, of: Kept) -> u64 {
    let classes = || workload.classes.iter();
    let own = classes().find(|class| class.path == path);
    let own = own.and_then(|class| of(&class.memory)).unwrap_or(0);
    let below = classes().filter(|class| class.parent() == path);
    let below: u64 = below.map(|class| needed(workload, &class.path, of)).sum();
    own.max(below)
}

/// The kernel's counts of a class's memory so far; none: this kernel does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Pages read from swap.
    pub swapped_in: Option<u64>,
    /// Pages written to swap.
    pub swapped_out: Option<u64>,
    /// Pages that came back.
    pub refaults: Option<u64>,
}

impl Counted {
    /// From a class's `memory.stat`. The last events are missing there, up to 64 events for each CPU, and comes
    /// within two seconds.
    pub fn read(stat: &str) -> Self {
        let of = |key: &str| {
            let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| *name == key)?.1.parse::<u64>().ok()
        };
        let refaults = ["workingset_refault_anon", "workingset_refault_file"];
        Self {
            swapped_in: of("pswpin"),
            swapped_out: of("pswpout"),
            refaults: refaults.into_iter().map(of).sum(),
        }
    }

    /// The counts since then.
    pub fn since(self, before: Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            swapped_in: since(self.swapped_in, before.swapped_in),
            swapped_out: since(self.swapped_out, before.swapped_out),
            refaults: since(self.refaults, before.refaults),
        }
    }
}

#[cfg(test)]
mod tests {
    use andante_scenario::Scenario;

    use super::*;

    #[test]
    fn all_above_a_class_have_what_it_needs() {
        let text = "title = 'x'\nduration_s = 1\n[classes]\n\
                    '/a/film' = { memory_min = '100M', memory_low = '1M' }\n\
                    '/a/sound' = { memory_min = '20M' }\n\
                    '/b' = { memory_high = '230M' }\n\
                    [programs.x]\nclass = '/'\nkind = 'loop'\n";
        let mut scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let workload = scenario.cases.remove(0).workload;
        const MIB: u64 = 1 << 20;
        let wanted = [
            ("/a", "memory.min", 120 * MIB),
            ("/a", "memory.low", MIB),
            ("/a/film", "memory.min", 100 * MIB),
            ("/a/film", "memory.low", MIB),
            ("/a/sound", "memory.min", 20 * MIB),
            ("/b", "memory.high", 230 * MIB),
        ];
        assert_eq!(settings(&workload), wanted);
    }

    #[test]
    fn what_a_kernel_does_not_count_is_absent() {
        let stat = "anon 8192\nworkingset_refault_anon 5\nworkingset_refault_file 7\npswpin 9\npswpout 1\n";
        let now = Counted::read(stat);
        let before = Counted {
            swapped_in: Some(4),
            swapped_out: Some(1),
            refaults: Some(2),
        };
        let since = now.since(before);
        assert_eq!(since.swapped_out, Some(0));
        assert_eq!((since.swapped_in, since.refaults), (Some(5), Some(10)));
        let old = Counted::read("workingset_refault_anon 5\nworkingset_refault_file 7\n");
        assert_eq!((old.swapped_in, old.refaults), (None, Some(12)));
        assert_eq!(old.since(before).swapped_in, None);
    }

    #[test]
    fn only_the_delay_of_a_device_is_changed() {
        let slow = slower("0 135168 delay 259:0 0 0\n", 4);
        assert_eq!(slow.as_deref(), Some("0 135168 delay 259:0 0 4"));
        assert_eq!(slower("0 135168 linear 259:0 0", 4), None);
    }
}
