//! Which schedulers there are to choose from, and what they are called: by the command line and in
//! results, and for people.

use std::fs;
use std::path::PathBuf;

use andante_document::closest;
use andante_sched::Policy;
use andante_sim::PolicyKind;

use crate::Program;

/// Which scheduler to run a scenario under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Ours.
    Andante,
    /// Ours with plain DWCS: contracts are given without admission.
    Dwcs,
    /// A historical policy in the kernel, for all tasks.
    Historical(Policy),
    /// The kernel's own, over the scenario's classes and weights.
    Eevdf,
    /// The kernel's own with nothing configured: the classes have no weights, and no part in
    /// scheduling. What a machine does as it comes.
    Stock,
    /// The kernel's own over the classes and weights, tuned by hand for the programs that the scenario
    /// marks as `tuned`.
    ByHand(ByHand),
    /// Every task in one class, under this policy: only in the simulator.
    Policy(PolicyKind),
    /// Resource containers, one for each class, as published (`true`: turns end at clock ticks) or
    /// exact: only in the simulator.
    Containers(bool),
    /// Contracts as published, with coordinated events: only in the simulator.
    Servers,
    /// A program that loads a sched_ext scheduler and stays until SIGTERM.
    Program(PathBuf),
}

/// A scheduler that is neither known by name nor a program.
#[derive(Debug, thiserror::Error)]
#[error("there is no scheduler `{name}`{hint}")]
pub struct NoScheduler {
    /// As asked for.
    pub name: String,
    /// The one that it probably is, or those that there are.
    pub hint: String,
}

/// The historical policies of a kernel, as results call them.
const HISTORICAL: [(&str, Policy); Policy::ALL.len()] = [
    ("andante-svr4-ts", Policy::Svr4Ts),
    ("andante-svr4-rt", Policy::Svr4Rt),
    ("andante-svr4-new", Policy::Svr4New),
    ("andante-linux-2.2", Policy::Linux22),
    ("andante-fifo", Policy::Fifo),
    ("andante-rr", Policy::RoundRobin),
];

impl Choice {
    /// Names of those that a kernel has without further programs.
    pub const OF_KERNEL: [&'static str; 15] = {
        let by_hand = ByHand::ALL;
        [
            "andante",
            "eevdf",
            "stock",
            by_hand[0].0,
            by_hand[1].0,
            by_hand[2].0,
            by_hand[3].0,
            by_hand[4].0,
            HISTORICAL[0].0,
            HISTORICAL[1].0,
            HISTORICAL[2].0,
            HISTORICAL[3].0,
            HISTORICAL[4].0,
            HISTORICAL[5].0,
            "andante-dwcs",
        ]
    };

    /// The one that Andante brings along or every kernel has, of a kernel's or of the simulator's.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "andante" => Some(Self::Andante),
            "andante-dwcs" => Some(Self::Dwcs),
            "eevdf" => Some(Self::Eevdf),
            "stock" => Some(Self::Stock),
            "containers" => Some(Self::Containers(false)),
            "containers-ticked" => Some(Self::Containers(true)),
            "servers" => Some(Self::Servers),
            _ => {
                let historical = HISTORICAL.iter().find(|(known, _)| *known == name);
                ByHand::named(name)
                    .map(Self::ByHand)
                    .or_else(|| PolicyKind::named(name).map(Self::Policy))
                    .or_else(|| historical.map(|(_, policy)| Self::Historical(*policy)))
            }
        }
    }

    /// Reads one of [`Choice::OF_KERNEL`], the name of a simulated policy, or the path of a program.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(name: &str) -> Result<Self, NoScheduler> {
        if let Some(known) = Self::named(name) {
            return Ok(known);
        }
        match fs::canonicalize(name) {
            Ok(file) if file.is_file() => Ok(Self::Program(file)),
            _ => Err(NoScheduler {
                name: name.to_owned(),
                hint: Self::hint(name),
            }),
        }
    }

    fn hint(name: &str) -> String {
        let simulated = Self::only_simulated();
        let known = Self::OF_KERNEL.into_iter().chain(simulated.iter().copied());
        match closest(name, known) {
            Some(near) => format!(", did you mean `{near}`?"),
            None => format!(
                ": give {}; in the simulator {}; or the path of a program that loads one",
                Self::OF_KERNEL.join(", "),
                simulated.join(", ")
            ),
        }
    }

    /// Names of those that only the simulator has.
    fn only_simulated() -> Vec<&'static str> {
        let policies = PolicyKind::ALL.into_iter().map(PolicyKind::name);
        policies
            .chain(["containers", "containers-ticked", "servers"])
            .collect()
    }

    /// What a kernel has of a policy that the simulator gives to all tasks.
    pub fn of_kernel(simulated: PolicyKind) -> Self {
        match simulated {
            PolicyKind::Sfq => Self::Andante,
            PolicyKind::Fair => Self::Stock,
            PolicyKind::Fifo => Self::Historical(Policy::Fifo),
            PolicyKind::RoundRobin => Self::Historical(Policy::RoundRobin),
            PolicyKind::Svr4 => Self::Historical(Policy::Svr4Ts),
            PolicyKind::Svr4New => Self::Historical(Policy::Svr4New),
            PolicyKind::Linux22 => Self::Historical(Policy::Linux22),
        }
    }

    /// Whether contracts can be had under it.
    pub fn keeps_contracts(&self) -> bool {
        matches!(self, Self::Andante | Self::Dwcs | Self::Servers)
    }

    /// As results call it.
    pub fn name(&self) -> String {
        match self {
            Self::Andante => "andante".to_owned(),
            Self::Dwcs => "andante-dwcs".to_owned(),
            Self::Historical(policy) => format!("andante-{}", policy.name()),
            Self::Eevdf => "eevdf".to_owned(),
            Self::Stock => "stock".to_owned(),
            Self::ByHand(by_hand) => by_hand.name().to_owned(),
            Self::Policy(kind) => kind.name().to_owned(),
            Self::Containers(false) => "containers".to_owned(),
            Self::Containers(true) => "containers-ticked".to_owned(),
            Self::Servers => "servers".to_owned(),
            Self::Program(file) => file.file_name().map_or_else(
                || file.display().to_string(),
                |n| n.to_string_lossy().into_owned(),
            ),
        }
    }
}

