//! The fork-heavy batch: a parent that forks a child, waits for it, and forks the next.

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::{Order, Samples, work};
use crate::clock::now_ns;
use crate::stop;

pub(super) fn run(order: &Order, work_ms: f64) -> nix::Result<Samples> {
    let steps = order.steps(work_ms);
    let mut iterations = 0;
    while !stop::requested() {
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
                        iterations += u64::from(order.measures(now_ns()));
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
        ..Samples::default()
    })
}
