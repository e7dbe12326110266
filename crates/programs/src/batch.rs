//! The fork-heavy batch: a parent that forks a child, waits for it, and forks the next.

use andante_job::stop;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::{Order, Samples, preallocated, record, work};
use crate::clock::now_ns;

/// No more children than this are timed [1/s].
const MOST_PER_S: f64 = 2_000.0;

pub(super) fn run(order: &Order, work_ms: &[f64]) -> nix::Result<Samples> {
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut iteration_ns = preallocated(order.capacity(MOST_PER_S), f64::NAN);
    let mut iterations = 0;
    for steps in steps.into_iter().cycle() {
        if stop::requested() {
            break;
        }
        let begun_ns = now_ns();
        // SAFETY: the child only computes and leaves by `_exit`.
        match unsafe { fork() }? {
            ForkResult::Child => {
                work::compute(steps);
                // SAFETY: always sound; skips the parent's buffered output and destructors.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => loop {
                match waitpid(child, None) {
                    Err(nix::Error::EINTR) => {}
                    Ok(WaitStatus::Exited(..)) => {
                        let done_ns = now_ns();
                        iterations += u64::from(order.measures(done_ns));
                        if order.measures(begun_ns) {
                            record(&mut iteration_ns, (done_ns - begun_ns) as f64);
                        }
                        break;
                    }
                    // Killed with the parent: the end of the run.
                    Ok(_) => break,
                    Err(error) => return Err(error),
                }
            },
        }
    }
    Ok(Samples {
        iterations: Some(iterations),
        iteration_ns,
        ..Samples::default()
    })
}
