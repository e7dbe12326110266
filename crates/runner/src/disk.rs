//! A machine with a disk whose requests take their time: a model of it that a process of the laboratory's serves as a
//! block device, who decides in the kernel which request goes next, and what classes have of it by the kernel's own
//! settings.
//!
//! ```text
//!   programs ──► /dev/ublkbN ──► the kernel's scheduler ──► served as they come, so many at once ──► model of a disk
//!                 io.max, io.weight                          a process of its own, above all others    memory
//! ```
//!
//! With `scheduler = "cello"` there is a device of Andante's above it, which programs read.

mod cello;
mod model;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use andante_disk::MAX_BYTES;
use andante_job::LabError;
use andante_scenario::{Class, Disk, DiskScheduler, DriveModel, Workload};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Setup;
use super::classes::Classes;

pub use model::serve_main;

/// The requests that wait in a scheduler over a disk that takes one at a time, which by itself has room for two: as many as
/// other devices of one queue have at least (`BLKDEV_DEFAULT_RQ` is 128, halved for each direction).
const WAITING: u32 = 64;
/// The length of a request that the kernel's model of costs counts by [bytes].
const COST_BYTES: f64 = 4096.0;
const NS_PER_S: f64 = 1e9;
/// A server that has not ended by then waits for a request that nobody will answer.
const ENDS: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The disk of a run; it is taken off when this is dropped.
pub(super) struct Served {
    // Above the model, so that it is taken off before.
    ordered: Option<Server>,
    model: Server,
}

/// A process that serves a block device, which it takes off when this is dropped.
struct Server {
    process: Child,
    device: PathBuf,
}

