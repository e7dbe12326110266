//! The simulated scheduler of a scenario: its classes, policies, containers and contracts.

use std::ops::Range;

use andante_job::LabError;
use andante_runner::own_class;
use andante_scenario::choice::{ByHand, Choice};
use andante_scenario::{Bandwidth, Class, Kind, Program, Tuned, Workload};
use andante_sched::{Options, Policy};
use andante_sim::{
    ClassId, ContainerScheduler, ContainerShare, ContractId, Coordination, Hardware, InCharge,
    Kernel, Machine, NS_PER_MS, Ns, OneClass, PolicyKind, Promise, Scheduler, Servers, Settings,
    Simulation,
};

use super::admission::{Promised, promised};
use super::ns;

/// What a class gets at a pick: the kernel scheduler's `quantum_ns`.
const QUANTUM_NS: Ns = 2 * NS_PER_MS;
/// Service before a classmate may preempt: its `in_class_wake_ns`.
const IN_CLASS_WAKE_NS: Ns = 200_000;

/// A machine with the scenario's classes and contracts.
pub(super) struct Made {
    pub machine: Box<dyn Simulation>,
    /// The class of each path.
    pub classes: Vec<(String, ClassId)>,
    /// The contract of each instance, in the scenario's order.
    pub contracts: Vec<Option<ContractId>>,
}

/// The scheduler of a modelled kernel under this choice; none: the choice has a machine of its own.
fn in_charge(workload: &Workload, choice: &Choice) -> Option<InCharge> {
    match choice {
        Choice::Eevdf | Choice::Stock | Choice::ByHand(_) => Some(InCharge::Stock),
        Choice::Historical(policy) => Some(historical(*policy)),
        Choice::Andante | Choice::Dwcs => {
            let mut options = Options::default();
            if let Some(percent) = workload.contracts.leave_percent {
                options.leave_percent = percent;
            }
            if let Some(percent) = workload.learn_percent {
                options.learn_percent = percent;
            }
            if *choice == Choice::Dwcs {
                options.learn_percent = 0;
            }
            Some(InCharge::Andante(Settings {
                quantum_ns: quantum_ns(workload),
                in_class_wake_ns: IN_CLASS_WAKE_NS,
                contract_bound: part(100 - options.leave_percent),
                learn_bound: part(options.learnt_percent()),
                bindings: workload.binding,
                events: workload.contracts.events.map(|rules| Coordination {
                    left_out: rules.left_out(),
                    task_server: rules.server,
                }),
            }))
        }
        Choice::Policy(_) | Choice::Containers(_) | Choice::Servers => None,
        Choice::Program(_) => None,
    }
}

fn quantum_ns(workload: &Workload) -> Ns {
    let quantum_ms = workload.simulator.quantum_ms;
    quantum_ms.map_or(QUANTUM_NS, |ms| ns(ms / 1e3))
}

/// As `andante run --policy` puts it in charge.
fn historical(policy: Policy) -> InCharge {
    InCharge::Historical {
        policy: match policy {
            Policy::Svr4Ts | Policy::Svr4Rt => PolicyKind::Svr4,
            Policy::Svr4New => PolicyKind::Svr4New,
            Policy::Linux22 => PolicyKind::Linux22,
            Policy::Fifo => PolicyKind::Fifo,
            Policy::RoundRobin => PolicyKind::RoundRobin,
        },
        nice_is_real_time: policy == Policy::Svr4Rt,
    }
}

/// Whether its programs are loaded as the laboratory does it on a kernel. An ideal machine has them from
/// the beginning.
pub(super) fn loads(workload: &Workload, choice: &Choice) -> bool {
    in_charge(workload, choice).is_some() && !workload.simulator.ideal
}

/// Per cent as [1/1024], as `crates/sched` gives them to the BPF part.
fn part(percent: u32) -> u32 {
    percent * 1024 / 100
}

/// Refuses what cannot be simulated under this choice, and contracts that would not be promised.
pub(super) fn check(workload: &Workload, choice: &Choice) -> Result<(), LabError> {
    let only = |what: &str| {
        let what = format!("the scheduler `{}` {what}", choice.name());
        Err(LabError::OnlyOnKernel { what })
    };
    let limited = workload.classes.iter().find(|class| class.limits.any());
    if let (Some(class), true) = (limited, enforces_no_quota(choice)) {
        return only(&format!(
            "has a model that enforces no quota, and class `{}` has one",
            class.path
        ));
    }
    match choice {
        Choice::Program(_) => only("is a program that loads its own into a kernel"),
        Choice::ByHand(ByHand::Deadline | ByHand::DeadlineMax) => {
            only("needs SCHED_DEADLINE, which is not simulated so far")
        }
        Choice::Containers(_) if workload.cpus > 1 => Err(LabError::OneCpu {
            scheduler: choice.name(),
        }),
        Choice::Andante | Choice::Dwcs => match asks_for_events(workload) {
            Some(what) => Err(LabError::OnlyServers { what }),
            None => promised(workload, choice).map(|_| ()),
        },
        Choice::Servers => promised(workload, choice).map(|_| ()),
        _ => Ok(()),
    }
}

