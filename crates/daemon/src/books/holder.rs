// SPDX-License-Identifier: GPL-2.0
//! Who is to hold a contract: whether there is such a one, and whether the caller may ask for it.

use andante_sched::class::{ClassError, ClassPath};
use andante_sched::text::shown;

use super::Caller;
use crate::host::{CpuMask, Host, Thread};
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, Holder, HolderSeen};

/// Letters of a program's name in that of its contract.
const MAX_COMMAND: usize = 15;
/// And bytes: with the number, and another behind it, a name is no longer than it may be.
const MAX_COMMAND_BYTES: usize = 40;
/// Threads of a process that a user without privilege may reserve for: each is looked at and bound by calls of
/// the kernel's, some 5 µs together, while nobody else is answered.
const MAX_THREADS_OF_USER: usize = 1024;

/// A holder that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Who.
    pub holder: Holder,
    /// Tells it from another one of the same number or path: when a thread was started, or the id
    /// of the cgroup.
    pub identity: u64,
    /// Its class, or the one that it is.
    pub class: ClassPath,
    /// The CPUs that all of it may use.
    pub allowed: CpuMask,
    /// The name of the thread when it was found.
    pub command: String,
    /// What whoever asked should know.
    pub notes: Vec<String>,
    /// Threads of it that are bound to the contract one by one; later ones inherit it.
    pub most_threads: usize,
    /// Those of a session, which are all that hold it.
    pub members: Vec<i32>,
    /// It is a session that has said that its user looks elsewhere.
    pub behind: bool,
}

impl Resolved {
    /// Whether it is a class.
    pub fn is_class(&self) -> bool {
        matches!(self.holder, Holder::Class(_))
    }

    /// Whether both are one and the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.holder == other.holder && self.identity == other.identity
    }

    /// Whether a user means it by this text.
    pub fn is_called(&self, text: &str) -> bool {
        match &self.holder {
            Holder::Process(id) | Holder::Thread(id) | Holder::Session(id) => {
                text.parse() == Ok(*id)
            }
            Holder::Class(path) => {
                ClassPath::parse(text).is_ok_and(|given| given.to_text() == *path)
            }
        }
    }

    /// Whether it is still there.
    pub fn is_alive(&self, host: &dyn Host) -> bool {
        match self.holder {
            Holder::Process(id) | Holder::Thread(id) | Holder::Session(id) => host
                .thread(id)
                .is_some_and(|thread| thread.started == self.identity),
            Holder::Class(_) => host
                .class(&self.class)
                .is_some_and(|class| class.cgroup_id == self.identity),
        }
    }

    /// The CPUs that so many threads of it may use now; none if it is gone.
    pub fn allowed_now(&self, host: &dyn Host, threads: usize) -> Option<CpuMask> {
        match self.holder {
            Holder::Process(pid) => {
                let tids = host.threads(pid, threads).into_iter();
                common_mask(tids.filter_map(|tid| host.affinity(tid)))
            }
            Holder::Thread(tid) => host.affinity(tid),
            Holder::Session(_) => {
                let tids = self.members.iter().take(threads);
                common_mask(tids.filter_map(|tid| host.affinity(*tid)))
            }
            Holder::Class(_) => host.class(&self.class).map(|class| class.allowed),
        }
    }

    /// It, as it was when its name was looked at last.
    pub fn seen(&self) -> HolderSeen {
        HolderSeen {
            holder: self.holder.clone(),
            command: self.command.clone(),
        }
    }

    /// Finds out how it is called now.
    pub fn look_at_name(&mut self, host: &dyn Host) {
        if let Holder::Process(id) | Holder::Thread(id) | Holder::Session(id) = self.holder
            && let Some((name, started)) = host.name(id)
            && started == self.identity
        {
            self.command = name;
        }
    }

    /// It, in a sentence.
    pub fn named(&self) -> String {
        match &self.holder {
            Holder::Process(pid) => format!("process {pid} ({})", shown(&self.command)),
            Holder::Thread(tid) => format!("thread {tid} ({})", shown(&self.command)),
            Holder::Class(path) => format!("class {}", shown(path)),
            Holder::Session(pid) => {
                format!("the session of process {pid} ({})", shown(&self.command))
            }
        }
    }

    /// Whether it is a session.
    pub fn is_session(&self) -> bool {
        matches!(self.holder, Holder::Session(_))
    }

    /// What its contract is called unless the user says otherwise; `command` is its own name.
    pub fn name_as(&self, command: &str) -> String {
        match &self.holder {
            Holder::Process(id) | Holder::Thread(id) | Holder::Session(id) => {
                name_after(command, *id)
            }
            Holder::Class(path) => path.clone(),
        }
    }
}

