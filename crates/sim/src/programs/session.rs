//! Programs that say what they do.

use crate::Ns;
use crate::program::{Cycle, Program, Step, World};

/// From a thread's asking to join to the daemon's answer, which it waits for [ns, at one instruction per
/// ns].
const JOIN_NS: Ns = 150_000;

/// A program that takes part in a session.
pub struct InSession<P> {
    program: P,
    /// Until it has been declared.
    cycle: Option<Cycle>,
    /// Whether what it waits for is an event for it.
    waits_for_events: bool,
    /// What comes after the step that was put in.
    next: Option<Step>,
}

impl<P: Program> InSession<P> {
    /// `program`, which declares this first of all.
    pub fn new(program: P, cycle: Cycle) -> Self {
        Self {
            program,
            cycle: Some(cycle),
            waits_for_events: false,
            next: None,
        }
    }

    /// The same program: each instant that it sleeps to is one of an event for it.
    pub fn waiting_for_events(self) -> Self {
        Self {
            waits_for_events: true,
            ..self
        }
    }
}

impl<P: Program> Program for InSession<P> {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let Some(cycle) = self.cycle.take() {
            self.next = Some(Step::SleepUntil(world.now_ns + JOIN_NS));
            return Step::Declare(cycle);
        }
        if let Some(step) = self.next.take() {
            return step;
        }
        let step = self.program.step(world);
        match step {
            Step::SleepUntil(at_ns) if self.waits_for_events => {
                self.next = Some(step);
                Step::RaiseAt(at_ns)
            }
            _ => step,
        }
    }
}
