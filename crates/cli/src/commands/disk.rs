// SPDX-License-Identifier: GPL-2.0
//! `andante disk`: a disk whose requests are served in an order of ours.

mod classes;
mod model;
mod table;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use andante_admission::disk::DiskFigures;
use andante_core_sys::{DiskMode, DiskModel};
use andante_disk::{
    Attached, Backing, Cello, Count, DiskError, Event, Fifo, HandingOn, MAX_BYTES, MAX_TAGS, Note,
    Place, RUN, Senders, Settings, Wanted, What, attach, attend, detach, found, lock_memory, open,
};
use andante_sched::text::shown;
use andante_terminal::exit::Status;
use andante_terminal::output::{self, GOOD, paint};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::classes::{Release, Reserve, Weigh};
use self::model::Model;
use self::table::render;

/// Where cgroups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Serve a file or a disk as a block device whose requests go in an order of Andante's.
///
/// The kernel has no way to let a program order a disk's requests. So there is a new block device, /dev/ublkbN, whose
/// requests come to this command; it serves them from a file or a disk, without the page cache and without
/// copying. File systems are made and mounted on it as on any other. It needs Linux 6.16 or newer, with the module ublk_drv.
#[derive(Args)]
#[command(after_long_help = "\
If the command is killed nothing is lost: the device stays, programs wait, and `andante disk attach` of the same file or disk \
goes on where it was. All that a program was told is written, is written.

Swap must not be on such a device: to make memory free, memory would be needed. Where somebody says swapon, it is taken off \
again at once.

Examples:
  sudo modprobe ublk_drv
  sudo andante disk attach /dev/sdb             stays until ^C; mount /dev/ublkb0 then, not /dev/sdb
  sudo andante disk attach disk.img
  sudo andante disk list
  sudo andante disk detach /dev/ublkb0")]
pub struct Disk {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Attach(Attach),
    Detach(Detach),
    List(List),
    Reserve(Reserve),
    Release(Release),
    Weigh(Weigh),
}

/// Serve a file or a disk as a new block device; stay until ^C.
#[derive(Args)]
#[command(after_long_help = "\
Nobody else may have the file or disk: it must not be mounted, be swap, or be a part of another device. Its content stays as \
it was, and is found there again when it is detached.

^C, or `andante disk detach`, takes the device off when nobody has it open; until then it is served. Requests that fail below \
fail above, and are told of.

Each request is of the cgroup that sent it: for that the io controller of cgroups is handed on to all classes as long as a disk \
is attached. Written through the page cache, it is of its cgroup where that has the memory controller as well.

A class has a part of the disk's time by the weight that it has of the CPU (cpu.weight). Classes that read on and on take \
turns, as long as it takes the disk to be worth while; one that asks now and then goes before them.

Examples:
  sudo andante disk attach /dev/sdb
  sudo andante disk attach /dev/sdb --turns-per-minute 5400 --rate 90M
  truncate -s 1G disk.img && sudo andante disk attach disk.img --depth 4")]
struct Attach {
    /// The file or disk that has the data.
    #[arg(value_name = "FILE|DEVICE")]
    backing: PathBuf,
    /// The order in which requests are served.
    #[arg(long, value_enum, default_value_t = Name::Cello)]
    order: Name,
    /// The thing that classes have shares of.
    #[arg(long, value_enum, default_value_t = Shares::Time)]
    shares: Shares,
    /// Requests that are served at once; of a disk with an arm it is one, by classes.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_TAGS)))]
    depth: u16,
    #[command(flatten)]
    model: Model,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// By classes, their weights and contracts, and where the arm is.
    Cello,
    /// As they come.
    Fifo,
}

/// The thing that is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shares {
    /// The disk's time: small requests that are far apart take much of it.
    Time,
    /// The bytes that are read and written, whatever they take.
    Bytes,
}

impl Name {
    fn name(self) -> &'static str {
        match self {
            Self::Cello => "cello",
            Self::Fifo => "fifo",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Cello => "requests are served by classes",
            Self::Fifo => "requests are served as they come",
        }
    }
}

/// Take a device off.
///
/// All that was written to it and is not yet on the disk is written first. A device that somebody has open or mounted stays.
#[derive(Args)]
#[command(after_help = "\
Examples:
  sudo andante disk detach /dev/ublkb0
  sudo andante disk detach disk.img")]
struct Detach {
    /// The device, or what it is attached to.
    #[arg(value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// Also if it is in use, or if its command was killed: what has not been written is lost, and who has it open gets
    /// errors.
    #[arg(long)]
    force: bool,
}

/// Show what is attached.
#[derive(Args)]
#[command(after_help = "\
A device whose SERVER is - waits: its command was killed, and `andante disk attach` of the same file or disk goes on.

Examples:
  sudo andante disk list
  sudo andante disk list --json | jq '.[].device'")]
struct List {
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

impl Disk {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        match self.action {
            Action::Attach(action) => action.run(),
            Action::Detach(action) => action.run(),
            Action::List(action) => action.run(),
            Action::Reserve(action) => action.run(),
            Action::Release(action) => action.run(),
            Action::Weigh(action) => action.run(),
        }
    }
}

