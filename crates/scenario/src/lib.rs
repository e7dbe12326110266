//! Scenarios: what to run, for how long, and what must come out.
//!
//! ```toml
//! title = "A film beside endless loops"
//! cpus = 1                      # of the virtual machine
//! memory_mib = 1024
//! duration_s = 12.5             # length of the measurement
//!
//! [classes]                     # weight of each class; parents left out weigh 100
//! "/film" = 300
//! "/build/jobs" = 100
//!
//! [programs.film]
//! class = "/film"
//! kind = "mpv"
//! start_s = 0                   # seconds since the measurement began
//!
//! [programs.loop]
//! class = "/build/jobs"
//! kind = "loop"
//!
//! [cases.four]                  # a variation: laid over the keys above, booted on its own
//! programs.loop.count = 4
//!
//! [[expect]]                    # a scenario is a test on its own
//! measure = "dropped"
//! program = "film"
//! max = 0
//! ```
//!
//! A scenario may vary another: `base = "other.toml"` lays its own keys over those of that file.
//!
//! All times of programs count from the beginning of the measurement; a program without `start_s`
//! starts `warmup_s` before it.

mod bandwidth;
pub mod base;
pub mod choice;
mod contract;
mod disk;
mod draw;
pub mod expectation;
mod instances;
mod kind;
mod memory;
mod network;
pub mod perturb;
mod program;
mod sessions;
mod simulator;
#[cfg(test)]
mod tests;
mod time;
mod topology;
mod tuned;

use std::path::{Path, PathBuf};

use andante_document::{DocumentError, FromNode, Node, Section, Value, suggest};
use andante_sched::LeafPolicy;
use andante_sim::Topology;

pub use bandwidth::{Bandwidth, Limits};
pub use contract::Contract;
pub use disk::{
    ClassDisk, Disk, DiskReservation, DiskScheduler, DriveKind, DriveModel, IoClass, ReadPattern,
};
pub use draw::DrawId;
pub use expectation::{Bound, Expectation, Figure, Over, Perturbed, Subject};
pub use instances::Instances;
pub use kind::{Clip, Cycle, Display, Kind, Pause, Screen, Seek};
pub use memory::{ClassMemory, Memory};
pub use network::{Cable, Discipline, NetContract, networks, players_of};
pub use program::Program;
pub use simulator::{InterruptSource, Simulator};
pub use tuned::{Reserved, Tuned};

/// Longest path a class may have, in steps; what the scheduler supports.
pub const MAX_DEPTH: usize = 16;
/// Bounds of `cpu.weight`.
pub const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// `cpu.weight` of a class that names none.
pub const DEFAULT_WEIGHT: u32 = 100;

/// One scenario file.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file's name without `.toml`; names the output folder.
    pub key: String,
    /// One line for people.
    pub title: String,
    /// What it shows and why.
    pub description: String,
    /// The workloads to run, each on a freshly booted machine: one without a name, or all named.
    pub cases: Vec<Case>,
    /// What must come out.
    pub expectations: Vec<Expectation>,
    /// Further files that it was read from, as paths from the folder of its own.
    pub beside: Vec<PathBuf>,
}

/// One variation of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name, which names a folder; none if the scenario has no variations.
    pub name: Option<String>,
    /// What to run.
    pub workload: Workload,
}

/// A machine, its classes and its programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// CPUs of the virtual machine.
    pub cpus: u32,
    /// Memory of the virtual machine [MiB].
    pub memory_mib: u32,
    /// The device that it swaps to; none: it does not.
    pub memory: Option<Memory>,
    /// The disk that programs of kind `reader` read; none: there is none.
    pub disk: Option<Disk>,
    /// Length of the measurement [s].
    pub duration_s: f64,
    /// Programs that name no start run this long before the measurement begins [s].
    pub warmup_s: f64,
    /// How long after the measurement a program that ends by itself may go on [s].
    pub overtime_s: f64,
    /// Time between two readings of the classes' CPU time [ms].
    pub sample_ms: f64,
    /// What learnt contracts may use of each CPU [%]; none: Andante's default.
    pub learn_percent: Option<u32>,
    /// Of memory, for what is learnt [%]; none: the scheduler's own.
    pub learn_memory_percent: Option<u32>,
    /// Whether a server works with the share of the client it serves.
    pub binding: bool,
    /// CPUs of each of Andante's domains; none: as it divides them by itself.
    pub domain_cpus: Option<u32>,
    /// Threads of its cores, its caches and nodes.
    pub topology: Topology,
    /// Record who runs when for this long from the beginning of the measurement [s].
    pub trace_s: f64,
    /// Parents before children, in the order of the file.
    pub classes: Vec<Class>,
    /// In the order of the file.
    pub programs: Vec<Program>,
    /// The cable between the two networks, if programs are in any.
    pub cable: Cable,
    /// What holds for all contracts.
    pub contracts: contract::All,
    /// What only the simulator can be told.
    pub simulator: Simulator,
}