/// What the contract of a process or thread of this name and number is called.
pub fn name_after(command: &str, id: i32) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
    let mut command: String = command.chars().take(MAX_COMMAND).map(plain).collect();
    while command.len() > MAX_COMMAND_BYTES {
        command.pop();
    }
    format!("{command}-{id}")
}

/// Finds the holder, and refuses if the caller may not reserve for it.
///
/// # Errors
/// With the sentence to tell.
pub fn resolve(
    holder: &Holder,
    caller: Caller,
    host: &dyn Host,
    kernel: &dyn Kernel,
) -> Result<Resolved, Fault> {
    match holder {
        Holder::Process(pid) => resolve_process(*pid, caller, host),
        Holder::Thread(tid) => resolve_thread(*tid, caller, host),
        Holder::Class(path) => resolve_class(path, caller, host, kernel),
        Holder::Session(pid) => {
            let message = format!(
                "what a session is promised it asks for itself: reserve for process {pid} instead"
            );
            Err(Fault::new(FaultKind::BadTerms, message))
        }
    }
}

/// The threads of a process that take part in its session.
///
/// # Errors
/// With the sentence to tell.
pub fn resolve_session(pid: i32, members: Vec<i32>, host: &dyn Host) -> Result<Resolved, Fault> {
    let Some(leader) = host.thread(pid) else {
        let message = "the process of the session has ended";
        return Err(Fault::new(FaultKind::NoProcess, message));
    };
    let masks = members.iter().filter_map(|tid| host.affinity(*tid));
    let Some(allowed) = common_mask(masks).filter(|mask| *mask != 0) else {
        let message = "the threads of the session are bound to different CPUs, and a promise for all of them \
                       has one place: let those on one CPU have a session of their own";
        return Err(Fault::new(FaultKind::Unschedulable, message));
    };
    Ok(Resolved {
        holder: Holder::Session(pid),
        identity: leader.started,
        class: host.class_of(pid).unwrap_or_else(ClassPath::root),
        allowed,
        command: leader.name,
        notes: Vec::new(),
        most_threads: members.len(),
        members,
        behind: false,
    })
}

fn resolve_process(pid: i32, caller: Caller, host: &dyn Host) -> Result<Resolved, Fault> {
    let leader = (host.thread(pid).filter(|_| pid > 0)).ok_or_else(|| no_process(pid))?;
    if leader.pid != pid {
        let message = format!(
            "{pid} is a thread of process {} ({}): reserve for that process, or for this thread \
             alone with --thread",
            leader.pid,
            shown(&leader.name)
        );
        return Err(Fault::new(FaultKind::NoProcess, message));
    }
    check_thread(&leader, caller)?;
    let most_threads = match caller.privileged {
        true => usize::MAX,
        false => MAX_THREADS_OF_USER,
    };
    let tids = host.threads(pid, most_threads.saturating_add(1));
    if tids.len() > most_threads {
        return Err(has_many_threads(&leader));
    }
    let facts = |tid: i32| Some((host.is_realtime(tid)?, host.affinity(tid)?));
    let threads: Vec<_> = tids.into_iter().filter_map(facts).collect();
    let realtime = threads.iter().filter(|(realtime, _)| *realtime).count();
    if realtime == threads.len() {
        return Err(is_realtime(&leader));
    }
    let mut notes = Vec::new();
    if realtime > 0 {
        notes.push(format!(
            "{realtime} of its {} threads run at real-time priority, before every contract: they \
             do not hold it",
            threads.len()
        ));
    }
    let masks = threads.iter().map(|(_, allowed)| *allowed);
    let allowed = common_mask(masks).filter(|mask| *mask != 0);
    let Some(allowed) = allowed else {
        let message = format!(
            "the threads of process {pid} ({}) are bound to different CPUs, and a contract of all of \
             them has one place: reserve for each with --thread",
            shown(&leader.name)
        );
        return Err(Fault::new(FaultKind::Unschedulable, message));
    };
    Ok(Resolved {
        holder: Holder::Process(pid),
        identity: leader.started,
        class: host.class_of(pid).unwrap_or_else(ClassPath::root),
        allowed,
        command: leader.name,
        notes,
        most_threads,
        members: Vec::new(),
        behind: false,
    })
}

