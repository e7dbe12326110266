// SPDX-License-Identifier: GPL-2.0
//! Sets of tasks that admission places, EDF-WM and our zero-laxity splitting, under the scheduler that
//! users run, on an ideal kernel.
//!
//! Nobody may be late: neither under the core alone (`core/tests/edfwm.c`) nor here, where tasks also run on
//! CPUs that are idle, by their class's share, and come back to that of their contract in the middle of a job.
//!
//! By default a few hundred sets. The whole of it, 10,000 sets of 1,000 jobs each:
//!
//!     ADMITTED_SETS=10000 ADMITTED_JOBS=1000 cargo test --release -p andante-sim --test admitted

mod ideal;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use andante_admission::Placement;
use andante_admission::experiment::{AdmittedSet, Random};
use andante_admission::experiment::{Algorithm, Deadlines, Generator, LoadClass, admitted_sets};
use andante_sim::{ContractId, Ns, Piece, Program, Promise, Simulation, Spec, Step, World};
use ideal::under;

/// Sets run if ADMITTED_SETS does not say.
const SETS: u32 = 120;
/// Of so many jobs one may be late where some tasks may use one CPU only and others any: one of these that an
/// idle CPU should have taken, which something else was quicker to use. Its contract's CPU looks for it 50 µs
/// later (`AN_TIMER_MIN_NS` in bpf/), and there are jobs with less to spare.
const ONE_LATE_OF: u64 = 50_000;
/// What jobs need less than their budgets: who needs all of it is stopped in the instant in which it ends.
const LEFT_NS: Ns = 1;
/// When the machine's first jobs come; 0 is no instant, to the scheduler.
const FIRST_NS: Ns = 1;
/// Jobs of all tasks of a set, if ADMITTED_JOBS does not say.
const JOBS: u64 = 1000;

fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name);
    given.map_or(default, |text| text.parse().expect("a whole number"))
}

/// Jobs that have ended, and those of them that were late.
#[derive(Default)]
struct Jobs {
    ended: AtomicU64,
    late: AtomicU64,
}

/// A job every period from `first_ns` on, each with the whole budget. It looks at the clock itself: a
/// scheduler's own count does not know of jobs that end by their class's share on another CPU.
fn periodic(first_ns: Ns, task: &andante_admission::Task, jobs: Arc<Jobs>) -> impl Program + use<> {
    let (period_ns, work_ns) = (task.period_ns(), task.budget_ns() - LEFT_NS);
    let deadline_ns = task.deadline_ns();
    let (mut release_ns, mut works) = (first_ns, false);
    move |world: &mut World<'_>| {
        works = !works;
        if !works {
            release_ns += period_ns;
            return Step::Compute(work_ns);
        }
        if release_ns > first_ns {
            let late = world.now_ns > release_ns - period_ns + deadline_ns;
            jobs.ended.fetch_add(1, Ordering::Relaxed);
            jobs.late.fetch_add(late.into(), Ordering::Relaxed);
        }
        Step::SleepUntil(release_ns)
    }
}

/// The promise to a task where admission has placed it.
fn promise(task: &andante_admission::Task, placement: &Placement) -> (Promise, Vec<Piece>) {
    let pieces: Vec<Piece> = match placement {
        Placement::Whole { .. } => Vec::new(),
        Placement::Split { pieces } => pieces
            .iter()
            .map(|piece| Piece {
                budget_ns: piece.budget_ns,
                offset_ns: piece.offset_ns,
                window_ns: piece.window_ns,
                cpu: piece.cpu,
                pad: 0,
            })
            .collect(),
    };
    let (cpu, flags) = match placement {
        Placement::Whole { cpu } => (*cpu, Promise::EXHAUSTIVE),
        Placement::Split { pieces } => (pieces[0].cpu, Promise::HARD),
    };
    let promise = Promise {
        budget_ns: task.budget_ns(),
        period_ns: task.period_ns(),
        deadline_rel_ns: task.deadline_ns(),
        flags,
        cpu,
        ..Promise::default()
    };
    (promise, pieces)
}

