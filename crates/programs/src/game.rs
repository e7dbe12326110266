//! A game: one thread shows frames, another answers updates from elsewhere.
//!
//! An update is what a timer brings, as data from the network would be: an interrupt wakes the thread
//! that waits for it. Its latency runs from the instant at which it comes to the end of the work for it.

use std::{io, thread};

use andante_scenario::Display;

use super::player::{self, Playing};
use super::session::Speaks;
use super::timed::{self, Typing};
use super::{Order, Samples};

/// What is played.
pub(super) struct Game<'a> {
    /// Frames per second.
    pub fps: f64,
    /// Work per frame [ms], repeated.
    pub work_ms: &'a [f64],
    /// Updates [1/s].
    pub updates_per_s: f64,
    /// Work per update [ms].
    pub update_ms: f64,
}

/// Both threads, until SIGTERM.
pub(super) fn run(order: &Order, game: &Game<'_>, speaks: &Speaks) -> io::Result<Samples> {
    let playing = Playing {
        fps: game.fps,
        work_ms: game.work_ms,
        display: &Display::NONE,
        drops: true,
        by_clock: false,
    };
    let updates = Typing {
        keys_per_s: game.updates_per_s,
        regular: true,
        work_ms: &[game.update_ms],
        input_ms: &[0.0],
        until_s: None,
        seed: 1,
        display: &Display::NONE,
    };
    let (frames, updates) = thread::scope(|scope| {
        let updates = scope.spawn(|| {
            let speaks = speaks.join().map_err(io::Error::other)?;
            timed::typist(order, &updates, &speaks)
        });
        let frames = player::run(order, &playing, speaks);
        (frames, updates.join())
    });
    let updates = updates.map_err(|_| io::Error::other("the thread for updates has failed"))??;
    Ok(Samples {
        latency_ns: updates.latency_ns,
        ..frames?
    })
}
