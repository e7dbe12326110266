//! A game: frames, and updates from elsewhere that are answered beside them.

use super::{Answerer, Player};
use crate::program::{Program, Step, World};

/// Shows frames like a [`Player`], while another of its threads answers updates.
pub struct Game {
    frames: Player,
    /// The other thread, until it has been started.
    updates: Option<Answerer>,
}

impl Game {
    /// The two threads.
    pub fn new(frames: Player, updates: Answerer) -> Self {
        Self {
            frames,
            updates: Some(updates),
        }
    }
}

impl Program for Game {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let Some(updates) = self.updates.take() {
            world.thread(updates);
        }
        self.frames.step(world)
    }
}
