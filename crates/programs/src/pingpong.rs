//! Pipe ping-pong: two processes pass one byte to and fro. Nearly all of a round trip is two
//! blocks, two wake-ups and two switches, so it shows what a scheduling decision costs.

use std::os::fd::{AsFd, OwnedFd};

use andante_job::stop;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, pipe, read, write};

use super::{Order, Samples, preallocated, record};
use crate::clock::now_ns;

/// No round trip is faster, so this bounds the number of samples [1/s].
const FASTEST_PER_S: f64 = 1e6;

pub(super) fn run(order: &Order, window: u32) -> nix::Result<Samples> {
    let (ping_out, ping_in) = pipe()?;
    let (pong_out, pong_in) = pipe()?;
    // SAFETY: the child only echoes bytes and leaves by `_exit`.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop((ping_in, pong_out));
            while read(ping_out.as_fd(), &mut [0]) == Ok(1) && write(&pong_in, &[0]) == Ok(1) {}
            // SAFETY: always sound; skips the parent's buffered output and destructors.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop((ping_out, pong_in));
            let samples = measure(order, window, &ping_in, &pong_out);
            drop(ping_in);
            waitpid(child, None)?;
            Ok(samples)
        }
    }
}

/// One sample per `window` round trips: the mean, so that reading the clock costs nothing.
fn measure(order: &Order, window: u32, ping: &OwnedFd, pong: &OwnedFd) -> Samples {
    let capacity = order.capacity(FASTEST_PER_S / f64::from(window));
    let mut latency_ns = preallocated(capacity, f64::NAN);
    let mut start_ns = now_ns();
    'measuring: while !stop::requested() {
        for _ in 0..window {
            if write(ping, &[0]) != Ok(1) || read(pong.as_fd(), &mut [0]) != Ok(1) {
                break 'measuring;
            }
        }
        let end_ns = now_ns();
        if order.measures(start_ns) && order.measures(end_ns) {
            record(
                &mut latency_ns,
                (end_ns - start_ns) as f64 / f64::from(window),
            );
        }
        start_ns = end_ns;
    }
    let iterations = latency_ns.len() as u64 * u64::from(window);
    Samples {
        iterations: Some(iterations),
        latency_ns,
        ..Samples::default()
    }
}
