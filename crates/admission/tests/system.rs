// SPDX-License-Identifier: GPL-2.0
//! Questions to a machine: reasons, offers, contracts that come and go, and input that makes no
//! sense.

use andante_admission::experiment::Random;
use andante_admission::{
    Answer, AskError, Contract, ContractError, Duration, Failure, Fit, MAX_CONTRACTS,
    MAX_PERIOD_NS, MAX_STRETCH, Machine, Order, Overload, Placement, Policy, Promise, Splitting,
    System, Test,
};

/// EDF-WM without a least piece: most tests count in single units.
const EDF_WM: Policy = Policy::edf_wm(Fit::First, Order::Given);

const MS: u64 = 1_000_000;

fn system(cpus: u32, policy: Policy) -> System {
    System::new(Machine::whole(cpus), policy).unwrap()
}

fn admit(system: &mut System, name: &str, budget: u64, period: u64) -> Placement {
    let answer = system.admit(Contract::new(name, budget, period)).unwrap();
    answer.admission().expect("there is room").placement.clone()
}

fn whole(cpu: u32) -> Placement {
    Placement::Whole { cpu }
}

#[test]
fn every_fit_tries_its_own_cpu_first() {
    let place = |fit| {
        let mut system = system(3, Policy::partitioned(fit, Order::Given));
        for (cpu, budget) in [5, 6, 2].into_iter().enumerate() {
            let contract = Contract::new(format!("c{cpu}"), budget, 10).with_cpu(cpu as u32);
            system.admit(contract).unwrap();
        }
        admit(&mut system, "new", 3, 10)
    };
    assert_eq!(place(Fit::First), whole(0));
    assert_eq!(place(Fit::Best), whole(1));
    assert_eq!(place(Fit::Worst), whole(2));
}

#[test]
fn decreasing_order_places_those_bound_to_a_cpu_first() {
    let contracts = [
        Contract::new("small", 2, 10),
        Contract::new("large", 8, 10),
        Contract::new("bound", 3, 10).with_cpu(0),
    ];
    let placements = |order| {
        let mut system = system(2, Policy::partitioned(Fit::First, order));
        let answers = system.admit_all(&contracts).unwrap();
        let placement = |answer: &Answer| answer.admission().map(|a| a.placement.clone());
        answers.iter().map(placement).collect::<Vec<_>>()
    };
    let given = [Some(whole(0)), Some(whole(0)), None];
    assert_eq!(placements(Order::Given), given);
    let decreasing = [Some(whole(0)), Some(whole(1)), Some(whole(0))];
    assert_eq!(placements(Order::Decreasing), decreasing);
}

#[test]
fn a_refusal_names_the_test_the_instant_and_the_holders() {
    let policy = Policy::partitioned(Fit::First, Order::Given);
    let mut system = system(1, policy);
    admit(&mut system, "film", 4 * MS, 10 * MS);
    admit(&mut system, "mixer", MS, 4 * MS);
    let early = Contract::new("game", 3 * MS, 20 * MS).with_deadline_ns(5 * MS);
    let answer = system.ask(&early).unwrap();
    let admission = answer.admission().unwrap();
    assert_eq!(
        (admission.test, admission.promise),
        (Test::Demand, Promise::EveryDeadline)
    );

    let earlier = Contract::new("game", 3 * MS, 20 * MS).with_deadline_ns(3 * MS);
    assert!(system.ask(&earlier).unwrap().admission().is_some());
    let more = Contract::new("game", 4 * MS, 20 * MS).with_deadline_ns(4 * MS);
    let answer = system.ask(&more).unwrap();
    let refusal = answer.refusal().unwrap();
    let obstacle = &refusal.cpus[0];
    assert_eq!(obstacle.failure, Failure::Demand);
    // By 4 ms the mixer needs its millisecond and the game all of its four.
    let overload = Overload {
        at_ns: 4 * MS,
        demand_ns: 5 * MS,
        supply_ns: 4 * MS,
    };
    assert_eq!(obstacle.overload, Some(overload));
    let holders: Vec<_> = obstacle
        .holders
        .iter()
        .map(|holder| (holder.name.as_str(), holder.share_ppm, holder.demand_ns))
        .collect();
    assert_eq!(
        holders,
        [("film", 400_000, Some(0)), ("mixer", 250_000, Some(MS))]
    );
    let offer = refusal.nearest.largest_budget.as_ref().unwrap();
    assert_eq!(offer.contract.budget_ns, 3 * MS);
    // No period helps: the deadline stands.
    assert_eq!(refusal.nearest.shortest_period, None);

    let heavy = Contract::new("game", 4 * MS, 10 * MS);
    let answer = system.ask(&heavy).unwrap();
    let refusal = answer.refusal().unwrap();
    let failure = Failure::Utilisation {
        asked_ppm: 1_050_000,
        supply_ppm: 1_000_000,
    };
    assert_eq!(refusal.cpus[0].failure, failure);
    let nearest = &refusal.nearest;
    let offer = nearest.largest_budget.as_ref().unwrap();
    assert_eq!(offer.contract.budget_ns, 3_500_000);
    let offer = nearest.shortest_period.as_ref().unwrap();
    // 4 / T = 0.35 at 11.428572 ms: the next that a person would type.
    assert_eq!(offer.contract.period_ns, 11_500_000);
    assert_eq!(offer.contract.deadline_ns, offer.contract.period_ns);
    assert_eq!(offer.admission.placement, whole(0));
}