/// A class of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Path below the scenario's root, e.g. `/film`.
    pub path: String,
    /// Weight relative to the siblings.
    pub weight: u32,
    /// As a resource container it has this much of what its parent has, guaranteed [1/10000];
    /// none: a part of the rest, by weight.
    pub fixed: Option<u32>,
    /// What it may use.
    pub limits: Limits,
    /// Its part of the memory.
    pub memory: ClassMemory,
    /// Its part of the disk.
    pub disk: ClassDisk,
    /// Whether it gets what nobody else wants (`cpu.idle`).
    pub idle: bool,
    /// How its own tasks are ordered under Andante, if not as every class's are.
    pub policy: Option<LeafPolicy>,
}

impl Class {
    /// One of which nothing is said.
    fn usual() -> Self {
        Self {
            path: String::new(),
            weight: DEFAULT_WEIGHT,
            fixed: None,
            limits: Limits::default(),
            memory: ClassMemory::default(),
            disk: ClassDisk::default(),
            idle: false,
            policy: None,
        }
    }

    /// Path of the parent, `/` for a class at the top.
    pub fn parent(&self) -> &str {
        match self.path.rfind('/') {
            Some(0) | None => "/",
            Some(at) => &self.path[..at],
        }
    }
}

impl Workload {
    /// Whether it says or measures what classes have of the memory.
    pub fn needs_memory_controller(&self) -> bool {
        self.memory.is_some() || self.classes.iter().any(|class| class.memory.any())
    }

    /// The program of each instance, in the order of the scenario and of results.
    pub fn instances(&self) -> impl Iterator<Item = &Program> {
        let programs = self.programs.iter();
        programs.flat_map(|program| std::iter::repeat_n(program, program.count as usize))
    }

    /// The place of the program of this name among all of its kind, from 0.
    ///
    /// # Panics
    /// There is no such program.
    pub fn place_in_kind(&self, name: &str) -> usize {
        let named = |program: &&Program| program.name == name;
        let program = self.programs.iter().find(named);
        let kind = program.expect("there is such a program").kind.name();
        let mut alike = self.programs.iter().filter(|p| p.kind.name() == kind);
        let place = alike.position(|program| program.name == name);
        place.expect("it is of its own kind")
    }

    /// What the weights give the class `path` while all of its siblings want to run [ratio].
    pub fn share_asked(&self, path: &str) -> f64 {
        let Some(class) = self.classes.iter().find(|class| class.path == path) else {
            return 1.0;
        };
        let siblings = self
            .classes
            .iter()
            .filter(|other| other.parent() == class.parent());
        let sum: u32 = siblings.map(|sibling| sibling.weight).sum();
        f64::from(class.weight) / f64::from(sum) * self.share_asked(class.parent())
    }
}

impl Workload {
    /// The part that the programs of the class `path` and all below it can use of a machine of so many CPUs, where that
    /// is less than its weight asks for [ratio]: a task is on one CPU at a time. None: it is not less, or
    /// nobody can say.
    pub fn share_usable(&self, path: &str, cpus: u32) -> Option<f64> {
        // A server works with the share of its client's class then, whose programs may not be all it has.
        let serves = |program: &Program| matches!(program.kind, Kind::Server | Kind::Xvfb { .. });
        if self.binding && self.programs.iter().any(serves) {
            return None;
        }
        let below = |program: &&Program| {
            let rest = program.class.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut usable = 0;
        for program in self.programs.iter().filter(below) {
            let places = program.affinity.as_ref().map_or(cpus, |on| on.len() as u32);
            let at_once = program.kind.cpus_at_once().unwrap_or(cpus);
            usable += places.min(program.count.saturating_mul(at_once));
        }
        let share = f64::from(usable) / f64::from(cpus.max(1));
        (share < self.share_asked(path)).then_some(share)
    }
}

impl Scenario {
    /// Reads the scenario in `path`, with `overrides` (lines of TOML, e.g. `duration_s = 60`)
    /// laid over it.
    ///
    /// # Errors
    /// The first mistake, with file, line and key.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, DocumentError> {
        let text = std::fs::read_to_string(path).map_err(|error| DocumentError {
            file: path.display().to_string(),
            line: 1,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        })?;
        Self::parse(&path.display().to_string(), &text, overrides)
    }

