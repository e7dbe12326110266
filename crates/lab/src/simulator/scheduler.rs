//! The simulated scheduler of a scenario: its classes, policies, containers and contracts.

use std::ops::Range;

use andante_sched::{Options, Policy};
use andante_sim::{
    ClassId, ContainerScheduler, ContainerShare, ContractId, Contracted, Hardware, Hierarchy,
    InCharge, Kernel, Machine, NS_PER_MS, Ns, PolicyKind, Scheduler, Settings, Simulation,
};

use super::admission::{Promised, admitted, promised};
use super::ns;
use crate::choice::{ByHand, Choice};
use crate::error::LabError;
use crate::runner::own_class;
use crate::scenario::{Class, Program, Tuned, Workload};

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

/// Who schedules a simulated machine for this choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The scheduler that users run, or the kernel's own, on a modelled kernel.
    Kernel(InCharge),
    /// A model of its own.
    Model,
}

/// Why the choice cannot be simulated, if it cannot.
pub(super) fn obstacle(choice: &Choice) -> Option<String> {
    let only = |what: &str| Some(format!("the scheduler `{}` {what}", choice.name()));
    match choice {
        Choice::Dwcs => only("is not simulated so far"),
        Choice::Program(_) => only("is a program that loads its own into a kernel"),
        Choice::ByHand(ByHand::Deadline | ByHand::DeadlineMax) => {
            only("needs SCHED_DEADLINE, which is not simulated so far")
        }
        _ => None,
    }
}

