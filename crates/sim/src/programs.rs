//! The synthetic programs of scenarios. Each does what the laboratory's real process of the same
//! name does on a kernel (`crates/programs/src/`), system calls taking no time.

mod answerer;
mod audio;
mod display;
mod game;
mod loaded;
mod player;
mod runner;
mod session;
mod sink;

pub use answerer::{Answerer, OFF_THE_GRID, Typing, key_presses};
pub use audio::Audio;
pub use display::{Client, ClosedLoop, Desk, Server};
pub use game::Game;
pub use loaded::{Connects, Loaded};
pub use player::Player;
pub use runner::Runner;
pub use session::InSession;
pub use sink::{Beats, Sink};

use crate::Ns;
use crate::channel::ChannelId;
use crate::program::{Program, Step, World};

/// Forks a child that computes and exits, waits for it, forks the next.
#[derive(Debug)]
pub struct Batch {
    /// Of the children, repeated.
    work_ns: Vec<Ns>,
    fork_ns: Ns,
    forked: usize,
    since_ns: Ns,
    phase: BatchPhase,
}

#[derive(Debug, Clone, Copy)]
enum BatchPhase {
    Begins,
    Forks,
    Ends,
}

impl Batch {
    /// Each child works for one of `work_ns`, in turn. Fork and wait together cost the parent
    /// `fork_ns`.
    pub fn new(work_ns: Vec<Ns>, fork_ns: Ns) -> Self {
        Self {
            work_ns,
            fork_ns,
            forked: 0,
            since_ns: 0,
            phase: BatchPhase::Begins,
        }
    }
}

impl Program for Batch {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let (step, phase) = match self.phase {
            BatchPhase::Begins => {
                self.since_ns = world.now_ns;
                (Step::Compute(self.fork_ns), BatchPhase::Forks)
            }
            BatchPhase::Forks => {
                let work_ns = self.work_ns[self.forked % self.work_ns.len()];
                self.forked += 1;
                let mut worked = false;
                world.fork(move |_: &mut World<'_>| {
                    if std::mem::replace(&mut worked, true) {
                        Step::Exit
                    } else {
                        Step::Compute(work_ns)
                    }
                });
                (Step::WaitForChild, BatchPhase::Ends)
            }
            BatchPhase::Ends => {
                let (since_ns, now_ns) = (self.since_ns, world.now_ns);
                world.record().finished_ns.push(now_ns);
                world
                    .record()
                    .latency_ns
                    .push((since_ns, now_ns - since_ns));
                (Step::Compute(0), BatchPhase::Begins)
            }
        };
        self.phase = phase;
        step
    }
}

/// What fork and wait cost the parent together, on a CPU of one instruction per ns [ns].
pub const FORK_NS: Ns = 100_000;

/// Works, waits for its disk, works again.
#[derive(Debug)]
pub struct Disk {
    /// Each repeated.
    work_ns: Vec<Ns>,
    wait_ns: Vec<Ns>,
    since_ns: Ns,
    done: usize,
    waits: bool,
}

impl Disk {
    /// Works for one of `work_ns` in turn, and from then on sleeps for one of `wait_ns`.
    pub fn new(work_ns: Vec<Ns>, wait_ns: Vec<Ns>) -> Self {
        Self {
            work_ns,
            wait_ns,
            since_ns: 0,
            done: 0,
            waits: false,
        }
    }
}

impl Program for Disk {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let now_ns = world.now_ns;
        self.waits = !self.waits;
        if self.waits {
            self.since_ns = now_ns;
            return Step::Compute(self.work_ns[self.done % self.work_ns.len()]);
        }
        let wait_ns = self.wait_ns[self.done % self.wait_ns.len()];
        let record = world.record();
        record.finished_ns.push(now_ns);
        record
            .latency_ns
            .push((self.since_ns, now_ns - self.since_ns));
        self.done += 1;
        Step::SleepUntil(now_ns + wait_ns)
    }
}

/// Computes for ever.
#[derive(Debug)]
pub struct Loop;

impl Program for Loop {
    fn step(&mut self, _world: &mut World<'_>) -> Step {
        Step::ComputeForever
    }
}

/// One of two processes that pass a byte to and fro.
#[derive(Debug)]
pub struct Pingpong {
    from: ChannelId,
    to: ChannelId,
    /// The one that begins, and measures.
    serves: bool,
    window: u32,
    pipe_ns: Ns,
    rounds: u32,
    since_ns: Ns,
    phase: u8,
}

impl Pingpong {
    /// `serves`: begins, and measures `window` round trips at a time.
    pub fn new(from: ChannelId, to: ChannelId, serves: bool, window: u32) -> Self {
        Self {
            from,
            to,
            serves,
            window,
            pipe_ns: PIPE_NS,
            rounds: 0,
            since_ns: 0,
            phase: u8::from(!serves),
        }
    }

    /// The same where system calls take their time by themselves.
    pub fn without_pipe_costs(self) -> Self {
        Self { pipe_ns: 0, ..self }
    }
}

/// What a read and a write of a pipe cost, on a CPU of one instruction per ns [ns].
pub const PIPE_NS: Ns = 3_000;

impl Program for Pingpong {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let phase = self.phase;
        self.phase = (phase + 1) % 3;
        match phase {
            0 => {
                if self.serves {
                    if self.rounds == self.window {
                        let each_ns = (world.now_ns - self.since_ns) / Ns::from(self.window);
                        world.record().latency_ns.push((self.since_ns, each_ns));
                        self.rounds = 0;
                    }
                    if self.rounds == 0 {
                        self.since_ns = world.now_ns;
                    }
                    self.rounds += 1;
                    let now_ns = world.now_ns;
                    world.record().finished_ns.push(now_ns);
                }
                Step::Send(self.to, 1)
            }
            1 => Step::Receive(self.from, 1),
            _ => Step::Compute(self.pipe_ns),
        }
    }
}