    /// Reads a scenario from `text`; `file` is what errors name and what gives the key.
    ///
    /// # Errors
    /// The first mistake, with file, line and key.
    pub fn parse(file: &str, text: &str, overrides: &[String]) -> Result<Self, DocumentError> {
        let (mut document, beside) = base::with_base(file, Node::parse(file, text)?)?;
        let variations = document.remove("cases");
        let set: Vec<Node> = overrides
            .iter()
            .map(|line| Node::parse("--set", line))
            .collect::<Result<_, _>>()?;
        let read = |variation: Option<&Node>| {
            let mut merged = document.clone();
            for over in variation.into_iter().chain(&set) {
                merged.overlay(over);
            }
            read_case(&merged)
        };
        let mut scenario = read(None)?;
        scenario.key = PathBuf::from(file)
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        scenario.beside = beside;
        if let Some(variations) = variations {
            scenario.cases.clear();
            for (name, path, variation) in Section::new(&variations, "cases")?.entries() {
                check_name(name).map_err(|message| variation.origin.error(&path, message))?;
                forbid_outer_keys(variation, &path)?;
                let workload = read(Some(variation))?.cases.remove(0).workload;
                scenario.cases.push(Case {
                    name: Some(name.to_owned()),
                    workload,
                });
            }
            if scenario.cases.is_empty() {
                return Err(variations.origin.error("cases", "no case is given"));
            }
        }
        expectation::check_all(&scenario)?;
        Ok(scenario)
    }
}

/// The scenario, of one case, that `document` is; without a key and without files beside it.
///
/// # Errors
/// The first mistake, with file, line and key.
pub fn of_document(document: &Node) -> Result<Scenario, DocumentError> {
    let scenario = read_case(document)?;
    expectation::check_all(&scenario)?;
    Ok(scenario)
}

/// A case varies the workload; what the whole scenario says stays out of it.
fn forbid_outer_keys(variation: &Node, path: &str) -> Result<(), DocumentError> {
    for (key, key_path, node) in Section::new(variation, path)?.entries() {
        if ["title", "description", "expect", "cases"].contains(&key) {
            let message = "belongs to the whole scenario; a case can only change the workload";
            return Err(node.origin.error(&key_path, message));
        }
    }
    Ok(())
}

/// Reads a merged document as a scenario of one case.
fn read_case(document: &Node) -> Result<Scenario, DocumentError> {
    let mut root = Section::new(document, "")?;
    let title: String = root.need("title")?;
    let description = root.get("description")?.unwrap_or_default();
    let workload = read_workload(&mut root)?;
    let expectations = expectation::read_all(root.node("expect"))?;
    root.finish()?;
    Ok(Scenario {
        key: String::new(),
        title,
        description,
        cases: vec![Case {
            name: None,
            workload,
        }],
        expectations,
        beside: Vec::new(),
    })
}

fn read_workload(root: &mut Section<'_>) -> Result<Workload, DocumentError> {
    let cpus: u32 = root.get("cpus")?.unwrap_or(1);
    if !(1..=64).contains(&cpus) {
        return Err(root.error("cpus", format!("{cpus} is out of range: give 1 to 64")));
    }
    let memory_mib: u32 = root.get("memory_mib")?.unwrap_or(512);
    if !(128..=65_536).contains(&memory_mib) {
        let message = format!("{memory_mib} is out of range: give 128 to 65536");
        return Err(root.error("memory_mib", message));
    }
    let memory = memory::read(root.node("memory"))?;
    let disk = disk::read(root.node("disk"))?;
    root.need::<f64>("duration_s")?;
    let duration_s = root.number("duration_s", 0.0, 0.1..=3600.0)?;
    let classes = read_classes(root.node("classes"))?;
    let mut simulator = simulator::read(root.node("simulator"), cpus)?;
    simulator.shared_speed = root.get("shared_speed")?.unwrap_or(!simulator.ideal);
    let mut programs = read_programs(root, &classes, cpus)?;
    check_servers(&programs, root)?;
    disk::check(disk.as_ref(), &classes, &programs, root)?;
    network::check(&programs, root)?;
    let cable = network::read(root.node("network"), &programs, &classes)?;
    scale_work(&mut programs, root)?;
    // Where weights say who gets what, they are what is looked at.
    let learn_memory_percent = match root.node("learn_memory_percent") {
        Some(_) => Some(root.number("learn_memory_percent", 0.0, 0.0..=90.0)? as u32),
        None => None,
    };
    let learn_percent = match root.node("learn_percent") {
        Some(_) => Some(root.number("learn_percent", 0.0, 0.0..=90.0)? as u32),
        None if classes.is_empty() => None,
        None => Some(0),
    };
    Ok(Workload {
        cpus,
        memory_mib,
        memory,
        disk,
        duration_s,
        warmup_s: root.number("warmup_s", 1.0, 0.0..=600.0)?,
        overtime_s: root.number("overtime_s", 0.0, 0.0..=600.0)?,
        sample_ms: root.number("sample_ms", 500.0, 10.0..=60_000.0)?,
        learn_percent,
        learn_memory_percent,
        binding: root.get("binding")?.unwrap_or(true),
        domain_cpus: read_domain_cpus(root, cpus)?,
        topology: topology::read(root, cpus)?,
        trace_s: root.number("trace_s", 0.0, 0.0..=60.0)?,
        classes,
        programs,
        cable,
        contracts: contract::read_all(root.node("contracts"))?,
        simulator,
    })
}

