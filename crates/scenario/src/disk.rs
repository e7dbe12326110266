//! `[disk]`: a machine with a disk, whose requests take their time; and what a class has of the disk.
//!
//! ```toml
//! [disk]
//! kind = "hdd"                                    # or "flash"
//! size = "16G"
//! tags = 1                                        # requests that it takes at once
//! scheduler = "bfq"                               # the kernel's; "io.cost": none, by weights in time;
//! #                                              "cello": Andante's, above none
//!
//! [classes]
//! "/film" = { io_weight = 600 }                   # io_max_read = "10M": by hand
//! "/game" = { reserve_disk = "64K/33.3ms" }       # by cello
//!
//! [programs.film]
//! class = "/film"
//! kind = "reader"
//! pattern = "periodic"
//! bytes = "64K"
//! every_ms = 33.3
//! at = "2G"                                       # where on the disk it begins
//! ```
//!
//! Lengths are of powers of 1024, rates of powers of 1000 [bytes/s].

use andante_document::{DocumentError, Node, Section, suggest};
use andante_drive::{Drive, Flash, Hdd, SECTOR};
use serde::{Deserialize, Serialize};

use crate::memory::read_bytes;
use crate::{Class, Kind, Program};

const NS_PER_MS: f64 = 1e6;
const MS_PER_MINUTE: f64 = 60_000.0;
const MIB: u64 = 1 << 20;
/// Of a disk [bytes]: room for a file system at least, and the largest length that the arithmetic of places is tried with.
const SIZES: std::ops::RangeInclusive<u64> = 16 * MIB..=(16 << 40);
/// The most of a request: the block layer has a larger one sent in pieces, and its delay would be of several [bytes].
const MOST_AT_ONCE: u64 = MIB;
/// The requests that a device takes at once; ublk knows no more that the block layer would use (`crates/disk`'s `MAX_TAGS`).
const TAGS: std::ops::RangeInclusive<f64> = 1.0..=1023.0;
/// Weights that both BFQ (`BFQ_MAX_WEIGHT`) and io.cost take.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;
/// As many as NCQ has.
const FLASH_TAGS: f64 = 32.0;

/// A disk beside the memory of a virtual machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Its size [bytes].
    pub bytes: u64,
    /// What it is made of.
    pub drive: DriveKind,
    /// Requests that it takes at once.
    pub tags: u16,
    /// Who decides in the kernel which goes next.
    pub scheduler: DiskScheduler,
}

/// What a disk is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum DriveKind {
    /// An arm over platters.
    Hdd {
        /// The shortest seek [ns].
        seek_ns: u64,
        /// What a seek over the whole disk takes beyond that [ns].
        stroke_ns: u64,
        /// A turn of the platters [ns].
        turn_ns: u64,
        /// What passes under a head [bytes/s].
        rate: u64,
        /// Whether it chooses among the requests that it has.
        sorts: bool,
    },
    /// Channels of flash.
    Flash {
        /// Chips that work side by side.
        channels: u32,
        /// What each has of the disk at a time [bytes].
        stripe: u32,
        /// Until the first byte of a read [ns].
        read_ns: u64,
        /// Until the first byte of a write is in [ns].
        write_ns: u64,
        /// Of each channel [bytes/s].
        rate: u64,
        /// What a channel erases at once [bytes].
        block: u64,
        /// For so long it does nothing else [ns].
        erase_ns: u64,
    },
}

impl Disk {
    /// Whether it has an arm.
    pub fn rotational(&self) -> bool {
        matches!(self.drive, DriveKind::Hdd { .. })
    }

    /// The model of it.
    pub fn model(&self) -> DriveModel {
        match self.drive {
            DriveKind::Hdd {
                seek_ns,
                stroke_ns,
                turn_ns,
                rate,
                sorts,
            } => DriveModel::Hdd(Hdd {
                seek_ns,
                stroke_ns,
                turn_ns,
                rate,
                sorts,
                ..Hdd::desktop(self.bytes)
            }),
            DriveKind::Flash {
                channels,
                stripe,
                read_ns,
                write_ns,
                rate,
                block,
                erase_ns,
            } => DriveModel::Flash(Flash {
                channels,
                stripe: stripe / SECTOR as u32,
                read_ns,
                write_ns,
                rate,
                block,
                erase_ns,
            }),
        }
    }
}