impl Server {
    /// Starts one, which says its device with the first word, or why there is none.
    fn start(command: &mut Command, what: &str) -> Result<Self, LabError> {
        let failed = |error| LabError::io(what, error);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let output = process.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        let server = Self {
            process,
            device: line.split_whitespace().next().unwrap_or_default().into(),
        };
        read.map_err(failed)?;
        if !server.device.starts_with("/dev") {
            // It is no path, but the reason; or that is on the console.
            return Err(failed(io::Error::other(line.trim().to_owned())));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGTERM);
        let begin = Instant::now();
        while let Ok(None) = self.process.try_wait() {
            if begin.elapsed() > ENDS {
                let _ = self.process.kill();
                let _ = self.process.wait();
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Has the disk served, and its requests scheduled as the scenario says.
///
/// # Errors
/// The kernel has no ublk, or not this scheduler.
pub(super) fn prepare(disk: &Disk, setup: &Setup) -> Result<Served, LabError> {
    let order = serde_json::to_string(disk).expect("disks are plain data");
    let mut command = Command::new(&setup.lab);
    let command = command.args(["serve-disk", &order]);
    let mut served = Served {
        ordered: None,
        model: Server::start(command, "serve the model of a disk")?,
    };
    schedule(disk, &served)?;
    if disk.scheduler == DiskScheduler::Cello {
        served.ordered = Some(cello::begin(disk, &served.model.device, setup)?);
    }
    Ok(served)
}

/// Who decides which request goes next.
fn schedule(disk: &Disk, served: &Served) -> Result<(), LabError> {
    let name = disk.scheduler.in_queue();
    served.set("scheduler", name)?;
    if disk.tags == 1 && name != DiskScheduler::None.in_queue() {
        served.set("nr_requests", &WAITING.to_string())?;
    }
    Ok(())
}

/// Gives each class what it is to have of the disk. That is no scheduler's of the CPU, and holds under all.
///
/// # Errors
/// The kernel's.
pub(super) fn share(
    workload: &Workload,
    served: &Served,
    classes: &Classes,
    setup: &Setup,
) -> Result<(), LabError> {
    let Some(disk) = &workload.disk else {
        return Ok(());
    };
    // Without it every request is the root's.
    classes.hand_down(workload, "io")?;
    let number = served.number()?;
    if disk.scheduler == DiskScheduler::IoCost {
        for (file, text) in costs(disk, &number) {
            classes.set("/", file, &text)?;
        }
    }
    for (path, file, text) in settings(&workload.classes, disk, &number) {
        classes.set(path, file, &text)?;
    }
    match &served.ordered {
        Some(ordered) => cello::share(&ordered.device, workload, classes, setup),
        None => Ok(()),
    }
}

/// The files of a control group, and what each class is to have in them.
fn settings<'a>(
    classes: &'a [Class],
    disk: &Disk,
    number: &str,
) -> Vec<(&'a str, &'static str, String)> {
    let file = match disk.scheduler {
        DiskScheduler::Bfq => Some("io.bfq.weight"),
        DiskScheduler::IoCost => Some("io.weight"),
        DiskScheduler::None
        | DiskScheduler::MqDeadline
        | DiskScheduler::Kyber
        | DiskScheduler::Cello => None,
    };
    let mut settings = Vec::new();
    for class in classes {
        let path = class.path.as_str();
        let weight = file.zip(class.disk.weight);
        settings.extend(weight.map(|(file, weight)| (path, file, weight.to_string())));
        let most = class.disk.max_read;
        settings.extend(most.map(|rate| (path, "io.max", format!("{number} rbps={rate}"))));
    }
    settings
}

/// What the kernel's io.cost is told of the disk: the model itself, and when it is to take less of it. The model's costs are
/// exact for one program alone. Several that read on and on, each at its own place, cost a disk with an arm more than that,
/// and a read that waits for longer than any takes has waited for others: then requests are let through more slowly.
fn costs(disk: &Disk, number: &str) -> [(&'static str, String); 2] {
    /// Of reads, the part that is to be in time, as the kernel's documentation has it [%].
    const IN_TIME: &str = "95.00";
    let ns = |ns: u64| ns as f64 / NS_PER_S;
    let largest = f64::from(MAX_BYTES);
    let (rate, next_s, anywhere_s, longest_s) = match disk.model() {
        DriveModel::Hdd(hdd) => {
            let rate = hdd.rate as f64;
            // Between two places drawn from a line of length 1, the root of the distance is 8/15 on average.
            let seek_s = ns(hdd.seek_ns) + ns(hdd.stroke_ns) * 8.0 / 15.0;
            let longest_s = ns(hdd.seek_ns + hdd.stroke_ns + hdd.turn_ns) + largest / rate;
            let anywhere_s = seek_s + ns(hdd.turn_ns) / 2.0;
            (rate, ns(hdd.next_ns), anywhere_s, longest_s)
        }
        DriveModel::Flash(flash) => {
            // All of them serve side by side.
            let channels = f64::from(flash.channels);
            let rate = flash.rate as f64 * channels;
            let first_s = ns(flash.read_ns) / channels;
            let longest_s = ns(flash.read_ns + flash.erase_ns) + largest / rate;
            (rate, first_s, first_s, longest_s)
        }
    };
    let per_s = |first_s: f64| (1.0 / (first_s + COST_BYTES / rate)).round();
    let (next, anywhere) = (per_s(next_s), per_s(anywhere_s));
    let figures = ["r", "w"]
        .map(|way| format!("{way}bps={rate} {way}seqiops={next} {way}randiops={anywhere}"));
    let longest_us = (longest_s * 1e6).round();
    let in_time = ["r", "w"].map(|way| format!("{way}pct={IN_TIME} {way}lat={longest_us}"));
    [
        (
            "io.cost.model",
            format!("{number} ctrl=user model=linear {}", figures.join(" ")),
        ),
        (
            "io.cost.qos",
            format!(
                "{number} enable=1 ctrl=user {} max=100.00",
                in_time.join(" ")
            ),
        ),
    ]
}

impl Served {
    /// The block device that programs read.
    pub fn device(&self) -> &Path {
        let ordered = self.ordered.as_ref();
        &ordered.unwrap_or(&self.model).device
    }

    /// Sets a file of its queue.
    fn set(&self, file: &str, text: &str) -> Result<(), LabError> {
        let name = self.model.device.file_name().unwrap_or_default();
        let file = Path::new("/sys/block").join(name).join("queue").join(file);
        fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))
    }

    /// `MAJOR:MINOR`, as control groups call it.
    fn number(&self) -> Result<String, LabError> {
        let name = self.model.device.file_name().unwrap_or_default();
        let file = Path::new("/sys/block").join(name).join("dev");
        let text = fs::read_to_string(&file).map_err(|e| LabError::file("read", &file, e))?;
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use andante_scenario::Scenario;

    use super::*;

    fn workload(disk: &str) -> Workload {
        let text = format!(
            "title = 'x'\nduration_s = 1\n[disk]\nkind = 'hdd'\nsize = '16G'\n{disk}\n[classes]\n\
             '/film' = {{ io_weight = 600 }}\n'/copy' = {{ io_max_read = '10M' }}\n\
             [programs.x]\nclass = '/'\nkind = 'loop'\n"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload
    }

    #[test]
    fn weights_go_to_the_controller_that_is_in_charge() {
        let settings = |scheduler: &str| {
            let workload = workload(&format!("scheduler = '{scheduler}'"));
            let disk = workload.disk.as_ref().unwrap();
            let all = settings(&workload.classes, disk, "259:1").into_iter();
            let all = all.map(|(path, file, text)| format!("{path} {file} {text}"));
            all.collect::<Vec<_>>()
        };
        let most = "/copy io.max 259:1 rbps=10000000";
        assert_eq!(settings("bfq"), ["/film io.bfq.weight 600", most]);
        assert_eq!(settings("io.cost"), ["/film io.weight 600", most]);
        assert_eq!(settings("mq-deadline"), [most]);
    }

    #[test]
    fn costs_are_those_of_the_model() {
        let workload = workload("");
        let [(file, model), (_, qos)] = costs(workload.disk.as_ref().unwrap(), "259:1");
        assert_eq!(file, "io.cost.model");
        // 50 µs and 4 KiB at 125 MB/s; 1 + 9 · 8/15 ms, half a turn, and the same 4 KiB.
        let figures = "rbps=125000000 rseqiops=12082 rrandiops=100 wbps=";
        assert!(model.contains(figures), "{model}");
        // 1 + 9 ms, a turn, and 1 MiB.
        assert!(qos.contains(" rlat=26722 "), "{qos}");
    }
}
