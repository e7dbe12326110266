//! What the loaded scheduler has learnt of a program's threads, and what they hold for it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use andante_core_sys::{Learner, Rhythm};
use libbpf_rs::MapCore;

use crate::contracts::LEARNT_OF_THREAD;
use crate::error::StateError;
use crate::maps::{self, Variables};
use crate::skel::types;
use crate::state::class_of_leaf;
use crate::text::from_bytes;

/// Map of what is kept per task.
const TASK_MAP: &str = "task_states";
/// Map of the contracts.
const CONTRACT_MAP: &str = ".bss.contracts";

/// A thread as the scheduler sees it.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its id.
    pub tid: i32,
    /// The name that it has given itself.
    pub name: String,
    /// Whether it is the kernel's own; those are given no contract.
    pub of_kernel: bool,
    /// Whether it works for an event from outside, as far as it is watched (`core/learn.h`).
    pub for_event: bool,
    /// Whether it is to have no more than what others leave: it is niced, or under SCHED_IDLE.
    pub background: bool,
    /// When it wakes and how long it works then.
    pub seen: Learner,
    /// What contracts that are learnt may have of each CPU [1/1024]; 0: none are.
    pub bound: u32,
    /// The contract that it runs under: its own, or its class's.
    pub contract: Option<Held>,
    /// The class of the client that it works for at present, if that is not its own.
    pub works_for: Option<String>,
}

/// A contract that a thread runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Whether it was learnt, and not asked for.
    pub learnt: bool,
    /// Whether the thread's class holds it, for all its tasks.
    pub of_class: bool,
    /// CPU time [ns] …
    pub budget_ns: u64,
    /// … in each period of this length [ns].
    pub period_ns: u64,
    /// How soon after waking [ns].
    pub deadline_ns: u64,
    /// The CPU that serves it.
    pub cpu: u32,
    /// If learnt: whether somebody is likely to wait for what the thread does (`core/learn.h`).
    pub awaited: bool,
    /// If learnt: what it is sure of, whatever others use [1/1024 of that CPU].
    pub sure: u32,
}

/// AN_UNAWAITED of core/contract.h.
const UNAWAITED: u32 = 1 << 9;

/// Of a task with nice value 0: `AN_USUAL_WEIGHT`.
const USUAL_WEIGHT: u32 = 1024;

/// The threads of a process, or one thread, in the order of their ids. None: there is no such process.
///
/// # Errors
/// [`StateError`].
pub fn watched(pid: i32) -> Result<Option<Vec<Watched>>, StateError> {
    let tasks = maps::find(TASK_MAP, size_of::<types::task_state>())?;
    let contracts = Variables::<types::bss_contracts>::read(CONTRACT_MAP)?;
    watched_in(&tasks, contracts.get(), pid)
}

/// The same, by what is kept per task and of contracts.
pub(crate) fn watched_in(
    tasks: &impl MapCore,
    contracts: &types::bss_contracts,
    pid: i32,
) -> Result<Option<Vec<Watched>>, StateError> {
    let Some(mut threads) = threads(pid) else {
        return Ok(None);
    };
    threads.sort_unstable();
    let watched = threads
        .into_iter()
        .filter_map(|tid| look(tasks, contracts, tid).transpose())
        .collect::<Result<_, _>>()?;
    Ok(Some(watched))
}

/// All threads of a process; only the one, if the id is that of a thread.
fn threads(pid: i32) -> Option<Vec<i32>> {
    let status = from_bytes(&fs::read(format!("/proc/{pid}/status")).ok()?);
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    if group.trim() != pid.to_string() {
        return Some(vec![pid]);
    }
    let entries = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let ids = entries.flatten().map(|entry| entry.file_name());
    Some(ids.filter_map(|id| id.to_str()?.parse().ok()).collect())
}

/// None: the thread is gone, or another scheduler's.
fn look(
    tasks: &impl MapCore,
    contracts: &types::bss_contracts,
    tid: i32,
) -> Result<Option<Watched>, StateError> {
    let Ok(thread) = pidfd(tid) else {
        return Ok(None);
    };
    let key = thread.as_raw_fd().to_ne_bytes();
    let Some(state) = Variables::<types::task_state>::at(tasks, &key)? else {
        return Ok(None);
    };
    let state = state.get();
    let name = from_bytes(&fs::read(format!("/proc/{tid}/comm")).unwrap_or_default());
    let seen = &state.learner;
    Ok(Some(Watched {
        tid,
        name: name.strip_suffix('\n').unwrap_or(&name).to_owned(),
        of_kernel: of_kernel(tid),
        for_event: state.event != 0,
        background: state.weight < USUAL_WEIGHT,
        seen: Learner {
            woken_ns: seen.woken_ns,
            service_ns: seen.service_ns,
            largest_ns: seen.largest_ns,
            mean_ns: seen.mean_ns,
            distance_ns: seen.distance_ns,
            spread_ns: seen.spread_ns,
            jobs: seen.jobs,
            window_ns: seen.window_ns,
            window_jobs: seen.window_jobs,
            within_ns: seen.within_ns,
            before_ns: seen.before_ns,
            long_ns: seen.long_ns,
            slept_ns: seen.slept_ns,
            events: seen.events,
            rhythm: rhythm(&seen.rhythm),
        },
        bound: contracts.contracts.learn_bound,
        contract: held(contracts, state.contract).or_else(|| held_by_class(contracts, state.leaf)),
        works_for: match state.home {
            0 => None,
            _ => class_of_leaf(state.leaf)?,
        },
    }))
}

