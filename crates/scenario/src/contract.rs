//! `[programs.NAME.contract]`: what a program is promised.

use andante_document::{DocumentError, Node, Section, suggest};
use andante_sched::EventRules;
use andante_sim::Promise;

/// What every instance of a program is promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The promise, its CPU left at 0.
    pub promise: Promise,
    /// Whether its waking is an event, with itself as the sink; of a sink, its events are.
    pub events: bool,
    /// Whether the program's class holds it, and so all that is in it, rather than the one process with
    /// its threads (kernel).
    pub held_by_class: bool,
    /// Whether a constant bandwidth server is soft on a kernel too, as it is in the simulator.
    pub soft: bool,
    /// Whether the program asks for it itself, in its session.
    pub in_session: bool,
    /// Where it runs in the simulator; none, and on a kernel: admission finds the place.
    pub cpu: Option<u32>,
    /// Instants of events from elsewhere [ns since the measurement began].
    pub event_ns: Vec<u64>,
}

/// Kinds of server, and the flags of `core/contract.h` that make them.
const KINDS: [(&str, u32); 4] = [
    ("cbs", 0),
    ("hard-cbs", Promise::HARD),
    ("edf", Promise::EXHAUSTIVE),
    ("dwcs", Promise::WINDOW),
];

/// Options, and theirs.
const OPTIONS: [(&str, u32); 4] = [
    ("reclaim", Promise::RECLAIM),
    ("borrow", Promise::BORROW),
    ("catch_up", Promise::CATCH_UP),
    ("work_conserving", Promise::WORK_CONSERVING),
];

/// Reads the contract at `path`.
pub(super) fn read(node: &Node, path: &str, cpus: u32) -> Result<Contract, DocumentError> {
    const TIME_MS: std::ops::RangeInclusive<f64> = 0.001..=4000.0;
    let mut section = Section::new(node, path)?;
    let time = |section: &mut Section<'_>, key| {
        let ms = section.number(key, 0.0, TIME_MS)?;
        Ok::<u64, DocumentError>((ms * 1e6).round() as u64)
    };
    section.need::<f64>("budget_ms")?;
    section.need::<f64>("period_ms")?;
    let budget_ns = time(&mut section, "budget_ms")?;
    let period_ns = time(&mut section, "period_ms")?;
    let deadline_rel_ns = match section.node("deadline_ms") {
        None => period_ns,
        Some(_) => time(&mut section, "deadline_ms")?,
    };
    if budget_ns > deadline_rel_ns || deadline_rel_ns > period_ns {
        let message = "a contract needs budget_ms <= deadline_ms <= period_ms";
        return Err(section.error("budget_ms", message));
    }
    let kind: Option<String> = section.get("kind")?;
    let kind = kind.unwrap_or_else(|| "cbs".to_owned());
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, mut flags) = *known.ok_or_else(|| {
        let hint = suggest(&kind, KINDS.into_iter().map(|(name, _)| name));
        section.error("kind", format!("unknown kind of contract `{kind}`{hint}"))
    })?;
    for (key, flag) in OPTIONS {
        if section.get(key)?.unwrap_or(false) {
            flags |= flag;
        }
    }
    let (x, y) = read_tolerance(&mut section, flags)?;
    let held_by_class = match section.get::<String>("holder")?.as_deref() {
        None | Some("process") => false,
        Some("class") => true,
        Some(_) => {
            return Err(section.error("holder", "give `process` or `class`"));
        }
    };
    let soft = section.get("soft")?.unwrap_or(false);
    if soft && kind != "cbs" {
        let message = format!("a contract of kind `{kind}` cannot be soft: only `cbs` can");
        return Err(section.error("soft", message));
    }
    let cpu: Option<u32> = section.get("cpu")?;
    if let Some(cpu) = cpu.filter(|cpu| *cpu >= cpus) {
        let message = format!("CPU {cpu} does not exist: `cpus` is {cpus}");
        return Err(section.error("cpu", message));
    }
    let events = section.get("events")?.unwrap_or(false);
    let event_ms: Vec<f64> = section.get("event_ms")?.unwrap_or_default();
    if event_ms.iter().any(|ms| !(0.0..=3.6e6).contains(ms)) || !event_ms.is_sorted() {
        return Err(section.error(
            "event_ms",
            "give instants from 0 to 3600000, in their order",
        ));
    }
    let event_ns = event_ms.iter().map(|ms| (ms * 1e6) as u64).collect();
    section.finish()?;
    let promise = Promise {
        budget_ns,
        period_ns,
        deadline_rel_ns,
        x,
        y,
        flags,
        cpu: 0,
    };
    if !promise.is_valid() {
        let message = format!("a contract of kind `{kind}` cannot have these options");
        return Err(node.origin.error(path, message));
    }
    Ok(Contract {
        promise,
        events,
        held_by_class,
        soft,
        in_session: false,
        cpu,
        event_ns,
    })
}

