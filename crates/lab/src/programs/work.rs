//! Work: a fixed number of instructions that stands for a time on a CPU at full speed.
//!
//! A program that computed "until 5 ms have passed" would do less when it is preempted. So work is
//! counted in steps of one fixed loop, and the cost of a step is measured once, before anything
//! else runs. In virtual time one instruction takes one nanosecond, and the result is exact.

use std::hint::black_box;

use crate::clock::thread_cpu_ns;

/// Steps of one calibration run: about 10 ms in virtual time.
const CALIBRATION_STEPS: u64 = 1_000_000;
/// On a host the fastest of several runs is the one least disturbed.
const CALIBRATION_RUNS: u32 = 5;

/// Computes `steps` steps. The chain of dependent operations keeps the compiler from shortening
/// it, and touches no memory, so that caches play no part.
#[inline(never)]
pub(crate) fn compute(steps: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// Measures how many steps an otherwise idle CPU does per millisecond.
pub(crate) fn calibrate() -> f64 {
    let run = |_| {
        let start_ns = thread_cpu_ns();
        compute(CALIBRATION_STEPS);
        thread_cpu_ns() - start_ns
    };
    let fastest_ns = (0..CALIBRATION_RUNS)
        .map(run)
        .min()
        .expect("more than no runs");
    CALIBRATION_STEPS as f64 / (fastest_ns.max(1) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrated_work_takes_the_time_it_stands_for() {
        // The best of several: the test shares its CPUs, and their clock rate, with everything else.
        let error = |_| {
            let steps_per_ms = calibrate();
            let start_ns = thread_cpu_ns();
            compute((20.0 * steps_per_ms) as u64);
            ((thread_cpu_ns() - start_ns) as f64 / 20e6 - 1.0).abs()
        };
        let error = (0..10).map(error).fold(f64::INFINITY, f64::min);
        assert!(error < 0.2, "{error}");
    }
}
