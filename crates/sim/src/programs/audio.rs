//! Sound: a callback for each period of a sound card.

use crate::program::{Program, Step, World};
use crate::{NS_PER_S, Ns};

/// Computes the next period's samples at the beginning of each period, and notes how long after it
/// that was done. When that is later than the next period's beginning, the card has run dry: an xrun.
#[derive(Debug)]
pub struct Audio {
    begin_ns: Ns,
    period_ns: f64,
    /// Repeated.
    work_ns: Vec<Ns>,
    cycle: Option<i64>,
    works: bool,
}

impl Audio {
    /// Period 0 begins at `begin_ns`; there are `per_s` of them a second, and periods with negative
    /// numbers before it.
    pub fn new(begin_ns: Ns, per_s: f64, work_ns: Vec<Ns>) -> Self {
        Self {
            begin_ns,
            period_ns: NS_PER_S as f64 / per_s,
            work_ns,
            cycle: None,
            works: false,
        }
    }

    fn start_ns(&self, cycle: i64) -> Ns {
        (self.begin_ns as i64 + (cycle as f64 * self.period_ns) as i64) as Ns
    }
}

impl Program for Audio {
    /// Periods that have passed before a callback could be made for them are lost.
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let now_ns = world.now_ns;
        let Some(mut cycle) = self.cycle else {
            let first = (now_ns as f64 - self.begin_ns as f64) / self.period_ns;
            let first = first.ceil() as i64;
            self.cycle = Some(first);
            return Step::SleepUntil(self.start_ns(first));
        };
        if self.works {
            self.works = false;
            let start_ns = self.start_ns(cycle);
            world
                .record()
                .latency_ns
                .push((start_ns, now_ns - start_ns));
            self.cycle = Some(cycle + 1);
            return Step::SleepUntil(self.start_ns(cycle + 1));
        }
        while now_ns >= self.start_ns(cycle + 1) {
            cycle += 1;
        }
        self.cycle = Some(cycle);
        self.works = true;
        Step::Compute(self.work_ns[cycle.rem_euclid(self.work_ns.len() as i64) as usize])
    }
}