fn read_programs(
    root: &mut Section<'_>,
    classes: &[Class],
    cpus: u32,
) -> Result<Vec<Program>, DocumentError> {
    let sessions = sessions::read(root)?;
    let Some(node) = root.node("programs") else {
        return Err(root.error("", "no program is given: add a [programs.NAME] table"));
    };
    let mut programs = Vec::new();
    for (name, path, node) in Section::new(node, "programs")?.entries() {
        let fail = |message: String| node.origin.error(&path, message);
        check_name(name).map_err(fail)?;
        // Something was laid over nothing: the name is misspelt.
        let mut own = Section::new(node, &path)?;
        if own.node("class").is_none() && own.node("kind").is_none() {
            let read = programs
                .iter()
                .map(|program: &Program| program.name.as_str());
            let hint = suggest(name, read);
            return Err(fail(format!(
                "there is no such program, of a class and a kind{hint}"
            )));
        }
        programs.push(program::read(name, node, &path, classes, cpus, &sessions)?);
    }
    sessions::check(&sessions, &programs, root)?;
    Ok(programs)
}

/// CPUs of a domain: a power of two, as Andante's have.
fn read_domain_cpus(root: &mut Section<'_>, cpus: u32) -> Result<Option<u32>, DocumentError> {
    match root.get::<u32>("domain_cpus")? {
        Some(each) if !each.is_power_of_two() || each > cpus => {
            let message = format!("{each} is no power of two up to the {cpus} CPUs there are");
            Err(root.error("domain_cpus", message))
        }
        domain_cpus => Ok(domain_cpus),
    }
}

/// All work times `work_scale`.
fn scale_work(programs: &mut [Program], root: &mut Section<'_>) -> Result<(), DocumentError> {
    let factor = root.number("work_scale", 1.0, 0.001..=1000.0)?;
    let real = |program: &&mut Program| program.count > 0 && program.kind.is_real();
    if factor != 1.0
        && let Some(program) = programs.iter_mut().find(real)
    {
        let message = format!(
            "the work of the real program `{}` cannot be scaled",
            program.name
        );
        return Err(root.error("work_scale", message));
    }
    for program in programs {
        program.kind.scale_work(factor);
    }
    Ok(())
}

/// Whoever asks a server must name one.
fn check_servers(programs: &[Program], root: &Section<'_>) -> Result<(), DocumentError> {
    for program in programs.iter().filter(|program| program.count > 0) {
        for (name, kind) in program.kind.asks() {
            let servers = || programs.iter().filter(|p| p.kind.name() == kind);
            if !servers().any(|server| server.name == name && server.count == 1) {
                let hint = suggest(name, servers().map(|server| server.name.as_str()));
                let message = format!(
                    "program `{}` asks the server `{name}`, which is no single program of kind `{kind}`{hint}",
                    program.name
                );
                return Err(root.error("programs", message));
            }
        }
    }
    Ok(())
}

