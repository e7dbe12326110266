//! A game: frames, and updates from elsewhere that are answered beside them.

use super::Player;
use crate::program::{Program, Step, World};

/// Shows frames like a [`Player`], while another of its threads answers updates.
pub struct Game {
    frames: Player,
    /// The other thread, until it has been started.
    updates: Option<Box<dyn Program>>,
}

impl Game {
    /// The two threads.
    pub fn new(frames: Player, updates: impl Program + 'static) -> Self {
        Self {
            frames,
            updates: Some(Box::new(updates)),
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
