//! The virtual machine itself: QEMU's command line, and its process.
//!
//! Under `-icount shift=0` every instruction takes exactly one virtual nanosecond, and with
//! `sleep=off` an idle guest jumps to its next timer. What else could tell two runs apart is fixed:
//! the real-time clock follows the virtual one, hardware randomness is left out and QEMU's own is
//! seeded, addresses are not randomised.
//!
//! In the host's time (`Timing::Parallel`) none of this holds: every virtual CPU is a thread of the host.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use serde_json::json;

use super::monitor::{Monitor, Refusal};
use super::{Boot, BootError, Timing, io_error};
use crate::qemu::Qemu;

/// The kernel's command line. `panic=-1` makes a crash end the run at once; the address space is
/// laid out the same every time; the time-stamp counter is trusted, being the virtual clock; the
/// cipher modules' self-tests, which would run beside the command for seconds, are left out.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 panic=-1 nokaslr norandmaps tsc=reliable \
                                cryptomgr.notests rdinit=/init";

/// What the kernel says on the console: errors; and where its complaints are read, warnings too.
const QUIET: &str = "quiet";
const WITH_WARNINGS: &str = "loglevel=5";

/// The first version of QEMU that knows of fast zeroing and storing.
const KNOWS_MORE_STRINGS: (u32, u32) = (8, 0);

/// From one packet of the slow card to the next, in virtual time [ns].
const CARD_SENDS_NS: u64 = 1_000_000;

/// How long all virtual CPUs together take for their turns, at most [µs]. Each runs for its part of
/// the time until the next event of any device, and stands still for the rest, while the clocks go
/// on: for milliseconds, when devices have nothing to do. So there is one that does something
/// often and costs the guest nothing: a buffer for packets of a network that nobody is on.
///
/// An event also ends the turn in progress, which makes some virtual CPUs faster than others. Of the
/// lengths from 50 to 1000 this leaves four of them most nearly equally fast. Two are more so without
/// it in the long run, but not for the few milliseconds of a job: one of 3 ms has then taken 5.7.
const TURNS_US: u64 = 160;

/// The files through which host and guest communicate.
#[derive(Debug)]
pub(super) struct Files {
    pub initrd: PathBuf,
    pub console: PathBuf,
    pub output: PathBuf,
    pub progress: PathBuf,
    pub status: PathBuf,
    /// Ports of the points, where the guest says `ready`, and `late` when it cannot be saved any more.
    pub points: [PathBuf; 2],
    /// What is given to the guest at the points.
    pub given: [PathBuf; 2],
    /// QEMU's own messages.
    pub stderr: PathBuf,
}

/// The points at which the guest receives what it does not know from the beginning.
pub(super) const POINTS: [&str; 2] = ["command", "order"];

impl Files {
    pub(super) fn in_folder(folder: &Path, console: &Path) -> Self {
        Self {
            initrd: folder.join("initrd"),
            console: console.to_owned(),
            output: folder.join("output"),
            progress: folder.join("progress"),
            status: folder.join("status"),
            points: POINTS.map(|name| folder.join(format!("{name}.said"))),
            given: POINTS.map(|name| folder.join(name)),
            stderr: folder.join("stderr"),
        }
    }

    /// The guest's ports by name.
    fn ports(&self) -> Vec<(String, &Path)> {
        let mut ports = vec![
            ("andante.out".to_owned(), self.output.as_path()),
            ("andante.progress".to_owned(), &self.progress),
            ("andante.status".to_owned(), &self.status),
        ];
        for (name, file) in POINTS.iter().zip(&self.points) {
            ports.push((format!("andante.{name}"), file));
        }
        ports
    }
}

/// How a machine is begun that is saved, or was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Monitored<'a> {
    /// It goes on from this one, as soon as it is told to; else it boots.
    pub from: Option<&'a Path>,
}

