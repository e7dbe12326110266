// SPDX-License-Identifier: GPL-2.0
//! Which processes are spared when somebody has to be killed, and by how much.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::tracked::Tracked;
use crate::error::MemoryError;
use crate::oom::{Spared, thousandths};
use crate::process;

/// Processes of the same classes are spared anew after this: those of a class that is beyond its reservation have
/// other parts of it then, and somebody may have set a value of his own.
const AGAIN: Duration = Duration::from_secs(60);

/// A class by which its processes are spared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Class {
    bytes: u64,
    is_over: bool,
    processes: Vec<i32>,
}

impl Class {
    pub fn of(one: &mut Tracked) -> Self {
        Self {
            bytes: one.bytes,
            is_over: one.seen.over() > 0,
            processes: one.processes().to_owned(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Sparing {
    spared: Spared,
    classes: Vec<Class>,
    looked: Option<Instant>,
}

impl Sparing {
    pub fn open(kept: &Path) -> Result<Self, MemoryError> {
        Ok(Self {
            spared: Spared::open(kept)?,
            classes: Vec::new(),
            looked: None,
        })
    }

    /// Spares the processes of these classes by their reservations, of so much memory and swap in all [bytes].
    pub fn look(&mut self, classes: Vec<Class>, all: u64) {
        // To look at each process takes long where there are hundreds.
        let lately = |when: Instant| when.elapsed() < AGAIN;
        if self.classes == classes && self.looked.is_some_and(lately) {
            return;
        }
        let mut wanted = BTreeMap::new();
        for class in &classes {
            let processes = class.processes.iter();
            let own: Vec<_> = processes.clone().map(|pid| process::all(*pid)).collect();
            for (pid, part) in processes.zip(thousandths(class.bytes, all, &own)) {
                // Of nested reservations the one that does most.
                let most = wanted.entry(*pid).or_default();
                *most = part.max(*most);
            }
        }
        // If it cannot be written down now, it is tried again in a second.
        if self.spared.spare(&wanted).is_ok() {
            self.classes = classes;
            self.looked = Some(Instant::now());
        }
    }
}
