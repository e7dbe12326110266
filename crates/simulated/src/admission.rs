//! Where the contracts of a simulated workload run: admission says, as it does on a kernel.

use andante_admission::{Admission, Answer, Machine, Policy, System};
use andante_job::LabError;
use andante_runner::{asked_for, no_room};
use andante_scenario::choice::Choice;
use andante_scenario::{Contract, Program, Workload};
use andante_sched::Options;
use andante_sim::{Piece, Promise};

/// Nothing is promised yet on the workload's CPUs.
fn system_of(workload: &Workload) -> System {
    let leave = workload.contracts.leave_percent;
    let machine = Machine {
        // The first domain serves contracts.
        cpus: workload.domain_cpus.unwrap_or(workload.cpus),
        left_for_others_per_mille: 10 * leave.unwrap_or(Options::default().leave_percent),
    };
    System::new(machine, Policy::default()).expect("a machine")
}

/// What the daemon would have the kernel promise.
#[derive(Debug)]
pub(super) struct Promised {
    /// As `core/contract.h` has it.
    pub promise: Promise,
    /// Its pieces, if it is split.
    pub pieces: Vec<Piece>,
}

/// The promise to every instance, in the scenario's order: as on a kernel, or as it is asked for where
/// the scenario wants no admission, or the scheduler has none.
///
/// # Errors
/// A contract for which there is no room.
pub(super) fn promised(
    workload: &Workload,
    choice: &Choice,
) -> Result<Vec<Option<Promised>>, LabError> {
    match workload.simulator.admission && *choice != Choice::Dwcs {
        true => admitted(workload),
        false => Ok(as_asked_for(workload)),
    }
}

/// On the CPUs in turn, if the contract names none.
fn as_asked_for(workload: &Workload) -> Vec<Option<Promised>> {
    let mut in_turn = (0..workload.cpus).cycle();
    let promised = workload.instances().map(|program| {
        let contract = program.contract.as_ref()?;
        let next = || in_turn.next().expect("a machine has a CPU");
        Some(Promised {
            promise: Promise {
                cpu: contract.cpu.unwrap_or_else(next),
                ..contract.promise
            },
            pieces: Vec::new(),
        })
    });
    promised.collect()
}

fn admitted(workload: &Workload) -> Result<Vec<Option<Promised>>, LabError> {
    let mut system = system_of(workload);
    let mut made = Vec::new();
    for program in &workload.programs {
        for instance in 0..program.count {
            let Some(contract) = &program.contract else {
                made.push(None);
                continue;
            };
            let terms = asked_for(contract);
            let admission = admit(&mut system, program, contract, instance)?;
            let window = andante_daemon::by_windows(&terms, &admission);
            let (promise, pieces) = andante_daemon::promise(&terms, &admission.placement, window);
            made.push(Some(Promised {
                promise: Promise {
                    budget_ns: promise.budget_ns,
                    period_ns: promise.period_ns,
                    deadline_rel_ns: promise.deadline_ns,
                    x: promise.losses,
                    y: promise.window,
                    flags: promise.flags,
                    cpu: promise.cpu,
                },
                pieces: pieces.iter().map(piece).collect(),
            }));
        }
    }
    Ok(made)
}

fn piece(piece: &andante_sched::contracts::Piece) -> Piece {
    Piece {
        cpu: piece.cpu,
        budget_ns: piece.budget_ns,
        offset_ns: piece.offset_ns,
        window_ns: piece.window_ns,
        ..Piece::default()
    }
}

fn admit(
    system: &mut System,
    program: &Program,
    contract: &Contract,
    instance: u32,
) -> Result<Admission, LabError> {
    let terms = asked_for(contract);
    let mut asked = terms.contract(&format!("{}-{instance}", program.name));
    if let Some(cpu) = contract.cpu {
        asked = asked.with_cpu(cpu);
    }
    let refused = |reason: String| LabError::NoContract {
        program: program.name.clone(),
        reason,
    };
    match system.admit(asked) {
        Ok(Answer::Admitted(admission)) => Ok(admission),
        Ok(Answer::Refused(refusal)) => Err(refused(format!(
            "{}, with {} of every CPU left to others",
            no_room(&terms, &refusal),
            percent(system.machine().left_for_others_per_mille)
        ))),
        Err(error) => Err(refused(error.to_string())),
    }
}

fn percent(per_mille: u32) -> String {
    format!("{} %", f64::from(per_mille) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_scenario::Scenario;

    fn workload(cpus: u32, budget_ms: u32, count: u32, more: &str) -> Workload {
        let text = format!(
            "title = 'x'\nduration_s = 1\ncpus = {cpus}\n[contracts]\nleave_percent = 5\n\
             [programs.film]\nclass = '/'\nkind = 'loop'\ncount = {count}\n\
             contract = {{ budget_ms = {budget_ms}, period_ms = 10 }}\n{more}"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload
    }

    #[test]
    fn what_there_is_no_room_for_is_refused_and_what_would_fit_is_named() {
        assert_eq!(admitted(&workload(1, 4, 2, "")).unwrap().len(), 2);
        let error = admitted(&workload(1, 4, 3, "")).unwrap_err().to_string();
        for part in [
            "`film`",
            "4 ms of every 10 ms",
            "1.5 ms",
            "5 %",
            "admission = false",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_fits_on_no_cpu_is_split() {
        let made = admitted(&workload(2, 6, 3, "")).unwrap();
        let split: Vec<usize> = made
            .iter()
            .map(|t| t.as_ref().unwrap().pieces.len())
            .collect();
        assert_eq!(split, [0, 0, 2]);
    }

    #[test]
    fn unadmitted_contracts_take_the_cpus_in_turn() {
        let made = promised(
            &workload(2, 9, 3, "[simulator]\nadmission = false"),
            &Choice::Andante,
        )
        .unwrap();
        let cpus: Vec<u32> = made
            .iter()
            .map(|t| t.as_ref().unwrap().promise.cpu)
            .collect();
        assert_eq!(cpus, [0, 1, 0]);
    }
}
