//! The programs of scenarios: the synthetic ones, which a hidden subcommand of the laboratory's binary is,
//! started by the runner; and what real ones work on ([`assets`]).
//!
//! The synthetic ones obey the same rules. Once loaded they wait for their order, which comes by standard input and
//! starts them: it says when the measurement begins and ends. They count only within it, and run on
//! until SIGTERM. Nothing is allocated, printed or written while they measure; the [`Samples`] go to a
//! file at the very end.

pub mod assets;
mod audio;
mod batch;
mod client;
pub mod clock;
mod crowd;
mod dhrystone;
mod disk;
mod display;
mod endless;
mod game;
mod memory;
mod pingpong;
pub mod player;
mod reader;
mod sender;
pub mod session;
mod sink;
mod timed;
mod tools;
mod web;
pub mod work;

use std::io;
use std::path::PathBuf;

use andante_job::stop;
use andante_scenario::Kind;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// What the runner tells a synthetic program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Shown as the name of the process.
    pub name: String,
    /// Among the instances of all programs of the scenario, from 0.
    pub number: u32,
    /// What to do.
    pub kind: Kind,
    /// When the measurement begins [ns of CLOCK_MONOTONIC].
    pub begin_ns: u64,
    /// When it ends [ns of CLOCK_MONOTONIC].
    pub end_ns: u64,
    /// Steps of work per millisecond, see [`work`].
    pub steps_per_ms: f64,
    /// Where the samples go.
    pub out: PathBuf,
    /// The socket of the server it is, or asks.
    pub server: Option<PathBuf>,
    /// The session that it opens.
    pub session: Option<session::Asked>,
    /// The page that a client of a web server asks for.
    pub url: Option<String>,
    /// Where a sender's receiver is.
    pub peer: Option<Peer>,
    /// The file that it maps as its library.
    pub library: Option<PathBuf>,
    /// The disk that it reads.
    pub disk: Option<PathBuf>,
    /// Whether its memory stays where it is.
    pub lock: bool,
}

/// One end of the cable between two networks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Peer {
    /// The file by which the network is entered.
    pub network: PathBuf,
    /// Its address there.
    pub address: String,
    /// The address of the program's own end.
    pub from: String,
}

/// What a synthetic program measured, within the measurement only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Units of work done.
    pub iterations: Option<u64>,
    /// Frames that had their whole time, from release to deadline, in the measurement.
    pub due: Option<u64>,
    /// Periods of a sound card, wholly in the measurement, for which sound did not come in time.
    pub xruns: Option<u64>,
    /// Frames shown after the next one was due.
    pub late: Option<u64>,
    /// When frames were shown [ns since the measurement began].
    pub shown_ns: Vec<u64>,
    /// When the frames of `shown_ns` were released [ns since the measurement began].
    pub released_ns: Vec<u64>,
    /// When frames that were never shown were due [ns since the measurement began].
    pub dropped_ns: Vec<u64>,
    /// From an event to its response, or per round trip [ns].
    pub latency_ns: Vec<f64>,
    /// Time per child [ns].
    pub iteration_ns: Vec<f64>,
    /// Payload that arrived at a sender's receiver, or in pages [bytes].
    pub received_bytes: Option<u64>,
    /// Read from the disk [bytes].
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Reads that were due while another was late.
    #[serde(default)]
    pub skipped: Option<u64>,
    /// Pieces that were sent, and never arrived.
    pub lost: Option<u64>,
    /// How long it took to have memory of its own, whenever that was [ns].
    pub first_touch_ns: Option<u64>,
    /// How long it took to read its library first, whenever that was [ns].
    pub first_read_ns: Option<u64>,
}

impl Samples {
    /// The same, of a measurement that began so much earlier than the program was told.
    pub fn later(mut self, ns: u64) -> Self {
        let lists = [
            &mut self.shown_ns,
            &mut self.released_ns,
            &mut self.dropped_ns,
        ];
        lists.into_iter().flatten().for_each(|at_ns| *at_ns += ns);
        self
    }
}

