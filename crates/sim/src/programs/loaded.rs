//! A program as the laboratory starts it: it is executed, loaded, waits for its order, reads it, finds its
//! server, and begins.

use crate::Ns;
use crate::program::{Program, Step, World};
use crate::programs::Desk;

/// What it takes to load a program of the laboratory's: execve, the linker, the runtime [ns, at one
/// instruction per ns].
pub const LOAD_NS: Ns = 4_000_000;
/// What it takes to read its order, and to prepare for the measurement [ns].
pub const ORDER_NS: Ns = 1_000_000;

/// A program that has been loaded ahead of the warm-up, so that all begin together.
///
/// What a scheduler has seen of a process when that begins to work matters: it has been loaded, and
/// has waited.
pub struct Loaded {
    program: Box<dyn Program>,
    order_ns: Ns,
    load_ns: Ns,
    read_ns: Ns,
    phase: u8,
}

impl Loaded {
    /// `program`, which gets its order at `order_ns`. `scale` is the speed of a CPU while all are
    /// busy, as a part of that of one.
    pub fn new(program: Box<dyn Program>, order_ns: Ns, scale: f64) -> Self {
        Self {
            program,
            order_ns,
            load_ns: (LOAD_NS as f64 * scale) as Ns,
            read_ns: (ORDER_NS as f64 * scale) as Ns,
            phase: 0,
        }
    }
}

impl Program for Loaded {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let phase = self.phase;
        self.phase = (phase + 1).min(4);
        match phase {
            0 => Step::Exec,
            1 => Step::Compute(self.load_ns),
            2 => Step::SleepUntil(self.order_ns),
            3 => Step::Compute(self.read_ns),
            _ => self.program.step(world),
        }
    }
}

/// Between two attempts of a client to find its server [ns].
const RETRY_NS: Ns = 1_000_000;

/// A client: before it begins, it tries until its server is there.
pub struct Connects {
    program: Box<dyn Program>,
    desk: Desk,
    connected: bool,
}

impl Connects {
    /// `program`, which asks the server of `desk`.
    pub fn new(program: Box<dyn Program>, desk: Desk) -> Self {
        Self {
            program,
            desk,
            connected: false,
        }
    }
}

impl Program for Connects {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        self.connected |= self.desk.is_open();
        match self.connected {
            true => self.program.step(world),
            false => Step::SleepUntil(world.now_ns + RETRY_NS),
        }
    }
}
