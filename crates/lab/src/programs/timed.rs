//! Programs that sleep until given instants: the typist and the waker.

use super::{Order, Samples, preallocated, record, work};
use crate::clock::{NS_PER_S, now_ns, sleep_until};
use crate::stop;

/// A part of an interval that comes near no simple fraction of it: the golden section.
const OFF_THE_GRID: f64 = 0.618;

/// Key presses at random instants (a Poisson process, the same for the same seed), each answered
/// with some work. The latency runs from the key press to the end of the answer.
pub(super) fn typist(order: &Order, keys_per_s: f64, work_ms: f64, seed: u32) -> Samples {
    let steps = order.steps(work_ms);
    let mut random = Random::new(seed);
    let next = move |at_ns: u64| at_ns + (-random.unit().ln() / keys_per_s * NS_PER_S) as u64;
    answer(order, keys_per_s, next, steps)
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
        0,
    )
}

/// Sleeps to each of the instants that `next` gives, does `steps` of work, and notes how long
/// after the instant it was done.
fn answer(order: &Order, per_s: f64, mut next: impl FnMut(u64) -> u64, steps: u64) -> Samples {
    let mut latency_ns = preallocated(order.capacity(per_s), f64::NAN);
    // The first instant depends on the start of the measurement alone, not on how fast this
    // process came up.
    let mut at_ns = order.begin_ns;
    while !stop::requested() {
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

/// xorshift64*: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn new(seed: u32) -> Self {
        // Zero is the one state xorshift never leaves.
        Self((u64::from(seed) << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits + 1) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_uniform_and_repeatable() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..10_000).map(|_| random.unit()).collect::<Vec<_>>()
        };
        let numbers = draw(1);
        assert!(numbers.iter().all(|x| *x > 0.0 && *x <= 1.0));
        let mean = numbers.iter().sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_eq!(numbers, draw(1));
        assert_ne!(numbers, draw(2));
    }
}
