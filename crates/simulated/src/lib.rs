//! Runs in the simulator: the same scenarios, the same figures, no kernel.
//!
//! Everything a scenario says is given to a simulated machine; what its programs record goes through the
//! same code as what real ones leave.

mod admission;
mod link;
mod measured;
mod scheduler;
mod starter;
#[cfg(test)]
mod tests;

use andante_job::pool::{self, Watched};
use andante_job::progress::{At, Progress};
use andante_job::{Carried, Job, LabError};
use andante_result::{ProgramResult, Run, SchedulerResult};
use andante_runner::{self as runner, collect};
use andante_scenario::choice::Choice;
use andante_scenario::{Kind, Program, Workload};
use andante_sim::{ContractId, Delivered, InstanceId, Kept, NS_PER_S, Ns, Simulation};

use measured::Measured;
use starter::{LOADING_NS, Starter};

/// Work that counts as one iteration of a loop; as `programs/endless.rs` [ns].
const LOOP_NS: Ns = 10_000;
/// Work that counts as one Dhrystone; only ratios of their numbers mean anything [ns].
const DHRYSTONE_NS: Ns = 1_000;

/// Carries out the jobs, as many at once as this machine has CPUs.
pub fn run(jobs: &[Job], progress: &mut dyn Progress) -> Result<Carried, LabError> {
    andante_sim::check_shell()?;
    for job in jobs {
        check(job)?;
    }
    progress.runs(&jobs.iter().map(Job::name).collect::<Vec<_>>());
    let simulate = |job: &Job| simulate(&job.case.workload, &job.choice);
    let results = pool::map(jobs, simulate, &mut |at| match at {
        Watched::Begins(index) => {
            let duration_s = jobs[index].case.workload.duration_s;
            progress.run(index, &At::phase("simulating"), duration_s);
        }
        Watched::Ended(index) => progress.ended(index, "done"),
        Watched::Tick => progress.tick(),
    });
    let results: Vec<_> = results.into_iter().collect::<Result<_, _>>()?;
    Ok(Carried {
        kernel: version(),
        results: results.into_iter().map(Some).collect(),
        failure: None,
    })
}

/// What takes the kernel's place in results.
pub fn version() -> String {
    format!("simulator {}", env!("CARGO_PKG_VERSION"))
}

/// Refuses what only a kernel has.
pub fn check(job: &Job) -> Result<(), LabError> {
    let workload = &job.case.workload;
    let mut running = workload.programs.iter().filter(|program| program.count > 0);
    if workload.needs_memory_controller() || running.any(|program| program.lock) {
        let what = "a simulated machine has no memory, and the scenario has `[memory]`, classes with `memory_min` and the \
                    like, or programs with `lock`";
        return Err(LabError::OnlyOnKernel {
            what: what.to_owned(),
        });
    }
    if workload.disk.is_some() {
        let what = "a simulated machine has no disk, and the scenario has `[disk]`";
        return Err(LabError::OnlyOnKernel {
            what: what.to_owned(),
        });
    }
    let unknown = |program: &&Program| {
        let sends = matches!(program.kind, Kind::Sender { .. });
        let networked = program.network.is_some() && !sends;
        (program.kind.is_only_on_kernel() || networked) && program.count > 0
    };
    if let Some(program) = job.case.workload.programs.iter().find(unknown) {
        return Err(LabError::OnlyOnKernel {
            what: format!(
                "program `{}` is one that only a kernel runs (kind `{}`{})",
                program.name,
                program.kind.name(),
                match program.network {
                    Some(_) => ", in a network",
                    None => "",
                }
            ),
        });
    }
    link::check(&job.case.workload, &job.choice)?;
    scheduler::check(&job.case.workload, &job.choice)
}

