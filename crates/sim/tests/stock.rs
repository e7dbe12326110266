//! The stock scheduler of the modelled kernel: `kernel/fair*.c` and `kernel/server.c`.

use andante_sim::programs::{Answerer, Batch, FORK_NS, Loop};
use andante_sim::{
    ClassId, Hardware, InCharge, InstanceId, Kernel, NS_PER_MS, NS_PER_S, Ns, Program, Simulation,
    Spec, Step, World,
};

const ROOT: ClassId = ClassId(0);

fn kernel(cpus: usize) -> Kernel {
    let hardware = Hardware {
        cpus,
        ..Hardware::default()
    };
    Kernel::new(&hardware, InCharge::Stock, 0..NS_PER_S)
}

fn start(kernel: &mut Kernel, spec: Spec, program: impl Program + 'static) -> InstanceId {
    let instance = kernel.instance();
    kernel.start(0, instance, spec, Box::new(program));
    instance
}

fn loops(kernel: &mut Kernel, spec: &Spec, count: usize) -> Vec<InstanceId> {
    (0..count)
        .map(|_| start(kernel, spec.clone(), Loop))
        .collect()
}

fn niced(nice: i32) -> Spec {
    Spec {
        nice,
        ..Spec::of(ROOT)
    }
}

fn used(kernel: &Kernel, instance: InstanceId) -> f64 {
    kernel.usage().instances[instance.0 as usize] as f64
}

/// What each has of all that they have.
fn shares(kernel: &Kernel, instances: &[InstanceId]) -> Vec<f64> {
    let all: f64 = instances.iter().map(|id| used(kernel, *id)).sum();
    instances.iter().map(|id| used(kernel, *id) / all).collect()
}

#[track_caller]
fn assert_near(what: &str, is: f64, expected: f64, within: f64) {
    assert!(
        (is - expected).abs() <= within,
        "{what}: {is:.5} instead of {expected:.5}"
    );
}

/// Sleeps for so long, works for so long, and notes when it woke and how late it had done that.
fn worker(sleeps_ns: Ns, works_ns: Ns) -> impl Program {
    let (mut at_ns, mut step) = (0, 0);
    move |world: &mut World<'_>| {
        step += 1;
        if step % 2 == 1 {
            if step > 1 {
                let late_ns = world.now_ns - at_ns;
                world.record().latency_ns.push((at_ns, late_ns));
            }
            at_ns = at_ns.max(world.now_ns) + sleeps_ns;
            return Step::SleepUntil(at_ns);
        }
        Step::Compute(works_ns)
    }
}

