//! The sink of events, as `andante_sim::programs::Sink` is in the simulator: the instants are the same.

use andante_job::stop;
use andante_scenario::Kind;

use super::player::Shown;
use super::session::Speaks;
use super::{Order, Samples, preallocated, record, work};
use crate::clock::{now_ns, sleep_until};

/// Works for one event after the other, until SIGTERM. It says when the next one comes before it works for
/// this one, so that the scheduler knows of it if it comes meanwhile.
pub(super) fn run(order: &Order, speaks: &Speaks) -> Samples {
    let Kind::Sink {
        events_per_s,
        work_ms,
        to_end,
        ..
    } = &order.kind
    else {
        unreachable!("asked for a sink");
    };
    let beats = order.kind.beats(order.begin_ns, order.number);
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut shown = Shown::new(order, *events_per_s);
    let mut latency_ns = preallocated(order.capacity(*events_per_s), f64::NAN);
    let mut note = |at_ns: u64, done_ns: u64| {
        if order.measures(at_ns) {
            record(&mut latency_ns, (done_ns - at_ns) as f64);
        }
    };
    let mut instants = beats.expect("a sink has some").instants();
    let mut next_ns = || instants.next().expect("they have no end");
    let mut at_ns = next_ns();
    while at_ns < now_ns() {
        at_ns = next_ns();
    }
    speaks.awaits(at_ns);
    for number in 0.. {
        while now_ns() < at_ns && !stop::requested() {
            sleep_until(at_ns);
        }
        if stop::requested() {
            break;
        }
        if !to_end {
            note(at_ns, now_ns());
        }
        let following_ns = next_ns();
        speaks.awaits(following_ns);
        work::compute(steps[number % steps.len()]);
        let done_ns = now_ns();
        if *to_end {
            note(at_ns, done_ns);
        }
        shown.note(at_ns, done_ns);
        at_ns = following_ns;
    }
    Samples {
        latency_ns,
        ..shown.samples()
    }
}
