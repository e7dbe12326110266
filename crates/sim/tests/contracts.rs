//! Contracts under the scheduler that users run, on an ideal kernel: golden schedules, isolation,
//! splitting.

mod ideal;

use andante_sim::programs::Loop;
use andante_sim::{
    ContractId, Costs, InstanceId, Kernel, NS_PER_MS, Ns, Piece, Program, Promise, Random,
    Simulation, Spec, Step, TaskId, World,
};
use ideal::{ROOT, order, server, start, under};

const MS: Ns = NS_PER_MS;

fn machine(cpus: usize) -> Kernel {
    ideal::kernel(cpus, MS, Costs::default())
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

fn promise(m: &mut Kernel, promise: &Promise, pieces: &[Piece]) -> ContractId {
    m.promise(promise, pieces, None).expect("there is room")
}

fn outcome(m: &mut Kernel, contract: ContractId) -> andante_sim::Kept {
    m.kept(contract).expect("it was made").0
}

/// algorithms 5.1: hard task C 4 T 7, server Q 3 T 8, jobs of 4 at 3 and of 3 at 13.
#[test]
fn the_golden_schedule_of_the_constant_bandwidth_server() {
    let mut m = machine(1);
    let hard = promise(&mut m, &server(4 * MS, 7 * MS, Promise::EXHAUSTIVE, 0), &[]);
    let soft = promise(&mut m, &server(3 * MS, 8 * MS, 0, 0), &[]);
    let each = vec![(0, 4 * MS), (7 * MS, 4 * MS), (14 * MS, 4 * MS)];
    start(&mut m, under(hard), jobs(each));
    // Not before its first job: even to find nothing to do would be one.
    let each = jobs(vec![(3 * MS, 4 * MS), (13 * MS, 3 * MS)]);
    let instance = m.instance();
    m.start(3 * MS, instance, under(soft), Box::new(each));
    m.run_until(20 * MS);
    // 0-4 hard, 4-7 server, 7-11 hard, 11-12 server, idle, 13-15 server, 15-19 hard, 19-20 server.
    assert_eq!(order(m.runs(), &["h", "S"], MS), "hhhhSSShhhhS.SShhhhS");
    let kept = outcome(&mut m, hard);
    assert_eq!((kept.deadlines, kept.misses), (3, 0));
    // a done at 12 against 3 + 8, b at 20 against 13 + 8; exhausted at 7 and at 15.
    let kept = outcome(&mut m, soft);
    assert_eq!((kept.deadlines, kept.misses, kept.exhaustions), (2, 1, 2));
}

/// A server with its U <= 1 - sum of the others keeps its promise, whatever the others do.
#[test]
fn who_stays_within_its_budget_never_misses() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(6);
        let mut m = machine(1);
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
            let id = promise(&mut m, &server(budget_ns, period_ns, flags, 0), &[]);
            parts.push((id, budget_ns, period_ns, overruns));
        }
        for (n, (id, budget_ns, period_ns, overruns)) in parts.iter().enumerate() {
            let most_ns = if *overruns { 3 * budget_ns } else { *budget_ns };
            let program = periodic(
                *period_ns,
                budget_ns / 2 + 1,
                most_ns.max(budget_ns / 2 + 1),
                seed * 100 + n as u64,
            );
            start(&mut m, under(*id), program);
        }
        start(&mut m, Spec::of(ROOT), Loop);
        m.run_until(1000 * MS);
        for (id, _, _, overruns) in parts {
            let kept = outcome(&mut m, id);
            // A task that is always behind never sleeps, so that its jobs do not end for a kernel.
            assert!(overruns || kept.deadlines > 10, "seed {seed}: {kept:?}");
            assert!(overruns || kept.misses == 0, "seed {seed}: {kept:?}");
        }
    }
}

/// Three tasks of 2/3 on two CPUs: one is split, none misses.
#[test]
fn a_split_task_meets_its_deadlines_on_two_cpus() {
    let mut m = machine(2);
    let period_ns = 30 * MS;
    let whole: Vec<_> = (0..2)
        .map(|cpu| {
            let whole = server(19 * MS, period_ns, Promise::EXHAUSTIVE, cpu);
            promise(&mut m, &whole, &[])
        })
        .collect();
    let piece = |cpu: u32| Piece {
        budget_ns: 10 * MS,
        offset_ns: u64::from(cpu) * 15 * MS,
        window_ns: 15 * MS,
        cpu,
        pad: 0,
    };
    let pieces = [piece(0), piece(1)];
    let split = promise(&mut m, &server(20 * MS, period_ns, 0, 0), &pieces);
    for id in whole.iter().chain([&split]) {
        let work_ns = if *id == split { 20 * MS } else { 19 * MS };
        start(&mut m, under(*id), periodic(period_ns, work_ns, work_ns, 1));
    }
    m.run_until(30_000 * MS);
    for id in whole.into_iter().chain([split]) {
        let kept = outcome(&mut m, id);
        assert!(kept.deadlines >= 998, "{kept:?}");
        assert_eq!(kept.misses, 0, "{kept:?}");
    }
    let cpus: std::collections::BTreeSet<u32> = m
        .runs()
        .iter()
        .filter(|run| run.task == TaskId(2))
        .map(|run| run.cpu)
        .collect();
    assert_eq!(cpus.len(), 2, "it migrates");
}

/// A soft contract of a task that has worked for long before it held any has what the others leave of contracts'
/// part, from the first period on: its job does not count as one of back then.
#[test]
fn what_ran_before_a_contract_was_held_is_no_job_of_it() {
    let mut m = machine(1);
    let soft = Promise::RECLAIM | Promise::BORROW | Promise::CATCH_UP;
    let first = promise(&mut m, &server(4 * MS, 10 * MS, soft, 0), &[]);
    let works = start(&mut m, under(first), Loop);
    for _ in 0..8 {
        start(&mut m, Spec::of(ROOT), Loop);
    }
    m.run_until(10_000 * MS);
    let second = promise(&mut m, &server(2 * MS, 10 * MS, soft, 0), &[]);
    let hard = promise(&mut m, &server(3 * MS, 10 * MS, Promise::HARD, 0), &[]);
    m.bind(works, second);
    let beside = m.instance();
    m.start(10_000 * MS, beside, under(hard), Box::new(Loop));
    m.run_until(10_500 * MS);
    let before = m.usage().instances;
    m.run_until(12_500 * MS);
    let after = m.usage().instances;
    let part = |of: InstanceId| {
        let at = of.0 as usize;
        (after[at] - before[at]) as f64 / (2_000 * MS) as f64
    };
    // Here contracts may have all, and the hard one has 30 % of that.
    assert!((part(works) - 0.7).abs() <= 0.01, "{}", part(works));
    assert!((part(beside) - 0.3).abs() <= 0.01, "{}", part(beside));
}
