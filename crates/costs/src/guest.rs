//! Costs measured in the virtual machine.

use std::collections::BTreeMap;
use std::fs;

use andante_experiment::guest::{self, GuestOrder, GuestReply};
use andante_job::LabError;
use andante_job::progress::At;
use andante_programs::clock::{now_ns, sleep_until};
use andante_programs::work;
use andante_runner as runner;
use andante_runner::{Machine, Setup};
use andante_scenario::Workload;
use andante_scenario::choice::Choice;
use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::{own, paths};

/// A sysctl: whether the kernel counts and times the runs of BPF programs.
const COUNTS: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// How often the program that does nothing is run.
const EMPTY_RUNS: u32 = 2_000;
/// How long one set of counts is taken over [ns]: a few dozen decisions, so that one window is unlike
/// another.
const WINDOW_NS: u64 = 30_000_000;
/// Windows in a second.
const WINDOWS: usize = 24;
/// The second in which functions are traced: once, since setting the tracer up takes as long as all the
/// rest.
const TRACED_SECOND: u32 = 2;
/// How long one set of functions is traced [ns].
const TRACED_NS: u64 = 150_000_000;

/// Functions of the kernel whose length is taken. Those of one line do not call each other, or what
/// tracing costs would be counted in.
const FUNCTIONS: [&[&str]; 5] = [
    &[
        "scx_bpf_*",
        "__scx_bpf_*",
        "bpf_iter_scx_dsq_*",
        "bpf_timer_start",
        "bpf_task_storage_get",
        "bpf_cgrp_storage_get",
        "bpf_skc_to_unix_sock",
        "bpf_ktime_get_ns",
        "bpf_task_from_pid",
        "bpf_task_release",
    ],
    &[
        "try_to_wake_up",
        "wake_up_new_task",
        "sched_tick",
        "bpf_timer_cb",
    ],
    &[
        "kick_cpus_irq_workfn",
        "sched_ttwu_pending",
        "hrtimer_wakeup",
        "tick_nohz_handler",
    ],
    &["hrtimer_interrupt", "irq_work_run", "kernel_clone"],
    &[
        "dequeue_task_scx",
        "put_prev_task_scx",
        "set_next_task_scx",
        "enqueue_task_scx",
    ],
];

/// What the host asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    /// The case to run, or whose classes to use.
    pub of: GuestOrder,
    /// Ways through the kernel; else the case is run, and its callbacks are counted.
    pub paths: bool,
}

/// Samples of one cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Summary {
    pub samples: u64,
    pub mean_ns: f64,
    pub median_ns: u64,
    pub least_ns: u64,
    pub most_ns: u64,
}

impl Summary {
    /// None of no samples.
    pub fn of(mut ns: Vec<u64>) -> Option<Self> {
        ns.sort_unstable();
        Some(Self {
            samples: ns.len() as u64,
            mean_ns: ns.iter().sum::<u64>() as f64 / ns.len() as f64,
            median_ns: *ns.get(ns.len() / 2)?,
            least_ns: *ns.first()?,
            most_ns: *ns.last()?,
        })
    }
}

/// Runs of programs and what they took [ns], by name.
pub(super) type Runs = BTreeMap<String, (u64, u64)>;

/// One way through the kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Path {
    pub name: String,
    pub cost: Summary,
    /// The same, counted [ns].
    pub counted: Option<Summary>,
}

/// What ran while a way was gone; it is named as the last of its parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Along {
    pub name: String,
    pub times: u64,
    pub programs: Runs,
}

/// What was counted between two instants.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Window {
    pub length_ns: u64,
    pub programs: Runs,
    pub counters: BTreeMap<String, u64>,
}

/// What the guest found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Found {
    pub paths: Vec<Path>,
    pub along: Vec<Along>,
    pub windows: Vec<Window>,
    pub functions: BTreeMap<String, Summary>,
    /// What counting costs in a run's own time [ns]; the program's two instructions are in it.
    pub empty_ns: f64,
    /// Of the programs' work: a step [ns].
    pub step_ns: f64,
    /// Of each of the laboratory's programs: what a turn takes of the CPU beside its work [ns]; turns.
    pub own: Vec<(String, f64, u64)>,
}

/// The reply: what was found, or why nothing was.
pub(super) type Reply = Result<Found, GuestReply>;

/// Carries out `order` (JSON) and sends the reply; returns the exit status.
pub fn costs_guest_main(order: &str) -> i32 {
    let reply: Reply = carry_out(order).map_err(guest::failed);
    guest::send(&reply)
}

fn carry_out(order: &str) -> Result<Found, LabError> {
    let order: Order = serde_json::from_str(order)
        .map_err(|error| LabError::io("read the laboratory's order", error))?;
    let (workload, choice, setup) = guest::read_order(&order.of)?;
    match order.paths {
        true => go_paths(&workload, &choice, &setup),
        false => count(&workload, &choice, &setup),
    }
}

fn count_runs(on: bool) -> Result<(), LabError> {
    let value = if on { "1" } else { "0" };
    fs::write(COUNTS, value).map_err(|e| LabError::file("write", COUNTS, e))
}

fn empty_ns() -> Result<f64, LabError> {
    use andante_sched::EmptyProgram;
    let error = |e| LabError::io("run a BPF program that does nothing", e);
    let empty = EmptyProgram::load().map_err(error)?;
    count_runs(true)?;
    empty.run(EMPTY_RUNS).map_err(error)?;
    count_runs(false)?;
    let (runs, ns) = runs()[EmptyProgram::NAME];
    Ok(ns as f64 / runs as f64)
}

