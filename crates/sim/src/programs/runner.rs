//! The laboratory itself, which starts the programs.

use std::collections::VecDeque;

use crate::Ns;
use crate::program::{Program, Step, World};
use crate::spec::{InstanceId, Spec};

/// A program to be loaded.
struct Loads {
    at_ns: Ns,
    instance: InstanceId,
    spec: Spec,
    program: Box<dyn Program>,
}

/// Loads programs one after the other, each as its own child, and waits every time until that executes its
/// program. So it sleeps once for each; where a child begins with what its parent has earned by sleeping, as
/// under SVR4, those that are loaded later begin with more.
#[derive(Default)]
pub struct Runner {
    /// In the order of the instants.
    all: VecDeque<Loads>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    #[default]
    Sleeps,
    Loads,
    Waits,
}

impl Runner {
    /// It is to load this program at that instant, or when it has loaded those before.
    pub fn load(&mut self, at_ns: Ns, instance: InstanceId, spec: Spec, program: Box<dyn Program>) {
        let after = self.all.partition_point(|other| other.at_ns <= at_ns);
        let loads = Loads {
            at_ns,
            instance,
            spec,
            program,
        };
        self.all.insert(after, loads);
    }

    /// Is there anything to load?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Program for Runner {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let (step, phase) = match self.phase {
            Phase::Sleeps => match self.all.front() {
                None => (Step::SleepUntil(Ns::MAX), Phase::Sleeps),
                Some(next) => (Step::SleepUntil(next.at_ns), Phase::Loads),
            },
            Phase::Loads => {
                let next = self.all.pop_front().expect("it was looked at");
                world.spawn(next.instance, next.spec, next.program);
                (Step::WaitForExec, Phase::Waits)
            }
            Phase::Waits => (Step::Compute(0), Phase::Sleeps),
        };
        self.phase = phase;
        step
    }
}
