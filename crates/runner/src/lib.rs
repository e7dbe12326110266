//! Runs one case under one scheduler, on the machine it is called on.
//!
//! In the laboratory this is the guest's main program; with `--on host` it runs here. It makes the
//! classes, puts the scheduler in charge, starts the programs, and reads what they get. Whatever
//! happens, on return everything is as it was: programs ended, classes gone, the stock scheduler
//! back.
//!
//! ```text
//!  set up, load ──► warm-up ──────► measurement ───────────────► overtime ──► collect, take down
//!                   programs start  │ sample │ sample │ …      │ only while a film still plays
//!                                   begin                      end
//! ```

mod classes;
pub mod collect;
mod contracts;
pub mod disk;
mod instance;
mod leaks;
pub mod memory;
mod mpv;
mod network;
mod prepared;
mod process;
mod real;
mod scheduler;
mod streams;
mod timeline;
mod tracer;
mod tuning;
mod web;

use std::path::PathBuf;

use andante_job::progress::At;
use andante_job::{LabError, stop};
use andante_programs::{clock, work};
use andante_result::SchedulerResult;
use andante_scenario::choice::Choice;
use andante_scenario::{Kind, Workload};
use nix::sys::signal::Signal;

use classes::Classes;
pub use classes::own_class;
pub use collect::online_cpus;
pub use contracts::{asked_for, no_room, obstacle as contract_obstacle};
use instance::Instance;
use network::Networks;
use prepared::Prepared;
use scheduler::InCharge;
pub use scheduler::Loading;
use timeline::Timeline;

/// The stock scheduler reads wrong before the machine has been up this long [s].
pub const SETTLED_S: f64 = 6.0;

/// Where and how a case is run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Path of the cgroup that is the scenario's `/`; the hierarchy's root in the laboratory.
    pub base_class: String,
    /// Folder for everything the run writes; best in memory.
    pub folder: PathBuf,
    /// Folder that holds the clips and the sources, see [`andante_programs::assets`].
    pub assets: PathBuf,
    /// The scheduler's binary.
    pub andante: PathBuf,
    /// The laboratory's, which is the synthetic programs.
    pub lab: PathBuf,
    /// Whether this is a machine whose CPUs are threads of a host: nothing is in time there, and what
    /// needs no clock is looked at closely.
    pub parallel: bool,
}

/// A machine on which a scheduler is in charge, and nothing else has been done: the same for all workloads
/// that load it in the same way.
pub struct Ready {
    steps_per_ms: f64,
    in_charge: Option<InCharge>,
}

impl Ready {
    /// Calibrates the synthetic programs, and puts the scheduler in charge.
    ///
    /// # Errors
    /// If the scheduler cannot be started.
    pub fn make(
        choice: &Choice,
        loading: &Loading,
        setup: &Setup,
        say: &mut dyn FnMut(At),
    ) -> Result<Self, LabError> {
        std::fs::create_dir_all(&setup.folder)
            .map_err(|e| LabError::file("create", &setup.folder, e))?;
        // Before anything else competes for the CPU.
        let steps_per_ms = work::calibrate();
        say(At::phase(format!("putting {} in charge", choice.name())));
        Ok(Self {
            steps_per_ms,
            in_charge: InCharge::start(choice, loading, setup)?,
        })
    }
}

/// Runs `workload` under the scheduler `choice`.
///
/// # Errors
/// If the machine lacks something, or a program or the scheduler cannot be started.
pub fn run_case(
    workload: &Workload,
    choice: &Choice,
    setup: &Setup,
    say: &mut dyn FnMut(At),
) -> Result<SchedulerResult, LabError> {
    stop::on(&[Signal::SIGTERM, Signal::SIGINT]).map_err(|e| LabError::io("set up signals", e))?;
    let ready = Ready::make(choice, &Loading::of(workload), setup, say)?;
    run_on(ready, workload, choice, setup, say)
}

