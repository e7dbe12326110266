// SPDX-License-Identifier: GPL-2.0
//! Sessions of processes that do not open one themselves: somebody speaks for them, as who answers requests over
//! D-Bus does. Their threads are waited for, at no pace, and that is all that can be said of them: no promise is
//! made to them, and they have no page.
//!
//! - *Who may?* Everybody for processes of their own, as they may reserve for them. Root and the group `andante`
//!   for others, in whose name they then ask: the process has to be that user's, and counts among that user's.
//! - *How long?* Until the process ends, it is retracted, or the connection ends. What a program says of a thread
//!   itself comes first.

use std::collections::HashSet;

use andante_sched::contracts::CallError;
use andante_session::{Answer, Cycle, Declare, Declared, Fault, FaultKind, Role, Wish};

use super::{
    Answered, Answering, MAX_THREADS, Member, Session, check_room, failed, fault, is_realtime,
    terms,
};
use crate::accounts::Accounts;
use crate::books::Caller;
use crate::host::{Host, Thread};
use crate::kernel::Kernel;
use crate::server::Peer;

/// The process that is spoken of, and whose it is.
///
/// # Errors
/// There is none, or it is not this user's to speak of.
pub fn whose(
    asked: &Declare,
    by: Peer,
    host: &dyn Host,
    accounts: &Accounts,
) -> Result<(Thread, Peer), Fault> {
    let Caller {
        uid, privileged, ..
    } = by.caller;
    let user = asked.user.unwrap_or(uid);
    if user != uid && !privileged {
        let message = format!(
            "you are user {uid}: only root and members of the group andante ask in the name of others"
        );
        return Err(fault(FaultKind::NotPermitted, message));
    }
    let pid = asked.process;
    let found = host.thread(pid).filter(|found| found.pid == pid && pid > 0);
    let Some(process) = found else {
        let message = format!("there is no process {pid}: `ps -e` shows those there are");
        return Err(fault(FaultKind::NoThread, message));
    };
    if process.kernel_thread {
        let message = format!("{pid} is a kernel thread, for which nobody speaks");
        return Err(fault(FaultKind::NotYours, message));
    }
    // As for ptrace(2): not one that has, or may take, the rights of another user.
    let for_all = privileged && (asked.user.is_none() || user == 0);
    if let Some(other) = process.uids.iter().find(|other| **other != user)
        && !for_all
    {
        let message =
            format!("process {pid} belongs to user {other}, not to user {user}: ask as that user");
        return Err(fault(FaultKind::NotPermitted, message));
    }
    let uid = process.uids[0];
    let caller = Caller {
        uid,
        account: accounts.of(uid),
        privileged: uid == 0,
    };
    Ok((process, Peer { caller, pid }))
}

/// Declares what is asked of the process, in a session of its own. `with.peer` is the process.
///
/// # Errors
/// With the sentence to tell; nothing is declared then.
pub fn declare(
    spoken: &mut Vec<Session>,
    asked: &Declare,
    process: &Thread,
    asked_by: &str,
    with: &mut Answering<'_>,
) -> Answered {
    // Another process has had the number.
    let before = |one: &Session| one.whose.pid == process.pid && one.started != process.started;
    end_those(spoken, before, with);
    let thread = asked.thread.map(|tid| thread_of(process, tid, with.host));
    let thread = thread.transpose()?;
    let of_it = |one: &Session| one.whose.pid == process.pid;
    let at = match spoken
        .iter()
        .position(|one| of_it(one) && one.wish.role == asked.role)
    {
        Some(at) => at,
        None => {
            check_room(with)?;
            let mut wish = Wish::new(asked.role, Cycle::default());
            wish.name = Some(process.name.clone());
            let mut session = Session::new(wish, process.started, with);
            session.asked_by = Some(asked_by.to_owned());
            spoken.push(session);
            spoken.len() - 1
        }
    };
    match thread {
        Some(thread) if spoken.iter().any(|one| of_it(one) && one.has(&thread)) => {}
        Some(thread) => {
            if let Err(refused) = spoken[at].takes_in(&thread, with) {
                let idle = |one: &Session| one.is_idle();
                end_those(spoken, idle, with);
                return Err(refused);
            }
        }
        None => {
            spoken[at].follows = true;
            spoken[at].looks_after_threads(with);
        }
    }
    let declared = Declared {
        session: spoken[at].number,
        threads: spoken[at].members.len() as u32,
    };
    Ok((Answer::Declared(declared), None))
}