/// QEMU's command for one run.
pub(super) fn command(
    boot: &Boot,
    files: &Files,
    monitored: Option<Monitored>,
) -> Result<Command, BootError> {
    let mut qemu = boot.qemu.command();
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none"]);
    match boot.timing {
        Timing::Virtual => qemu.args(["-accel", "tcg", "-icount", "shift=0,sleep=off"]),
        Timing::Parallel => qemu.args(["-accel", "tcg,thread=multi"]),
    };
    qemu.args(["-cpu", &processor(boot.qemu), "-seed", "1"]);
    qemu.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
    qemu.arg("-no-reboot");
    qemu.arg("-smp").arg(processors(boot));
    qemu.args(nodes(boot));
    if boot.cpus > 1 && boot.timing == Timing::Virtual {
        qemu.args(["-netdev", "hubport,id=turns,hubid=0"]);
        // One that was saved is given it when its clock is there, see `Running::go_on`.
        if monitored.is_none_or(|monitored| monitored.from.is_none()) {
            qemu.arg("-object").arg(format!(
                "filter-buffer,id=turn,netdev=turns,interval={TURNS_US}"
            ));
        }
    }
    if boot.cards {
        qemu.args(cards());
    }
    qemu.arg("-kernel").arg(&boot.kernel.vmlinux);
    qemu.arg("-initrd").arg(&files.initrd);
    let said = match boot.timing {
        Timing::Virtual => QUIET,
        Timing::Parallel => WITH_WARNINGS,
    };
    qemu.args(["-append", &format!("{KERNEL_ARGUMENTS} {said}")]);
    qemu.arg("-chardev")
        .arg(file_device("console", &files.console));
    qemu.args(["-serial", "chardev:console"]);
    // Without ioeventfd the guest's own thread does the writing, at a fixed virtual instant.
    qemu.args(["-device", "virtio-serial-pci,ioeventfd=off"]);
    // No port has an `id`: QEMU would tell its monitor, be there one or not, of each that is opened, at most
    // once a second of the host's. The timer of that second ends the turn of the virtual CPU in progress.
    for (name, file) in files.ports() {
        qemu.arg("-chardev").arg(file_device(&name, file));
        qemu.arg("-device")
            .arg(format!("virtserialport,chardev={name},name={name}"));
    }
    for (name, file) in POINTS.iter().zip(&files.given) {
        let file = escaped(file);
        qemu.arg("-fw_cfg")
            .arg(format!("name=opt/andante/{name},file={file}"));
    }
    if let Some(monitored) = monitored {
        qemu.args(["-chardev", "stdio,id=monitor,signal=off"]);
        qemu.args(["-mon", "chardev=monitor,mode=control"]);
        if let Some(from) = monitored.from {
            qemu.arg("-incoming")
                .arg(format!("exec:cat < {}", in_shell(from)));
        }
    }
    let memory_mib = boot.memory_mib;
    match boot.image {
        None => {
            qemu.args(["-M", "pc", "-m", &format!("{memory_mib}M")]);
        }
        Some(image) => {
            let size_bytes = image.metadata().map_err(io_error(image))?.len();
            qemu.args(["-M", "pc,nvdimm=on", "-m"]);
            let swap_mib = boot.swap_mib.unwrap_or(0);
            // A slot may begin at a multiple of a gigabyte.
            let largest_mib = u64::from(memory_mib + swap_mib) + (size_bytes >> 20) + 2048;
            qemu.arg(format!("{memory_mib}M,slots=2,maxmem={largest_mib}M"));
            // share=off: what the guest writes stays in QEMU's memory and ends with it.
            qemu.arg("-object").arg(format!(
                "memory-backend-file,id=image,share=off,size={size_bytes},mem-path={}",
                escaped(image)
            ));
            qemu.args(["-device", "nvdimm,id=nvdimm,memdev=image"]);
            if swap_mib > 0 {
                qemu.args([
                    "-object",
                    &format!("memory-backend-ram,id=swap,size={swap_mib}M"),
                ]);
                qemu.args(["-device", "nvdimm,id=nvdimm-swap,memdev=swap"]);
            }
        }
    }
    Ok(qemu)
}

