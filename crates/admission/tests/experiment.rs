// SPDX-License-Identifier: GPL-2.0
//! The experiment against the reference curves, and the sets that it hands out.

use andante_admission::experiment::{
    Algorithm, Deadlines, Generator, LoadClass, Parameters, Random, Series, Table, admitted_sets,
    place_all,
};
use andante_admission::{Supply, Verdict, Workload};

use Algorithm::{EdfWmDecreasing, EdfWmFirstFit, FirstFit, FirstFitDecreasing, WorstFit};

/// Sets per point, as in the reference curves.
const SETS: u32 = 1000;

/// A reference curve: an algorithm, the load of its first point, and admitted parts [1/1000] at
/// every 5 % from there.
type Curve = (Algorithm, u32, &'static [u32]);

/// Reference curves for one kind of set: CPUs, tasks, deadlines, and of how many sets a point.
type Reference = (u32, LoadClass, Deadlines, u32, &'static [Curve]);

/// The curves of the specification, drawn by a program of its own with the same kind of generator
/// (RESCH's): there are no published figures.
const REFERENCES: &[Reference] = &[
    (
        4,
        LoadClass::Mixed,
        Deadlines::Implicit,
        1000,
        &[
            (FirstFit, 70, &[999, 987, 947, 830, 547, 182]),
            (FirstFitDecreasing, 70, &[999, 996, 968, 911, 735, 373]),
            (WorstFit, 70, &[866, 748, 578, 398, 190, 33]),
            (EdfWmFirstFit, 70, &[1000, 1000, 998, 978, 886, 608]),
            (EdfWmDecreasing, 70, &[1000, 1000, 999, 997, 978, 866]),
        ],
    ),
    (
        8,
        LoadClass::Mixed,
        Deadlines::Implicit,
        1000,
        &[
            (FirstFitDecreasing, 90, &[709, 311]),
            (EdfWmDecreasing, 90, &[996, 894]),
        ],
    ),
    (
        16,
        LoadClass::Mixed,
        Deadlines::Implicit,
        500,
        &[
            (FirstFitDecreasing, 95, &[320]),
            (EdfWmDecreasing, 95, &[978]),
        ],
    ),
    (
        4,
        LoadClass::Heavy,
        Deadlines::Implicit,
        1000,
        &[
            (FirstFitDecreasing, 85, &[532, 229]),
            (EdfWmDecreasing, 85, &[966, 850]),
        ],
    ),
    (
        4,
        LoadClass::Mixed,
        Deadlines::Constrained,
        500,
        &[
            (FirstFitDecreasing, 75, &[714, 514, 312]),
            (EdfWmDecreasing, 75, &[874, 720, 470]),
        ],
    ),
];

fn draw(cpus: u32, class: LoadClass, deadlines: Deadlines, loads_percent: Vec<u32>) -> Series {
    let table = Table::draw(Parameters {
        cpus: vec![cpus],
        classes: vec![class],
        deadlines: vec![deadlines],
        loads_percent,
        sets: SETS,
        ..Parameters::default()
    });
    table.series(cpus, class, deadlines).unwrap().clone()
}

/// Every point is within 2 points of the reference or, where chance alone explains more, within
/// three standard errors of the difference of two samples; and at least nine of ten are within 2.
#[test]
fn the_reference_curves_come_out() {
    let (mut points, mut near, mut worst) = (0, 0, (0.0, String::new()));
    for &(cpus, class, deadlines, reference_sets, curves) in REFERENCES {
        let first = curves[0].1;
        let last = first + 5 * (curves[0].2.len() as u32 - 1);
        let series = draw(cpus, class, deadlines, (first..=last).step_by(5).collect());
        for &(algorithm, first, expected) in curves {
            for (load, &expected) in (first..).step_by(5).zip(expected) {
                let admitted = series.admitted(algorithm, load).unwrap();
                let (found, expected) =
                    (f64::from(admitted) / 1000.0, f64::from(expected) / 1000.0);
                let both = 1.0 / f64::from(SETS) + 1.0 / f64::from(reference_sets);
                let error = (expected * (1.0 - expected) * both).sqrt();
                let distance = (found - expected).abs();
                let point = format!(
                    "{cpus} CPUs {class:?} {deadlines:?} {algorithm:?} {load} %: {found} for {expected}"
                );
                assert!(distance <= f64::max(0.02, 3.0 * error), "{point}");
                points += 1;
                near += u32::from(distance <= 0.0201);
                if distance > worst.0 {
                    worst = (distance, point);
                }
            }
        }
    }
    println!(
        "{near} of {points} points within 0.02; the farthest: {}",
        worst.1
    );
    assert!(
        near * 10 >= points * 9,
        "{near} of {points} points within 0.02"
    );
}

#[test]
fn splitting_beats_partitioning_and_ours_beats_equal_windows() {
    let series = draw(4, LoadClass::Mixed, Deadlines::Implicit, vec![95]);
    let admitted = |algorithm| series.admitted(algorithm, 95).unwrap();
    assert!(admitted(EdfWmFirstFit) > admitted(FirstFit));
    assert!(admitted(EdfWmDecreasing) > admitted(FirstFitDecreasing) + 300);
    assert!(admitted(Algorithm::ZeroLaxityDecreasing) > admitted(EdfWmDecreasing) + 50);
}

/// The table takes one placement for two rows where it can; each must be what the algorithm itself
/// would say.
#[test]
fn every_row_is_what_its_own_algorithm_admits() {
    let (cpus, class, deadlines) = (4, LoadClass::Mixed, Deadlines::Constrained);
    let parameters = Parameters {
        cpus: vec![cpus],
        classes: vec![class],
        deadlines: vec![deadlines],
        loads_percent: vec![80],
        sets: 100,
        seed: 5,
    };
    let table = Table::draw(parameters);
    let generator = Generator {
        class,
        deadlines,
        cpus,
        load_percent: 80,
    };
    for row in &table.series[0].rows {
        let admitted = (0..100).filter(|&set| {
            let tasks = generator.draw(&mut Random::new(generator.seed_of(5, set)));
            place_all(&tasks, cpus, &row.algorithm.policy()).is_some()
        });
        assert_eq!(
            row.admitted,
            [admitted.count() as u32],
            "{:?}",
            row.algorithm
        );
    }
    let text = table.to_string();
    assert!(
        text.contains("4 CPUs, u 0.1-1.0, D in [C, T]") && text.contains("(ours)"),
        "{text}"
    );
}

/// The first numbers of SplitMix64 from 0, as everywhere; sets must not change from one version or
/// machine to the next.
#[test]
fn a_seed_means_the_same_everywhere() {
    let mut random = Random::new(0);
    let numbers = [random.bits(), random.bits(), random.bits()];
    let expected = [
        0xe220_a839_7b1d_cdaf,
        0x6e78_9e6a_a1b9_65f4,
        0x06c4_5d18_8009_454f,
    ];
    assert_eq!(numbers, expected);
    let generator = Generator {
        class: LoadClass::Mixed,
        deadlines: Deadlines::Constrained,
        cpus: 2,
        load_percent: 75,
    };
    let tasks = generator.draw(&mut Random::new(generator.seed_of(1, 0)));
    let times: Vec<_> = tasks
        .iter()
        .map(|task| (task.budget_ns(), task.deadline_ns(), task.period_ns()))
        .collect();
    assert_eq!(times, EXPECTED_SET);
}

const EXPECTED_SET: [(u64, u64, u64); 3] = [
    (175_123_345, 315_112_383, 337_982_000),
    (585_576_866, 612_596_692, 614_897_000),
    (6_327_371, 133_022_057, 214_204_000),
];

#[test]
fn sets_are_drawn_as_described() {
    for (class, low, high) in [
        (LoadClass::Light, 0.1, 0.5),
        (LoadClass::Mixed, 0.1, 1.0),
        (LoadClass::Heavy, 0.5, 1.0),
    ] {
        for deadlines in [Deadlines::Implicit, Deadlines::Constrained] {
            let generator = Generator {
                class,
                deadlines,
                cpus: 8,
                load_percent: 85,
            };
            for set in 0..200 {
                let tasks = generator.draw(&mut Random::new(generator.seed_of(9, set)));
                let share = |at: usize| tasks[at].budget_ns() as f64 / tasks[at].period_ns() as f64;
                let load: f64 = (0..tasks.len()).map(share).sum();
                assert!((load - 6.8).abs() < 1e-5, "{load}");
                let whole = 0..tasks.len() - 1;
                assert!(
                    whole
                        .into_iter()
                        .all(|at| (low - 1e-6..=high).contains(&share(at)))
                );
                for task in &tasks {
                    assert!((10_000_000..=1_000_000_000).contains(&task.period_ns()));
                    assert!((task.budget_ns()..=task.period_ns()).contains(&task.deadline_ns()));
                    let implicit = task.deadline_ns() == task.period_ns();
                    assert!(implicit || deadlines == Deadlines::Constrained);
                }
            }
        }
    }
}

#[test]
fn sets_handed_out_are_admitted_and_can_be_drawn_again() {
    let generator = Generator {
        class: LoadClass::Mixed,
        deadlines: Deadlines::Implicit,
        cpus: 4,
        load_percent: 90,
    };
    let policy = EdfWmDecreasing.policy();
    let sets = admitted_sets(&generator, &policy, 50, 1, true);
    assert_eq!(sets.len(), 50);
    for set in &sets {
        assert_eq!(set.tasks, generator.draw(&mut Random::new(set.seed)));
        let mut cpus = vec![Workload::new(Supply::WHOLE); 4];
        let mut splits = 0;
        for (task, placement) in set.tasks.iter().zip(&set.placements) {
            assert_eq!(placement.check(task), Ok(()));
            splits += u32::from(placement.is_split());
            for piece in placement.pieces(task) {
                let (budget, window) = (piece.budget_ns, piece.window_ns);
                let piece_task = andante_admission::Task::new(budget, window, task.period_ns());
                cpus[piece.cpu as usize].push(piece_task.unwrap());
            }
        }
        assert!(splits > 0);
        assert!(cpus.iter().all(|cpu| cpu.verdict() == Verdict::Fits));
    }
    // Nobody admits more than there is: the search ends without a set.
    let overload = Generator {
        load_percent: 101,
        ..generator
    };
    assert_eq!(admitted_sets(&overload, &policy, 1, 1, false), []);
}