#[test]
fn a_refused_split_says_how_far_it_would_go() {
    let mut system = system(2, EDF_WM);
    admit(&mut system, "a", 8, 10);
    admit(&mut system, "b", 8, 10);
    let answer = system.ask(&Contract::new("c", 5, 10)).unwrap();
    let shortage = answer.refusal().unwrap().split.unwrap();
    assert_eq!((shortage.pieces, shortage.window_ns), (2, 5));
    assert_eq!((shortage.found_ns, shortage.needed_ns), (4, 5));
    let bound = Contract::new("c", 5, 10).with_cpu(1);
    let refusal = system.ask(&bound).unwrap();
    let refusal = refusal.refusal().unwrap();
    assert_eq!(refusal.split, None, "what is bound to a CPU is not split");
    assert_eq!(refusal.cpus.len(), 1);
    assert_eq!(refusal.cpus[0].cpu, 1);
}

/// An offer can be typed, and is given then: a budget below, a period above the one that just fits.
#[test]
fn offers_are_round_and_admitted() {
    let mut random = Random::new(11);
    let (mut budgets, mut periods) = (0, 0);
    for _ in 0..300 {
        let mut system = system(1, EDF_WM);
        let period_ns = random.within(1_000_000, 90_000_000);
        let held_ns = random.within(period_ns / 9, period_ns / 2);
        let held = Contract::new("held", held_ns, period_ns);
        system.admit(held).unwrap();
        let period_ns = random.within(1_000_000, 90_000_000);
        let wanted = Contract::new("wanted", period_ns - period_ns / 11, period_ns);
        let answer = system.ask(&wanted).unwrap();
        let Some(refusal) = answer.refusal() else {
            continue;
        };
        let offers = [
            &refusal.nearest.largest_budget,
            &refusal.nearest.shortest_period,
        ];
        for (offer, period) in offers.into_iter().zip([false, true]) {
            let Some(offer) = offer else { continue };
            let ns = match period {
                false => offer.contract.budget_ns,
                true => offer.contract.period_ns,
            };
            assert_eq!(ns % 10_u64.pow(ns.ilog10() - 2), 0, "{ns} has three digits");
            let typed = format!("{}", Duration(ns)).parse::<Duration>().unwrap();
            assert_eq!(typed.0, ns);
            let again = system.ask(&offer.contract).unwrap();
            assert_eq!(again.admission(), Some(&offer.admission));
            match period {
                false => budgets += 1,
                true => periods += 1,
            }
        }
    }
    assert!(budgets > 200 && periods > 200, "{budgets} and {periods}");
}

