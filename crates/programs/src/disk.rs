//! A job that works and waits for its disk, over and over. A sleep stands for the disk, as long each time as is said,
//! from when the work is done: a job that is served late asks late.

use andante_job::stop;

use super::{Order, Samples, preallocated, record, work};
use crate::clock::{now_ns, sleep_until};

/// No more than this are timed [1/s].
const MOST_PER_S: f64 = 2_000.0;

pub(super) fn run(order: &Order, work_ms: &[f64], wait_ms: &[f64]) -> Samples {
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut iteration_ns = preallocated(order.capacity(MOST_PER_S), f64::NAN);
    let mut iterations = 0;
    for (steps, wait_ms) in steps.into_iter().cycle().zip(wait_ms.iter().cycle()) {
        if stop::requested() {
            break;
        }
        let begun_ns = now_ns();
        work::compute(steps);
        let done_ns = now_ns();
        iterations += u64::from(order.measures(done_ns));
        if order.measures(begun_ns) {
            record(&mut iteration_ns, (done_ns - begun_ns) as f64);
        }
        sleep_until(done_ns + (wait_ms * 1e6) as u64);
    }
    Samples {
        iterations: Some(iterations),
        iteration_ns,
        ..Samples::default()
    }
}
