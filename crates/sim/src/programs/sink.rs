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
    /// Whether it says in its page when its next event comes.
    tells: bool,
    events: usize,
    /// The event that it waits for, or works for.
    at_ns: Ns,
    /// The event after that.
    next_ns: Option<Ns>,
    phase: SinkPhase,
}

#[derive(Debug, Clone, Copy)]
enum SinkPhase {
    Starts,
    Waits,
    Begins,
    Works,
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
            tells: false,
            events: 0,
            at_ns: 0,
            next_ns: None,
            phase: SinkPhase::Starts,
        }
    }

    /// The same, which says in the page of its thread when its next event comes: before the work for this
    /// one, so that it is known if it comes meanwhile.
    pub fn telling(self) -> Self {
        Self {
            tells: true,
            ..self
        }
    }

    fn note(&self, world: &mut World<'_>) {
        let latency_ns = world.now_ns - self.at_ns;
        world.record().latency_ns.push((self.at_ns, latency_ns));
    }

    /// What it does now; none: nothing, and the next phase follows.
    fn act(&mut self, world: &mut World<'_>) -> Option<Step> {
        match self.phase {
            SinkPhase::Starts => {
                self.phase = SinkPhase::Waits;
                self.next_ns = self.instants.next();
                self.tell()
            }
            SinkPhase::Waits => {
                self.phase = SinkPhase::Begins;
                let Some(at_ns) = self.next_ns else {
                    return Some(Step::Exit);
                };
                self.at_ns = at_ns;
                Some(Step::SleepUntil(at_ns))
            }
            SinkPhase::Begins => {
                if !self.to_end {
                    self.note(world);
                }
                self.phase = SinkPhase::Works;
                self.next_ns = self.instants.next();
                self.tell()
            }
            SinkPhase::Works => {
                self.phase = SinkPhase::Ends;
                let work_ns = self.work_ns[self.events % self.work_ns.len()];
                self.events += 1;
                Some(Step::Compute(work_ns))
            }
            SinkPhase::Ends => {
                if self.to_end {
                    self.note(world);
                }
                let (now_ns, at_ns) = (world.now_ns, self.at_ns);
                let record = world.record();
                record.shown_ns.push(now_ns);
                record.released_ns.push(at_ns);
                self.phase = SinkPhase::Waits;
                None
            }
        }
    }

    fn tell(&self) -> Option<Step> {
        self.next_ns.filter(|_| self.tells).map(Step::RaiseAt)
    }
}

impl Program for Sink {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        loop {
            if let Some(step) = self.act(world) {
                return step;
            }
        }
    }
}