/// Where classes have quotas, and there is no quota in the simulator. With nothing configured nobody has any.
fn enforces_no_quota(choice: &Choice) -> bool {
    !matches!(choice, Choice::Andante | Choice::Dwcs | Choice::Stock)
}

/// The part of the workload that the scheduler of users does not have.
fn asks_for_events(workload: &Workload) -> Option<String> {
    let has_events = |program: &&Program| {
        let contract = program.contract.as_ref();
        let says = matches!(program.kind, Kind::Sink { .. });
        contract.is_some_and(|contract| contract.events && !says || !contract.event_ns.is_empty())
    };
    if let Some(program) = workload.programs.iter().find(has_events) {
        let name = &program.name;
        return Some(format!("the contract of program `{name}` has events"));
    }
    let asked = workload.simulator.servers != andante_sim::ServerOptions::default();
    asked.then(|| "[simulator] says how contracts are coordinated with events".to_owned())
}

/// Makes the machine of `workload` under `choice`; who runs from `keep.start` to `keep.end` is kept.
pub(super) fn make(
    workload: &Workload,
    choice: &Choice,
    keep: Range<Ns>,
) -> Result<Made, LabError> {
    if let Some(in_charge) = in_charge(workload, choice) {
        return on_kernel(workload, choice, in_charge, keep);
    }
    let cpus = workload.cpus as usize;
    match choice {
        Choice::Policy(kind) => {
            let quantum_ns = quantum_ns(workload);
            let scheduler = OneClass::new(cpus, *kind, quantum_ns, IN_CLASS_WAKE_NS);
            let classes = classes(workload, |_, _| Some(ClassId(0)))?;
            let machine = model(workload, Box::new(scheduler), keep);
            Ok(without_contracts(workload, machine, classes))
        }
        Choice::Containers(ticked) => {
            let mut containers = ContainerScheduler::new(*ticked);
            let classes = classes(workload, |parent, class| {
                let share = class
                    .fixed
                    .map_or(ContainerShare::Shared(class.weight), ContainerShare::Fixed);
                containers.create(parent, share)
            })?;
            let machine = model(workload, Box::new(containers), keep);
            Ok(without_contracts(workload, machine, classes))
        }
        Choice::Servers => {
            let mut servers = Servers::new(cpus, quantum_ns(workload), workload.simulator.servers);
            let contracts = event_contracts(workload, choice, &mut servers)?;
            servers.start_task_servers(0);
            let classes = classes(workload, |_, _| Some(ClassId(0)))?;
            Ok(Made {
                machine: model(workload, Box::new(servers), keep),
                classes,
                contracts,
            })
        }
        _ => unreachable!("checked before: {} is not simulated", choice.name()),
    }
}

/// A contract for every instance that is promised one, with the events that it asks for.
fn event_contracts(
    workload: &Workload,
    choice: &Choice,
    servers: &mut Servers,
) -> Result<Vec<Option<ContractId>>, LabError> {
    let made = workload.instances().zip(promised(workload, choice)?);
    let made = made.map(|(program, promised)| {
        let (Some(contract), Some(promised)) = (&program.contract, promised) else {
            return Ok(None);
        };
        if !promised.pieces.is_empty() {
            return Err(LabError::NoContract {
                program: program.name.clone(),
                reason: "it would have to be split, and these servers have one CPU each".to_owned(),
            });
        }
        let promise = Promise {
            cpu: promised.promise.cpu,
            ..contract.promise
        };
        // The events of a sink come at instants of their own, not with its waking.
        let events = contract.events && !matches!(program.kind, Kind::Sink { .. });
        let made = servers.create(&promise, events);
        made.map(Some).ok_or_else(|| no_room_for(program))
    });
    made.collect()
}

fn no_room_for(program: &Program) -> LabError {
    LabError::NoContract {
        program: program.name.clone(),
        reason: "the scheduler has no room for it, or its class has one".to_owned(),
    }
}

/// A machine on which a scheduler of its own decides, at no cost but what the scenario says.
fn model(
    workload: &Workload,
    scheduler: Box<dyn Scheduler>,
    keep: Range<Ns>,
) -> Box<dyn Simulation> {
    let cpus = workload.cpus as usize;
    Box::new(Machine::new(
        cpus,
        workload.simulator.costs,
        scheduler,
        keep,
    ))
}