impl Order {
    /// The other end of its cable.
    fn other_end(&self) -> io::Result<&Peer> {
        (self.peer.as_ref()).ok_or_else(|| io::Error::other("it is in no network"))
    }

    /// The page of the web server that it asks.
    fn page(&self) -> io::Result<&str> {
        (self.url.as_deref()).ok_or_else(|| io::Error::other("it has nobody to ask"))
    }

    fn steps(&self, work_ms: f64) -> u64 {
        (work_ms * self.steps_per_ms).round() as u64
    }

    /// Whether an event at `at_ns` belongs to the measurement.
    fn measures(&self, at_ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&at_ns)
    }

    /// How many events of the given rate fit into the measurement, with room to spare.
    fn capacity(&self, per_s: f64) -> usize {
        let length_s = (self.end_ns - self.begin_ns) as f64 / clock::NS_PER_S;
        (length_s * per_s * 1.5) as usize + 1024
    }
}

/// A list that never grows while it is measured into, its memory touched beforehand.
fn preallocated<T: Clone>(capacity: usize, filler: T) -> Vec<T> {
    let mut list = vec![filler; capacity];
    list.clear();
    list
}

/// Appends unless the list is full: growing would disturb what is measured.
fn record<T>(list: &mut Vec<T>, value: T) {
    if list.len() < list.capacity() {
        list.push(value);
    }
}

/// Touches the memory that is of files now, before there is competition. All programs map one file. A task of a
/// class whose policy starves it may hold the lock of one of the file's pages, and then those of all classes wait
/// for that page, for as long as the policy likes. Memory of its own is left alone: children would have to copy it.
fn touch_files() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|line| line.contains(" /")) {
        let mut words = line.split_whitespace();
        let (Some(range), Some(access)) = (words.next(), words.next()) else {
            continue;
        };
        let address = |text| usize::from_str_radix(text, 16).ok();
        let ends = range.split_once('-').map(|(a, b)| (address(a), address(b)));
        let Some((Some(begin), Some(end))) = ends else {
            continue;
        };
        let advice = match access.as_bytes() {
            [b'r', b'w', ..] => libc::MADV_POPULATE_WRITE,
            _ => continue,
        };
        // SAFETY: populating changes no content. What cannot be populated is touched later.
        unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, advice) };
    }
}

/// Runs the program that a line of standard input describes (an order as JSON) until SIGTERM; returns
/// its exit status.
pub fn program_main() -> i32 {
    touch_files();
    let result = std::io::stdin()
        .lines()
        .next()
        .unwrap_or_else(|| Ok(String::new()))
        .map_err(|error| format!("no order could be read: {error}"))
        .and_then(|order| {
            serde_json::from_str(&order)
                .map_err(|error| format!("this is no order of the laboratory: {error}"))
        })
        .and_then(|order: Order| {
            prepare(&order).map_err(|error| format!("cannot prepare: {error}"))?;
            if order.lock {
                memory::lock().map_err(|error| format!("cannot lock its memory: {error}"))?;
            }
            let samples = run(&order)?;
            let json = serde_json::to_vec(&samples).expect("samples are plain data");
            std::fs::write(&order.out, json)
                .map_err(|error| format!("{}: {error}", order.out.display()))
        });
    match result {
        Ok(()) => 0,
        Err(message) => {
            eprintln!("{message}");
            1
        }
    }
}

/// Names the process, makes its timers exact, and takes SIGTERM as the end.
fn prepare(order: &Order) -> nix::Result<()> {
    let name: String = order.name.chars().take(15).collect();
    nix::sys::prctl::set_name(&std::ffi::CString::new(name).expect("names hold no zero byte"))?;
    // The default of 50 µs would be counted as the scheduler's latency.
    nix::sys::prctl::set_timerslack(1)?;
    stop::on(&[Signal::SIGTERM])
}

