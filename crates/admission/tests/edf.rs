// SPDX-License-Identifier: GPL-2.0
//! Every admitted placement, run: earliest deadline first on each CPU, job by job, over the
//! hyperperiod. The simulation knows nothing of the tests that it checks.

use andante_admission::experiment::Random;
use andante_admission::{
    Contract, Excess, Fit, Machine, Order, Piece, Placement, Policy, Promise, Splitting, System,
    Task,
};

const PERIODS: [u64; 9] = [4, 5, 6, 8, 10, 12, 15, 20, 24];
const HYPERPERIOD: u64 = 120;
/// Sets drawn per policy; most admit some tasks and refuse others.
const SETS: u64 = 300;

/// One piece of one job, in units in which a CPU of `per_mille` serves whole numbers.
#[derive(Debug, Clone, Copy)]
struct Job {
    release: u64,
    deadline: u64,
    left: u64,
}

/// The jobs of a piece whose task is released at the given times.
fn jobs(piece: &Piece, releases: &[u64], per_mille: u64) -> Vec<Job> {
    let job = |&release: &u64| Job {
        release: (release + piece.offset_ns) * per_mille,
        deadline: (release + piece.offset_ns + piece.window_ns) * per_mille,
        left: piece.budget_ns * 1000,
    };
    releases.iter().map(job).collect()
}

/// Runs jobs by earliest deadline; the first deadline missed, if any.
fn first_miss(mut jobs: Vec<Job>) -> Option<u64> {
    let mut now = 0;
    loop {
        jobs.retain(|job| job.left > 0);
        let soonest = jobs.iter().map(|job| job.release).min()?;
        now = now.max(soonest);
        let later = jobs
            .iter()
            .map(|job| job.release)
            .filter(|&at| at > now)
            .min();
        let ready = jobs.iter_mut().filter(|job| job.release <= now);
        let job = ready.min_by_key(|job| job.deadline)?;
        let run = later.map_or(job.left, |at| job.left.min(at - now));
        job.left -= run;
        now += run;
        if job.left == 0 && now > job.deadline || job.left > 0 && now >= job.deadline {
            return Some(job.deadline);
        }
    }
}

/// Releases of a task until well after the hyperperiod: at once and as often as allowed, or with
/// random phases and pauses.
fn releases(task: &Task, random: Option<&mut Random>) -> Vec<u64> {
    let end = 2 * HYPERPERIOD;
    let mut times = Vec::new();
    match random {
        None => times.extend((0..end).step_by(task.period_ns() as usize)),
        Some(random) => {
            let mut at = random.within(0, task.period_ns());
            while at < end {
                times.push(at);
                let pause = random.within(0, 3);
                at += task.period_ns() + if pause == 3 { random.within(0, 9) } else { 0 };
            }
        }
    }
    times
}

/// Runs placed tasks on every CPU; whether all deadlines are met.
fn runs(
    cpus: u32,
    per_mille: u64,
    placed: &[(Task, Placement)],
    mut random: Option<Random>,
) -> bool {
    let mut queues = vec![Vec::new(); cpus as usize];
    for (task, placement) in placed {
        let releases = releases(task, random.as_mut());
        for piece in placement.pieces(task) {
            queues[piece.cpu as usize].extend(jobs(&piece, &releases, per_mille));
        }
    }
    queues.into_iter().all(|jobs| first_miss(jobs).is_none())
}

fn draw(random: &mut Random, cpus: u32) -> Vec<Contract> {
    let count = random.within(2, 3 * u64::from(cpus));
    let contract = |at| {
        let period = PERIODS[random.within(0, PERIODS.len() as u64 - 1) as usize];
        let budget = random.within(1 + period / 4, period * 3 / 4);
        let early = random.within(0, 1) == 1;
        let deadline = if early {
            random.within(budget, period)
        } else {
            period
        };
        Contract::new(format!("c{at}"), budget, period).with_deadline_ns(deadline)
    };
    (0..count).map(contract).collect()
}

