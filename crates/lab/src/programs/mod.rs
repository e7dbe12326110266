//! The built-in synthetic programs: hidden subcommands of the binary, started by the runner.
//!
//! All obey the same rules. They are told on start when the measurement begins and ends, count
//! only within it, and run on until SIGTERM. Nothing is allocated, printed or written while they
//! measure; the [`Samples`] go to a file at the very end.

mod audio;
mod batch;
mod client;
mod dhrystone;
mod display;
mod endless;
mod pingpong;
pub(crate) mod player;
mod timed;
pub(crate) mod work;

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::scenario::Kind;
use crate::{clock, stop};

/// What the runner tells a synthetic program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Shown as the name of the process.
    pub name: String,
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
}

/// What a synthetic program measured, within the measurement only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Samples {
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
}

impl Order {
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

/// Runs the program that `order` (JSON) describes until SIGTERM; returns its exit status.
pub fn program_main(order: &str) -> i32 {
    let result = serde_json::from_str(order)
        .map_err(|error| format!("this is no order of the laboratory: {error}"))
        .and_then(|order: Order| {
            prepare(&order).map_err(|error| format!("cannot prepare: {error}"))?;
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

fn run(order: &Order) -> Result<Samples, String> {
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
            player::run(order, &playing).map_err(io_error)
        }
        Kind::Typist {
            keys_per_s,
            work_ms,
            input_ms,
            until_s,
            seed,
            display,
        } => {
            let typing = timed::Typing {
                keys_per_s: *keys_per_s,
                work_ms,
                input_ms,
                until_s: *until_s,
                seed: *seed,
                display,
            };
            timed::typist(order, &typing).map_err(io_error)
        }
        Kind::Audio {
            frames,
            rate_hz,
            work_ms,
        } => {
            let per_s = Kind::periods_per_s(*frames, *rate_hz);
            Ok(audio::run(order, per_s, work_ms))
        }
        Kind::Server => display::serve(order).map_err(io_error),
        Kind::Client {
            work_ms, think_ms, ..
        } => client::run(order, *work_ms, *think_ms).map_err(io_error),
        Kind::Waker { interval_us } => timed::waker(order, *interval_us).map_err(io_error),
        Kind::Loop => Ok(endless::run(order)),
        Kind::Dhrystone => Ok(dhrystone::run(order)),
        Kind::Batch { work_ms, .. } => batch::run(order, work_ms).map_err(os_error),
        Kind::Pingpong { window } => pingpong::run(order, *window).map_err(os_error),
        _ => Err(format!("{} is no built-in program", order.kind.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Display;

    /// Runs `kind` in this process for a quarter of a second.
    pub(super) fn measure(kind: Kind) -> Samples {
        let steps_per_ms = work::calibrate();
        // Time enough to start, however busy the machine that runs the tests is. But a player that
        // drops nothing would still be at its frames of the warm-up when the measurement ends.
        let lead_ns = match kind {
            Kind::Player { drops: false, .. } => 20_000_000,
            _ => 300_000_000,
        };
        let begin_ns = clock::now_ns() + lead_ns;
        let end_ns = begin_ns + 250_000_000;
        let order = Order {
            name: "test".to_owned(),
            kind,
            begin_ns,
            end_ns,
            steps_per_ms,
            out: PathBuf::new(),
            server: None,
        };
        stop::set(false);
        let stopper = std::thread::spawn(move || {
            clock::sleep_until(end_ns + 300_000_000);
            stop::set(true);
        });
        let samples = match order.kind.server() {
            None => run(&order).unwrap(),
            Some(_) => run_with_server(order),
        };
        stopper.join().unwrap();
        samples
    }

    /// Runs it beside the server that it asks; its iterations are the server's.
    fn run_with_server(mut order: Order) -> Samples {
        let folder = tempfile::tempdir().unwrap();
        order.server = Some(folder.path().join("socket"));
        let of_server = Order {
            kind: Kind::Server,
            ..order.clone()
        };
        // It may well come up after its client.
        let server = std::thread::spawn(move || run(&of_server).unwrap());
        let mut samples = run(&order).unwrap();
        let served = server.join().unwrap();
        assert!(served.iterations.is_some());
        samples.iterations = served.iterations;
        samples
    }

    /// Measures until `enough` says so: a busy machine may give the test no CPU for a while, but
    /// not every time.
    fn measure_enough(kind: &Kind, enough: fn(&Samples) -> bool) -> Samples {
        let mut attempts = (0..10).map(|_| measure(kind.clone()));
        attempts
            .find(enough)
            .unwrap_or_else(|| panic!("{kind:?} never got far enough"))
    }

    // One test: the programs of this process share the flag that stops them.
    #[test]
    fn programs_count_within_the_measurement() {
        let kind = Kind::Player {
            fps: 100.0,
            work_ms: vec![0.1, 0.2],
            display: Display {
                work_ms: 0.1,
                ..Display::NONE
            },
            drops: true,
            by_clock: false,
        };
        let player = measure_enough(&kind, |s| s.shown_ns.len() + s.dropped_ns.len() == 25);
        assert!(player.shown_ns.windows(2).all(|pair| pair[0] < pair[1]));

        let kind = Kind::Player {
            fps: 100.0,
            work_ms: vec![35.0],
            display: Display::NONE,
            drops: true,
            by_clock: false,
        };
        let slow = measure_enough(&kind, |s| s.dropped_ns.len() >= 15);
        assert_eq!(slow.late, Some(slow.shown_ns.len() as u64));

        let kind = Kind::Player {
            fps: 100.0,
            work_ms: vec![11.0],
            display: Display::NONE,
            drops: false,
            by_clock: true,
        };
        let late = measure_enough(&kind, |s| s.late > Some(5));
        assert!(late.dropped_ns.is_empty(), "{late:?}");
        assert_eq!(late.due, Some(25));

        let kind = Kind::Waker {
            interval_us: 10_000.0,
        };
        let waker = measure_enough(&kind, |s| s.latency_ns.len() > 10);
        assert!(waker.latency_ns.len() <= 25, "{waker:?}");
        assert!(waker.latency_ns.iter().all(|ns| *ns > 0.0));

        let kind = Kind::Typist {
            keys_per_s: 100.0,
            work_ms: vec![0.5],
            input_ms: vec![0.0],
            until_s: None,
            seed: 3,
            display: Display::NONE,
        };
        let typist = measure_enough(&kind, |s| s.latency_ns.len() > 5);
        assert!(
            typist.latency_ns.iter().all(|ns| *ns >= 100_000.0),
            "{typist:?}"
        );

        let audio = |work_ms| Kind::Audio {
            frames: 480,
            rate_hz: 48_000,
            work_ms: vec![work_ms],
        };
        let light = measure_enough(&audio(0.5), |s| s.xruns == Some(0));
        assert_eq!(light.iterations, Some(25));
        assert!(light.latency_ns.iter().all(|ns| *ns > 300_000.0));
        // None can end in time, and after each a period or more is lost.
        let heavy = measure_enough(&audio(15.0), |s| s.iterations > Some(2));
        assert_eq!(heavy.xruns, Some(25));

        through_a_server();

        let pingpong = measure_enough(&Kind::Pingpong { window: 10 }, |s| !s.latency_ns.is_empty());
        assert!(pingpong.latency_ns.iter().all(|ns| *ns > 500.0));
        assert_eq!(
            pingpong.iterations,
            Some(pingpong.latency_ns.len() as u64 * 10)
        );

        let batch = Kind::Batch {
            work_ms: vec![1.0],
            fork_ms: None,
        };
        for kind in [batch, Kind::Loop, Kind::Dhrystone] {
            measure_enough(&kind, |samples| samples.iterations > Some(5));
        }
    }

    /// A part of the test above.
    fn through_a_server() {
        let x = |ahead| Display {
            work_ms: 0.5,
            server: Some("x".to_owned()),
            exchanges: 2,
            ahead,
        };
        for ahead in [0, 3] {
            let kind = Kind::Player {
                fps: 100.0,
                work_ms: vec![0.1],
                display: x(ahead),
                drops: true,
                by_clock: false,
            };
            let player = measure_enough(&kind, |s| s.shown_ns.len() + s.dropped_ns.len() == 25);
            let frames = player.shown_ns.iter().zip(&player.released_ns);
            // The server's half a millisecond is in every frame's time; calibration is that exact.
            assert!(
                frames.clone().all(|(at, from)| at - from > 300_000),
                "{player:?}"
            );
            // Two requests for each frame.
            assert!(player.iterations >= Some(2 * frames.len() as u64 - 2));

            let kind = Kind::Typist {
                keys_per_s: 100.0,
                work_ms: vec![0.1],
                input_ms: vec![1.0],
                until_s: Some(0.2),
                seed: 3,
                display: x(ahead),
            };
            let typist = measure_enough(&kind, |s| s.latency_ns.len() > 5);
            let long_enough = |ns: &f64| *ns > 1_300_000.0;
            assert!(typist.latency_ns.iter().all(long_enough), "{typist:?}");
        }
        let kind = Kind::Client {
            server: "x".to_owned(),
            work_ms: 0.5,
            think_ms: 1.0,
        };
        let client = measure_enough(&kind, |s| s.latency_ns.len() > 20);
        assert!(client.latency_ns.len() < 250, "it does not think");
        assert!(client.latency_ns.iter().all(|ns| *ns > 300_000.0));
    }
}