/// One case under one scheduler.
pub fn simulate(workload: &Workload, choice: &Choice) -> Result<SchedulerResult, LabError> {
    let loads = scheduler::loads(workload, choice);
    let begin_ns = ns(runner::lead_s(workload)) + if loads { LOADING_NS } else { 0 };
    let end_ns = begin_ns + ns(workload.duration_s);
    let trace_end_ns = begin_ns + ns(workload.trace_s);
    let made = scheduler::make(workload, choice, begin_ns..trace_end_ns)?;
    let mut machine = made.machine;
    for source in &workload.simulator.interrupts {
        machine.interrupt(source.clone());
    }
    let contracts = made.contracts;
    let starter = Starter::new(
        &mut *machine,
        workload,
        choice,
        made.classes,
        &contracts,
        begin_ns,
    );
    let instances = starter.start_all();

    machine.run_until(begin_ns);
    let before = machine.usage();
    let kept_before = contracts_now(&mut *machine, &contracts, &instances);
    let mut samples = Vec::new();
    let mut levels = Vec::new();
    let step_ns = ns(workload.sample_ms / 1e3);
    let mut at_ns = begin_ns;
    while at_ns < end_ns {
        at_ns = (at_ns + step_ns).min(end_ns);
        machine.run_until(at_ns);
        samples.push((at_ns - begin_ns, machine.usage()));
        let level = |instance: &Instance<'_>| machine.level(instance.id);
        levels.push(instances.iter().map(level).collect());
    }
    let measured = Measured {
        begin_ns,
        end_ns,
        before,
        samples,
        levels,
    };
    let kept = contracts_now(&mut *machine, &contracts, &instances);
    let kept = kept.into_iter().zip(kept_before).map(since);
    let arrivals = link::arrivals(workload, choice, begin_ns, end_ns);
    let programs = instances.iter().zip(&arrivals).enumerate();
    let programs = programs.map(|(place, (instance, arrived))| {
        let mut result = measured.program(&*machine, instance, place);
        if let Some(arrived) = arrived {
            collect::take_samples(&instance.program.kind, arrived, &mut result);
        }
        result
    });
    let mut programs: Vec<_> = programs.zip(kept).map(with_contract).collect();
    collect::share_arrivals(workload, &mut programs);
    Ok(SchedulerResult {
        name: choice.name(),
        ejected: machine.ejected().map(str::to_owned),
        idle_ns: measured.after().idle - measured.before.idle,
        sample_ns: measured.samples.iter().map(|(at_ns, _)| *at_ns).collect(),
        classes: workload
            .classes
            .iter()
            .map(|class| measured.class(workload, &instances, &class.path))
            .collect(),
        programs,
        runs: runs(&*machine, &instances, begin_ns),
        ..SchedulerResult::default()
    })
}

/// What became of a contract and its events, where there is one.
type Outcome = Option<(Kept, Delivered)>;

/// What became of each instance's contract so far.
fn contracts_now(
    machine: &mut dyn Simulation,
    contracts: &[Option<ContractId>],
    instances: &[Instance<'_>],
) -> Vec<Outcome> {
    let ids = instances.iter().map(|instance| instance.id.0 as usize);
    ids.map(|id| machine.kept(contracts[id]?)).collect()
}

/// What became of it since then. Events are told of as a whole.
fn since((now, before): (Outcome, Outcome)) -> Outcome {
    let ((now, delivered), (before, _)) = (now?, before?);
    let kept = Kept {
        deadlines: now.deadlines - before.deadlines,
        misses: now.misses - before.misses,
        violations: now.violations - before.violations,
        exhaustions: now.exhaustions - before.exhaustions,
        ..now
    };
    Some((kept, delivered))
}

/// Adds what became of its contract to a program's figures.
fn with_contract((mut result, kept): (ProgramResult, Outcome)) -> ProgramResult {
    if let Some((kept, delivered)) = kept {
        // One that never sleeps has no jobs, and so has missed none.
        if kept.deadlines > 0 {
            result.deadlines = Some(kept.deadlines);
            result.missed = Some(kept.misses);
        }
        result.violations = Some(kept.violations);
        result.exhaustions = Some(kept.exhaustions);
        if delivered.raised > 0 {
            result.events = Some(delivered.raised);
            result.swaps = Some(delivered.swaps());
        }
    }
    result
}

fn ns(seconds: f64) -> Ns {
    (seconds * NS_PER_S as f64).round() as Ns
}

fn from_ms(ms: f64) -> Ns {
    ns(ms / 1e3)
}

fn each_from_ms(list_ms: &[f64]) -> Vec<Ns> {
    list_ms.iter().map(|ms| from_ms(*ms)).collect()
}

/// One instance of one program of the scenario.
struct Instance<'a> {
    program: &'a Program,
    name: String,
    id: InstanceId,
    /// By how much its beats begin after the measurement.
    later_ns: Ns,
}

/// By how much the beats of an instance begin after the measurement.
fn beats_later_ns(program: &Program, number: u32) -> Ns {
    match program.kind.beat_s() {
        Some(_) => ns(program.later_s(number)),
        None => 0,
    }
}

/// Who ran when, in the stretch that the scenario wants traced.
fn runs(machine: &dyn Simulation, instances: &[Instance<'_>], begin_ns: Ns) -> Vec<Run> {
    let name = |id: InstanceId| {
        let instance = instances.iter().find(|instance| instance.id == id);
        instance.map_or_else(String::new, |instance| instance.name.clone())
    };
    let trace = machine.runs().iter();
    trace
        .filter(|run| run.start_ns + run.length_ns > begin_ns)
        .map(|run| {
            let before_ns = begin_ns.saturating_sub(run.start_ns);
            Run {
                cpu: run.cpu,
                tid: run.task.0 + 1,
                comm: name(machine.instance_of(run.task)),
                start_ns: run.start_ns + before_ns - begin_ns,
                length_ns: run.length_ns - before_ns,
                rule: Some(run.rule.name().to_owned()),
            }
        })
        .collect()
}