/// A model of a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DriveModel {
    /// An arm over platters.
    Hdd(Hdd),
    /// Channels of flash.
    Flash(Flash),
}

impl DriveModel {
    /// The disk at rest.
    pub fn at_rest(self) -> Box<dyn Drive + Send> {
        match self {
            Self::Hdd(hdd) => Box::new(hdd.spin()),
            Self::Flash(flash) => Box::new(flash.power()),
        }
    }
}

/// Who decides in the kernel which request goes to the disk next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskScheduler {
    /// Nobody: as they come.
    None,
    /// By place, with a deadline for each; by the classes of `ioprio_set(2)`.
    MqDeadline,
    /// By kind of request, so many of each at once.
    Kyber,
    /// By weights, in sectors.
    Bfq,
    /// None, and requests wait above it as the weights of io.cost say, in time by a model of the disk.
    IoCost,
    /// None, and above it a device of Andante's, which orders by classes and contracts.
    Cello,
}

impl DiskScheduler {
    const ALL: [Self; 6] = [
        Self::None,
        Self::MqDeadline,
        Self::Kyber,
        Self::Bfq,
        Self::IoCost,
        Self::Cello,
    ];

    /// What scenarios call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoCost => "io.cost",
            Self::Cello => "cello",
            other => other.in_queue(),
        }
    }

    /// What is written to the device's `queue/scheduler`.
    pub fn in_queue(self) -> &'static str {
        match self {
            Self::None | Self::IoCost | Self::Cello => "none",
            Self::MqDeadline => "mq-deadline",
            Self::Kyber => "kyber",
            Self::Bfq => "bfq",
        }
    }

    /// The module that it is, where the kernel has not built it in.
    pub fn module(self) -> Option<&'static str> {
        match self {
            Self::None | Self::IoCost | Self::Cello => None,
            Self::MqDeadline => Some("mq-deadline"),
            Self::Kyber => Some("kyber-iosched"),
            Self::Bfq => Some("bfq"),
        }
    }
}

/// A class's part of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassDisk {
    /// Its weight, for the kernel's own controllers (`io.bfq.weight`, `io.weight`); none: theirs, 100.
    pub weight: Option<u32>,
    /// It reads no more than this (`io.max`) [bytes/s].
    pub max_read: Option<u64>,
    /// The amount that Andante reserves for it; under other schedulers nothing is.
    pub reserved: Option<DiskReservation>,
}

/// So much in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskReservation {
    /// How much [bytes].
    pub bytes: u64,
    /// In how long a time [ns].
    pub period_ns: u64,
}

impl ClassDisk {
    /// Whether the kernel's io controller is told anything by hand.
    pub fn any(&self) -> bool {
        self.weight.is_some() || self.max_read.is_some()
    }

    /// Reads it from the table of a class.
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, DocumentError> {
        let weight = match section.node("io_weight") {
            None => None,
            Some(_) => Some(section.number("io_weight", 100.0, WEIGHTS)? as u32),
        };
        Ok(Self {
            weight,
            max_read: read_rate(section, "io_max_read")?,
            reserved: read_reservation(section)?,
        })
    }
}

fn read_reservation(section: &mut Section<'_>) -> Result<Option<DiskReservation>, DocumentError> {
    let Some(text) = section.get::<String>("reserve_disk")? else {
        return Ok(None);
    };
    let wrong = || {
        let message = format!("`{text}` is no length in a time: give them as in \"64K/33.3ms\"");
        section.error("reserve_disk", message)
    };
    let (length, period) = text.split_once('/').ok_or_else(wrong)?;
    let bytes = crate::memory::bytes(length.trim()).filter(|bytes| *bytes > 0);
    let ms = period.trim().strip_suffix("ms");
    let ms: Option<f64> = ms.and_then(|ms| ms.trim().parse().ok());
    // No disk with an arm answers in less than a millisecond, and nobody plans for more than a minute.
    let ms = ms.filter(|ms| (1.0..=MS_PER_MINUTE).contains(ms));
    Ok(Some(DiskReservation {
        bytes: bytes.ok_or_else(wrong)?,
        period_ns: (ms.ok_or_else(wrong)? * NS_PER_MS).round() as u64,
    }))
}

