//! Contracts on the simulated machine: golden schedules, isolation, splitting.

use andante_sim::{
    Contracted, Costs, EventOptions, Hierarchy, Machine, NS_PER_MS, Ns, Piece, PolicyKind, Program,
    Promise, Random, Scheduler, Spec, Step, TaskId, Terms, World,
};

const MS: Ns = NS_PER_MS;

type Contracts = Contracted<Hierarchy>;

fn contracts(cpus: usize) -> Contracts {
    let inner = Hierarchy::new(cpus, MS, PolicyKind::Sfq);
    Contracted::new(cpus, inner, 0, EventOptions::default())
}

fn machine(cpus: usize, scheduler: Contracts) -> Machine<Contracts> {
    Machine::new(cpus, Costs::default(), scheduler, 0..Ns::MAX)
}

/// Jobs at given instants, each with its work [ns].
fn jobs(list: Vec<(Ns, Ns)>) -> impl Program {
    let mut steps = list
        .into_iter()
        .flat_map(|(at_ns, work_ns)| [Step::SleepUntil(at_ns), Step::Compute(work_ns)]);
    move |_: &mut World<'_>| steps.next().unwrap_or(Step::Exit)
}

/// A job every period, of random work up to `most_ns`.
fn periodic(period_ns: Ns, least_ns: Ns, most_ns: Ns, seed: u64) -> impl Program {
    let mut random = Random::new(seed);
    let (mut job, mut works) = (0, false);
    move |_: &mut World<'_>| {
        works = !works;
        if works {
            Step::Compute(least_ns + random.below(most_ns - least_ns + 1))
        } else {
            job += 1;
            Step::SleepUntil(job * period_ns)
        }
    }
}

fn server(budget_ns: Ns, period_ns: Ns, flags: u32, cpu: u32) -> Terms {
    Terms {
        promise: Promise {
            budget_ns,
            period_ns,
            flags,
            cpu,
            ..Promise::default()
        },
        ..Terms::default()
    }
}

fn order(m: &Machine<Contracts>, names: &[&str], unit_ns: Ns) -> String {
    let mut order = String::new();
    let mut at_ns = 0;
    for run in m.trace().runs() {
        for _ in 0..(run.start_ns - at_ns) / unit_ns {
            order.push('.');
        }
        for _ in 0..run.length_ns / unit_ns {
            order.push_str(names[run.task.0 as usize]);
        }
        at_ns = run.start_ns + run.length_ns;
    }
    order
}

/// algorithms 5.1: hard task C 4 T 7, server Q 3 T 8, jobs of 4 at 3 and of 3 at 13.
#[test]
fn the_golden_schedule_of_the_constant_bandwidth_server() {
    let mut scheduler = contracts(1);
    let hard = scheduler
        .create(&server(4 * MS, 7 * MS, Promise::EXHAUSTIVE, 0))
        .unwrap();
    let soft = scheduler.create(&server(3 * MS, 8 * MS, 0, 0)).unwrap();
    let mut m = machine(1, scheduler);
    let instance = m.instance();
    let under = |contract| Spec {
        contract: Some(contract),
        ..Spec::of(Hierarchy::ROOT)
    };
    m.start(
        0,
        instance,
        under(hard),
        jobs(vec![(0, 4 * MS), (7 * MS, 4 * MS), (14 * MS, 4 * MS)]),
    );
    // Not before its first job: even to find nothing to do would be one.
    m.start(
        3 * MS,
        instance,
        under(soft),
        jobs(vec![(3 * MS, 4 * MS), (13 * MS, 3 * MS)]),
    );
    m.run_until(20 * MS);
    // 0-4 hard, 4-7 server, 7-11 hard, 11-12 server, idle, 13-15 server, 15-19 hard, 19-20 server.
    assert_eq!(order(&m, &["h", "S"], MS), "hhhhSSShhhhS.SShhhhS");
    let kept = m.scheduler_mut().kept(hard).unwrap();
    assert_eq!((kept.deadlines, kept.misses), (3, 0));
    // a done at 12 against 3 + 8, b at 20 against 13 + 8; exhausted at 7 and at 15.
    let kept = m.scheduler_mut().kept(soft).unwrap();
    assert_eq!((kept.deadlines, kept.misses, kept.exhaustions), (2, 1, 2));
}

