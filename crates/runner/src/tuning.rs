//! How a process is scheduled by the kernel's own means: its nice value, or what an expert sets by
//! hand for the programs that a scenario marks as `tuned`.

use std::io;

use andante_scenario::choice::{ByHand, Choice};
use andante_scenario::{Program, Reserved};

/// What is set for a process before its first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduling {
    /// An ordinary process with this nice value.
    Nice(i32),
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with this priority; children inherit it.
    Fifo(i32),
    /// SCHED_DEADLINE [ns]. Children are ordinary: the kernel lets no other process of this policy
    /// fork.
    Deadline {
        /// Budget.
        runtime_ns: u64,
        /// Period, and deadline.
        period_ns: u64,
    },
}

impl Scheduling {
    /// What `program` gets under `choice`.
    pub fn of(choice: &Choice, program: &Program) -> Self {
        let (Choice::ByHand(by_hand), Some(tuned)) = (choice, &program.tuned) else {
            return match program.sched_idle {
                true => Self::Idle,
                false => Self::Nice(program.nice),
            };
        };
        let reserved = |budget: fn(&Reserved) -> u64| {
            let reserved = tuned.deadline.expect("checked before anything is run");
            Self::Deadline {
                runtime_ns: budget(&reserved),
                period_ns: reserved.period_ns,
            }
        };
        match by_hand {
            ByHand::Nice => Self::Nice(tuned.nice),
            ByHand::Weight => Self::Nice(program.nice),
            ByHand::Fifo => Self::Fifo(tuned.fifo),
            ByHand::Deadline => reserved(|reserved| reserved.mean_ns),
            ByHand::DeadlineMax => reserved(|reserved| reserved.max_ns),
        }
    }

    /// Sets it for the calling thread; only system calls, so that a forked child may.
    pub fn apply(self) -> io::Result<()> {
        match self {
            Self::Nice(0) => Ok(()),
            // SAFETY: no pointers.
            Self::Nice(nice) => check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }),
            Self::Idle => {
                // SAFETY: all-zero is a valid sched_param.
                let parameter: libc::sched_param = unsafe { std::mem::zeroed() };
                // SAFETY: the pointer is to a live variable.
                check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter) })
            }
            Self::Fifo(priority) => {
                // SAFETY: all-zero is a valid sched_param.
                let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
                parameter.sched_priority = priority;
                // SAFETY: the pointer is to a live variable.
                check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) })
            }
            Self::Deadline {
                runtime_ns,
                period_ns,
            } => {
                // SAFETY: all-zero is a valid sched_attr.
                let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
                attributes.size = size_of::<libc::sched_attr>() as u32;
                attributes.sched_policy = libc::SCHED_DEADLINE as u32;
                attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
                attributes.sched_runtime = runtime_ns;
                attributes.sched_deadline = period_ns;
                attributes.sched_period = period_ns;
                // SAFETY: the pointer is to a live variable that says how long it is.
                let result =
                    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0_u32) };
                check(result as libc::c_int)
            }
        }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_scenario::Scenario;

    fn programs(tuned: &str) -> Vec<Program> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'loop'\nnice = 3\n{tuned}\n\
             [programs.hog]\nclass = '/'\nkind = 'loop'\n"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload.programs
    }

    #[test]
    fn each_choice_takes_its_own_setting() {
        let all = "tuned = { fifo = 40, period_ms = 33, budget_ms = 8, budget_max_ms = 17 }";
        let programs = programs(all);
        let of = |name: &str, program: usize| {
            let choice = Choice::parse(name).unwrap();
            assert_eq!(choice.name(), name);
            Scheduling::of(&choice, &programs[program])
        };
        assert_eq!(of("eevdf", 0), Scheduling::Nice(3));
        assert_eq!(of("eevdf-nice", 0), Scheduling::Nice(-10));
        assert_eq!(of("eevdf-weight", 0), Scheduling::Nice(3));
        assert_eq!(of("eevdf-fifo", 0), Scheduling::Fifo(40));
        let deadline = |runtime_ns| Scheduling::Deadline {
            runtime_ns,
            period_ns: 33_000_000,
        };
        assert_eq!(of("eevdf-deadline", 0), deadline(8_000_000));
        assert_eq!(of("eevdf-deadline-max", 0), deadline(17_000_000));
        assert_eq!(of("eevdf-fifo", 1), Scheduling::Nice(0), "it is not marked");
    }
}