fn latencies(kernel: &Kernel, instance: InstanceId) -> Vec<Ns> {
    let mut all: Vec<Ns> = kernel
        .record(instance)
        .latency_ns
        .iter()
        .map(|(_, ns)| *ns)
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn nice_values_divide_a_cpu() {
    let mut kernel = kernel(1);
    let nice = [-10, 0, 0, 5, 19];
    let ids = nice.map(|nice| start(&mut kernel, niced(nice), Loop));
    kernel.run_until(20 * NS_PER_S);
    let weights: Vec<f64> = [9548.0, 1024.0, 1024.0, 335.0, 15.0].to_vec();
    let sum: f64 = weights.iter().sum();
    for ((nice, weight), share) in nice.iter().zip(&weights).zip(shares(&kernel, &ids)) {
        assert_near(&format!("nice {nice}"), share, weight / sum, 0.002);
    }
}

#[test]
fn sched_idle_has_three_of_a_thousand() {
    let mut kernel = kernel(1);
    let ids = [niced(0), niced(20)].map(|spec| start(&mut kernel, spec, Loop));
    kernel.run_until(60 * NS_PER_S);
    assert_near("idle", shares(&kernel, &ids)[1], 3.0 / 1027.0, 0.0005);
}

/// The tree of the scenario `shares`, and what Linux 7.2.13 made of it: 6.24, 18.74, 74.95 %.
#[test]
fn groups_divide_a_cpu_as_a_tree() {
    let mut kernel = kernel(1);
    let s1 = kernel.create(ROOT, 200).unwrap();
    let s2 = kernel.create(ROOT, 600).unwrap();
    let leaves = [(s1, 100), (s1, 300), (s2, 100)];
    let ids = leaves.map(|(parent, weight)| {
        let leaf = kernel.create(parent, weight).unwrap();
        start(&mut kernel, Spec::of(leaf), Loop)
    });
    kernel.run_until(20 * NS_PER_S);
    for (share, expected) in shares(&kernel, &ids).iter().zip([0.0625, 0.1875, 0.75]) {
        assert_near("leaf", *share, expected, 0.002);
    }
}

/// A group has its weight however many tasks are in it, and while they come and go.
#[test]
fn a_group_of_jobs_has_no_more_than_its_weight() {
    let mut kernel = kernel(1);
    let jobs = kernel.create(ROOT, 100).unwrap();
    let film = kernel.create(ROOT, 100).unwrap();
    let many: Vec<InstanceId> = (0..8)
        .map(|_| {
            let job = Batch::new(vec![3 * NS_PER_MS, 5 * NS_PER_MS], FORK_NS);
            start(&mut kernel, Spec::of(jobs), job)
        })
        .collect();
    let alone = start(&mut kernel, Spec::of(film), Loop);
    kernel.run_until(20 * NS_PER_S);
    let jobs: f64 = many.iter().map(|id| used(&kernel, *id)).sum();
    let share = used(&kernel, alone) / (used(&kernel, alone) + jobs);
    assert_near("the loop", share, 0.5, 0.01);
}

/// The tree of `shares-smp`: twelve loops on four CPUs.
#[test]
fn groups_divide_several_cpus_as_a_tree() {
    let mut kernel = kernel(4);
    let s1 = kernel.create(ROOT, 200).unwrap();
    let s2 = kernel.create(ROOT, 600).unwrap();
    let leaves = [(s1, 100, 0.0625), (s1, 300, 0.1875), (s2, 100, 0.75)];
    let ids = leaves.map(|(parent, weight, _)| {
        let leaf = kernel.create(parent, weight).unwrap();
        loops(&mut kernel, &Spec::of(leaf), 4)
    });
    kernel.run_until(20 * NS_PER_S);
    let all = ids.concat();
    let shares = shares(&kernel, &all);
    for (at, (_, _, expected)) in leaves.iter().enumerate() {
        let share: f64 = shares[4 * at..4 * at + 4].iter().sum();
        assert_near("leaf", share, *expected, 0.05);
    }
    assert!(
        kernel.usage().idle < NS_PER_S / 10,
        "{}",
        kernel.usage().idle
    );
}

#[test]
fn loops_on_two_cpus_have_equal_parts() {
    for count in [2, 3, 5] {
        let mut kernel = kernel(2);
        let ids = loops(&mut kernel, &niced(0), count);
        kernel.run_until(20 * NS_PER_S);
        let shares = shares(&kernel, &ids);
        println!("{count} loops: {shares:?}");
        for share in shares {
            assert_near(&format!("of {count}"), share, 1.0 / count as f64, 0.05);
        }
    }
}

/// Who works little is owed service when it wakes, and waits for no more than the slices of those
/// that are in service: the size of what the virtual machine shows beside loops.
#[test]
fn a_waker_waits_for_a_slice_at_most() {
    for count in [1, 4, 16] {
        let mut kernel = kernel(1);
        let waker = start(&mut kernel, niced(0), Answerer::waker(0, 10 * NS_PER_MS));
        loops(&mut kernel, &niced(0), count);
        kernel.run_until(10 * NS_PER_S);
        let late = latencies(&kernel, waker);
        assert!(late.len() > 990, "{count}: {}", late.len());
        let worst = late[late.len() * 99 / 100];
        assert!(worst < 1_500_000, "{count}: {worst}");
        // A loop that nobody waits for is in service beyond its slice, and is not protected then.
        let protects = worst > 100_000;
        assert_eq!(protects, count > 1, "{count}: {worst}");
    }
}

/// A heavy one has a nearer deadline; but the slice of a light one protects it nevertheless.
#[test]
fn a_heavy_group_wakes_in_time() {
    let mut kernel = kernel(1);
    let heavy = kernel.create(ROOT, 1000).unwrap();
    let light = kernel.create(ROOT, 100).unwrap();
    let waker = start(
        &mut kernel,
        Spec::of(heavy),
        Answerer::waker(0, 10 * NS_PER_MS),
    );
    loops(&mut kernel, &Spec::of(light), 4);
    kernel.run_until(10 * NS_PER_S);
    let late = latencies(&kernel, waker);
    assert!(late[late.len() / 2] < 1_000_000, "{late:?}");
}

/// A task that has had more than its part sleeps it off: no credit, and no debt that grows.
#[test]
fn who_sleeps_now_and_then_has_its_part() {
    let mut kernel = kernel(1);
    let ids = [
        start(&mut kernel, niced(0), worker(100_000, 5 * NS_PER_MS)),
        start(&mut kernel, niced(0), Loop),
    ];
    kernel.run_until(20 * NS_PER_S);
    let share = shares(&kernel, &ids)[0];
    assert!((0.45..=0.5).contains(&share), "{share}");
}

#[test]
fn nobody_starves() {
    let mut kernel = kernel(1);
    let last = start(&mut kernel, niced(19), worker(0, 100_000));
    loops(&mut kernel, &niced(-20), 3);
    for _ in 0..20 {
        start(&mut kernel, niced(-5), worker(NS_PER_MS, 200_000));
    }
    kernel.run_until(300 * NS_PER_S);
    assert!(used(&kernel, last) > 0.5 * 300e9 * 15.0 / (3.0 * 88_761.0 + 20.0 * 3121.0));
}

/// The fair server: 50 ms of every second, whatever real-time tasks do.
#[test]
fn real_time_loops_leave_a_twentieth() {
    let mut kernel = kernel(1);
    let fifo = Spec {
        fifo: 50,
        ..Spec::of(ROOT)
    };
    start(&mut kernel, fifo, Loop);
    let ids = loops(&mut kernel, &niced(0), 2);
    kernel.run_until(2 * NS_PER_S);
    let before: f64 = ids.iter().map(|id| used(&kernel, *id)).sum();
    kernel.run_until(22 * NS_PER_S);
    let after: f64 = ids.iter().map(|id| used(&kernel, *id)).sum();
    assert_near("of 20 s", (after - before) / 20e9, 0.05, 0.003);
}

/// Real-time tasks that leave enough are not held up.
#[test]
fn the_fair_server_does_nothing_while_it_is_not_needed() {
    let mut kernel = kernel(1);
    let fifo = Spec {
        fifo: 50,
        ..Spec::of(ROOT)
    };
    let urgent = start(&mut kernel, fifo, worker(2 * NS_PER_MS, 8 * NS_PER_MS));
    loops(&mut kernel, &niced(0), 2);
    kernel.run_until(10 * NS_PER_S);
    let late = latencies(&kernel, urgent);
    assert!(late.len() > 900);
    assert!(*late.last().unwrap() < 8_200_000, "{late:?}");
}

fn mixed(cpus: usize) -> (Vec<Ns>, Vec<(u32, Ns, Ns)>) {
    let mut kernel = kernel(cpus);
    let group = kernel.create(ROOT, 300).unwrap();
    loops(&mut kernel, &Spec::of(group), 3);
    loops(&mut kernel, &niced(3), 2);
    for at in 0..5 {
        let job = Batch::new(vec![3 * NS_PER_MS, 700_000 + at], FORK_NS);
        start(&mut kernel, niced(0), job);
        start(
            &mut kernel,
            Spec::of(group),
            worker(7 * NS_PER_MS, 900_000 + at),
        );
    }
    kernel.run_until(3 * NS_PER_S);
    let runs = kernel.runs();
    let runs = runs
        .iter()
        .map(|run| (run.task.0, run.start_ns, run.length_ns));
    (kernel.usage().instances, runs.collect())
}

#[test]
fn the_same_load_has_the_same_schedule() {
    for cpus in [1, 3] {
        assert_eq!(mixed(cpus), mixed(cpus));
        assert!(mixed(cpus).1.len() > 500);
    }
}

/// 200 loops on a CPU for 10 s: some 14,000 choices among 200.
#[test]
fn many_loops_are_cheap() {
    let begin = std::time::Instant::now();
    let mut kernel = kernel(1);
    let ids = loops(&mut kernel, &niced(0), 200);
    kernel.run_until(10 * NS_PER_S);
    for share in shares(&kernel, &ids) {
        assert_near("of 200", share, 0.005, 0.0005);
    }
    let took = begin.elapsed();
    // Well under a second where it is optimised and the machine is not loaded.
    assert!(took.as_secs() < 10, "{took:?}");
    println!("200 loops for 10 s: {took:?}");
}
