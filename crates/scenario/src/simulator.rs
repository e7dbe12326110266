//! `[simulator]`: an ideal machine, as publications describe them. A kernel has costs of its own.

use andante_document::{DocumentError, Node, Section};
use andante_sim::{Contracts, Costs, ServerOptions};

/// What only a simulated machine can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulator {
    /// Whether the machine is ideal: nothing takes time but programs, and what is named here. It is where
    /// a scenario has this section; else everything takes the time that it takes on a kernel.
    pub ideal: bool,
    /// Whether n busy CPUs have 1/n of the speed each, as those of the virtual machine have; else each has a
    /// speed of its own.
    pub shared_speed: bool,
    /// What a class gets at a pick, and a policy that gives quanta its tasks in one go [ms]; none:
    /// as the kernel's scheduler does.
    pub quantum_ms: Option<f64>,
    /// Of switches, migrations, timers and the tree's levels.
    pub costs: Costs,
    /// What takes CPUs away.
    pub interrupts: Vec<InterruptSource>,
    /// How the scheduler `servers` orders contracts and coordinates their events.
    pub servers: ServerOptions,
    /// Whether admission is asked for every contract, and says where it runs, as on a kernel; those
    /// that are not asked for may ask for more than there is, and take the CPUs in turn.
    pub admission: bool,
}

impl Default for Simulator {
    fn default() -> Self {
        Self {
            ideal: false,
            shared_speed: true,
            quantum_ms: None,
            costs: Costs::default(),
            interrupts: Vec::new(),
            servers: ServerOptions::default(),
            admission: true,
        }
    }
}

/// Interrupts of one kind on one CPU.
pub type InterruptSource = andante_sim::Interrupts;

/// Reads `[simulator]`.
pub(super) fn read(node: Option<&Node>, cpus: u32) -> Result<Simulator, DocumentError> {
    let Some(node) = node else {
        return Ok(Simulator::default());
    };
    let mut section = Section::new(node, "simulator")?;
    let mut time = |key: &'static str| {
        let us = section.number(key, 0.0, 0.0..=1e6)?;
        Ok::<_, DocumentError>((us * 1e3).round() as u64)
    };
    let costs = Costs {
        switch_ns: time("switch_us")?,
        migration_ns: time("migration_us")?,
        timer_resolution_ns: time("timer_resolution_us")?,
        level_ns: time("level_us")?,
    };
    let quantum_ms = match section.get::<f64>("quantum_ms")? {
        None => None,
        Some(_) => Some(section.number("quantum_ms", 0.0, 0.01..=10_000.0)?),
    };
    let mut interrupts = Vec::new();
    if let Some(sources) = section.node("interrupts") {
        for (_, path, node) in Section::new(sources, "simulator.interrupts")?.entries() {
            interrupts.push(read_interrupts(node, &path, cpus)?);
        }
    }
    let mut contracts = 0;
    for (key, option) in [
        ("window_first", Contracts::WINDOW_FIRST),
        ("tie_index", Contracts::TIE_INDEX),
        ("extra_counts", Contracts::EXTRA_COUNTS),
        ("event_strict", Contracts::EVENT_STRICT),
    ] {
        if section.get(key)?.unwrap_or(false) {
            contracts |= option;
        }
    }
    if let Some(rules) = section.get::<Vec<u32>>("event_rules")? {
        if rules.iter().any(|rule| !(2..=5).contains(rule)) {
            return Err(section.error(
                "event_rules",
                "give some of the rules 2 to 5; 1 changes nothing",
            ));
        }
        for (rule, without) in [
            (2, Contracts::EVENT_NO_RULE_2),
            (3, Contracts::EVENT_NO_RULE_3),
            (4, Contracts::EVENT_NO_RULE_4),
            (5, Contracts::EVENT_NO_RULE_5),
        ] {
            if !rules.contains(&rule) {
                contracts |= without;
            }
        }
    }
    let servers = ServerOptions {
        contracts,
        coordinated: section.get("events")?.unwrap_or(false),
        task_server_ns: (section.number("task_server_ms", 0.0, 0.0..=4000.0)? * 1e6) as u64,
    };
    let admission = section.get("admission")?.unwrap_or(true);
    section.finish()?;
    Ok(Simulator {
        ideal: true,
        shared_speed: false,
        admission,
        servers,
        quantum_ms,
        costs,
        interrupts,
    })
}

fn read_interrupts(node: &Node, path: &str, cpus: u32) -> Result<InterruptSource, DocumentError> {
    let mut section = Section::new(node, path)?;
    let cpu: u32 = section.get("cpu")?.unwrap_or(0);
    if cpu >= cpus {
        let message = format!("CPU {cpu} does not exist: `cpus` is {cpus}");
        return Err(section.error("cpu", message));
    }
    section.need::<f64>("every_us")?;
    section.need::<f64>("cost_us")?;
    let every_us = section.number("every_us", 0.0, 1.0..=1e8)?;
    let cost_us = section.number("cost_us", 0.0, 0.0..=1e6)?;
    let seed: Option<u32> = section.get("seed")?;
    section.finish()?;
    Ok(InterruptSource {
        cpu: cpu as usize,
        gap_ns: (every_us * 1e3) as u64,
        cost_ns: (cost_us * 1e3) as u64,
        seed: seed.map(u64::from),
    })
}
