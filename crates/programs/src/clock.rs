//! The monotonic clock, to which everything in a run refers.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Nanoseconds per second, for conversions.
pub const NS_PER_S: f64 = 1e9;

/// CLOCK_MONOTONIC [ns].
pub fn now_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// Time since the machine booted [ns].
pub fn since_boot_ns() -> u64 {
    read_ns(ClockId::CLOCK_BOOTTIME)
}

/// CPU time of the calling thread [ns].
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of a live process [ns]; none once it has been waited for.
pub fn process_cpu_ns(pid: nix::unistd::Pid) -> Option<u64> {
    let clock = nix::time::clock_getcpuclockid(pid).ok()?;
    clock_gettime(clock).ok().map(to_ns)
}

fn read_ns(clock: ClockId) -> u64 {
    to_ns(clock_gettime(clock).expect("the kernel has this clock since 2.6.39"))
}

fn to_ns(time: TimeSpec) -> u64 {
    Duration::from(time).as_nanos() as u64
}

/// Sleeps until CLOCK_MONOTONIC reads `at_ns`, or until a signal arrives.
pub fn sleep_until(at_ns: u64) {
    let at = TimeSpec::from(Duration::from_nanos(at_ns));
    // Interruption by a signal is the only error there can be, and a reason to look around.
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::TIMER_ABSTIME,
        &at,
    );
}
