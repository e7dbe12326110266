//! The programs of a scenario: what all of them can be told.

use andante_document::{DocumentError, Node, Section, join};
use andante_sim::Priority;

use super::sessions::Sessions;
use super::time::time;
use super::{Class, Contract, Kind, Tuned, check_class_known, contract, kind, tuned};

/// Most instances of a program.
const COUNT_MAX: u32 = 10_000;

/// One program, or several instances of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Unique within the scenario.
    pub name: String,
    /// Path of its class; `/` is the scenario's root.
    pub class: String,
    /// Number of instances; 0 leaves the program out of this case.
    pub count: u32,
    /// When it starts [s since the measurement began]; none: with the warm-up.
    pub start_s: Option<f64>,
    /// When it is told to end (SIGTERM) [s].
    pub stop_s: Option<f64>,
    /// When it is suspended (SIGSTOP) [s].
    pub suspend_s: Option<f64>,
    /// When it is resumed (SIGCONT) [s].
    pub resume_s: Option<f64>,
    /// Whether it may end, successfully, before the measurement does.
    pub may_end: bool,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// Whether it is under SCHED_IDLE.
    pub sched_idle: bool,
    /// CPUs it may run on; none: all.
    pub affinity: Option<Vec<u32>>,
    /// What it is to the policies of other systems (simulator).
    pub priority: Priority,
    /// Whether all of its memory stays where it is (`mlockall`).
    pub lock: bool,
    /// The network that it is in, one of two that a cable joins; none: the machine's own.
    pub network: Option<String>,
    /// What is done for it by hand under the schedulers `eevdf-…`; none: nothing.
    pub tuned: Option<Tuned>,
    /// What each instance is promised; none: its class's share.
    pub contract: Option<Contract>,
    /// Whether it says in a session what it does, through Andante's library.
    pub session: bool,
    /// What it does.
    pub kind: Kind,
    /// So much later each instance starts, and its beats begin [s]; empty: none does. No scenario says
    /// so: see [`crate::perturb`].
    pub later_s: Vec<f64>,
}

impl Program {
    /// By how much instance `number`, from 1, starts later than its program says [s].
    pub fn later_s(&self, number: u32) -> f64 {
        let later_s = self.later_s.get(number as usize - 1);
        later_s.copied().unwrap_or(0.0)
    }

    /// Whether it needs programs and files of a whole system: of its own, to map, or to lay its cable.
    pub fn needs_system(&self) -> bool {
        let kind = &self.kind;
        kind.is_real() || kind.library_bytes().is_some() || self.network.is_some()
    }

    /// Whether it was niced, or put under SCHED_IDLE: it is to have what others leave.
    pub fn is_background(&self) -> bool {
        self.nice > 0 || self.sched_idle
    }
}

/// Reads `[programs.NAME]`.
pub(super) fn read(
    name: &str,
    node: &Node,
    path: &str,
    classes: &[Class],
    cpus: u32,
    sessions: &Sessions,
) -> Result<Program, DocumentError> {
    let mut section = Section::new(node, path)?;
    let class: String = section.need("class")?;
    check_class_known(&class, classes).map_err(|message| section.error("class", message))?;
    let count = read_count(&mut section, cpus)?;
    let kind_name: String = section.need("kind")?;
    let kind = kind::read(&kind_name, &mut section)?;
    let contract = match section.node("contract") {
        None => None,
        Some(node) => Some(contract::read(node, &join(path, "contract"), cpus)?),
    };
    let tuned = match section.node("tuned") {
        None => None,
        Some(node) => Some(tuned::read(node, &join(path, "tuned"))?),
    };
    let (session, asked) = read_session(&kind, sessions, &mut section)?;
    // Events are told in a session.
    let sinks = matches!(kind, Kind::Sink { .. }) && contract.as_ref().is_some_and(|c| c.events);
    let program = Program {
        name: name.to_owned(),
        session: session || sinks,
        contract: contract.or(asked),
        tuned,
        lock: section.get("lock")?.unwrap_or(false),
        network: section.get("network")?,
        class,
        count,
        start_s: time(&mut section, "start_s", -600.0)?,
        stop_s: time(&mut section, "stop_s", 0.0)?,
        suspend_s: time(&mut section, "suspend_s", 0.0)?,
        resume_s: time(&mut section, "resume_s", 0.0)?,
        may_end: section.get("may_end")?.unwrap_or(kind.ends_by_itself()),
        nice: section.number("nice", 0.0, -20.0..=19.0)? as i32,
        sched_idle: section.get("sched_idle")?.unwrap_or(false),
        affinity: section.get("affinity")?,
        priority: Priority {
            level: section.number("priority", 0.0, -20.0..=99.0)? as i32,
            real_time: section.get("real_time")?.unwrap_or(false),
            round_robin: section.get("round_robin")?.unwrap_or(false),
        },
        kind,
        later_s: Vec::new(),
    };
    check_times(&program, &section)?;
    if program.lock && program.kind.is_real() {
        let message = "a real program locks its memory itself, or does not: only programs of the laboratory can be told to";
        return Err(section.error("lock", message));
    }
    check_affinity(&program, cpus, &section)?;
    section.finish()?;
    Ok(program)
}