/// What a program asks for itself: so much for every cycle.
pub(super) fn in_session(budget_ns: u64, period_ns: u64) -> Contract {
    Contract {
        promise: Promise {
            budget_ns,
            period_ns,
            deadline_rel_ns: period_ns,
            x: 0,
            y: 0,
            flags: 0,
            cpu: 0,
        },
        events: false,
        held_by_class: false,
        soft: false,
        in_session: true,
        cpu: None,
        event_ns: Vec::new(),
    }
}

/// `[contracts]`: what holds for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct All {
    /// The part of each CPU that is left to those without any [%]; none: as Andante does.
    pub leave_percent: Option<u32>,
    /// By which rules their events are coordinated; none: they are not.
    pub events: Option<EventRules>,
}

/// Reads `[contracts]`.
pub(super) fn read_all(node: Option<&Node>) -> Result<All, DocumentError> {
    let Some(node) = node else {
        return Ok(All::default());
    };
    let mut section = Section::new(node, "contracts")?;
    let leave: Option<u32> = section.get("leave_percent")?;
    if leave.is_some_and(|percent| !(1..=95).contains(&percent)) {
        return Err(section.error("leave_percent", "give a whole number from 1 to 95"));
    }
    let rules: Option<Vec<u32>> = section.get("event_rules")?;
    let server = section.get("task_server")?.unwrap_or(false);
    if rules.is_none() && server {
        return Err(section.error("task_server", "it serves events: give `event_rules` too"));
    }
    if rules
        .iter()
        .any(|rules| rules.is_empty() || rules.iter().any(|rule| !(2..=5).contains(rule)))
    {
        let message =
            "give some of the rules 2 to 5, or leave it out, and events are not coordinated";
        return Err(section.error("event_rules", message));
    }
    section.finish()?;
    Ok(All {
        leave_percent: leave,
        events: rules.map(|rules| EventRules {
            rules: [2, 3, 4, 5].map(|rule| rules.contains(&rule)),
            server,
        }),
    })
}

/// `tolerate = "x/y"`: of every y periods x may be lost.
fn read_tolerance(section: &mut Section<'_>, flags: u32) -> Result<(u32, u32), DocumentError> {
    let Some(text) = section.get::<String>("tolerate")? else {
        return Ok((0, 0));
    };
    let parsed = text
        .split_once('/')
        .and_then(|(x, y)| Some((x.trim().parse().ok()?, y.trim().parse().ok()?)))
        .filter(|(x, y): &(u32, u32)| x <= y && *y > 0);
    let Some(tolerance) = parsed else {
        let message = "give x/y with x <= y, e.g. \"1/5\": one of every five periods may be lost";
        return Err(section.error("tolerate", message));
    };
    if flags & Promise::WINDOW == 0 {
        let message = "only a contract of kind `dwcs` has a window of losses";
        return Err(section.error("tolerate", message));
    }
    Ok(tolerance)
}