/// What an expert does by hand for the programs that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByHand {
    /// A nice value.
    Nice,
    /// A control group for each, with a `cpu.weight`.
    Weight,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_DEADLINE with the budget that suffices on average.
    Deadline,
    /// SCHED_DEADLINE with the budget that always suffices.
    DeadlineMax,
}

impl ByHand {
    /// All, with their names.
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("eevdf-nice", Self::Nice),
        ("eevdf-weight", Self::Weight),
        ("eevdf-fifo", Self::Fifo),
        ("eevdf-deadline", Self::Deadline),
        ("eevdf-deadline-max", Self::DeadlineMax),
    ];

    fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, by_hand)| *by_hand)
    }

    /// As results call it.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, known)| *known == self);
        known.expect("all are listed").0
    }
}

impl ByHand {
    /// Why it cannot be done for these programs, if it cannot.
    pub fn obstacle(self, programs: &[Program]) -> Option<String> {
        let name = self.name();
        let running = programs.iter().filter(|program| program.count > 0);
        let mut tuned = running.filter_map(|program| Some((program, program.tuned.as_ref()?)));
        let first = tuned.clone().next();
        match self {
            _ if first.is_none() => Some(format!(
                "`{name}` tunes by hand, and no program says how: add `tuned = {{}}` to those that matter"
            )),
            Self::Deadline | Self::DeadlineMax => tuned
                .find(|(_, tuned)| tuned.deadline.is_none())
                .map(|(program, _)| {
                    format!(
                        "`{name}` needs `period_ms`, `budget_ms` and `budget_max_ms` in `tuned` of program `{}`",
                        program.name
                    )
                }),
            Self::Weight => tuned.find(|(program, _)| program.class != "/").map(|(program, _)| {
                format!(
                    "`{name}` gives programs of class `/` a class of their own, and `{}` has one",
                    program.name
                )
            }),
            Self::Nice | Self::Fifo => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use andante_result::title::scheduler_title;

    #[test]
    fn each_historical_policy_has_a_name() {
        for (name, policy) in HISTORICAL {
            let choice = Choice::parse(name).unwrap();
            assert_eq!(choice, Choice::Historical(policy));
            assert_eq!(choice.name(), name);
            assert!(Choice::OF_KERNEL.contains(&name));
        }
    }

    #[test]
    fn each_scheduler_that_is_at_hand_has_a_title() {
        for name in Choice::OF_KERNEL {
            assert_eq!(Choice::named(name).unwrap().name(), name);
            assert_ne!(scheduler_title(name), name);
        }
        for name in Choice::only_simulated() {
            assert_eq!(Choice::named(name).unwrap().name(), name);
        }
        assert_eq!(Choice::named("scx_bpfland"), None);
    }

    fn programs(tuned: &str) -> Vec<Program> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'loop'\nnice = 3\n{tuned}\n\
             [programs.hog]\nclass = '/'\nkind = 'loop'\n"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload.programs
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(ByHand::ALL.iter().all(|(_, by_hand)| {
            by_hand
                .obstacle(&programs(
                    "tuned = { fifo = 40, period_ms = 33, budget_ms = 8, budget_max_ms = 17 }",
                ))
                .is_none()
        }));
        let obstacle = |by_hand: ByHand, tuned| by_hand.obstacle(&programs(tuned)).unwrap();
        assert!(obstacle(ByHand::Fifo, "").contains("no program says how"));
        let missing = obstacle(ByHand::DeadlineMax, "tuned = {}");
        assert!(
            missing.contains("eevdf-deadline-max") && missing.contains("`film`"),
            "{missing}"
        );
    }
}