/// A machine with a modelled kernel.
fn on_kernel(
    workload: &Workload,
    choice: &Choice,
    in_charge: InCharge,
    keep: Range<Ns>,
) -> Result<Made, LabError> {
    let simulator = &workload.simulator;
    let hardware = Hardware {
        cpus: workload.cpus as usize,
        shared_budget: workload.cpus > 1 && simulator.shared_speed,
        domain_cpus: workload.domain_cpus,
        topology: workload.topology,
        ..match simulator.ideal {
            true => Hardware::ideal(simulator.costs),
            false => Hardware::default(),
        }
    };
    let begin_ns = keep.start;
    let mut kernel = Kernel::new(&hardware, in_charge, keep);
    let flat = *choice == Choice::Stock;
    let mut classes = classes(workload, |parent, class| match flat {
        true => Some(ClassId(0)),
        false => kernel.create(parent, class.weight),
    })?;
    if !flat {
        limit(
            workload,
            &mut kernel,
            &classes,
            begin_ns,
            matches!(in_charge, InCharge::Andante(_)),
        );
    }
    if *choice == Choice::ByHand(ByHand::Weight) {
        for (program, tuned) in tuned(workload) {
            let path = own_class(program);
            let id = kernel.create(ClassId(0), tuned.weight);
            classes.push((path.clone(), id.ok_or(LabError::NoRoom { class: path })?));
        }
    }
    let contracts = match in_charge {
        InCharge::Andante(_) => Some(promises(workload, choice, &mut kernel, &classes)?),
        InCharge::Historical { .. } | InCharge::Stock => None,
    };
    let made = without_contracts(workload, Box::new(kernel), classes);
    Ok(match contracts {
        Some(contracts) => Made { contracts, ..made },
        None => made,
    })
}

/// Classes have their quotas, now and later in the measurement, which begins at `begin_ns`; and their policies,
/// under a scheduler that has them.
fn limit(
    workload: &Workload,
    kernel: &mut Kernel,
    classes: &[(String, ClassId)],
    begin_ns: Ns,
    has_policies: bool,
) {
    for class in &workload.classes {
        let known = classes.iter().find(|(path, _)| *path == class.path);
        let id = known.expect("all have been made").1;
        let of = |bandwidth: &Bandwidth| andante_sim::Bandwidth {
            quota_us: bandwidth.quota_us,
            period_us: bandwidth.period_us,
            burst_us: bandwidth.burst_us,
        };
        if class.idle {
            kernel.idle(id);
        }
        if let Some(policy) = class.policy.filter(|_| has_policies) {
            let (kind, quantum_ns, nice_is_real_time) = policy.raw();
            let policy = andante_sim::LeafPolicy {
                kind,
                quantum_ns,
                nice_is_real_time,
            };
            kernel.policy(0, id, policy);
        }
        if let Some(first) = &class.limits.first {
            kernel.limit(0, id, of(first));
        }
        for (later_ns, later) in &class.limits.later {
            kernel.limit(begin_ns + later_ns, id, of(later));
        }
    }
}

/// A contract for every instance that is promised one, as the daemon makes it.
fn promises(
    workload: &Workload,
    choice: &Choice,
    kernel: &mut Kernel,
    classes: &[(String, ClassId)],
) -> Result<Vec<Option<ContractId>>, LabError> {
    workload
        .instances()
        .zip(promised(workload, choice)?)
        .map(|(program, promised)| {
            let Some(Promised { promise, pieces }) = promised else {
                return Ok(None);
            };
            let by_class = program.contract.as_ref().is_some_and(|c| c.held_by_class);
            let class = classes.iter().find(|(path, _)| *path == program.class);
            let class = class.map(|(_, class)| *class).filter(|_| by_class);
            let made = kernel.promise(&promise, &pieces, class);
            made.map(Some).ok_or_else(|| no_room_for(program))
        })
        .collect()
}

/// Programs for which an expert sets something by hand.
fn tuned(workload: &Workload) -> impl Iterator<Item = (&Program, &Tuned)> {
    let running = workload.programs.iter().filter(|program| program.count > 0);
    running.filter_map(|program| Some((program, program.tuned.as_ref()?)))
}

fn without_contracts(
    workload: &Workload,
    machine: Box<dyn Simulation>,
    classes: Vec<(String, ClassId)>,
) -> Made {
    Made {
        machine,
        classes,
        contracts: vec![None; workload.instances().count()],
    }
}

/// The class of each path, made by `create` below its parent's.
fn classes(
    workload: &Workload,
    mut create: impl FnMut(ClassId, &Class) -> Option<ClassId>,
) -> Result<Vec<(String, ClassId)>, LabError> {
    let mut known = vec![("/".to_owned(), ClassId(0))];
    for class in &workload.classes {
        let parent = known.iter().find(|(path, _)| path == class.parent());
        let parent = parent.expect("parents come before children").1;
        let id = create(parent, class).ok_or_else(|| LabError::NoRoom {
            class: class.path.clone(),
        })?;
        known.push((class.path.clone(), id));
    }
    Ok(known)
}