impl Attach {
    fn run(self) -> Result<Status> {
        // Before anything is changed, so that no signal can end us half-way.
        let (asked, ask) = UnixStream::pair()?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, ask.try_clone()?)?;
        }
        let backing = open(&self.backing)?;
        let model = self.model.of(&backing.shape(), self.depth);
        // One request at a time where there is an arm: the disk would order several by itself, and knows no classes.
        let (depth, figures) = match self.order {
            Name::Cello => (model.at_once, Some(figures(&model))),
            Name::Fifo => (u32::from(self.depth), None),
        };
        let path = backing.path().to_owned();
        let classes = HandingOn::begin(Path::new(CGROUPS), Path::new(RUN))?;
        let settings = Arc::<Settings>::default();
        let attached = self.attach(backing, &model, Arc::clone(&settings))?;
        let following = attached.follow(figures, settings)?;
        attached.note(&Note {
            backing: path.clone(),
            order: self.order.name().to_owned(),
            depth,
        });
        if let Err(error) = lock_memory() {
            output::warn(&format!(
                "the server's memory cannot be locked ({error}): when memory is short it may wait for itself; give it \
                 CAP_IPC_LOCK"
            ));
        }
        let device = attached.path();
        let status = format!("{} serves {}", device, path.display());
        let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        output::print(&self.told(&attached, &path, depth))?;
        let counts = attached.counts();
        attend(
            attached,
            Some(&classes),
            Some(&following),
            asked.as_fd(),
            |event| {
                output::warn(&said(&device, &event));
            },
        )?;
        drop(classes);
        output::print(&format!("{device} is no more; {}.\n", served(&counts)))?;
        Ok(Status::Ok)
    }

    fn attach(
        &self,
        backing: Place,
        model: &DiskModel,
        settings: Arc<Settings>,
    ) -> Result<Attached, DiskError> {
        let wanted = Wanted::default();
        let senders = Senders::load()?;
        match self.order {
            Name::Cello => {
                let mode = match self.shares {
                    Shares::Time => DiskMode::Time,
                    Shares::Bytes => DiskMode::Bytes,
                };
                let cello = Cello::new(model, mode, Arc::clone(&senders), settings);
                attach(backing, cello, senders, wanted)
            }
            Name::Fifo => attach(backing, Fifo::new(self.depth), senders, wanted),
        }
    }

    fn told(&self, attached: &Attached, path: &Path, depth: u32) -> String {
        let goes_on = match attached.recovered() {
            true => " goes on where the former command was killed, and",
            false => "",
        };
        format!(
            "{}{goes_on} is {}: {}, {} at once. ^C takes it off.\n",
            paint(GOOD, attached.path()),
            shown(&path.display().to_string()),
            self.order.sentence(),
            depth
        )
    }
}

/// The part of a disk's time that is not promised [1/1000]: others are to have something, and what a server takes is in it.
const LEFT_FOR_OTHERS_PER_MILLE: u32 = 200;

/// The figures that contracts are admitted against.
fn figures(model: &DiskModel) -> DiskFigures {
    DiskFigures {
        rate: model.rate,
        positioning_ns: model.seek_ns + model.stroke_ns + model.turn_ns,
        largest: MAX_BYTES,
        left_for_others_per_mille: LEFT_FOR_OTHERS_PER_MILLE,
    }
}

/// An event, in a sentence that says what can be done.
fn said(device: &str, event: &Event<'_>) -> String {
    match event {
        Event::Failed {
            requests,
            error,
            sector,
        } => format!(
            "{requests} requests to {device} have failed, the last at sector {sector}: {error}; programs were told"
        ),
        Event::InUse(error) => format!("{error}; {device} is taken off as soon as nobody has it"),
        Event::Swap(path, Ok(())) => format!(
            "{} was made swap, which is taken off again: swap must not be on {device}, since making memory free would need \
             memory; `swapon` another device",
            shown(&path.display().to_string())
        ),
        Event::Swap(path, Err(error)) => format!(
            "{path} is swap, which must not be on {device} and could not be taken off ({error}): `swapoff {path}` before \
             memory is short",
            path = shown(&path.display().to_string())
        ),
        Event::NotHandedOn(error) => {
            format!("{error}; requests of new classes to {device} are of those above them")
        }
    }
}

/// The requests that were served, of each kind that there was.
fn served(counts: &andante_disk::Counts) -> String {
    let kind = |what: What| {
        let Count { requests, .. } = counts.of(what);
        let name = match what {
            What::Read => "reads",
            What::Write => "writes",
            What::Flush => "flushes",
            What::Discard => "discards",
            What::Zeroes => "zeroes",
        };
        (requests > 0).then(|| format!("{requests} {name}"))
    };
    let kinds: Vec<_> = What::ALL.into_iter().filter_map(kind).collect();
    match &kinds[..] {
        [] => "nothing was asked of it".to_owned(),
        kinds => format!("it has served {}", kinds.join(", ")),
    }
}

impl Detach {
    fn run(self) -> Result<Status> {
        let device = detach(&self.device, self.force)?;
        output::print(&format!("{device} is no more.\n"))?;
        Ok(Status::Ok)
    }
}

impl List {
    fn run(self) -> Result<Status> {
        let found = found()?;
        match self.json {
            true => output::print_json(&found)?,
            false => output::print(&render(&found))?,
        }
        Ok(Status::Ok)
    }
}