fn runs() -> Runs {
    let mut all = Runs::new();
    for program in andante_sched::programs() {
        // The kernel keeps 15 bytes of a name, which several may have in common.
        let (runs, ns) = all.entry(program.name).or_default();
        *runs += program.runs;
        *ns += program.run_ns;
    }
    all
}

fn since(before: &Runs) -> Runs {
    let mut now = runs();
    for (name, (runs, ns)) in &mut now {
        let (earlier, earlier_ns) = before.get(name).copied().unwrap_or_default();
        *runs -= earlier;
        *ns -= earlier_ns;
    }
    now.retain(|_, (runs, _)| *runs > 0);
    now
}

/// All ways, gone by a process in the workload's first class; a second time, counted, if a scheduler of
/// BPF programs is in charge.
fn go_paths(workload: &Workload, choice: &Choice, setup: &Setup) -> Result<Found, LabError> {
    let machine = Machine::make_ready(workload, choice, setup)?;
    let mut found = Found {
        empty_ns: empty_ns()?,
        step_ns: 1e6 / machine.steps_per_ms,
        ..Found::default()
    };
    runner::await_settled();
    machine.enter_class(&workload.classes[0].path)?;
    let gone = go_ways(workload.cpus, choice, &mut found).and_then(|()| match workload.cpus {
        1 => own::measure(machine.steps_per_ms),
        _ => Ok(Vec::new()),
    });
    // Who is in a class when it goes is killed.
    machine.enter_class("/")?;
    found.own = gone?;
    Ok(found)
}

fn go_ways(cpus: u32, choice: &Choice, found: &mut Found) -> Result<(), LabError> {
    let system = |error: nix::Error| LabError::io("measure a way through the kernel", error);
    nix::sys::prctl::set_timerslack(1).map_err(system)?;
    let clock = paths::clock_ns();
    let clock_ns = Summary::of(clock.clone()).expect("it was read").median_ns;
    found.add("clock_read", clock, None);
    let ways: &[paths::Way] = match cpus {
        1 => &paths::WAYS,
        _ => &paths::WAYS_OF_TWO,
    };
    for way in ways {
        let plain = (way.go)(clock_ns).map_err(system)?;
        let mut counted = Vec::new();
        if *choice == Choice::Andante {
            count_runs(true)?;
            let before = runs();
            counted = (way.go)(clock_ns).map_err(system)?;
            let programs = since(&before);
            count_runs(false)?;
            found.along.push(Along {
                name: plain.last().map_or("", |(name, _)| name).to_owned(),
                times: way.times,
                programs,
            });
        }
        let mut counted = counted.into_iter();
        for (name, samples) in plain {
            found.add(name, samples, counted.next().map(|(_, ns)| ns));
        }
    }
    Ok(())
}

impl Found {
    fn add(&mut self, name: &str, samples: Vec<u64>, counted: Option<Vec<u64>>) {
        if let Some(cost) = Summary::of(samples) {
            self.paths.push(Path {
                name: name.to_owned(),
                cost,
                counted: counted.and_then(Summary::of),
            });
        }
    }
}

/// Runs the case. Each second programs are counted, in one of them functions traced: by the thread that
/// carries out the plan, above all others, when it would only say how far it is.
fn count(workload: &Workload, choice: &Choice, setup: &Setup) -> Result<Found, LabError> {
    let mut found = Found {
        empty_ns: empty_ns()?,
        step_ns: 1e6 / work::calibrate(),
        ..Found::default()
    };
    let graph = Graph::prepare()?;
    let mut calls: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut failed = Ok(());
    let mut seconds = 0;
    let mut look = |progress: At| {
        if progress.at_s.is_none_or(|at_s| at_s < 0.0) || failed.is_err() {
            return;
        }
        failed = match seconds {
            TRACED_SECOND => trace(&graph, &mut calls),
            _ => count_windows(&mut found.windows),
        };
        seconds += 1;
    };
    runner::run_case(workload, choice, setup, &mut look)?;
    failed?;
    found.functions = calls
        .into_iter()
        .filter_map(|(name, ns)| Some((name, Summary::of(ns)?)))
        .collect();
    Ok(found)
}

fn count_windows(windows: &mut Vec<Window>) -> Result<(), LabError> {
    let counters = || -> Result<BTreeMap<String, u64>, LabError> {
        let counters = andante_sched::counters()
            .map_err(|e| LabError::io("read the scheduler's counters", std::io::Error::other(e)))?;
        Ok(counters
            .into_iter()
            .map(|(name, n)| (name.to_owned(), n))
            .collect())
    };
    count_runs(true)?;
    for _ in 0..WINDOWS {
        let (begun_ns, before, counted) = (now_ns(), runs(), counters()?);
        sleep_until(begun_ns + WINDOW_NS);
        let programs = since(&before);
        let mut counters = counters()?;
        for (name, value) in &mut counters {
            *value -= counted[name];
        }
        windows.push(Window {
            length_ns: now_ns() - begun_ns,
            programs,
            counters,
        });
    }
    count_runs(false)
}

fn trace(graph: &Graph, calls: &mut BTreeMap<String, Vec<u64>>) -> Result<(), LabError> {
    for functions in FUNCTIONS {
        for (name, ns) in graph.record(functions, TRACED_NS)? {
            calls.entry(name).or_default().extend(ns);
        }
    }
    Ok(())
}