/// Reads `[disk]`.
pub(super) fn read(node: Option<&Node>) -> Result<Option<Disk>, DocumentError> {
    let Some(node) = node else { return Ok(None) };
    let mut section = Section::new(node, "disk")?;
    let kind: String = section.need("kind")?;
    let bytes = read_bytes(&mut section, "size")?;
    let bytes = bytes
        .ok_or_else(|| section.error("", "`size` is missing: give a length, as in \"16G\""))?;
    if !SIZES.contains(&bytes) || bytes % MIB != 0 {
        return Err(section.error("size", "give 16M to 16384G, as in \"16G\""));
    }
    let (drive, tags, scheduler) = match kind.as_str() {
        // The block layer's own choice for a device of one queue (`elevator_set_default`), and for one of many.
        "hdd" => (
            read_hdd(&mut section, bytes)?,
            1.0,
            DiskScheduler::MqDeadline,
        ),
        "flash" => (read_flash(&mut section)?, FLASH_TAGS, DiskScheduler::None),
        wrong => {
            let hint = suggest(wrong, ["hdd", "flash"].into_iter());
            let message = format!("`{wrong}` is neither \"hdd\" nor \"flash\"{hint}");
            return Err(section.error("kind", message));
        }
    };
    let disk = Disk {
        bytes,
        drive,
        tags: section.number("tags", tags, TAGS)? as u16,
        scheduler: read_scheduler(&mut section)?.unwrap_or(scheduler),
    };
    section.finish()?;
    Ok(Some(disk))
}

fn read_scheduler(section: &mut Section<'_>) -> Result<Option<DiskScheduler>, DocumentError> {
    let Some(text) = section.get::<String>("scheduler")? else {
        return Ok(None);
    };
    let found = DiskScheduler::ALL
        .into_iter()
        .find(|one| one.name() == text);
    let wrong = || {
        let names = DiskScheduler::ALL.map(DiskScheduler::name);
        let hint = suggest(&text, names.into_iter());
        let message = format!(
            "there is no scheduler `{text}`: give {}{hint}",
            names.join(", ")
        );
        section.error("scheduler", message)
    };
    found.ok_or_else(wrong).map(Some)
}

fn read_hdd(section: &mut Section<'_>, bytes: u64) -> Result<DriveKind, DocumentError> {
    let usual = Hdd::desktop(bytes);
    let ms = |ns: u64| ns as f64 / NS_PER_MS;
    let turns = (MS_PER_MINUTE / ms(usual.turn_ns)).round();
    let times = 0.0..=1000.0;
    let seek_ms = section.number("seek_ms", ms(usual.seek_ns), times.clone())?;
    let stroke_ms = section.number("stroke_ms", ms(usual.stroke_ns), times)?;
    let turns_per_minute = section.number("turns_per_minute", turns, 60.0..=100_000.0)?;
    Ok(DriveKind::Hdd {
        seek_ns: ns(seek_ms),
        stroke_ns: ns(stroke_ms),
        turn_ns: (MS_PER_MINUTE * NS_PER_MS / turns_per_minute) as u64,
        rate: read_rate(section, "rate")?.unwrap_or(usual.rate),
        sorts: section.get("sorts")?.unwrap_or(usual.sorts),
    })
}

fn read_flash(section: &mut Section<'_>) -> Result<DriveKind, DocumentError> {
    let usual = Flash::small();
    let us = |ns: u64| ns as f64 / 1e3;
    let times = 0.0..=1e6;
    let stripe = read_bytes(section, "stripe")?;
    let stripe = stripe.unwrap_or(u64::from(usual.stripe) * SECTOR);
    if stripe == 0 || stripe % SECTOR != 0 || stripe > MIB * 1024 {
        return Err(section.error("stripe", "give 1K to 1G, as in \"128K\""));
    }
    let block = read_bytes(section, "block")?.unwrap_or(usual.block);
    if block == 0 {
        return Err(section.error("block", "give more than nothing, as in \"4M\""));
    }
    let channels = section.number("channels", f64::from(usual.channels), 1.0..=256.0)?;
    let read_us = section.number("read_us", us(usual.read_ns), times.clone())?;
    let write_us = section.number("write_us", us(usual.write_ns), times)?;
    let erase_ms = section.number("erase_ms", usual.erase_ns as f64 / NS_PER_MS, 0.0..=1000.0)?;
    Ok(DriveKind::Flash {
        channels: channels as u32,
        stripe: stripe as u32,
        read_ns: ns(read_us / 1e3),
        write_ns: ns(write_us / 1e3),
        rate: read_rate(section, "rate")?.unwrap_or(usual.rate),
        block,
        erase_ns: ns(erase_ms),
    })
}

fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS).round() as u64
}

/// A rate in bytes per second, if it is given: a text such as `10M`, of powers of 1000.
fn read_rate(section: &mut Section<'_>, key: &'static str) -> Result<Option<u64>, DocumentError> {
    let Some(text) = section.get::<String>(key)? else {
        return Ok(None);
    };
    let units = [("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let number = (units.into_iter())
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?.parse::<f64>().ok()?, unit)));
    let rate = number.map(|(number, unit)| number * unit);
    // A byte a second would be a disk that never answers; beyond the other bound none is built.
    let rate = rate.filter(|rate| (1e3..=1e12).contains(rate));
    let wrong = || section.error(key, "give bytes per second, as in \"10M\": K, M or G");
    rate.ok_or_else(wrong).map(|rate| Some(rate as u64))
}

/// When a program reads, and where.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ReadPattern {
    /// On and on from a place, at even distances, one read after the other: a film.
    Periodic {
        /// From one to the next [ms].
        every_ms: f64,
        /// Where it begins [bytes].
        at: u64,
    },
    /// On and on from a place, each read as soon as one is done: a copy.
    Sequential {
        /// Where it begins [bytes].
        at: u64,
    },
    /// Anywhere on the disk: a program that starts, a database.
    Anywhere {
        /// Of the places.
        seed: u32,
    },
}

/// A class of `ioprio_set(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoClass {
    /// Before all others.
    RealTime,
    /// As usual.
    BestEffort,
    /// When nobody else wants the disk.
    Idle,
}

/// Reads a program of kind `reader`.
pub(super) fn read_reader(section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    let pattern: String = section.need("pattern")?;
    let bytes = read_bytes(section, "bytes")?.unwrap_or(64 << 10);
    if bytes == 0 || bytes % 4096 != 0 || bytes > MOST_AT_ONCE {
        return Err(section.error("bytes", "give a multiple of 4K up to 1M, as in \"64K\""));
    }
    let place = |section: &mut Section<'_>| {
        let at = read_bytes(section, "at")?.unwrap_or(0);
        match at % 4096 {
            0 => Ok(at),
            _ => Err(section.error("at", "give a multiple of 4K, as in \"2G\"")),
        }
    };
    let refuse = |section: &mut Section<'_>, key, why: &str| match section.node(key) {
        None => Ok(()),
        Some(_) => Err(section.error(key, format!("a reader of this pattern has none: {why}"))),
    };
    let (pattern, depth, think_ms) = match pattern.as_str() {
        "periodic" => {
            refuse(section, "depth", "one read follows the other")?;
            refuse(section, "think_ms", "give `every_ms`")?;
            section.need::<f64>("every_ms")?;
            let every_ms = section.number("every_ms", 0.0, 0.1..=60_000.0)?;
            let at = place(section)?;
            (ReadPattern::Periodic { every_ms, at }, 1.0, 0.0)
        }
        "sequential" | "anywhere" => {
            refuse(section, "every_ms", "it reads again when a read is done")?;
            let depth = section.number("depth", 1.0, 1.0..=64.0)?;
            let think_ms = section.number("think_ms", 0.0, 0.0..=60_000.0)?;
            let pattern = if pattern == "sequential" {
                let at = place(section)?;
                ReadPattern::Sequential { at }
            } else {
                refuse(section, "at", "it reads on the whole disk")?;
                let seed = section.get("seed")?.unwrap_or(1);
                ReadPattern::Anywhere { seed }
            };
            (pattern, depth, think_ms)
        }
        wrong => {
            let hint = suggest(wrong, ["periodic", "sequential", "anywhere"].into_iter());
            let message =
                format!("`{wrong}` is none of \"periodic\", \"sequential\", \"anywhere\"{hint}");
            return Err(section.error("pattern", message));
        }
    };
    Ok(Kind::Reader {
        pattern,
        bytes,
        depth: depth as u32,
        think_ms,
        io_class: read_io_class(section)?,
    })
}

