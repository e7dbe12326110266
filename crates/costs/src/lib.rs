//! What Andante's callbacks and the kernel's ways cost, measured in the virtual machine and kept as data
//! for the simulator (`crates/sim/costs.toml`).
//!
//! Under `-icount` an instruction takes one virtual nanosecond, so that a time read in the guest is a
//! number of instructions, the same on every run. Three things are measured:
//!
//! - ways through the kernel ([`paths`]), by programs that go them and read the clock, under Andante and
//!   under the stock scheduler; under Andante once more while the kernel times BPF programs, so that the
//!   callbacks' part is known;
//! - callbacks, in scenarios that take different ways through them ([`guest`]): the kernel's own count of
//!   runs and times, and, against the scheduler's counters, what each kind of decision adds ([`fit`]);
//! - functions of the kernel, by its function-graph tracer ([`graph`]).

mod file;
mod fit;
mod graph;
mod guest;
mod own;
mod paths;
mod shared;

use std::path::{Path, PathBuf};

use andante_experiment::guest::GuestReply;
use andante_experiment::virtual_machine::{self, Machine};
use andante_job::files::{load, write_file};
use andante_job::progress::{At, Progress};
use andante_job::{Job, LabError, On, RunOptions};
use andante_scenario::choice::Choice;
use serde::{Deserialize, Serialize};

pub use guest::costs_guest_main;
use guest::{Found, Order, Reply};

/// What to measure costs with.
#[derive(Debug, Clone)]
pub struct CostsOptions {
    /// The laboratory's binary, see [`RunOptions`].
    pub lab: PathBuf,
    /// The file to write.
    pub out: PathBuf,
    /// Where the consoles of the machines, and what each of them found, are kept.
    pub logs: PathBuf,
    /// The measurements to make; the others are taken as they are kept. All if none is named.
    pub only: Vec<String>,
}

/// One boot of the machine.
struct Measurement {
    /// Its name in the file.
    name: &'static str,
    scenario: &'static str,
    case: Option<&'static str>,
    set: &'static [&'static str],
    scheduler: Choice,
    paths: bool,
}

impl Measurement {
    const fn paths(name: &'static str, scheduler: Choice, set: &'static [&'static str]) -> Self {
        Self {
            name,
            scenario: "pingpong",
            case: Some("depth-1"),
            set,
            scheduler,
            paths: true,
        }
    }

    const fn callbacks(
        name: &'static str,
        scenario: &'static str,
        case: Option<&'static str>,
        set: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            scenario,
            case,
            set,
            scheduler: Choice::Andante,
            paths: false,
        }
    }
}

/// The names tell what they show: the tree alone, between classes and within one; contracts that are
/// learnt, promised and soft; a wake-up per decision; children that come and go; several trees.
static MEASUREMENTS: [Measurement; 9] = [
    Measurement::paths("andante", Choice::Andante, &[]),
    Measurement::paths("stock", Choice::Eevdf, &[]),
    Measurement::paths("andante-two-cpus", Choice::Andante, &["cpus = 2"]),
    Measurement::callbacks("shares", "shares", None, &["duration_s = 5"]),
    Measurement::callbacks("desktop", "desktop", Some("batch-4"), &["duration_s = 5"]),
    Measurement::callbacks("pingpong", "pingpong", Some("depth-3"), &["duration_s = 5"]),
    Measurement::callbacks("soft", "contract-soft", Some("soft"), &["duration_s = 5"]),
    Measurement::callbacks(
        "batch",
        "desktop",
        Some("batch-8"),
        &[
            "duration_s = 5",
            // What is expected is of the others.
            "expect = []",
            "programs.film.count = 0",
            "programs.typing.count = 0",
        ],
    ),
    Measurement::callbacks("waker", "wakeup", None, &["duration_s = 5", "trace_s = 0"]),
];

/// What one of them found, and where, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    kernel: String,
    /// Major and minor version.
    emulator: (u32, u32),
    found: Found,
}

/// Measures everything and writes the file.
///
/// # Errors
/// If a machine cannot be had, or does not come to an end; nothing is written then.
pub fn measure_costs(options: &CostsOptions, progress: &mut dyn Progress) -> Result<(), LabError> {
    let names: Vec<String> = MEASUREMENTS.iter().map(|one| one.name.to_owned()).collect();
    progress.runs(&names);
    let mut all = Vec::new();
    for (index, one) in MEASUREMENTS.iter().enumerate() {
        let file = options.logs.join(one.name).join("found.json");
        if !options.only.is_empty() && !options.only.iter().any(|name| name == one.name) {
            all.push((one, kept(&file)?));
            continue;
        }
        let kept = measure(one, index, options, progress);
        progress.ended(index, if kept.is_ok() { "done" } else { "failed" });
        let kept = kept?;
        let json = serde_json::to_vec(&kept).expect("costs are plain data");
        write_file(&file, &json)?;
        all.push((one, kept));
    }
    let kernel = &all[0].1.kernel;
    if let Some((one, other)) = all.iter().find(|(_, kept)| kept.kernel != *kernel) {
        let reason = format!(
            "{} was measured on {}, the others on {kernel}: measure all anew",
            one.name, other.kernel
        );
        return Err(LabError::NoResult { reason });
    }
    write_file(&options.out, file::text(&all).as_bytes())
}

/// What an earlier run found.
fn kept(file: &Path) -> Result<Kept, LabError> {
    let json = std::fs::read(file).map_err(|e| LabError::file("read", file, e))?;
    serde_json::from_slice(&json).map_err(|e| LabError::file("read", file, e.into()))
}

fn measure(
    one: &Measurement,
    index: usize,
    options: &CostsOptions,
    progress: &mut dyn Progress,
) -> Result<Kept, LabError> {
    let options = RunOptions {
        scenario: one.scenario.to_owned(),
        cases: one.case.iter().map(|case| (*case).to_owned()).collect(),
        set: one.set.iter().map(|line| (*line).to_owned()).collect(),
        schedulers: vec![one.scheduler.name()],
        perturbation: None,
        on: On::Vm,
        against: None,
        out: options.logs.join(one.name),
        machines: None,
        boot: false,
        lab: options.lab.clone(),
    };
    let (file, scenario) = load(&options)?;
    let job = Job {
        case: scenario.cases[0].clone(),
        choice: one.scheduler.clone(),
        perturbation: None,
    };
    let machine: Machine<'_> = virtual_machine::prepare(&file, &scenario, &options, progress)?;
    let order = Order {
        of: machine.order(&job, job.choice.name()),
        paths: one.paths,
    };
    let length_s = job.case.workload.duration_s;
    progress.run(index, &At::phase("booting"), length_s);
    let say = &mut |at: At| progress.run(index, &at, length_s);
    let reply: Reply = machine.carry("costs-guest", &order, &job, machine.at_once(), say)?;
    Ok(Kept {
        kernel: machine.kernel().to_owned(),
        emulator: machine.emulator(),
        found: reply.map_err(GuestReply::into_error)?,
    })
}