/// The first says of each packet that it has gone (without event_idx; else of many together, so that the driver
/// keeps 220 kB in its ring), the second takes what comes at once. Segments are made before either, for a hub takes no larger packets.
fn cards() -> [String; 8] {
    let cable = |id: &str| format!("hubport,id={id},hubid=1");
    let card =
        |cable: &str, more: &str| format!("virtio-net-pci,netdev={cable},ioeventfd=off{more}");
    let slow = format!(",event_idx=off,tx=timer,x-txburst=1,x-txtimer={CARD_SENDS_NS}");
    let [netdev, device] = ["-netdev", "-device"].map(str::to_owned);
    [
        netdev.clone(),
        cable("near"),
        device.clone(),
        card("near", &slow),
        netdev,
        cable("far"),
        device,
        card("far", ""),
    ]
}

/// Sockets are what shares a cache. As QEMU does where nothing is named, if nothing is.
fn processors(boot: &Boot) -> String {
    let (cpus, topology) = (boot.cpus, boot.topology);
    let each = match topology.cpus_of_cache {
        0 => cpus,
        each => each,
    };
    match (topology.threads_of_core, cpus / each) {
        (1, 1) => cpus.to_string(),
        (threads, sockets) => {
            let cores = each / threads;
            format!("{cpus},sockets={sockets},cores={cores},threads={threads}")
        }
    }
}

/// Nodes with the same part of the memory each; none, if there is one.
fn nodes(boot: &Boot) -> Vec<String> {
    let each = boot.topology.cpus_of_node;
    if each == 0 || each == boot.cpus {
        return Vec::new();
    }
    let count = boot.cpus / each;
    let memory_mib = boot.memory_mib / count;
    let arguments = (0..count).flat_map(|node| {
        // The first has what does not divide.
        let rest_mib = if node == 0 {
            boot.memory_mib % count
        } else {
            0
        };
        let (first, last) = (node * each, node * each + each - 1);
        [
            "-object".to_owned(),
            format!(
                "memory-backend-ram,id=node{node},size={}M",
                memory_mib + rest_mib
            ),
            "-numa".to_owned(),
            format!("node,nodeid={node},cpus={first}-{last},memdev=node{node}"),
        ]
    });
    arguments.collect()
}

/// The processor: all that QEMU can do, but for what is random, and for the promise that its string
/// instructions are fast. On a processor that keeps it a byte takes a fraction of a cycle, here a whole
/// instruction, and with newer versions of QEMU ten times that of the host's time; without it,
/// memory is copied and cleared by ordinary instructions.
fn processor(qemu: &Qemu) -> String {
    let mut model = String::from("max,-rdrand,-rdseed,-erms,-fsrm");
    if qemu.version >= KNOWS_MORE_STRINGS {
        model += ",-fzrm,-fsrs";
    }
    model
}

/// A character device that writes to a file.
fn file_device(id: &str, path: &Path) -> String {
    format!("file,id={id},path={}", escaped(path))
}

/// The virtual clock of the machine in this file [ns]: among the devices' state, which comes after the
/// memory, in the subsection of that name (QEMU's cpu-timers.c): its version (32 bits), and the two numbers
/// whose sum it is, instructions and time leapt over.
fn clock_ns(file: &Path) -> Result<u64, Refusal> {
    const NAME: &[u8] = b"timer/icount";
    /// Devices take less than half a megabyte.
    const DEVICES_BYTES: u64 = 4 << 20;
    let cannot = |error: io::Error| format!("its clock cannot be read: {error}");
    let mut file = File::open(file).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    let from = SeekFrom::Start(length.saturating_sub(DEVICES_BYTES));
    let mut devices = Vec::new();
    file.seek(from)
        .and_then(|_| file.read_to_end(&mut devices))
        .map_err(cannot)?;
    let at = devices.windows(NAME.len()).rposition(|word| word == NAME);
    let numbers = at.and_then(|at| devices.get(at + NAME.len() + 4..)?.first_chunk::<16>());
    let numbers = numbers.ok_or("it tells no clock")?;
    let (leapt, counted) = numbers.split_at(8);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    Ok(number(leapt).wrapping_add(number(counted)))
}

