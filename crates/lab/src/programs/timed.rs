//! Programs that sleep until given instants: the typist and the waker.

use andante_sim::programs::{OFF_THE_GRID, key_presses};

use super::{Order, Samples, preallocated, record, work};
use crate::clock::{now_ns, sleep_until};
use crate::stop;

/// Key presses at random instants (a Poisson process, the same for the same seed), each answered
/// with some work. The latency runs from the key press to the end of the answer.
pub(super) fn typist(order: &Order, keys_per_s: f64, work_ms: &[f64], seed: u32) -> Samples {
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut presses = key_presses(order.begin_ns, keys_per_s, seed);
    let next = move |_| presses.next().expect("it never ends");
    answer(order, keys_per_s, next, &steps)
}

/// Timer expiries at fixed distances; the latency runs from the expiry to the program running.
pub(super) fn waker(order: &Order, interval_us: f64) -> Samples {
    // The runner reads its counters at round instants; there it would be measured, not the wake-up.
    let phase_ns = (interval_us * 1e3 * OFF_THE_GRID) as u64;
    let interval_ns = (interval_us * 1e3) as u64;
    let mut expiries = (0..).map(|n| order.begin_ns + phase_ns + n * interval_ns);
    answer(
        order,
        1e6 / interval_us,
        move |_| expiries.next().expect("it never ends"),
        &[0],
    )
}

/// Sleeps to each of the instants that `next` gives, does `steps` of work, repeated, and notes how long
/// after the instant it was done.
fn answer(order: &Order, per_s: f64, mut next: impl FnMut(u64) -> u64, steps: &[u64]) -> Samples {
    let mut latency_ns = preallocated(order.capacity(per_s), f64::NAN);
    // The first instant depends on the start of the measurement alone, not on how fast this
    // process came up.
    let mut at_ns = order.begin_ns;
    for steps in steps.iter().copied().cycle() {
        at_ns = next(at_ns);
        while now_ns() < at_ns && !stop::requested() {
            sleep_until(at_ns);
        }
        if stop::requested() {
            break;
        }
        if steps > 0 {
            work::compute(steps);
        }
        let done_ns = now_ns();
        if order.measures(at_ns) {
            record(&mut latency_ns, (done_ns - at_ns) as f64);
        }
    }
    Samples {
        iterations: Some(latency_ns.len() as u64),
        latency_ns,
        ..Samples::default()
    }
}