/// Runs a set until it has had about `jobs` jobs; how many it had, and how many were late. `bound`: tasks
/// that are not split may use the CPU of their contract only.
fn run(set: &AdmittedSet, cpus: u32, jobs: u64, bound: bool) -> (u64, u64) {
    let mut m = ideal::untraced(cpus as usize);
    let pairs = || set.tasks.iter().zip(&set.placements);
    let ids: Vec<ContractId> = pairs()
        .map(|(task, placement)| {
            let (promise, pieces) = promise(task, placement);
            let made = m.promise(&promise, &pieces, None);
            made.unwrap_or_else(|| panic!("seed {}: the scheduler refuses {task:?}", set.seed))
        })
        .collect();
    let of_all = Arc::new(Jobs::default());
    let instance = m.instance();
    let mut random = Random::new(set.seed);
    let together = random.bits() & 1 == 0;
    for (id, (task, placement)) in ids.iter().zip(pairs()) {
        // Released together, which is worst on one CPU, or at random: for pieces that may be worse.
        let first_ns = match together {
            true => FIRST_NS,
            false => random.within(FIRST_NS, task.period_ns()),
        };
        let affinity = match placement {
            Placement::Whole { cpu } if bound => 1 << cpu,
            _ => u64::MAX,
        };
        let spec = Spec {
            affinity,
            ..under(*id)
        };
        let program = periodic(first_ns, task, Arc::clone(&of_all));
        m.start(first_ns, instance, spec, Box::new(program));
    }
    let rate_per_s: f64 = set
        .tasks
        .iter()
        .map(|task| 1e9 / task.period_ns() as f64)
        .sum();
    let longest_ns = set
        .tasks
        .iter()
        .map(|task| task.period_ns())
        .max()
        .unwrap_or(0);
    m.run_until((jobs as f64 / rate_per_s * 1e9) as Ns + 2 * longest_ns);
    assert_eq!(m.ejected(), None);
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    (count(&of_all.ended), count(&of_all.late))
}

#[test]
fn no_job_of_an_admitted_set_is_late() {
    assert_eq!(late_jobs(false).1, 0);
}

#[test]
fn nor_where_tasks_may_use_one_cpu_only() {
    let (ended, late) = late_jobs(true);
    assert!(late <= ended / ONE_LATE_OF, "{late} of {ended} jobs");
}

/// How many jobs the sets have had, and how many were late.
fn late_jobs(bound: bool) -> (u64, u64) {
    let (sets, jobs) = (
        setting("ADMITTED_SETS", SETS.into()),
        setting("ADMITTED_JOBS", JOBS),
    );
    // Loads at which sets are split as often as not.
    let kinds = [
        (
            4,
            90,
            LoadClass::Mixed,
            Deadlines::Implicit,
            Algorithm::EdfWmDecreasing,
        ),
        (
            4,
            90,
            LoadClass::Mixed,
            Deadlines::Implicit,
            Algorithm::EdfWmFirstFit,
        ),
        (
            4,
            90,
            LoadClass::Heavy,
            Deadlines::Implicit,
            Algorithm::EdfWmDecreasing,
        ),
        (
            8,
            95,
            LoadClass::Mixed,
            Deadlines::Implicit,
            Algorithm::EdfWmDecreasing,
        ),
        (
            4,
            80,
            LoadClass::Mixed,
            Deadlines::Constrained,
            Algorithm::EdfWmDecreasing,
        ),
        (
            4,
            95,
            LoadClass::Mixed,
            Deadlines::Implicit,
            Algorithm::ZeroLaxityDecreasing,
        ),
    ];
    let each = u32::try_from(sets.div_ceil(kinds.len() as u64)).expect("so many sets");
    let (mut ran, mut split, mut ended) = (0, 0, 0);
    let (mut late, mut late_sets) = (0, 0);
    for (cpus, load_percent, class, deadlines, algorithm) in kinds {
        let generator = Generator {
            class,
            deadlines,
            cpus,
            load_percent,
        };
        let admitted = admitted_sets(&generator, &algorithm.policy(), each, 1, true);
        assert_eq!(admitted.len(), each as usize, "sets enough are admitted");
        for set in admitted {
            let (deadlines, missed) = run(&set, cpus, jobs, bound);
            assert!(
                deadlines >= jobs * 9 / 10,
                "seed {}: {deadlines} jobs",
                set.seed
            );
            ran += 1;
            split += set.placements.iter().filter(|one| one.is_split()).count();
            ended += deadlines;
            late += missed;
            late_sets += u32::from(missed > 0);
        }
    }
    println!("{ran} sets, {split} split tasks; late: {late} of {ended} jobs, in {late_sets} sets");
    assert!(split >= ran, "each set has a split task");
    (ended, late)
}

/// The same harness sees misses where admission would have said no.
#[test]
fn a_set_beyond_the_cpus_misses() {
    let generator = Generator {
        class: LoadClass::Light,
        deadlines: Deadlines::Implicit,
        cpus: 2,
        load_percent: 90,
    };
    let policy = Algorithm::FirstFit.policy();
    let mut set = admitted_sets(&generator, &policy, 1, 1, false).remove(0);
    for placement in &mut set.placements {
        *placement = Placement::Whole { cpu: 0 };
    }
    let (deadlines, missed) = run(&set, 2, 200, false);
    assert!(missed > 0, "of {deadlines} jobs on one CPU of two");
}
