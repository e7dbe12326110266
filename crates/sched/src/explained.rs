//! What Andante has learnt of a program that runs, in figures and in words.

use andante_core_sys::Obstacle;
use serde::{Deserialize, Serialize};

use crate::error::StateError;
use crate::watched::{Held, Watched, watched};

/// One thread, as it is told; all times in ns, all parts of a CPU from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Its id.
    pub tid: i32,
    /// The name that it has given itself.
    pub name: String,
    /// Jobs that were seen so far, up to sixteen.
    pub jobs_seen: u32,
    /// From one job to the next, on average.
    pub wakes_every_ns: u32,
    /// The rhythm in which it wakes by itself, if there is one.
    pub rhythm_ns: Option<u32>,
    /// A job, on average.
    pub works_ns: u32,
    /// The longest job lately.
    pub works_at_most_ns: u32,
    /// Of the job in progress.
    pub works_now_ns: u32,
    /// What that comes to.
    pub cpu_part: f64,
    /// The contract that it runs under.
    pub contract: Option<Under>,
    /// Why it has none, in words.
    pub no_contract_because: Option<String>,
    /// The class of the client that it works for at present, if that is not its own.
    pub works_for: Option<String>,
}

/// The contract that a thread runs under, in the same units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Under {
    /// Whether it was learnt, and not asked for.
    pub learnt: bool,
    /// Whether the thread's class holds it.
    pub of_class: bool,
    /// The CPU that serves it.
    pub cpu: u32,
    /// CPU time …
    pub budget_ns: u64,
    /// … in each period of this length.
    pub period_ns: u64,
    /// How soon after waking.
    pub deadline_ns: u64,
    /// If learnt: whether somebody seems to wait for what the thread does.
    pub awaited: Option<bool>,
    /// If learnt: what it is sure of, of that CPU.
    pub sure_part: Option<f64>,
}

impl Explained {
    /// What is to be said of a thread.
    pub fn of(thread: &Watched) -> Self {
        let seen = &thread.seen;
        Self {
            tid: thread.tid,
            name: thread.name.clone(),
            jobs_seen: seen.jobs,
            wakes_every_ns: seen.distance_ns,
            rhythm_ns: seen.rhythm.steady_ns(),
            works_ns: seen.mean_ns,
            works_at_most_ns: seen.largest_ns,
            works_now_ns: seen.service_ns,
            cpu_part: part(seen.part()),
            contract: thread.contract.map(Under::of),
            no_contract_because: match thread.contract {
                Some(_) => None,
                None => Some(obstacle(thread)),
            },
            works_for: thread.works_for.clone(),
        }
    }
}

impl Under {
    fn of(held: Held) -> Self {
        Self {
            learnt: held.learnt,
            of_class: held.of_class,
            cpu: held.cpu,
            budget_ns: held.budget_ns,
            period_ns: held.period_ns,
            deadline_ns: held.deadline_ns,
            awaited: held.learnt.then_some(held.awaited),
            sure_part: held.learnt.then(|| part(held.sure)),
        }
    }
}

/// Why it holds none: which of the rules of core/learn.h speaks against it.
fn obstacle(thread: &Watched) -> String {
    if thread.of_kernel {
        return "threads of the kernel are given none".to_owned();
    }
    if thread.bound == 0 {
        return "none is learnt: `andante run` was told so, by --learn 0 or learn_percent = 0"
            .to_owned();
    }
    if thread.background {
        return "it is niced, or under SCHED_IDLE, and gets what others leave".to_owned();
    }
    // That tells more than the jobs before it.
    if thread.seen.goes_on() {
        return "it goes on without waiting for anything".to_owned();
    }
    match thread.seen.obstacle(thread.bound) {
        Some(Obstacle::Talks) => "it wakes too often to be waiting for anything".to_owned(),
        Some(Obstacle::Long) => {
            let most = time(thread.seen.long_ns);
            format!(
                "it has worked for {most} on end not long ago, and nobody waits for an answer so long"
            )
        }
        Some(Obstacle::Much) => format!(
            "it uses more on average than all may have that is learnt, {} of a CPU",
            percent(part(thread.bound))
        ),
        Some(Obstacle::New) => {
            "it has not been seen to wait for long enough; for its own children does not count"
                .to_owned()
        }
        None if !thread.for_event => "no event from outside has woken it, nor another thread that works for one of \
                                      the last second, and what it does is too short to be a late frame"
            .to_owned(),
        None => "there was no room on any CPU when it woke last".to_owned(),
    }
}

/// The threads of a process, or one thread, with what is to be said of each. None: there is no such process.
///
/// # Errors
/// [`StateError`].
pub fn explained(pid: i32) -> Result<Option<Vec<Explained>>, StateError> {
    let threads = watched(pid)?;
    Ok(threads.map(|threads| threads.iter().map(Explained::of).collect()))
}

fn part(of_1024: u32) -> f64 {
    f64::from(of_1024) / 1024.0
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A time in the unit that suits it.
pub fn time(ns: impl Into<u64>) -> String {
    let ns = ns.into() as f64;
    match ns {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}
