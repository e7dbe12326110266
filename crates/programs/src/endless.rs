//! The endless loop: computes without ever sleeping, and counts how far it gets.

use andante_job::stop;

use super::{Order, Samples, work};
use crate::clock::now_ns;

/// Work between two looks at the clock [ms]: one iteration.
const ITERATION_MS: f64 = 0.01;

pub(super) fn run(order: &Order) -> Samples {
    let steps = order.steps(ITERATION_MS);
    let mut iterations = 0;
    while !stop::requested() {
        work::compute(steps);
        iterations += u64::from(order.measures(now_ns()));
    }
    Samples {
        iterations: Some(iterations),
        ..Samples::default()
    }
}
