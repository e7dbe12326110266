//! Programs that sleep until given instants: the typist and the waker.

use std::io;

use andante_job::stop;
use andante_scenario as scenario;
use andante_sim::programs::{OFF_THE_GRID, key_presses};

use super::display::Display;
use super::session::Speaks;
use super::{Order, Samples, preallocated, record, work};
use crate::clock::{NS_PER_S, now_ns, sleep_until};

/// A program with nothing left to do looks so often whether it is to end [ns].
const LOOK_NS: u64 = 100_000_000;

/// Keys, and what they take.
pub(super) struct Typing<'a> {
    /// Mean rate [1/s].
    pub keys_per_s: f64,
    /// Whether they come at even distances.
    pub regular: bool,
    /// Work for a key [ms], repeated.
    pub work_ms: &'a [f64],
    /// From the key to the program [ms], repeated.
    pub input_ms: &'a [f64],
    /// No keys after this [s since the measurement began].
    pub until_s: Option<f64>,
    /// Of the instants.
    pub seed: u32,
    /// Who draws the answers.
    pub display: &'a scenario::Display,
}

/// Key presses at random instants (a Poisson process, the same for the same seed) or at even
/// distances, each answered with some work and, with a display server, drawn. The latency runs from the key press to the end
/// of the answer.
pub(super) fn typist(order: &Order, typing: &Typing<'_>, speaks: &Speaks) -> io::Result<Samples> {
    let ns = |ms: &f64| (ms * 1e6).round() as u64;
    let (per_s, regular) = (typing.keys_per_s, typing.regular);
    let mut presses = key_presses(order.begin_ns, per_s, regular, typing.seed);
    let until_ns = typing.until_s.map_or(u64::MAX, |at_s| {
        order.begin_ns + (at_s * NS_PER_S).round() as u64
    });
    let answering = Answering {
        per_s: typing.keys_per_s,
        input_ns: typing.input_ms.iter().map(ns).collect(),
        steps: typing.work_ms.iter().map(|ms| order.steps(*ms)).collect(),
        display: Display::open(order, typing.display)?,
    };
    let next = move || presses.next().filter(|at_ns| *at_ns <= until_ns);
    answer(order, next, answering, speaks)
}

/// Timer expiries at fixed distances; the latency runs from the expiry to the program running.
pub(super) fn waker(order: &Order, interval_us: f64) -> io::Result<Samples> {
    // The runner reads its counters at round instants; there it would be measured, not the wake-up.
    let phase_ns = (interval_us * 1e3 * OFF_THE_GRID) as u64;
    let interval_ns = (interval_us * 1e3) as u64;
    let mut expiries = (0..).map(|n| order.begin_ns + phase_ns + n * interval_ns);
    let answering = Answering {
        per_s: 1e6 / interval_us,
        input_ns: vec![0],
        steps: vec![0],
        display: None,
    };
    answer(
        order,
        move || expiries.next(),
        answering,
        &Speaks::default(),
    )
}

/// What an event takes; lists are repeated.
struct Answering {
    /// Mean rate of events [1/s].
    per_s: f64,
    /// From the event to the program [ns].
    input_ns: Vec<u64>,
    /// Work.
    steps: Vec<u64>,
    /// Draws the answer.
    display: Option<Display>,
}

/// For each of the instants that `next` gives: sleeps until the program hears of it, does some work,
/// and notes how long after the instant that was done, or shown. The instants depend on the start of
/// the measurement alone, not on how fast this process came up.
fn answer(
    order: &Order,
    mut next: impl FnMut() -> Option<u64>,
    answering: Answering,
    speaks: &Speaks,
) -> io::Result<Samples> {
    let mut display = answering.display;
    let mut latency_ns = preallocated(order.capacity(answering.per_s), f64::NAN);
    let mut note = |at_ns: u64, done_ns: u64| {
        if order.measures(at_ns) {
            record(&mut latency_ns, (done_ns - at_ns) as f64);
        }
    };
    for number in 0.. {
        let Some(at_ns) = next() else {
            await_end();
            break;
        };
        let input_ns = answering.input_ns[number % answering.input_ns.len()];
        let told_ns = at_ns + input_ns;
        speaks.awaits(told_ns);
        while now_ns() < told_ns && !stop::requested() {
            sleep_until(told_ns);
        }
        if stop::requested() {
            break;
        }
        let steps = answering.steps[number % answering.steps.len()];
        if steps > 0 {
            work::compute(steps);
        }
        match &mut display {
            None => note(at_ns, now_ns()),
            Some(display) => {
                if display.show(at_ns, &mut note).is_err() {
                    break;
                }
            }
        }
    }
    if let Some(display) = display {
        display.close(&mut note)?;
    }
    Ok(Samples {
        iterations: Some(latency_ns.len() as u64),
        latency_ns,
        ..Samples::default()
    })
}

/// Sleeps until this program is to end.
fn await_end() {
    while !stop::requested() {
        sleep_until(now_ns() + LOOK_NS);
    }
}