/// Runs it in this process, until SIGTERM.
pub fn run(order: &Order) -> Result<Samples, String> {
    let speaks = session::Speaks::open(order)?;
    let os_error = |error: nix::Error| format!("{}: {error}", order.kind.name());
    let io_error = |error: std::io::Error| format!("{}: {error}", order.kind.name());
    match &order.kind {
        Kind::Player {
            fps,
            work_ms,
            display,
            drops,
            by_clock,
        } => {
            let playing = player::Playing {
                fps: *fps,
                work_ms,
                display,
                drops: *drops,
                by_clock: *by_clock,
            };
            player::run(order, &playing, &speaks).map_err(io_error)
        }
        Kind::Typist {
            keys_per_s,
            regular,
            work_ms,
            input_ms,
            until_s,
            seed,
            display,
        } => {
            let typing = timed::Typing {
                keys_per_s: *keys_per_s,
                regular: *regular,
                work_ms,
                input_ms,
                until_s: *until_s,
                seed: *seed,
                display,
            };
            timed::typist(order, &typing, &speaks).map_err(io_error)
        }
        Kind::Game {
            fps,
            work_ms,
            updates_per_s,
            update_ms,
            ..
        } => {
            let game = game::Game {
                fps: *fps,
                work_ms,
                updates_per_s: *updates_per_s,
                update_ms: *update_ms,
            };
            game::run(order, &game, &speaks).map_err(io_error)
        }
        Kind::Audio {
            frames,
            rate_hz,
            work_ms,
        } => {
            let per_s = Kind::periods_per_s(*frames, *rate_hz);
            Ok(audio::run(order, per_s, work_ms))
        }
        Kind::Sink { .. } => Ok(sink::run(order, &speaks)),
        Kind::Sender {
            bytes,
            every_ms,
            burst,
            by_tcp,
        } => {
            let sending = sender::Sending {
                bytes: *bytes,
                every_ns: (every_ms * 1e6).round() as u64,
                burst: burst.clone(),
                by_tcp: *by_tcp,
            };
            sender::run(order, &sending).map_err(io_error)
        }
        Kind::WebClient {
            connections, gzip, ..
        } => web::run(order, *connections, *gzip).map_err(io_error),
        Kind::Iperf3 {
            streams,
            by_udp,
            rate,
        } => tools::iperf3(order, *streams, *by_udp, *rate).map_err(io_error),
        Kind::Ping { every_ms, bytes } => tools::ping(order, *every_ms, *bytes).map_err(io_error),
        Kind::Curl { .. } => tools::curl(order).map_err(io_error),
        Kind::Server => display::serve(order).map_err(io_error),
        Kind::Client {
            work_ms, think_ms, ..
        } => client::run(order, *work_ms, *think_ms).map_err(io_error),
        Kind::Waker { interval_us } => timed::waker(order, *interval_us).map_err(io_error),
        Kind::Loop => Ok(endless::run(order)),
        Kind::Dhrystone => Ok(dhrystone::run(order)),
        Kind::Disk { work_ms, wait_ms } => Ok(disk::run(order, work_ms, wait_ms)),
        Kind::Reader {
            pattern,
            bytes,
            depth,
            think_ms,
            io_class,
        } => {
            let reading = reader::Reading {
                pattern: *pattern,
                bytes: *bytes,
                depth: *depth,
                think_ms: *think_ms,
                io_class: *io_class,
            };
            reader::run(order, &reading).map_err(io_error)
        }
        Kind::MemoryPlayer {
            fps,
            anonymous_bytes,
            wait_s,
            ..
        } => memory::player(order, *fps, *anonymous_bytes, *wait_s).map_err(io_error),
        Kind::MemoryHog { bytes } => memory::hog(order, *bytes).map_err(io_error),
        Kind::MemoryReader { .. } => memory::reader(order).map_err(io_error),
        Kind::Batch { work_ms, .. } => batch::run(order, work_ms).map_err(os_error),
        Kind::Crowd { threads, yields } => crowd::run(order, *threads, *yields).map_err(io_error),
        Kind::Pingpong { window } => pingpong::run(order, *window).map_err(os_error),
        _ => Err(format!("{} is no built-in program", order.kind.name())),
    }
}

#[cfg(test)]
mod tests;