/// Random machines in small numbers: an offer is admitted when asked for, and the next better
/// contract is not.
#[test]
fn offers_are_admitted_and_nothing_nearer_is() {
    let mut random = Random::new(7);
    let splittings = [Splitting::None, EDF_WM.splitting, Splitting::ZeroLaxity];
    let (mut budgets, mut periods) = (0, 0);
    for set in 0..600 {
        let splitting = splittings[set % 3];
        let policy = Policy {
            splitting,
            only_proved: true,
            ..EDF_WM
        };
        let cpus = random.within(1, 3) as u32;
        let left_for_others_per_mille = random.within(0, 1) as u32 * 200;
        let machine = Machine {
            cpus,
            left_for_others_per_mille,
        };
        let mut system = System::new(machine, policy).unwrap();
        for at in 0..4 * cpus {
            let contract = small_contract(&mut random, at);
            let answer = system.admit(contract.clone()).unwrap();
            let Answer::Refused(refusal) = answer else {
                continue;
            };
            let admitted = |contract: &Contract| system.ask(contract).unwrap().admission().cloned();
            if let Some(offer) = &refusal.nearest.largest_budget {
                assert_eq!(admitted(&offer.contract), Some(offer.admission.clone()));
                let budget_ns = offer.contract.budget_ns + 1;
                let more = Contract {
                    budget_ns,
                    ..offer.contract.clone()
                };
                assert_eq!(admitted(&more), None, "{more:?} instead of {contract:?}");
                budgets += 1;
            } else {
                let least = Contract {
                    budget_ns: 1,
                    ..contract.clone()
                };
                assert_eq!(admitted(&least), None);
            }
            if let Some(offer) = &refusal.nearest.shortest_period {
                assert_eq!(admitted(&offer.contract), Some(offer.admission.clone()));
                let mut shorter = offer.contract.clone();
                shorter.period_ns -= 1;
                shorter.deadline_ns = shorter.deadline_ns.min(shorter.period_ns);
                assert_eq!(
                    admitted(&shorter),
                    None,
                    "{shorter:?} instead of {contract:?}"
                );
                assert!(offer.contract.period_ns <= contract.period_ns * MAX_STRETCH);
                periods += 1;
            }
        }
    }
    assert!(
        budgets > 300 && periods > 300,
        "{budgets} and {periods} offers"
    );
}

fn small_contract(random: &mut Random, at: u32) -> Contract {
    let period = random.within(2, 24);
    let budget = random.within(1, period);
    let deadline = random.within(0, 1) * random.within(budget, period);
    let contract = Contract::new(format!("c{at}"), budget, period);
    if deadline == 0 {
        contract
    } else {
        contract.with_deadline_ns(deadline)
    }
}

#[test]
fn contracts_that_are_placed_never_move_and_a_question_changes_nothing() {
    let mut random = Random::new(11);
    let mut system = system(3, EDF_WM);
    for at in 0..200 {
        let before: Vec<_> = placements(&system);
        let contract = small_contract(&mut random, at);
        let asked = system.ask(&contract).unwrap();
        assert_eq!(placements(&system), before);
        assert_eq!(
            system.admit(contract.clone()).unwrap(),
            asked,
            "asked twice"
        );
        let after = placements(&system);
        assert_eq!(after[..before.len()], before);
        assert_eq!(
            after.len() - before.len(),
            usize::from(asked.admission().is_some())
        );
        if at % 3 == 0 && !after.is_empty() {
            let name = after[random.within(0, after.len() as u64 - 1) as usize]
                .0
                .clone();
            assert!(system.release(&name) && !system.release(&name));
        }
    }
    assert!(!system.release("nobody"));
}

fn placements(system: &System) -> Vec<(String, Placement)> {
    let held = system.held();
    held.map(|(contract, placement)| (contract.name.clone(), placement.clone()))
        .collect()
}