fn read_io_class(section: &mut Section<'_>) -> Result<Option<IoClass>, DocumentError> {
    let Some(text) = section.get::<String>("io_class")? else {
        return Ok(None);
    };
    let all = [
        ("realtime", IoClass::RealTime),
        ("best-effort", IoClass::BestEffort),
        ("idle", IoClass::Idle),
    ];
    let found = all.into_iter().find(|(name, _)| *name == text);
    let wrong = || {
        let hint = suggest(&text, all.into_iter().map(|(name, _)| name));
        let message = format!("`{text}` is none of \"realtime\", \"best-effort\", \"idle\"{hint}");
        section.error("io_class", message)
    };
    found.ok_or_else(wrong).map(|(_, class)| Some(class))
}

/// Refuses what needs a disk where there is none, and reads beyond its end.
pub(super) fn check(
    disk: Option<&Disk>,
    classes: &[Class],
    programs: &[Program],
    root: &Section<'_>,
) -> Result<(), DocumentError> {
    let readers = programs.iter().filter(|program| program.count > 0);
    let mut readers = readers.filter_map(|program| match program.kind {
        Kind::Reader { pattern, bytes, .. } => Some((program, pattern, bytes)),
        _ => None,
    });
    let Some(disk) = disk else {
        let wants = |class: &&Class| class.disk != ClassDisk::default();
        if let Some(class) = classes.iter().find(wants) {
            let message = format!(
                "there is no disk, of which `{}` is to have a part: add a [disk] table",
                class.path
            );
            return Err(root.error("classes", message));
        }
        return readers.next().map_or(Ok(()), |(program, ..)| {
            let message = format!(
                "there is no disk that `{}` could read: add a [disk] table",
                program.name
            );
            Err(root.error("programs", message))
        });
    };
    let beyond = |(_, pattern, bytes): &(&Program, ReadPattern, u64)| match *pattern {
        ReadPattern::Periodic { at, .. } | ReadPattern::Sequential { at } => {
            at.saturating_add(*bytes) > disk.bytes
        }
        ReadPattern::Anywhere { .. } => *bytes > disk.bytes,
    };
    readers.find(beyond).map_or(Ok(()), |(program, ..)| {
        let message = format!(
            "`{}` would begin beyond the end of the disk: give less for `at`",
            program.name
        );
        Err(root.error("programs", message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, Workload};

    fn read(top: &str, film: &str) -> Result<Workload, String> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n{top}\n\
             [programs.film]\nclass = '/'\nkind = 'reader'\n{film}\n"
        );
        let scenario = Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string());
        scenario.map(|mut scenario| scenario.cases.remove(0).workload)
    }

    const HDD: &str = "[disk]\nkind = 'hdd'\nsize = '16G'";
    const FILM: &str = "pattern = 'periodic'\nevery_ms = 33.3\nat = '2G'";

    #[test]
    fn a_disk_is_as_usual_where_nothing_else_is_said() {
        let workload = read(HDD, FILM).unwrap();
        let usual = Hdd::desktop(16 << 30);
        let disk = workload.disk.clone().unwrap();
        assert_eq!((disk.bytes, disk.tags), (16 << 30, 1));
        assert_eq!(disk.scheduler, DiskScheduler::MqDeadline);
        assert!(disk.rotational());
        let drive = DriveKind::Hdd {
            seek_ns: usual.seek_ns,
            stroke_ns: usual.stroke_ns,
            turn_ns: usual.turn_ns,
            rate: usual.rate,
            sorts: usual.sorts,
        };
        assert_eq!(disk.drive, drive);
        let kind = &workload.programs[0].kind;
        assert!((kind.beat_s().unwrap() - 0.0333).abs() < 1e-9);
        assert!(kind.is_only_on_kernel() && !kind.is_real());
        let flash = read(
            "[disk]\nkind = 'flash'\nsize = '1G'",
            FILM.replace("2G", "0K").as_str(),
        );
        let flash = flash.unwrap().disk.unwrap();
        assert_eq!((flash.tags, flash.scheduler), (32, DiskScheduler::None));
        let usual = Flash::small();
        let DriveKind::Flash {
            stripe,
            read_ns,
            write_ns,
            erase_ns,
            block,
            ..
        } = flash.drive
        else {
            panic!("it is of flash")
        };
        assert_eq!(stripe, usual.stripe * SECTOR as u32);
        assert_eq!((read_ns, write_ns), (usual.read_ns, usual.write_ns));
        assert_eq!((erase_ns, block), (usual.erase_ns, usual.block));
    }

    #[test]
    fn classes_have_parts_of_the_disk() {
        let classes = "[classes]\n\
            '/film' = { io_weight = 600, io_max_read = '10M' }\n\
            '/game' = { reserve_disk = '64K/33.3ms' }\n";
        let workload = read(&format!("{HDD}\nscheduler = 'io.cost'\n{classes}"), FILM).unwrap();
        assert_eq!(workload.disk.unwrap().scheduler, DiskScheduler::IoCost);
        let film = ClassDisk {
            weight: Some(600),
            max_read: Some(10_000_000),
            ..ClassDisk::default()
        };
        assert_eq!(workload.classes[0].disk, film);
        let game = workload.classes[1].disk;
        let reserved = DiskReservation {
            bytes: 64 << 10,
            period_ns: 33_300_000,
        };
        assert_eq!(game.reserved, Some(reserved));
        assert!(!game.any() && film.any());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |top: &str, film: &str, why: &str| {
            let error = read(top, film).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        let disk = |more: &str| format!("{HDD}\n{more}");
        let class = |more: &str| format!("{HDD}\n[classes]\n'/a' = {{ {more} }}");
        refused("", FILM, "there is no disk that `film` could read");
        refused("[disk]\nkind = 'hdd'", FILM, "`size` is missing");
        refused(
            "[disk]\nkind = 'tape'\nsize = '1G'",
            FILM,
            "neither \"hdd\" nor",
        );
        refused("[disk]\nkind = 'hdd'\nsize = '1M'", FILM, "16M to");
        refused(
            "[disk]\nkind = 'hdd'\nsize = '1G'",
            FILM,
            "beyond the end of the disk",
        );
        refused(
            &disk("scheduler = 'cfq'"),
            FILM,
            "there is no scheduler `cfq`",
        );
        refused(&disk("tags = 0"), FILM, "out of range");
        refused(&disk("rate = '10'"), FILM, "bytes per second");
        refused(&disk("channels = 4"), FILM, "channels");
        refused(&class("io_weight = 0"), FILM, "out of range");
        refused(&class("io_max_read = '-1M'"), FILM, "bytes per second");
        for wrong in ["64K", "64K/0ms", "0K/10ms", "64K/10", "64/10ms", "/"] {
            refused(
                &class(&format!("reserve_disk = '{wrong}'")),
                FILM,
                "no length in a time",
            );
        }
        let class = "[classes]\n'/a' = { io_weight = 10 }";
        refused(
            class,
            "pattern = 'sequential'\ncount = 0",
            "there is no disk, of which `/a`",
        );
        refused(HDD, "pattern = 'backwards'", "none of");
        refused(HDD, "pattern = 'periodic'", "every_ms");
        refused(
            HDD,
            &format!("{FILM}\ndepth = 2"),
            "one read follows the other",
        );
        refused(HDD, "pattern = 'anywhere'\nat = '1G'", "on the whole disk");
        refused(HDD, "pattern = 'anywhere'\nbytes = '1K'", "multiple of 4K");
        refused(
            HDD,
            "pattern = 'sequential'\nbytes = '2M'",
            "multiple of 4K up to 1M",
        );
        refused(HDD, "pattern = 'sequential'\nio_class = 'real'", "realtime");
        refused(
            HDD,
            "pattern = 'sequential'\nevery_ms = 5",
            "when a read is done",
        );
    }
}