/// What was declared of the process as this does not stand any more.
///
/// # Errors
/// Nothing was.
pub fn retract(
    spoken: &mut Vec<Session>,
    process: i32,
    role: Role,
    with: &mut Answering<'_>,
) -> Answered {
    let meant = |one: &Session| one.whose.pid == process && one.wish.role == role;
    if !spoken.iter().any(meant) {
        let message = format!("nothing was declared of process {process} over this connection");
        return Err(fault(FaultKind::NoSession, message));
    }
    end_those(spoken, meant, with);
    Ok((Answer::Done {}, None))
}

fn end_those(
    spoken: &mut Vec<Session>,
    meant: impl Fn(&Session) -> bool,
    with: &mut Answering<'_>,
) {
    for session in spoken.extract_if(.., |one| meant(one)) {
        session.end(with.books, with.host, with.kernel, with.sinks);
    }
}

/// The thread of the process.
fn thread_of(process: &Thread, tid: i32, host: &dyn Host) -> Result<Thread, Fault> {
    let Some(thread) = host.thread(tid).filter(|_| tid > 0) else {
        let message = format!("there is no thread {tid}: give what gettid() returns");
        return Err(fault(FaultKind::NoThread, message));
    };
    if thread.pid != process.pid {
        let message = format!(
            "{tid} is a thread of process {}, not of process {}",
            thread.pid, process.pid
        );
        return Err(fault(FaultKind::NotYours, message));
    }
    if thread.realtime {
        return Err(is_realtime(tid));
    }
    Ok(thread)
}

impl Session {
    /// Whether the thread takes part.
    fn has(&self, thread: &Thread) -> bool {
        let is_it = |one: &Member| one.tid == thread.tid && one.started == thread.started;
        self.members.iter().any(is_it)
    }

    /// Whether nothing is left of what was declared.
    pub fn is_idle(&self) -> bool {
        self.members.is_empty() && !self.follows
    }

    fn takes_in(&mut self, thread: &Thread, with: &mut Answering<'_>) -> Result<(), Fault> {
        // Those that have ended are found by the next look: to look here would take 10 ms of everybody's, each time.
        if self.members.len() >= MAX_THREADS {
            let message = format!(
                "{MAX_THREADS} threads of process {} take part already",
                thread.pid
            );
            return Err(fault(FaultKind::Full, message));
        }
        let declared = terms::declared(self.number, &self.wish.cycle, 0);
        let declared = with.kernel.declare(thread.tid, Some(declared));
        declared.map_err(|error| match error {
            CallError::InSession => {
                let message = format!("thread {} takes part in a session already", thread.tid);
                fault(FaultKind::Taken, message)
            }
            error => failed(thread.tid, &error),
        })?;
        self.joined += 1;
        self.members.push(Member {
            number: self.joined,
            tid: thread.tid,
            started: thread.started,
            sink: 0,
            told: false,
        });
        Ok(())
    }

    /// Threads that the process has started take part too, and those that have ended no more. How many were
    /// looked at.
    fn looks_after_threads(&mut self, with: &mut Answering<'_>) -> usize {
        if !self.follows {
            let looked = self.members.len();
            self.members.retain(|member| member.is_there(with.host));
            return looked;
        }
        let tids: HashSet<_> = with
            .host
            .threads(self.whose.pid, MAX_THREADS)
            .into_iter()
            .collect();
        self.members.retain(|member| tids.contains(&member.tid));
        let known: HashSet<_> = self.members.iter().map(|member| member.tid).collect();
        for tid in tids.difference(&known) {
            // One that says something of itself, or runs before all that Andante schedules, does not need this.
            let thread = with.host.thread(*tid).filter(|one| !one.realtime);
            if let Some(thread) = thread.filter(|thread| thread.pid == self.whose.pid) {
                let _ = self.takes_in(&thread, with);
            }
        }
        tids.len()
    }

    /// What is due every second; how many threads were looked at. Nothing is left of one whose process has ended.
    pub fn look_after(&mut self, with: &mut Answering<'_>) -> usize {
        if let Some((name, started)) = with.host.name(self.whose.pid)
            && started == self.started
        {
            self.wish.name = Some(name); // it may have executed another program
            return 1 + self.looks_after_threads(with);
        }
        self.follows = false;
        self.members.clear();
        1
    }

    /// The process that is spoken of.
    pub fn whose(&self) -> Peer {
        self.whose
    }

    /// The thread's own program says what it does. Whether it took part.
    pub fn yields(&mut self, tid: i32, kernel: &mut dyn Kernel) -> bool {
        let Some(at) = self.members.iter().position(|one| one.tid == tid) else {
            return false;
        };
        self.members.swap_remove(at);
        let _ = kernel.declare(tid, None);
        true
    }
}