/// Whether the program opens a session (`session`), and the contract that it asks for there: so much for
/// each of its cycles (`promise_ms`).
fn read_session(
    kind: &Kind,
    sessions: &Sessions,
    section: &mut Section<'_>,
) -> Result<(bool, Option<Contract>), DocumentError> {
    let able = kind.cycle().is_some();
    let session = match section.get("session")? {
        Some(session) => session,
        None => able && sessions.of(kind.name()),
    };
    if session && !able {
        let message = format!("a program of kind `{}` opens no session", kind.name());
        return Err(section.error("session", message));
    }
    if section.get::<f64>("promise_ms")?.is_none() {
        return Ok((session, None));
    }
    let (true, Some(beat_s)) = (session, kind.beat_s()) else {
        let message = "only a program with `session = true` and a beat asks for a promise";
        return Err(section.error("promise_ms", message));
    };
    let promise_ms = section.number("promise_ms", 0.0, 0.001..=beat_s * 1e3)?;
    let budget_ns = (promise_ms * 1e6).round() as u64;
    let period_ns = (beat_s * 1e9).round() as u64;
    Ok((session, Some(contract::in_session(budget_ns, period_ns))))
}

/// The number of instances: `count`, or so many for each CPU with `per_cpu`.
fn read_count(section: &mut Section<'_>, cpus: u32) -> Result<u32, DocumentError> {
    let given: u32 = section.get("count")?.unwrap_or(1);
    let times = match section.get("per_cpu")? {
        Some(true) => cpus,
        _ => 1,
    };
    match given.checked_mul(times) {
        Some(count) if count <= COUNT_MAX => Ok(count),
        _ => {
            let range = format!("0 to {}", COUNT_MAX / times);
            Err(section.error("count", format!("{given} is out of range: give {range}")))
        }
    }
}

fn check_times(program: &Program, section: &Section<'_>) -> Result<(), DocumentError> {
    let steps = [
        ("start_s", program.start_s),
        ("suspend_s", program.suspend_s),
        ("resume_s", program.resume_s),
        ("stop_s", program.stop_s),
    ];
    let given: Vec<_> = steps
        .iter()
        .filter_map(|(key, at)| at.map(|at| (*key, at)))
        .collect();
    for pair in given.windows(2) {
        let [(earlier, early_s), (later, late_s)] = pair else {
            unreachable!("windows of two")
        };
        if late_s <= early_s {
            return Err(section.error(later, format!("must come after `{earlier}` = {early_s}")));
        }
    }
    if program.resume_s.is_some() && program.suspend_s.is_none() {
        return Err(section.error("resume_s", "nothing to resume: `suspend_s` is missing"));
    }
    Ok(())
}

fn check_affinity(
    program: &Program,
    cpus: u32,
    section: &Section<'_>,
) -> Result<(), DocumentError> {
    match &program.affinity {
        Some(list) if list.is_empty() => Err(section.error("affinity", "names no CPU")),
        Some(list) => match list.iter().find(|cpu| **cpu >= cpus) {
            None => Ok(()),
            Some(cpu) => {
                let message = format!("CPU {cpu} does not exist: `cpus` is {cpus}");
                Err(section.error("affinity", message))
            }
        },
        None => Ok(()),
    }
}
