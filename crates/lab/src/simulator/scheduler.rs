//! The simulated scheduler of a scenario: its classes, policies, containers and contracts.

use andante_sim::{
    ClassId, ContainerScheduler, ContainerShare, ContractId, Contracted, Hierarchy, NS_PER_MS, Ns,
    PolicyKind, Scheduler,
};

use super::admission::admitted;
use super::ns;
use crate::choice::Choice;
use crate::error::LabError;
use crate::scenario::{Class, Workload};

/// What a class gets at a pick: the kernel scheduler's `quantum_ns`.
const QUANTUM_NS: Ns = 2 * NS_PER_MS;

/// A scheduler with the scenario's classes and contracts.
pub(super) struct Made {
    pub scheduler: Box<dyn Scheduler>,
    /// The class of each path.
    pub classes: Vec<(String, ClassId)>,
    /// The contract of each instance, in the scenario's order.
    pub contracts: Vec<Option<ContractId>>,
}

/// Makes the scheduler `choice` for `workload`. Contracts are for Andante alone.
pub(super) fn make(workload: &Workload, choice: &Choice) -> Result<Made, LabError> {
    let cpus = workload.cpus as usize;
    let quantum_ms = workload.simulator.quantum_ms;
    let quantum_ns = quantum_ms.map_or(QUANTUM_NS, |ms| ns(ms / 1e3));
    match choice {
        Choice::Policy(kind) => {
            // Our scheduler alone knows classes: here all tasks are in one.
            let hierarchy = Hierarchy::new(cpus, quantum_ns, *kind);
            let classes = classes(workload, |_, _| Some(Hierarchy::ROOT))?;
            Ok(without_contracts(workload, Box::new(hierarchy), classes))
        }
        Choice::Containers(ticked) => {
            let mut containers = ContainerScheduler::new(*ticked);
            let classes = classes(workload, |parent, class| {
                let share = class
                    .fixed
                    .map_or(ContainerShare::Shared(class.weight), ContainerShare::Fixed);
                containers.create(parent, share)
            })?;
            Ok(without_contracts(workload, Box::new(containers), classes))
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
                return Ok(without_contracts(workload, Box::new(hierarchy), classes));
            }
            let options = &workload.simulator;
            let mut contracted =
                Contracted::new(cpus, hierarchy, options.contracts, options.events);
            let contracts = contracts(workload, &mut contracted)?;
            contracted.start_task_servers(0);
            Ok(Made {
                scheduler: Box::new(contracted),
                classes,
                contracts,
            })
        }
    }
}

fn without_contracts(
    workload: &Workload,
    scheduler: Box<dyn Scheduler>,
    classes: Vec<(String, ClassId)>,
) -> Made {
    let instances: u32 = workload.programs.iter().map(|program| program.count).sum();
    Made {
        scheduler,
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