/// Runs `workload` on a machine that is ready for it.
///
/// # Errors
/// As [`run_case`].
pub fn run_on(
    ready: Ready,
    workload: &Workload,
    choice: &Choice,
    setup: &Setup,
    say: &mut dyn FnMut(At),
) -> Result<SchedulerResult, LabError> {
    stop::on(&[Signal::SIGTERM, Signal::SIGINT]).map_err(|e| LabError::io("set up signals", e))?;
    let steps_per_ms = ready.steps_per_ms;
    if let Some(memory) = &workload.memory {
        memory::prepare(memory)?;
    }
    let disk = workload.disk.as_ref();
    // It is taken off when all programs have ended.
    let disk = disk.map(|disk| disk::prepare(disk, setup)).transpose()?;
    let classes = Classes::make(workload, &setup.base_class, choice)?;
    if let Some(disk) = &disk {
        disk::share(workload, disk, &classes, setup)?;
    }
    memory::reserve(workload, &classes, choice)?;
    // Made before it, they are there for longer than it is in charge.
    let mut in_charge = ready.in_charge;
    let load_ms = in_charge.as_ref().map(|scheduler| scheduler.load_ms);
    let daemon = in_charge.as_ref().map(InCharge::pid);
    let before = daemon
        .filter(|_| setup.parallel)
        .map(|daemon| leaks::Held::now(&setup.andante, daemon));
    let networks = Networks::make(workload, choice, setup, &classes)?;
    let prepared = Prepared {
        workload,
        choice,
        setup,
        classes: &classes,
        networks: &networks,
        disk: disk.as_ref().map(disk::Served::device),
        steps_per_ms,
    };
    streams::describe(&prepared)?;
    web::set_up(&prepared)?;
    if workload
        .programs
        .iter()
        .any(|p| matches!(p.kind, Kind::Mpv { .. }) && p.count > 0)
    {
        say(At::phase("filling the caches"));
        prepared.warm_up()?;
    }

    let mut instances = Instance::all(&prepared);
    say(At::phase("loading the programs"));
    for instance in instances.iter_mut().filter(|i| i.loads_ahead()) {
        instance.load(&prepared)?;
    }
    let mut timeline = Timeline::new(&prepared, instances, begin_ns(workload))?;
    let measured = timeline.run(&mut in_charge, say)?;
    say(At::phase("collecting"));
    let (mut instances, tracer, contracts) = timeline.stop();
    let found = setup.parallel.then(|| Box::new(collect::found(&instances)));
    let mut programs: Vec<_> = instances
        .iter_mut()
        .map(|i| {
            let mut result = collect::program(workload, i, &measured);
            contracts.add_to(&mut result);
            result
        })
        .collect();
    collect::share_arrivals(workload, &mut programs);
    let mut result = SchedulerResult {
        name: choice.name(),
        load_ms,
        ejected: measured.ejected.clone(),
        idle_ns: measured.idle_ns,
        sample_ns: measured.sample_ns.clone(),
        classes: collect::classes(workload, &measured),
        programs,
        unclocked: found,
        runs: tracer.map_or_else(Vec::new, |tracer| tracer.read(measured.begin_ns)),
    };
    drop(instances);
    // Whoever is left is killed with them.
    drop(classes);
    if let (Some(found), Some(before), Some(daemon)) = (&mut result.unclocked, before, daemon)
        && result.ejected.is_none()
    {
        found.left = before.left_by(&setup.andante, daemon);
    }
    Ok(result)
}

/// A machine with a workload's classes and the scheduler in charge, and nothing running.
pub struct Machine {
    /// How fast the built-in programs work [steps/ms].
    pub steps_per_ms: f64,
    // Fields are dropped in this order: the scheduler leaves first.
    _in_charge: Option<InCharge>,
    classes: Classes,
}

impl Machine {
    /// Makes the classes and puts the scheduler in charge.
    ///
    /// # Errors
    /// As [`run_case`].
    pub fn make_ready(
        workload: &Workload,
        choice: &Choice,
        setup: &Setup,
    ) -> Result<Self, LabError> {
        let ready = Ready::make(choice, &Loading::of(workload), setup, &mut |_| ())?;
        Ok(Self {
            steps_per_ms: ready.steps_per_ms,
            classes: Classes::make(workload, &setup.base_class, choice)?,
            _in_charge: ready.in_charge,
        })
    }

    /// Moves this process into a class of the workload.
    ///
    /// # Errors
    /// The kernel's.
    pub fn enter_class(&self, path: &str) -> Result<(), LabError> {
        let procs = self.classes.procs_file(path);
        std::fs::write(&procs, "0").map_err(|e| LabError::file("write", &procs, e))
    }
}

/// Waits until the machine has been up for [`SETTLED_S`].
pub fn await_settled() {
    let settle_s = SETTLED_S - clock::since_boot_ns() as f64 / clock::NS_PER_S;
    if settle_s > 0.0 {
        clock::sleep_until(clock::now_ns() + (settle_s * clock::NS_PER_S) as u64);
    }
}

/// Servers start so long before all others [s]: they have opened their sockets by then, which takes less than a
/// thousandth of it. A server that starts with its clients may be starved by them, and holds the folder in which it makes its
/// socket meanwhile, so that those of other classes wait for it too.
const SERVERS_AHEAD_S: f64 = 0.1;

/// When the measurement is to begin: after the warm-up, when the machine has settled.
fn begin_ns(workload: &Workload) -> u64 {
    let settle_s = SETTLED_S - clock::since_boot_ns() as f64 / clock::NS_PER_S;
    let lead_s = lead_s(workload) + SERVERS_AHEAD_S;
    clock::now_ns() + (lead_s.max(settle_s) * clock::NS_PER_S) as u64
}

/// How long before the measurement the first program starts [s].
pub fn lead_s(workload: &Workload) -> f64 {
    let starts = workload.programs.iter().filter_map(|p| p.start_s);
    workload.warmup_s.max(-starts.fold(0.0, f64::min))
}
