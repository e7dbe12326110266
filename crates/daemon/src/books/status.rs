// SPDX-License-Identifier: GPL-2.0
//! What there is to be seen, for those who may see it: classes for everybody, as they are in /sys/fs/cgroup;
//! what was learnt of threads for their own users, and for root and the group of all.

use andante_sched::contracts::{Contract, Promise};
use andante_sched::{Seen, StateError};

use super::{Caller, kept, no_process};
use crate::host::{Host, Thread};
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, LearntSeen, Reply, StatusSeen};
use crate::server::{PART, monotonic_ns};

/// The last look at the classes and at contracts. It takes a fraction of a millisecond on a desktop, and a tenth of a
/// second where there are thousands of control groups. Looks take no more than a user's part of the daemon's time,
/// whoever asks and how often: users who ask soon after are told the same, and for how long that stands. Root and the
/// group have no limits, and always get a new one.
#[derive(Debug, Default)]
pub struct Looked {
    last: Option<(u64, Look)>,
}

/// All that was seen, at one instant.
type Look = (Seen, Vec<Contract>);

impl Looked {
    /// All that there is to be seen, and how long others are told the same [ns]. The clock is CLOCK_MONOTONIC.
    fn look(
        &mut self,
        anew: bool,
        clock: impl Fn() -> u64,
        look: impl FnOnce() -> Result<Look, StateError>,
    ) -> Result<(&Look, u64), Fault> {
        let now_ns = clock();
        let left_ns = |(until_ns, _): &(u64, Look)| until_ns.saturating_sub(now_ns);
        let mut stands_ns = self.last.as_ref().map_or(0, left_ns);
        if anew || stands_ns == 0 {
            let seen = look().map_err(|error| unreadable(&error))?;
            let ended_ns = clock();
            let told_ns = (ended_ns.saturating_sub(now_ns) as f64 / PART) as u64;
            self.last = Some((ended_ns + told_ns, seen));
            stands_ns = if anew { 0 } else { told_ns };
        }
        match &self.last {
            Some((_, seen)) => Ok((seen, stands_ns)),
            None => unreachable!("it was looked at above"),
        }
    }
}

pub(super) fn status(
    looked: &mut Looked,
    kernel: &dyn Kernel,
    host: &dyn Host,
    caller: Caller,
) -> Result<Reply, Fault> {
    let look = || Ok((kernel.seen()?, kernel.contracts()));
    let ((seen, live), stands_ns) = looked.look(caller.privileged, monotonic_ns, look)?;
    let mut learnt: Vec<_> = (live.iter())
        .filter_map(|contract| learnt_of(contract, host, caller))
        .collect();
    learnt.sort_by_key(|learnt| (learnt.pid, learnt.tid));
    Ok(Reply::Status(Box::new(StatusSeen {
        seen: seen.clone(),
        learnt,
        stands_ns,
    })))
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
    let none = || no_process(pid);
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::books::fakes::FakeKernel;

    /// With thousands of classes a look takes a tenth of a second. A user who asks again when the last one does not
    /// stand any more gets another one.
    #[test]
    fn a_look_is_told_again_for_as_long_as_is_said() {
        let (mut looked, now_ns, looks) = (Looked::default(), Cell::new(5), Cell::new(0));
        const TAKES_NS: u64 = 100_000_000;
        let mut ask = |anew| {
            let look = || {
                looks.set(looks.get() + 1);
                now_ns.set(now_ns.get() + TAKES_NS);
                let mut seen = FakeKernel::default().seen()?;
                seen.snapshot.now_ns = now_ns.get();
                Ok((seen, Vec::new()))
            };
            let ((seen, _), stands_ns) = looked.look(anew, || now_ns.get(), look).unwrap();
            (seen.snapshot.now_ns, stands_ns)
        };
        let (first_ns, stands_ns) = ask(false);
        assert_eq!(stands_ns, 20 * TAKES_NS);
        now_ns.set(now_ns.get() + stands_ns - 1);
        assert_eq!(ask(false), (first_ns, 1));
        now_ns.set(now_ns.get() + 1);
        let (second_ns, _) = ask(false);
        assert!(second_ns > first_ns);
        // Nobody waits for root's looks, and root for nobody's.
        let (third_ns, stands_ns) = ask(true);
        assert!(third_ns > second_ns && stands_ns == 0);
        assert_eq!(ask(false).0, third_ns);
        assert_eq!(looks.get(), 3);
    }
}