/// A server with its U <= 1 - sum of the others keeps its promise, whatever the others do.
#[test]
fn who_stays_within_its_budget_never_misses() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(6);
        let mut scheduler = contracts(1);
        let mut left = 1000;
        let mut parts = Vec::new();
        for _ in 0..count {
            let share = 1 + random.below(left / 2);
            left -= share;
            let period_ns = (2 + random.below(40)) * MS;
            let budget_ns = period_ns * share / 1000;
            let flags = [
                0,
                Promise::HARD,
                Promise::RECLAIM,
                Promise::RECLAIM | Promise::BORROW,
            ];
            let overruns = random.below(2) == 0;
            let flags = flags[random.below(4) as usize];
            let id = scheduler
                .create(&server(budget_ns, period_ns, flags, 0))
                .unwrap();
            parts.push((id, budget_ns, period_ns, overruns));
        }
        let mut m = machine(1, scheduler);
        let instance = m.instance();
        for (n, (id, budget_ns, period_ns, overruns)) in parts.iter().enumerate() {
            let most_ns = if *overruns { 3 * budget_ns } else { *budget_ns };
            let spec = Spec {
                contract: Some(*id),
                ..Spec::of(Hierarchy::ROOT)
            };
            let program = periodic(
                *period_ns,
                budget_ns / 2 + 1,
                most_ns.max(budget_ns / 2 + 1),
                seed * 100 + n as u64,
            );
            m.start(0, instance, spec, program);
        }
        let hog = m.instance();
        m.start(
            0,
            hog,
            Spec::of(Hierarchy::ROOT),
            andante_sim::programs::Loop,
        );
        m.run_until(1000 * MS);
        for (id, _, _, overruns) in parts {
            let kept = m.scheduler_mut().kept(id).unwrap();
            assert!(kept.deadlines > 10, "seed {seed}: {kept:?}");
            assert!(overruns || kept.misses == 0, "seed {seed}: {kept:?}");
        }
    }
}

/// Three tasks of 2/3 on two CPUs: one is split, none misses.
#[test]
fn a_split_task_meets_its_deadlines_on_two_cpus() {
    let mut scheduler = contracts(2);
    let period_ns = 30 * MS;
    let whole: Vec<_> = (0..2)
        .map(|cpu| {
            scheduler
                .create(&server(19 * MS, period_ns, Promise::EXHAUSTIVE, cpu))
                .unwrap()
        })
        .collect();
    let piece = |cpu: u32| Piece {
        budget_ns: 10 * MS,
        offset_ns: u64::from(cpu) * 15 * MS,
        window_ns: 15 * MS,
        cpu,
        pad: 0,
    };
    let mut terms = server(20 * MS, period_ns, 0, 0);
    terms.pieces = vec![piece(0), piece(1)];
    let split = scheduler.create(&terms).unwrap();
    let mut m = machine(2, scheduler);
    let instance = m.instance();
    for id in whole.iter().chain([&split]) {
        let spec = Spec {
            contract: Some(*id),
            ..Spec::of(Hierarchy::ROOT)
        };
        let work_ns = if *id == split { 20 * MS } else { 19 * MS };
        m.start(0, instance, spec, periodic(period_ns, work_ns, work_ns, 1));
    }
    m.run_until(30_000 * MS);
    for id in whole.into_iter().chain([split]) {
        let kept = m.scheduler_mut().kept(id).unwrap();
        assert!(kept.deadlines >= 998, "{kept:?}");
        assert_eq!(kept.misses, 0, "{kept:?}");
    }
    let cpus: std::collections::BTreeSet<u32> = m
        .trace()
        .runs()
        .iter()
        .filter(|run| run.task == TaskId(2))
        .map(|run| run.cpu)
        .collect();
    assert_eq!(cpus.len(), 2, "it migrates");
}

/// algorithms 3.3, scenario I: T1 1/2 T 4, T2 1/4 T 2, C 1; best effort takes the rest.
#[test]
fn a_dwcs_schedule_and_an_event() {
    let run = |coordinated: bool| {
        let inner = Hierarchy::new(1, MS, PolicyKind::Sfq);
        let events = EventOptions {
            coordinated,
            task_server_ns: 0,
        };
        let mut scheduler = Contracted::new(1, inner, 0, events);
        let window = |x, y, period: Ns| Terms {
            promise: Promise {
                budget_ns: MS,
                period_ns: period * MS,
                x,
                y,
                flags: Promise::WINDOW,
                ..Promise::default()
            },
            events: true,
            ..Terms::default()
        };
        let t1 = scheduler.create(&window(1, 2, 4)).unwrap();
        let t2 = scheduler.create(&window(1, 4, 2)).unwrap();
        let mut m = machine(1, scheduler);
        let instance = m.instance();
        for id in [Some(t1), Some(t2), None] {
            let spec = Spec {
                contract: id,
                ..Spec::of(Hierarchy::ROOT)
            };
            m.start(0, instance, spec, andante_sim::programs::Loop);
        }
        m.run_until(8 * MS);
        order(&m, &["1", "2", "b"], MS)
    };
    assert_eq!(run(false), "212b212b");
    assert_eq!(run(true).len(), 8);
}
