// SPDX-License-Identifier: GPL-2.0
//! The machine's memory, which takes long to read.

use std::cell::Cell;
use std::time::{Duration, Instant};

use andante_memory::MemoryError;
use andante_memory::machine::Machine;

/// The age that it may have for those who ask. Many may, and to read it takes as long as an answer.
pub(super) const NOW: Duration = Duration::from_secs(1);
/// The age that it may have for what is learnt, which nobody has asked for: to read it takes half a millisecond and more
/// (`/proc/zoneinfo`, which is long where there are many CPUs), and the daemon comes before all others meanwhile.
pub(super) const ABOUT_NOW: Duration = Duration::from_secs(60);

/// The machine's memory, as it was read last.
#[derive(Debug)]
pub(super) struct Lately {
    read: fn() -> Result<Machine, MemoryError>,
    last: Cell<Option<(Instant, Machine)>>,
}

impl Lately {
    /// Nothing is read before somebody asks.
    pub fn read_by(read: fn() -> Result<Machine, MemoryError>) -> Self {
        let last = Cell::default();
        Self { read, last }
    }

    /// As it was no longer ago than this.
    pub fn as_of(&self, age: Duration) -> Result<Machine, MemoryError> {
        if let Some((when, machine)) = self.last.get()
            && when.elapsed() < age
        {
            return Ok(machine);
        }
        let machine = (self.read)()?;
        self.last.set(Some((Instant::now(), machine)));
        Ok(machine)
    }
}