/// A path inside an option, where QEMU wants commas doubled.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// A path as one word of a command for the shell.
fn in_shell(path: &Path) -> String {
    super::guest::quote(&[path.to_string_lossy().into_owned()])
}

/// A started machine; dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
}

impl Running {
    pub(super) fn start(
        boot: &Boot,
        files: &Files,
        monitored: Option<Monitored>,
    ) -> Result<Self, BootError> {
        let stderr = File::create(&files.stderr).map_err(io_error(&files.stderr))?;
        let mut command = command(boot, files, monitored)?;
        let pipe = || monitored.map_or_else(Stdio::null, |_| Stdio::piped());
        command.stdin(pipe()).stdout(pipe()).stderr(stderr);
        // SAFETY: between fork and exec only prctl is called, which is safe after a fork.
        unsafe {
            command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        match command.spawn() {
            Ok(child) => Ok(Self { child }),
            Err(source) => Err(BootError::Start {
                program: boot.qemu.binary.clone(),
                source,
            }),
        }
    }

    /// The connection to one that is monitored, to be made once.
    pub(super) fn monitor(&mut self) -> Result<Monitor, Refusal> {
        Monitor::connect(&mut self.child)
    }

    /// Has a machine go on that was read from this file.
    pub(super) fn go_on(
        monitor: &mut Monitor,
        file: &Path,
        cpus: u32,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        monitor.await_moved(deadline)?;
        if cpus > 1 {
            // What ends the turns is the host's, and not in the file: it begins anew so that turns end at
            // multiples of their length, as they did, whenever the machine was halted.
            let now_us = clock_ns(file)? / 1000;
            let first_us = TURNS_US - now_us % TURNS_US;
            let turn = json!({
                "qom-type": "filter-buffer", "id": "turn", "netdev": "turns", "interval": first_us
            });
            monitor.execute("object-add", turn)?;
            let later =
                json!({ "path": "/objects/turn", "property": "interval", "value": TURNS_US });
            monitor.execute("qom-set", later)?;
        }
        monitor.execute("cont", json!({}))?;
        Ok(())
    }

    /// Has QEMU write the machine, which stands still, to this file.
    pub(super) fn save(
        monitor: &mut Monitor,
        file: &Path,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        // It is held back by what a live migration may take of a network, if nothing else is said.
        let unlimited = json!({ "max-bandwidth": i64::MAX });
        monitor.execute("migrate-set-parameters", unlimited)?;
        let uri = format!("exec:cat > {}", in_shell(file));
        monitor.execute("migrate", json!({ "uri": uri }))?;
        monitor.await_moved(deadline)
    }

    /// How it ended, or `None` while it runs.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, BootError> {
        self.child.try_wait().map_err(io_error(Path::new("QEMU")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then both calls have nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_saved_machine_is_the_sum_of_what_was_counted_and_leapt_over() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![7; 100];
        std::fs::write(file.path(), &bytes).unwrap();
        assert!(clock_ns(file.path()).is_err());
        bytes.extend(b"timer/icount\0\0\0\x01");
        bytes.extend(500_u64.to_be_bytes());
        bytes.extend(3_000_000_000_u64.to_be_bytes());
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(clock_ns(file.path()), Ok(3_000_000_500));
    }

    #[test]
    fn commas_in_paths_do_not_end_an_option() {
        assert_eq!(
            file_device("console", Path::new("/tmp/a,b")),
            "file,id=console,path=/tmp/a,,b"
        );
    }
}