/// The rhythm in which a thread wakes by itself [ns]; none: there is none, or no such thread.
///
/// # Errors
/// [`StateError`].
pub(crate) fn rhythm_ns(tasks: &impl MapCore, tid: i32) -> Result<Option<u32>, StateError> {
    let Ok(thread) = pidfd(tid) else {
        return Ok(None);
    };
    let key = thread.as_raw_fd().to_ne_bytes();
    let state = Variables::<types::task_state>::at(tasks, &key)?;
    Ok(state.and_then(|state| rhythm(&state.get().learner.rhythm).steady_ns()))
}

fn rhythm(seen: &types::an_rhythm) -> Rhythm {
    Rhythm {
        last_ns: seen.last_ns,
        beats: seen.beats,
        beat_ns: seen.beat_ns,
        uneven_ns: seen.uneven_ns,
        rest_ns: seen.rest_ns,
        rest_uneven_ns: seen.rest_uneven_ns,
        times: seen.times,
        in_a_row: seen.in_a_row,
    }
}

/// PF_KTHREAD among the flags in /proc/TID/stat: the seventh field after the name, which may hold anything.
fn of_kernel(tid: i32) -> bool {
    const KTHREAD: u32 = 0x0020_0000;
    let stat = from_bytes(&fs::read(format!("/proc/{tid}/stat")).unwrap_or_default());
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let flags = after_name.split_whitespace().nth(6);
    flags
        .and_then(|flags| flags.parse().ok())
        .is_some_and(|flags: u32| flags & KTHREAD != 0)
}

/// The contract of this name (`contract_name()` of bpf/contracts.h), if it is still in force.
fn held(contracts: &types::bss_contracts, name: u32) -> Option<Held> {
    let index = (name & 0xffff) as usize;
    let contract = contracts.contracts.contracts.get(index)?;
    let holder = contracts.holders.get(index)?;
    let current = index != 0 && u32::from(contract.generation) == name >> 16 && holder.ended == 0;
    current.then_some(Held {
        learnt: holder.kind == LEARNT_OF_THREAD,
        of_class: false,
        budget_ns: contract.promise.budget_ns,
        period_ns: contract.promise.period_ns,
        deadline_ns: contract.job_rel_ns,
        cpu: u32::from(contract.cpu),
        awaited: contract.promise.flags & UNAWAITED == 0,
        sure: contract.sure,
    })
}

/// The contract that the class of this leaf holds.
fn held_by_class(contracts: &types::bss_contracts, leaf: u32) -> Option<Held> {
    let index = *contracts.leaf_contracts.get(leaf as usize)?;
    let contract = contracts.contracts.contracts.get(usize::from(index))?;
    let name = u32::from(index) | u32::from(contract.generation) << 16;
    let held = held(contracts, name)?;
    Some(Held {
        of_class: true,
        ..held
    })
}

/// A file descriptor that stands for one thread, as maps of task storage want it.
fn pidfd(tid: i32) -> io::Result<OwnedFd> {
    // PIDFD_THREAD is O_EXCL.
    // SAFETY: the call takes two integers and makes a descriptor that nobody else has.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, tid, libc::O_EXCL) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_are_told_from_others() {
        assert!(!of_kernel(std::process::id() as i32));
        let kernel = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "kthreadd")
        };
        if let Some(pid) = Some(2).filter(kernel) {
            assert!(of_kernel(pid));
        }
    }

    #[test]
    fn a_process_is_all_of_its_threads_and_a_thread_only_itself() {
        let pid = std::process::id() as i32;
        let thread = std::thread::spawn(|| {
            // SAFETY: gettid cannot fail and touches no memory of ours.
            let tid = unsafe { libc::gettid() };
            (tid, threads(tid))
        });
        assert!(threads(pid).unwrap().contains(&pid));
        let (tid, only) = thread.join().unwrap();
        assert_eq!(only, Some(vec![tid]));
        assert_eq!(threads(i32::MAX), None);
    }
}
