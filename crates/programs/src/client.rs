//! The client of a closed loop: its next request waits for the reply to the one before.

use std::io;

use andante_job::stop;

use super::display::Display;
use super::{Order, Samples, preallocated, record};
use crate::clock::{now_ns, sleep_until};

/// No more replies than this are timed [1/s].
const MOST_PER_S: f64 = 50_000.0;

/// Asks its server for `work_ms` of work, waits for the reply, thinks, asks again. The latency runs
/// from the request to the reply.
pub(super) fn run(order: &Order, work_ms: f64, think_ms: f64) -> io::Result<Samples> {
    let mut server = Display::to_server(order, order.steps(work_ms))?;
    let think_ns = (think_ms * 1e6).round() as u64;
    let mut latency_ns = preallocated(order.capacity(MOST_PER_S), f64::NAN);
    let mut iterations = 0;
    while !stop::requested() {
        let asked_ns = now_ns();
        let mut heard_ns = asked_ns;
        if server
            .show(asked_ns, &mut |_, at_ns| heard_ns = at_ns)
            .is_err()
        {
            break;
        }
        iterations += u64::from(order.measures(heard_ns));
        if order.measures(asked_ns) {
            record(&mut latency_ns, (heard_ns - asked_ns) as f64);
        }
        let next_ns = heard_ns + think_ns;
        while now_ns() < next_ns && !stop::requested() {
            sleep_until(next_ns);
        }
    }
    Ok(Samples {
        iterations: Some(iterations),
        latency_ns,
        ..Samples::default()
    })
}
