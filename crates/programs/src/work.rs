//! Work: a fixed number of instructions that stands for a time on a CPU at full speed.
//!
//! A program that computed "until 5 ms have passed" would do less when it is preempted. So work is
//! counted in steps of one fixed loop, and the cost of a step is measured once, before anything
//! else runs. In virtual time one instruction takes one nanosecond, and the result is exact.
//!
//! The loop is long and does nothing. A virtual machine translates a straight piece of code at once,
//! and nothing to nothing: this work, most of what goes on in an experiment, costs its host next to
//! nothing, and an experiment takes a tenth of the time.

use std::arch::asm;

use crate::clock::thread_cpu_ns;

/// Instructions of a step that do nothing, with the loop's own some half a microsecond of virtual
/// time. QEMU translates at most 512 at once.
const STEP_INSTRUCTIONS: usize = 496;
/// Steps of one calibration run: about 10 ms in virtual time.
const CALIBRATION_STEPS: u64 = 20_000;
/// On a host the fastest of several runs is the one least disturbed.
const CALIBRATION_RUNS: u32 = 5;

/// Computes `steps` steps. They touch no memory, so that caches play no part.
#[inline(never)]
pub(crate) fn compute(steps: u64) {
    for _ in 0..steps {
        // SAFETY: these instructions do nothing.
        unsafe {
            asm!(
                ".rept {instructions}",
                "nop",
                ".endr",
                instructions = const STEP_INSTRUCTIONS,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// Computes until the calling thread has used so much CPU time, within some 10 µs.
///
/// Virtual CPUs share one instruction budget, so how fast each of them is depends on what the others
/// do. What a program needs and what it gets can then only be compared in CPU time.
pub(crate) fn compute_for(ns: u64, steps_per_ms: f64) {
    let until_ns = thread_cpu_ns() + ns;
    let mut left_ns = ns;
    while left_ns > 0 {
        // An eighth at a time, at full speed, or reading the clock would be the work.
        let chunk_ns = (left_ns / 8).max(5_000);
        compute((chunk_ns as f64 * steps_per_ms / 1e6) as u64);
        left_ns = until_ns.saturating_sub(thread_cpu_ns());
    }
}

/// Measures how many steps an otherwise idle CPU does per millisecond.
pub fn calibrate() -> f64 {
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
    fn work_by_the_clock_takes_its_time_at_any_speed() {
        for steps_per_ms in [1.0, 1e6] {
            let start_ns = thread_cpu_ns();
            compute_for(3_000_000, steps_per_ms);
            assert!(thread_cpu_ns() - start_ns >= 3_000_000);
        }
    }
}
