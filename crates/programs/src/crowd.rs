//! A crowd: thousands of threads that yield, and then end, all at once.

use std::sync::{PoisonError, RwLock};
use std::{io, thread};

use andante_job::stop;

use super::{Order, Samples, preallocated, record};
use crate::clock::now_ns;

/// No more crowds than this are timed [1/s].
const MOST_PER_S: f64 = 1_000.0;

/// The threads call only one function: as small a stack as there can be [bytes].
const STACK: usize = 16 << 10;

/// One crowd after the other; an iteration is from the instant at which all its threads may begin to
/// the end of the last one.
///
/// # Errors
/// When there cannot be so many threads.
pub(super) fn run(order: &Order, threads: u32, yields: u32) -> io::Result<Samples> {
    let mut iteration_ns = preallocated(order.capacity(MOST_PER_S), f64::NAN);
    let mut iterations = 0;
    while !stop::requested() {
        let (begun_ns, done_ns) = once(threads, yields)?;
        if stop::requested() {
            break; // it was cut short
        }
        iterations += u64::from(order.measures(done_ns));
        if order.measures(begun_ns) {
            record(&mut iteration_ns, (done_ns - begun_ns) as f64);
        }
    }
    Ok(Samples {
        iterations: Some(iterations),
        iteration_ns,
        ..Samples::default()
    })
}

/// When one crowd began, and when it had ended [ns].
fn once(threads: u32, yields: u32) -> io::Result<(u64, u64)> {
    // All wait for it as long as it is locked for writing. If one cannot be made the others are let go.
    let gate = RwLock::new(());
    let mut begun_ns = 0;
    thread::scope(|scope| {
        let shut = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut refused = Ok(());
        for _ in 0..threads {
            let member = || {
                drop(gate.read());
                for _ in 0..yields {
                    if stop::requested() {
                        break;
                    }
                    thread::yield_now();
                }
            };
            let made = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, member);
            if let Err(error) = made {
                refused = Err(error);
                break;
            }
        }
        begun_ns = now_ns();
        drop(shut);
        refused
    })?;
    Ok((begun_ns, now_ns()))
}