fn resolve_thread(tid: i32, caller: Caller, host: &dyn Host) -> Result<Resolved, Fault> {
    let Some(thread) = host.thread(tid).filter(|_| tid > 0) else {
        let message = format!("there is no thread {tid}: `ps -eL` shows those there are");
        return Err(Fault::new(FaultKind::NoProcess, message));
    };
    check_thread(&thread, caller)?;
    if thread.realtime {
        return Err(is_realtime(&thread));
    }
    Ok(Resolved {
        holder: Holder::Thread(tid),
        identity: thread.started,
        class: host.class_of(tid).unwrap_or_else(ClassPath::root),
        allowed: thread.allowed,
        command: thread.name,
        notes: Vec::new(),
        most_threads: 1,
        members: Vec::new(),
        behind: false,
    })
}

fn resolve_class(
    text: &str,
    caller: Caller,
    host: &dyn Host,
    kernel: &dyn Kernel,
) -> Result<Resolved, Fault> {
    let unknown = |error: ClassError| Fault::new(FaultKind::UnknownClass, error.to_string());
    let path = ClassPath::parse(text).map_err(unknown)?;
    if path.is_root() {
        let message = "the root class / holds the system's own tasks: name a class below it";
        return Err(Fault::new(FaultKind::UnknownClass, message));
    }
    let facts = host
        .class(&path)
        .ok_or_else(|| unknown(ClassError::Unknown(path.clone())))?;
    if !caller.privileged && facts.owner_uid != caller.uid {
        return Err(not_permitted(&format!("class {path}"), facts.owner_uid));
    }
    let Some(leaf) = kernel.class_leaf(facts.cgroup_id) else {
        let message = format!(
            "the cgroup {path} is part of its parent's class: `andante class set {path} --weight \
             100` makes it one of its own"
        );
        return Err(Fault::new(FaultKind::UnknownClass, message));
    };
    let mut notes = Vec::new();
    if leaf.has_children {
        notes.push("tasks of the classes below it do not run under its contract".to_owned());
    }
    Ok(Resolved {
        holder: Holder::Class(path.to_text()),
        identity: facts.cgroup_id,
        class: path,
        allowed: facts.allowed,
        command: String::new(),
        notes,
        most_threads: 0,
        members: Vec::new(),
        behind: false,
    })
}

pub(crate) fn no_process(pid: i32) -> Fault {
    let message = format!("there is no process {pid}: `ps -e` shows those there are");
    Fault::new(FaultKind::NoProcess, message)
}

/// Whether the caller may reserve for a thread.
pub(crate) fn check_thread(thread: &Thread, caller: Caller) -> Result<(), Fault> {
    let named = format!("{} ({})", thread.tid, shown(&thread.name));
    if thread.kernel_thread {
        let message = format!(
            "{named} is a kernel thread, which holds no contract: name a process of your own"
        );
        return Err(Fault::new(FaultKind::KernelThread, message));
    }
    // As for ptrace(2): not one that has, or may take, the rights of another user.
    match thread.uids.iter().find(|uid| **uid != caller.uid) {
        Some(other) if !caller.privileged => {
            Err(not_permitted(&format!("process {named}"), *other))
        }
        _ => Ok(()),
    }
}

pub(crate) fn not_permitted(what: &str, owner: u32) -> Fault {
    let message = format!(
        "{what} belongs to user {owner}: only root and members of the group andante reserve for \
         others"
    );
    Fault::new(FaultKind::NotPermitted, message)
}

fn is_realtime(thread: &Thread) -> Fault {
    let message = format!(
        "{tid} ({}) runs at real-time priority, before every contract, and is not Andante's to \
         schedule: `chrt --other --pid 0 {tid}` changes that",
        shown(&thread.name),
        tid = thread.tid
    );
    Fault::new(FaultKind::Unschedulable, message)
}

fn has_many_threads(leader: &Thread) -> Fault {
    let message = format!(
        "process {} ({}) has more than {MAX_THREADS_OF_USER} threads: only root and members of the group \
         andante reserve for so many; reserve for some of them with --thread",
        leader.pid,
        shown(&leader.name)
    );
    Fault::new(FaultKind::NotPermitted, message)
}

/// The CPUs that are in all masks; none if there are no masks.
fn common_mask(masks: impl Iterator<Item = CpuMask>) -> Option<CpuMask> {
    masks.reduce(|all, mask| all & mask)
}
