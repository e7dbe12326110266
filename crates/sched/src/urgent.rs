//! Precedence for a thread while it does what others wait for, and must not be kept from.
//!
//! Loading the scheduler is seconds of CPU time of the kernel's verifier, in the thread that asks for it. With
//! its share beside eight busy loops that took half a minute, during which the loops were as slow as ever. As a
//! real-time thread it has the CPU, and the kernel sees to it that others have a twentieth all the same
//! (`sched_rt_runtime_us`, and the server of the fair class since 6.12).

use std::fmt;
use std::io;

/// Above all that is not real-time, and below every real-time thread that somebody has set up: sound servers,
/// threads of interrupts (50).
const LEAST: u32 = 1;
/// Above the thread that loads: what tells of it runs for a moment only.
const ABOVE_LOADING: u32 = 2;
/// Where real-time priorities are refused: the best of the normal ones.
const BEST_NICE: i32 = -20;
/// Threads and processes that this one makes begin with the normal priority (`SCHED_FLAG_RESET_ON_FORK`).
const RESET_ON_FORK: u64 = 1;

/// The precedence of the thread that made this; it is given back when this is dropped.
#[derive(Debug)]
pub struct Urgent {
    outcome: Outcome,
    before: Option<libc::sched_attr>,
    /// A priority is a thread's, so this stays with the thread.
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

/// The precedence that was had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The least real-time priority.
    RealTime,
    /// Real-time priorities were refused, and this is the best normal one.
    Nice,
    /// The thread had real-time priority, or a deadline, before.
    AsBefore,
    /// Both were refused.
    Refused(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime => write!(f, "with real-time priority {LEAST}"),
            Self::Nice => write!(
                f,
                "with nice {BEST_NICE}, since real-time priority was refused"
            ),
            Self::AsBefore => write!(f, "with the real-time priority that it was given"),
            Self::Refused(why) => write!(
                f,
                "with the priority of everybody else, so beside others it takes longer ({why}; it needs \
                 CAP_SYS_NICE, and of a container or unit that real-time priority is not forbidden)"
            ),
        }
    }
}

impl Urgent {
    /// Gives the calling thread precedence for loading, as far as that is permitted.
    pub fn to_load() -> Self {
        Self::begin(LEAST)
    }

    /// The same for one that tells how far loading is.
    pub fn to_tell() -> Self {
        Self::begin(ABOVE_LOADING)
    }

    /// The precedence that was had.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    fn begin(priority: u32) -> Self {
        let (outcome, before) = match attributes() {
            Err(error) => (Outcome::Refused(error.to_string()), None),
            Ok(before) if is_real_time(&before) => (Outcome::AsBefore, None),
            Ok(before) => match raise(&before, priority) {
                Ok(outcome) => (outcome, Some(before)),
                Err(error) => (Outcome::Refused(error.to_string()), None),
            },
        };
        Self {
            outcome,
            before,
            _of_this_thread: std::marker::PhantomData,
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // A thread that may raise its priority may lower it.
            let _ = set(&before);
        }
    }
}

fn raise(before: &libc::sched_attr, priority: u32) -> io::Result<Outcome> {
    let mut wanted = *before;
    wanted.sched_flags |= RESET_ON_FORK;
    wanted.sched_policy = libc::SCHED_FIFO as u32;
    wanted.sched_priority = priority;
    wanted.sched_nice = 0;
    if set(&wanted).is_ok() {
        return Ok(Outcome::RealTime);
    }
    wanted.sched_policy = before.sched_policy;
    wanted.sched_priority = 0;
    wanted.sched_nice = BEST_NICE;
    set(&wanted).map(|()| Outcome::Nice)
}

fn is_real_time(of: &libc::sched_attr) -> bool {
    let policies = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
    policies.contains(&(of.sched_policy as i32))
}

/// The scheduling attributes of the calling thread, as they can be set again.
fn attributes() -> io::Result<libc::sched_attr> {
    // SAFETY: all-zero is a valid sched_attr.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes to the variable.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    attributes.sched_flags &= RESET_ON_FORK;
    if !is_real_time(&attributes) {
        // The kernel tells the slice that it chose, and would take it for one that was asked for.
        attributes.sched_runtime = 0;
    }
    Ok(attributes)
}

fn set(attributes: &libc::sched_attr) -> io::Result<()> {
    let mut attributes = *attributes;
    attributes.size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the kernel reads the variable, whose size it says itself.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: &libc::sched_attr) -> (u32, u64, i32, u32) {
        (
            of.sched_policy,
            of.sched_flags,
            of.sched_nice,
            of.sched_priority,
        )
    }

    #[test]
    fn what_was_raised_is_given_back_and_not_inherited() {
        let before = attributes().unwrap();
        let urgent = Urgent::to_load();
        let during = attributes().unwrap();
        match urgent.outcome() {
            Outcome::RealTime => {
                assert_eq!(during.sched_policy, libc::SCHED_FIFO as u32);
                assert_eq!(during.sched_priority, LEAST);
            }
            Outcome::Nice => assert_eq!(during.sched_nice, BEST_NICE),
            Outcome::AsBefore | Outcome::Refused(_) => assert_eq!(key(&during), key(&before)),
        }
        let made = std::thread::spawn(|| attributes().unwrap());
        let made = made.join().unwrap();
        if matches!(urgent.outcome(), Outcome::RealTime | Outcome::Nice) {
            let normal = (libc::SCHED_OTHER as u32, 0, 0, 0);
            assert_eq!(key(&made), normal, "{:?}", urgent.outcome());
        }
        drop(urgent);
        assert_eq!(key(&attributes().unwrap()), key(&before));
    }

    #[test]
    fn a_real_time_thread_stays_what_it_is() {
        let outer = Urgent::to_load();
        if *outer.outcome() != Outcome::RealTime {
            return; // not permitted here
        }
        let inner = Urgent::to_tell();
        assert_eq!(*inner.outcome(), Outcome::AsBefore);
        drop(inner);
        assert_eq!(attributes().unwrap().sched_policy, libc::SCHED_FIFO as u32);
    }
}
