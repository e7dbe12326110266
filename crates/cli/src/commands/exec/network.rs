// SPDX-License-Identifier: GPL-2.0
//! The network's contract of a program that is to be started: of its class, for as long as it runs.

use std::collections::HashMap;

use andante_admission::link::LinkAnswer;
use andante_net::{Holder, Process, release_of};
use andante_sched::class::ClassPath;
use andante_sched::text::shown;
use andante_terminal::output;
use anyhow::Result;

use super::super::net::{Budget, class_at, offers};

/// The contract to ask for.
pub struct Network {
    device: String,
    budget: Budget,
    class: String,
    cgroup_id: u64,
    paths: HashMap<u64, String>,
}

/// A contract that was made. It is released when this is dropped; should that not happen, it ends with the
/// process.
pub struct Held {
    device: String,
    cgroup_id: u64,
    process: Process,
}

impl Drop for Held {
    fn drop(&mut self) {
        // If it cannot be, it ends with the process all the same.
        let _ = release_of(&self.device, self.cgroup_id, self.process);
    }
}

impl Network {
    /// Of a class that is there, on this device.
    ///
    /// # Errors
    /// There is no such class.
    pub fn new(device: String, budget: Budget, class: &ClassPath) -> Result<Self> {
        let (cgroup_id, paths) = class_at(class)?;
        Ok(Self {
            device,
            budget,
            class: class.to_text(),
            cgroup_id,
            paths,
        })
    }

    /// Asks for it, until this process ends. None: it is refused, which has been told.
    ///
    /// # Errors
    /// [`andante_net::NetError`].
    pub fn ask(self, pid: u32) -> Result<Option<Held>> {
        let process = Process::of(pid)?;
        let Self {
            device,
            budget,
            class,
            cgroup_id,
            paths,
        } = self;
        let path = &class;
        let holder = Holder { cgroup_id, path };
        match andante_net::reserve(&device, holder, budget.0, Some(process), &paths)? {
            LinkAnswer::Admitted => Ok(Some(Held {
                device,
                cgroup_id,
                process,
            })),
            LinkAnswer::Refused(refusal) => {
                let (class, device) = (shown(&class), shown(&device));
                output::complain(&offers(&class, &device, budget, &refusal));
                Ok(None)
            }
        }
    }
}
