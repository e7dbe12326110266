// SPDX-License-Identifier: GPL-2.0
//! The historical policies: another, small scheduler (`bpf/historical.bpf.c`) for experiments.
//!
//! One of them orders all tasks, in one queue: no classes, no contracts.

use std::io;
use std::mem::MaybeUninit;

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::historical_skel::{HistoricalSkel, HistoricalSkelBuilder};
use crate::loader::{Exit, LoadError, detach, exit_of, prepare, refused};

/// A policy of `core/policy.h` that the kernel can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The time-sharing class of System V Release 4 as Solaris 2.2 ran it. The nice value is the
    /// user's priority, turned round.
    Svr4Ts,
    /// The same, beside its real-time class: nice values -1 to -20 are its levels 2 to 59.
    Svr4Rt,
    /// The time-sharing class as Solaris 2.3 renewed it.
    Svr4New,
    /// The epochs of Linux 2.2.
    Linux22,
    /// In order of arrival, until it blocks.
    Fifo,
    /// The same with a quantum of 100 ms.
    RoundRobin,
}

/// What the kernel calls the scheduler begins so.
const PREFIX: &str = "andante_";

impl Policy {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Svr4Ts,
        Self::Svr4Rt,
        Self::Svr4New,
        Self::Linux22,
        Self::Fifo,
        Self::RoundRobin,
    ];

    /// As the command line calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Svr4Ts => "svr4-ts",
            Self::Svr4Rt => "svr4-rt",
            Self::Svr4New => "svr4-new",
            Self::Linux22 => "linux-2.2",
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
        }
    }

    /// What it is, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Svr4Ts => "UNIX System V Release 4, time sharing, as Solaris 2.2 ran it",
            Self::Svr4Rt => "the same with the class RT: nice -1 to -20 are its levels 2 to 59",
            Self::Svr4New => "time sharing as Solaris 2.3 renewed it",
            Self::Linux22 => "Linux 2.2: epochs, counters and goodness",
            Self::Fifo => "in order of arrival, until a task sleeps",
            Self::RoundRobin => "in turn, 100 ms each",
        }
    }

    /// The policy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// What the kernel calls the scheduler: letters, digits, `_` and `.` are all that it allows.
    pub fn ops_name(self) -> String {
        format!("{PREFIX}{}", self.name().replace('-', "_"))
    }

    /// `enum an_policy_kind`.
    fn kind(self) -> u32 {
        match self {
            Self::Fifo => 1,
            Self::RoundRobin => 2,
            Self::Svr4Ts | Self::Svr4Rt => 4,
            Self::Svr4New => 5,
            Self::Linux22 => 6,
        }
    }
}

/// A historical policy in the kernel. Dropping it detaches it, and the kernel's own takes over.
pub struct Historical {
    skel: HistoricalSkel<'static>,
    link: Option<Link>,
}

impl Historical {
    /// Loads the policy and puts it in charge of every task of the normal scheduling class. The
    /// calling thread leaves that class for SCHED_FIFO.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; nothing is left in the kernel then.
    pub fn load(policy: Policy) -> Result<Self, LoadError> {
        stay_above();
        let possible = prepare()?;
        // As in the loader: a process loads one scheduler, once.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = HistoricalSkelBuilder::default()
            .open(object)
            .map_err(refused("open"))?;
        if let Some(knobs) = open.maps.rodata_data.as_deref_mut() {
            knobs.policy_kind = policy.kind();
            knobs.nice_is_real_time = policy == Policy::Svr4Rt;
            knobs.nr_cpus = possible;
        }
        let ops = open.struct_ops.historical_ops_mut();
        ops.name.fill(0);
        for (to, from) in ops.name.iter_mut().zip(policy.ops_name().bytes()) {
            *to = from as std::ffi::c_char;
        }
        let mut skel = open.load().map_err(refused("load"))?;
        let link = skel
            .maps
            .historical_ops
            .attach_struct_ops()
            .map_err(refused("attach"))?;
        Ok(Self {
            skel,
            link: Some(link),
        })
    }

    /// Why it is no longer in charge; none while it is.
    pub fn exited(&self) -> Option<Exit> {
        exit_of!(std::ptr::from_ref(self.skel.maps.bss_data.as_deref()?))
    }

    /// Detaches the policy; the kernel's own scheduler is in charge when this returns.
    ///
    /// # Errors
    ///
    /// The kernel's, if it does not let the link go.
    pub fn detach(mut self) -> Result<(), io::Error> {
        detach(self.link.take())
    }
}

/// Puts the calling thread above all that the policy orders, so that it can be told to let go even
/// where the policy starves everybody.
fn stay_above() {
    // SAFETY: all-zero is a valid sched_param.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = 1;
    // SAFETY: the pointer is to a live variable. Where it is not permitted, the kernel's watchdog
    // remains.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_the_kernel_takes_them() {
        for policy in Policy::ALL {
            assert_eq!(Policy::named(policy.name()), Some(policy));
            let ops = policy.ops_name();
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            assert!(ops.chars().all(allowed) && ops.len() < 128, "{ops}");
        }
        assert_eq!(Policy::named("svr5"), None);
    }
}