#[test]
fn what_is_released_can_be_had_again() {
    let mut system = system(2, EDF_WM);
    for name in ["a", "b", "c"] {
        admit(&mut system, name, 6 * MS, 10 * MS);
    }
    let again = Contract::new("d", 6 * MS, 10 * MS);
    assert!(system.ask(&again).unwrap().refusal().is_some());
    assert!(system.release("c"));
    assert!(admit(&mut system, "d", 6 * MS, 10 * MS).is_split());
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    let system = system(2, EDF_WM);
    let contract = || Contract::new("c", 5, 10);
    let reason = |contract| match system.ask(&contract) {
        Err(AskError::Contract(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        reason(Contract {
            name: String::new(),
            ..contract()
        }),
        ContractError::NoName
    );
    assert_eq!(reason(Contract::new("c", 0, 10)), ContractError::NoBudget);
    assert_eq!(reason(Contract::new("c", 1, 0)), ContractError::NoPeriod);
    assert_eq!(
        reason(Contract::new("c", 1, MAX_PERIOD_NS + 1)),
        ContractError::PeriodTooLong
    );
    assert!(system.ask(&Contract::new("c", 1, MAX_PERIOD_NS)).is_ok());
    let late = ContractError::DeadlineAfterPeriod {
        deadline_ns: 11,
        period_ns: 10,
    };
    assert_eq!(reason(contract().with_deadline_ns(11)), late);
    let short = ContractError::BudgetAfterDeadline {
        budget_ns: 5,
        deadline_ns: 4,
    };
    assert_eq!(reason(contract().with_deadline_ns(4)), short);
    let more = ContractError::MoreLossesThanPeriods(contract().with_tolerance(3, 2).tolerance);
    assert_eq!(reason(contract().with_tolerance(3, 2)), more);
    let nowhere = ContractError::NoSuchCpu { cpu: 2, cpus: 2 };
    assert_eq!(reason(contract().with_cpu(2)), nowhere);

    let machine = |cpus, left| Machine {
        cpus,
        left_for_others_per_mille: left,
    };
    let new = |cpus, left| System::new(machine(cpus, left), EDF_WM).err();
    assert_eq!(new(0, 0), Some(AskError::BadCpus(0)));
    assert_eq!(new(1025, 0), Some(AskError::BadCpus(1025)));
    assert_eq!(new(1, 1000), Some(AskError::NothingLeft(1000)));
}

#[test]
fn names_are_unique_and_the_table_has_an_end() {
    let mut system = system(1, EDF_WM);
    for at in 0..MAX_CONTRACTS {
        admit(&mut system, &at.to_string(), 1, MAX_PERIOD_NS);
    }
    let twice = system.ask(&Contract::new("0", 1, 10));
    assert_eq!(twice, Err(AskError::NameTaken("0".into())));
    assert_eq!(
        system.ask(&Contract::new("new", 1, 10)),
        Err(AskError::Full)
    );
}

/// Whatever numbers come in, an answer or an error goes out, and soon.
#[test]
fn numbers_of_any_size_never_panic() {
    let mut random = Random::new(3);
    let interesting = [
        0,
        1,
        2,
        999,
        1000,
        MAX_PERIOD_NS - 1,
        MAX_PERIOD_NS,
        1 << 63,
        u64::MAX,
    ];
    let number = |random: &mut Random| match random.within(0, 4) {
        0 => interesting[random.within(0, interesting.len() as u64 - 1) as usize],
        1 => random.bits(),
        2 => random.within(1, MAX_PERIOD_NS),
        3 => MAX_PERIOD_NS - random.within(0, 1000),
        _ => random.within(1, 100),
    };
    for round in 0..300 {
        let left_for_others_per_mille = random.within(0, 1100) as u32;
        let cpus = random.within(0, 6) as u32;
        let splitting = [EDF_WM.splitting, Splitting::ZeroLaxity][round % 2];
        let policy = Policy {
            splitting,
            ..EDF_WM
        };
        let machine = Machine {
            cpus,
            left_for_others_per_mille,
        };
        let Ok(mut system) = System::new(machine, policy) else {
            continue;
        };
        for at in 0..8 {
            let (period_ns, budget) = (number(&mut random), number(&mut random));
            let within = |random: &mut Random, most: u64| random.within(0, most);
            let deadline_ns = match random.within(0, 2) {
                0 => number(&mut random),
                1 => period_ns,
                _ => within(&mut random, period_ns),
            };
            let budget_ns = if random.within(0, 1) == 0 {
                budget
            } else {
                within(&mut random, deadline_ns)
            };
            let contract = Contract::new(at.to_string(), budget_ns, period_ns)
                .with_deadline_ns(deadline_ns)
                .with_tolerance(random.within(0, 3) as u32, random.bits() as u32);
            let _ = system.admit(contract);
        }
    }
}

/// A machine that is set up anew gives the same answers as the one it stands for.
#[test]
fn contracts_are_restored_where_they_were() {
    let ms = 1_000_000;
    let mut system = System::new(Machine::whole(2), Policy::default()).unwrap();
    for name in ["film", "game", "mixer"] {
        let answer = system.admit(Contract::new(name, 6 * ms, 10 * ms)).unwrap();
        assert!(answer.admission().is_some(), "{name}");
    }
    let mut again = System::new(Machine::whole(2), Policy::default()).unwrap();
    for (contract, placement) in system.held() {
        again.restore(contract.clone(), placement.clone()).unwrap();
    }
    assert!(again.held().eq(system.held()));
    let more = Contract::new("more", 3 * ms, 10 * ms);
    assert_eq!(again.ask(&more), system.ask(&more));
    assert_eq!(again.would_admit(&more), Ok(None));

    // One CPU less: what was split over both cannot be put back.
    let mut smaller = System::new(Machine::whole(1), Policy::default()).unwrap();
    let restored: Vec<_> = system
        .held()
        .map(|(contract, placement)| smaller.restore(contract.clone(), placement.clone()).is_ok())
        .collect();
    assert_eq!(restored, [true, false, false]);
}