fn kind(workload: &Workload, choice: &Choice) -> Kind {
    match choice {
        Choice::Eevdf | Choice::Stock | Choice::ByHand(_) => Kind::Kernel(InCharge::Stock),
        Choice::Historical(policy) => Kind::Kernel(historical(*policy)),
        Choice::Andante if is_the_kernels(workload) => {
            let options = Options::default();
            let leave = workload.leave_percent.unwrap_or(options.leave_percent);
            let learn = workload.learn_percent.unwrap_or(options.learn_percent);
            Kind::Kernel(InCharge::Andante(Settings {
                quantum_ns: QUANTUM_NS,
                in_class_wake_ns: IN_CLASS_WAKE_NS,
                contract_bound: part(100 - leave),
                learn_bound: part(learn),
                bindings: workload.binding,
            }))
        }
        _ => Kind::Model,
    }
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

/// Is it simulated on a modelled kernel, with all that the laboratory does there?
pub(super) fn is_on_kernel(workload: &Workload, choice: &Choice) -> bool {
    kind(workload, choice) != Kind::Model
}

/// Per cent as [1/1024], as `crates/sched` gives them to the BPF part.
fn part(percent: u32) -> u32 {
    percent * 1024 / 100
}

/// Does the scheduler that users run have all that the workload asks for?
fn is_the_kernels(workload: &Workload) -> bool {
    let simulator = &workload.simulator;
    *simulator == crate::scenario::Simulator::default()
        && workload.classes.iter().all(|class| class.policy.is_none())
        && workload.programs.iter().all(|program| {
            let contract = program.contract.as_ref();
            contract.is_none_or(|contract| {
                !contract.terms.events && contract.event_ns.is_empty() && contract.cpu.is_none()
            })
        })
}

/// Refuses what Andante would not promise, or does not have in the simulator.
pub(super) fn check(workload: &Workload) -> Result<(), LabError> {
    if is_the_kernels(workload) {
        return promised(workload).map(|_| ());
    }
    let by_class = |program: &&Program| {
        let contract = program.contract.as_ref();
        contract.is_some_and(|contract| contract.held_by_class) && program.count > 0
    };
    if let Some(program) = workload.programs.iter().find(by_class) {
        let name = &program.name;
        let what = format!("the contract of program `{name}` is held by its class");
        return Err(LabError::OnlyOnKernel { what });
    }
    admitted(workload).map(|_| ())
}

/// Makes the machine of `workload` under `choice`; who runs from `keep.start` to `keep.end` is kept.
/// Contracts are for Andante alone.
pub(super) fn make(
    workload: &Workload,
    choice: &Choice,
    keep: Range<Ns>,
) -> Result<Made, LabError> {
    let cpus = workload.cpus as usize;
    let quantum_ms = workload.simulator.quantum_ms;
    let quantum_ns = quantum_ms.map_or(QUANTUM_NS, |ms| ns(ms / 1e3));
    if let Kind::Kernel(in_charge) = kind(workload, choice) {
        return on_kernel(workload, choice, in_charge, keep);
    }
    match choice {
        Choice::Policy(kind) => {
            // Our scheduler alone knows classes: here all tasks are in one.
            let hierarchy = Hierarchy::new(cpus, quantum_ns, *kind);
            let classes = classes(workload, |_, _| Some(Hierarchy::ROOT))?;
            Ok(without_contracts(
                workload,
                model(workload, Box::new(hierarchy), keep),
                classes,
            ))
        }
        Choice::Containers(ticked) => {
            let mut containers = ContainerScheduler::new(*ticked);
            let classes = classes(workload, |parent, class| {
                let share = class
                    .fixed
                    .map_or(ContainerShare::Shared(class.weight), ContainerShare::Fixed);
                containers.create(parent, share)
            })?;
            Ok(without_contracts(
                workload,
                model(workload, Box::new(containers), keep),
                classes,
            ))
        }
        _ => {
            let mut hierarchy = Hierarchy::new(cpus, quantum_ns, PolicyKind::Sfq);
            let classes = classes(workload, |parent, class| {
                let kind = class.policy.unwrap_or(PolicyKind::Sfq);
                hierarchy.create(parent, class.weight, kind)
            })?;
            if workload
                .programs
                .iter()
                .all(|program| program.contract.is_none())
            {
                let machine = model(workload, Box::new(hierarchy), keep);
                return Ok(without_contracts(workload, machine, classes));
            }
            let options = &workload.simulator;
            let mut contracted =
                Contracted::new(cpus, hierarchy, options.contracts, options.events);
            let contracts = contracts(workload, &mut contracted)?;
            contracted.start_task_servers(0);
            Ok(Made {
                machine: model(workload, Box::new(contracted), keep),
                classes,
                contracts,
            })
        }
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
    let hardware = Hardware {
        cpus: workload.cpus as usize,
        shared_budget: workload.cpus > 1,
        domain_cpus: workload.domain_cpus,
        ..Hardware::default()
    };
    let mut kernel = Kernel::new(&hardware, in_charge, keep);
    let flat = *choice == Choice::Stock;
    let mut classes = classes(workload, |parent, class| match flat {
        true => Some(ClassId(0)),
        false => kernel.create(parent, class.weight),
    })?;
    if *choice == Choice::ByHand(ByHand::Weight) {
        for (program, tuned) in tuned(workload) {
            let path = own_class(program);
            let id = kernel.create(ClassId(0), tuned.weight);
            classes.push((path.clone(), id.ok_or(LabError::NoRoom { class: path })?));
        }
    }
    let contracts = match in_charge {
        InCharge::Andante(_) => Some(promises(workload, &mut kernel, &classes)?),
        InCharge::Historical { .. } | InCharge::Stock => None,
    };
    let made = without_contracts(workload, Box::new(kernel), classes);
    Ok(match contracts {
        Some(contracts) => Made { contracts, ..made },
        None => made,
    })
}

/// A contract for every instance that is promised one, as the daemon makes it.
fn promises(
    workload: &Workload,
    kernel: &mut Kernel,
    classes: &[(String, ClassId)],
) -> Result<Vec<Option<ContractId>>, LabError> {
    let instances = workload.programs.iter();
    let instances = instances.flat_map(|program| (0..program.count).map(move |_| program));
    instances
        .zip(promised(workload)?)
        .map(|(program, promised)| {
            let Some(Promised { promise, pieces }) = promised else {
                return Ok(None);
            };
            let by_class = program.contract.as_ref().is_some_and(|c| c.held_by_class);
            let class = classes.iter().find(|(path, _)| *path == program.class);
            let class = class.map(|(_, class)| *class).filter(|_| by_class);
            let made = kernel.promise(&promise, &pieces, class);
            made.map(Some).ok_or_else(|| LabError::NoContract {
                program: program.name.clone(),
                reason: "the scheduler has no room for it, or its class has one".to_owned(),
            })
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
    let instances: u32 = workload.programs.iter().map(|program| program.count).sum();
    Made {
        machine,
        classes,
        contracts: vec![None; instances as usize],
    }
}

/// A contract for every instance that is promised one.
fn contracts<S: Scheduler>(
    workload: &Workload,
    contracted: &mut Contracted<S>,
) -> Result<Vec<Option<ContractId>>, LabError> {
    let promised = workload.programs.iter();
    let promised = promised.flat_map(|program| (0..program.count).map(|_| &program.name));
    promised
        .zip(admitted(workload)?)
        .map(|(program, terms)| {
            let Some(terms) = terms else { return Ok(None) };
            let made = contracted.create(&terms);
            made.map(Some).ok_or_else(|| LabError::NoContract {
                program: program.clone(),
                reason: "there is no room in the table, or it cannot be split so".to_owned(),
            })
        })
        .collect()
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
