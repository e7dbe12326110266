//! The sink of events from elsewhere.

use crate::program::{Program, Step, World};
use crate::random::Random;
use crate::{NS_PER_S, Ns};

/// The instants at which a [`Sink`] has its events [ns].
#[derive(Debug, Clone)]
pub struct Beats {
    /// Before this there are none.
    pub begin_ns: Ns,
    /// Events per second.
    pub rate: f64,
    /// Each event comes up to so much later than its beat, at random [ns].
    pub jitter_ns: Ns,
    /// Of the phase and the jitter.
    pub seed: u64,
    /// Instants are multiples of this; 0 and 1: to the nanosecond.
    pub resolution_ns: Ns,
}

impl Beats {
    /// The instants, one after the other; the phase of the beats is random.
    pub fn instants(&self) -> impl Iterator<Item = Ns> + Send + use<> {
        let beats = self.clone();
        let mut random = Random::new(beats.seed);
        let period_ns = NS_PER_S as f64 / beats.rate;
        let phase_ns = random.below(period_ns as u64) as f64;
        let (mut beat, mut last_ns) = (0.0, 0);
        std::iter::repeat_with(move || {
            let late_ns = random.below(beats.jitter_ns + 1);
            let at_ns = beats.begin_ns + (phase_ns + beat * period_ns) as Ns + late_ns;
            beat += 1.0;
            last_ns = at_ns
                .next_multiple_of(beats.resolution_ns.max(1))
                .max(last_ns);
            last_ns
        })
    }
}

/// The sink of events: for each it does some work, one after the other, and notes how long after
/// the event it began, or ended.
pub struct Sink {
    instants: Box<dyn Iterator<Item = Ns> + Send>,
    /// Repeated like a group of pictures.
    work_ns: Vec<Ns>,
    /// Whether the latency is to the end of the work, not to its beginning.
    to_end: bool,
    events: usize,
    at_ns: Ns,
    phase: SinkPhase,
}

#[derive(Debug, Clone, Copy)]
enum SinkPhase {
    Waits,
    Begins,
    Ends,
}

impl Sink {
    /// Its events come at `instants`. Latencies are to the end of the work if `to_end`, else to its
    /// beginning.
    pub fn new(
        instants: impl Iterator<Item = Ns> + Send + 'static,
        work_ns: Vec<Ns>,
        to_end: bool,
    ) -> Self {
        Self {
            instants: Box::new(instants),
            work_ns,
            to_end,
            events: 0,
            at_ns: 0,
            phase: SinkPhase::Waits,
        }
    }

    fn note(&self, world: &mut World<'_>) {
        let latency_ns = world.now_ns - self.at_ns;
        world.record().latency_ns.push((self.at_ns, latency_ns));
    }
}

impl Program for Sink {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let SinkPhase::Begins = self.phase {
            if !self.to_end {
                self.note(world);
            }
            let work_ns = self.work_ns[self.events % self.work_ns.len()];
            self.events += 1;
            self.phase = SinkPhase::Ends;
            return Step::Compute(work_ns);
        }
        if let SinkPhase::Ends = self.phase
            && self.to_end
        {
            self.note(world);
        }
        let Some(at_ns) = self.instants.next() else {
            return Step::Exit;
        };
        self.at_ns = at_ns;
        self.phase = SinkPhase::Begins;
        Step::SleepUntil(at_ns)
    }
}