/// Reads the tree, adding the parents that are left out.
fn read_classes(node: Option<&Node>) -> Result<Vec<Class>, DocumentError> {
    let mut classes: Vec<Class> = Vec::new();
    let Some(node) = node else { return Ok(classes) };
    for (path, key, weight) in Section::new(node, "classes")?.entries() {
        let fail = |message: String| weight.origin.error(&key, message);
        check_class_path(path).map_err(fail)?;
        let read = read_class(weight, &key)?;
        for (at, _) in path.match_indices('/').skip(1).chain([(path.len(), "")]) {
            let prefix = &path[..at];
            let listed = classes.iter_mut().find(|class| class.path == prefix);
            match (listed, at == path.len()) {
                (Some(class), true) => {
                    *class = Class {
                        path: prefix.to_owned(),
                        ..read.clone()
                    };
                }
                (Some(_), false) => {}
                (None, last) => classes.push(Class {
                    path: prefix.to_owned(),
                    ..if last { read.clone() } else { Class::usual() }
                }),
            }
        }
    }
    check_policies_are_of_leaves(node, &classes)?;
    Ok(classes)
}

/// A policy orders the tasks of a leaf.
fn check_policies_are_of_leaves(node: &Node, classes: &[Class]) -> Result<(), DocumentError> {
    for class in classes.iter().filter(|class| class.policy.is_some()) {
        if let Some(below) = classes.iter().find(|other| other.parent() == class.path) {
            let message = format!(
                "it has a class below it, `{}`: a policy orders the tasks of a leaf, so give it to that one",
                below.path
            );
            let path = andante_document::join("classes", &class.path);
            return Err(node.origin.error(&path, message));
        }
    }
    Ok(())
}

/// Reads a class, whose path is not yet known: its weight, or a table of `weight`, `fixed_percent`,
/// what it may use, and what it has of the memory and of the disk.
fn read_class(node: &Node, path: &str) -> Result<Class, DocumentError> {
    let in_range = |node: &Node, path: &str| {
        let value = u32::from_node(node).filter(|value| WEIGHTS.contains(value));
        value.ok_or_else(|| {
            let range = format!("{} to {}", WEIGHTS.start(), WEIGHTS.end());
            let message = format!("the weight must be a whole number from {range}");
            node.origin.error(path, message)
        })
    };
    if !matches!(node.value, Value::Table(_)) {
        return Ok(Class {
            weight: in_range(node, path)?,
            ..Class::usual()
        });
    }
    let mut section = Section::new(node, path)?;
    let weight = match section.node("weight") {
        Some(weight) => in_range(weight, &andante_document::join(path, "weight"))?,
        None => DEFAULT_WEIGHT,
    };
    let fixed = match section.node("fixed_percent") {
        None => None,
        Some(_) => {
            let percent = section.number("fixed_percent", 0.0, 0.01..=100.0)?;
            Some((percent * 100.0).round() as u32)
        }
    };
    let limits = Limits::read(&mut section)?;
    let memory = ClassMemory::read(&mut section)?;
    let disk = ClassDisk::read(&mut section)?;
    let idle = section.get("idle")?.unwrap_or(false);
    let policy = match section.node("policy") {
        None => None,
        Some(node) => {
            let text = String::from_node(node).unwrap_or_default();
            let read = text.parse::<LeafPolicy>().map_err(|error| {
                let path = andante_document::join(path, "policy");
                node.origin.error(&path, error.to_string())
            });
            Some(read?)
        }
    };
    section.finish()?;
    Ok(Class {
        weight,
        fixed,
        limits,
        memory,
        disk,
        idle,
        policy,
        ..Class::usual()
    })
}

fn check_class_path(path: &str) -> Result<(), String> {
    let steps: Vec<&str> = path.split('/').collect();
    if steps.len() < 2 || !steps[0].is_empty() {
        return Err("a class is a path that starts with `/`, e.g. \"/film\"".to_owned());
    }
    if steps.len() - 1 > MAX_DEPTH {
        return Err(format!(
            "{} steps deep; at most {MAX_DEPTH} are possible",
            steps.len() - 1
        ));
    }
    steps[1..].iter().try_for_each(|step| check_name(step))
}

/// Names become folders and control groups, so they must be plain.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!(
            "`{name}` is no name: use letters, digits, `-` and `_`"
        ));
    }
    // A control group's own files are called `cpu.stat`, `cgroup.procs` …: without dots no clash.
    Ok(())
}

/// Refuses a class that `classes` does not hold.
fn check_class_known(path: &str, classes: &[Class]) -> Result<(), String> {
    if path == "/" || classes.iter().any(|class| class.path == path) {
        return Ok(());
    }
    let hint = suggest(path, classes.iter().map(|class| class.path.as_str()));
    Err(format!("unknown class `{path}`{hint}"))
}
