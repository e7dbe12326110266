// SPDX-License-Identifier: GPL-2.0
//! What there is to be seen, for those who may see it: classes for everybody, as they are in /sys/fs/cgroup;
//! what was learnt of threads for their own users, and for root and the group of all.

use std::time::Instant;

use andante_sched::contracts::{Contract, Promise};
use andante_sched::{Seen, StateError};

use super::{Caller, kept};
use crate::host::{Host, Thread};
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, LearntSeen, Reply, StatusSeen};

/// The part of the daemon's time that looking at all classes may take, whoever asks and how often: what users get of
/// it together is no more than what each gets (`server/turns.rs`).
const PART: u32 = 20;

/// The last look at the classes. It takes a fraction of a millisecond on a desktop, and a tenth of a second where
/// there are thousands of control groups; users who ask soon after are told the same. Root and the group have no
/// limits, and always get a new one.
#[derive(Debug, Default)]
pub struct Looked {
    last: Option<(Instant, Seen)>,
}

impl Looked {
    fn look(&mut self, kernel: &dyn Kernel, anew: bool) -> Result<Seen, Fault> {
        let began = Instant::now();
        if let Some((until, seen)) = &self.last
            && began < *until
            && !anew
        {
            return Ok(seen.clone());
        }
        let seen = kernel.seen().map_err(|error| unreadable(&error))?;
        self.last = Some((Instant::now() + began.elapsed() * PART, seen.clone()));
        Ok(seen)
    }
}

pub(super) fn status(
    looked: &mut Looked,
    kernel: &dyn Kernel,
    host: &dyn Host,
    caller: Caller,
) -> Result<Reply, Fault> {
    let seen = looked.look(kernel, caller.privileged)?;
    let live = kernel.contracts();
    let mut learnt: Vec<_> = (live.iter())
        .filter_map(|contract| learnt_of(contract, host, caller))
        .collect();
    learnt.sort_by_key(|learnt| (learnt.pid, learnt.tid));
    Ok(Reply::Status(Box::new(StatusSeen { seen, learnt })))
}

/// The contract, if it is a learnt one that the caller may see.
fn learnt_of(contract: &Contract, host: &dyn Host, caller: Caller) -> Option<LearntSeen> {
    let thread = host.thread(contract.thread?)?;
    if !may_see(&thread, caller) {
        return None;
    }
    let promise = &contract.promise;
    Some(LearntSeen {
        tid: thread.tid,
        pid: thread.pid,
        uid: thread.uids[0],
        command: thread.name,
        budget_ns: promise.budget_ns,
        period_ns: promise.period_ns,
        deadline_ns: promise.deadline_ns,
        awaited: promise.flags & Promise::UNAWAITED == 0,
        kept: kept(contract),
    })
}

pub(super) fn why(
    kernel: &dyn Kernel,
    host: &dyn Host,
    caller: Caller,
    pid: i32,
) -> Result<Reply, Fault> {
    let none = || {
        let message = format!("there is no process {pid}: `ps -e` shows those there are");
        Fault::new(FaultKind::NoProcess, message)
    };
    let thread = host.thread(pid).filter(|_| pid > 0).ok_or_else(none)?;
    if !may_see(&thread, caller) {
        let message = format!(
            "process {pid} is another user's: only root and members of the group andante may see what was learnt of it"
        );
        return Err(Fault::new(FaultKind::NotPermitted, message));
    }
    let threads = kernel.explained(pid).map_err(|error| unreadable(&error))?;
    Ok(Reply::Why {
        threads: threads.ok_or_else(none)?,
    })
}

fn may_see(thread: &Thread, caller: Caller) -> bool {
    caller.privileged || thread.uids.iter().all(|uid| *uid == caller.uid)
}

fn unreadable(error: &StateError) -> Fault {
    Fault::new(FaultKind::Failed, error.to_string())
}
