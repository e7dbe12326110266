//! Sound: a callback for each period of a sound card.
//!
//! ```text
//!   period i             period i+1
//!   |----[ callback ]----|----[ callback ]---…
//! ```
//!
//! The callback computes the samples that the card plays in the next period. One that has not ended
//! when its period does is an **xrun**: the card has run dry. Periods that have passed before a callback
//! could begin are xruns as well; the program goes on with the period that is not over yet.

use andante_job::stop;

use super::player::frames_due;
use super::{Order, Samples, preallocated, record, work};
use crate::clock::{NS_PER_S, now_ns, sleep_until};

/// Makes `per_s` callbacks a second. The latency runs from the beginning of a period to the end of its
/// callback.
pub(super) fn run(order: &Order, per_s: f64, work_ms: &[f64]) -> Samples {
    let period_ns = NS_PER_S / per_s;
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut latency_ns = preallocated(order.capacity(per_s), f64::NAN);
    // As a player's frames, periods are numbered from the beginning of the measurement.
    let start_ns = |cycle: i64| (order.begin_ns as i64 + (cycle as f64 * period_ns) as i64) as u64;
    let started_ns = now_ns() as i64 - order.begin_ns as i64;
    let first = (started_ns as f64 / period_ns).ceil() as i64;
    let (mut cycle, mut in_time) = (first, 0);
    while !stop::requested() {
        while now_ns() < start_ns(cycle) && !stop::requested() {
            sleep_until(start_ns(cycle));
        }
        if stop::requested() {
            break;
        }
        let ready_ns = now_ns();
        while ready_ns >= start_ns(cycle + 1) {
            cycle += 1;
        }
        work::compute(steps[cycle.rem_euclid(steps.len() as i64) as usize]);
        let done_ns = now_ns();
        if order.measures(start_ns(cycle)) {
            let due = start_ns(cycle + 1) <= order.end_ns;
            in_time += u64::from(due && done_ns <= start_ns(cycle + 1));
            record(&mut latency_ns, (done_ns - start_ns(cycle)) as f64);
        }
        cycle += 1;
    }
    let until_ns = now_ns().min(order.end_ns).saturating_sub(order.begin_ns);
    let due = frames_due(first, per_s, until_ns);
    Samples {
        iterations: Some(latency_ns.len() as u64),
        xruns: Some(due.saturating_sub(in_time)),
        latency_ns,
        ..Samples::default()
    }
}