/// Admits random sets under `policy` and runs what was admitted; the number of splits seen.
fn check(policy: Policy, left_for_others_per_mille: u32, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut splits = 0;
    for _ in 0..SETS {
        let cpus = random.within(2, 4) as u32;
        let machine = Machine {
            cpus,
            left_for_others_per_mille,
        };
        let mut system = System::new(machine, policy).unwrap();
        let contracts = draw(&mut random, cpus);
        let answers = system.admit_all(&contracts).unwrap();
        for answer in answers.iter().filter_map(|answer| answer.admission()) {
            assert_eq!(answer.promise, Promise::EveryDeadline);
        }
        let placed: Vec<(Task, Placement)> = system
            .held()
            .map(|(held, placement)| {
                let task = Task::new(held.budget_ns, held.deadline_ns, held.period_ns).unwrap();
                (task, placement.clone())
            })
            .collect();
        for (task, placement) in &placed {
            assert_eq!(placement.check(task), Ok(()));
            splits += usize::from(placement.is_split());
        }
        let per_mille = u64::from(1000 - left_for_others_per_mille);
        assert!(runs(cpus, per_mille, &placed, None), "{placed:?}");
        let sporadic = Random::new(random.bits());
        assert!(runs(cpus, per_mille, &placed, Some(sporadic)), "{placed:?}");
    }
    splits
}

#[test]
fn what_edf_wm_admits_meets_every_deadline() {
    let mut seed = 0;
    for fit in [Fit::First, Fit::Best, Fit::Worst] {
        for order in [Order::Given, Order::Decreasing] {
            for excess in [Excess::Last, Excess::Fair] {
                let splitting = Splitting::EqualWindows(excess);
                let policy = Policy {
                    splitting,
                    // Every other time pieces are filled up to a least one.
                    least_piece_ns: 1 + seed / 2 % 2,
                    ..Policy::edf_wm(fit, order)
                };
                seed += 1;
                let splits = check(policy, 0, seed);
                assert!(splits > 50, "only {splits} splits tell little");
                check(policy, 200, seed);
            }
        }
    }
}

#[test]
fn what_zero_laxity_splits_admit_meets_every_deadline() {
    let splitting = Splitting::ZeroLaxity;
    let policy = Policy {
        splitting,
        ..Policy::edf_wm(Fit::First, Order::Given)
    };
    for seed in 100..104 {
        let splits = check(policy, 0, seed);
        assert!(splits > 50, "only {splits} splits tell little");
        check(policy, 200, seed);
    }
}

/// The simulation must be able to fail: a job more than fits, a piece one unit too large.
#[test]
fn the_simulation_sees_what_does_not_fit() {
    let whole = |budget, deadline, period, cpu| {
        let task = Task::new(budget, deadline, period).unwrap();
        (task, Placement::Whole { cpu })
    };
    let full = [whole(5, 10, 10, 0), whole(5, 9, 10, 0)];
    assert!(runs(1, 1000, &full, None));
    assert!(
        !runs(1, 999, &full, None),
        "a CPU a thousandth slower is too slow"
    );
    let late = [whole(5, 9, 10, 0), whole(5, 9, 10, 0)];
    assert!(!runs(1, 1000, &late, None));
    let split = |first: u64, second: u64| {
        let piece = |cpu, budget_ns, offset_ns| Piece {
            cpu,
            budget_ns,
            offset_ns,
            window_ns: 5,
        };
        let pieces = vec![piece(0, first, 0), piece(1, second, 5)];
        let task = Task::new(first + second, 10, 10).unwrap();
        (task, Placement::Split { pieces })
    };
    let others = [whole(6, 10, 10, 0), whole(6, 10, 10, 1)];
    let with = |split| [&others[..], &[split]].concat();
    assert!(runs(2, 1000, &with(split(4, 4)), None));
    assert!(!runs(2, 1000, &with(split(4, 5)), None));
}
