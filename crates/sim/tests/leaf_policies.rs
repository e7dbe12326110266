//! Classes whose tasks are ordered by a policy of their own, under the shell that the kernel runs.

mod usual;

use andante_sim::{
    ClassId, Hardware, Kernel, LeafPolicy, NS_PER_MS, NS_PER_S, Ns, Program, Simulation, Spec,
    Step, World,
};
use usual::ANDANTE;

/// `enum an_policy_kind`.
const SFQ: LeafPolicy = policy(0, 0);
const FIFO: LeafPolicy = policy(1, 0);
const RR: LeafPolicy = policy(2, 20 * NS_PER_MS);
const SVR4_TS: LeafPolicy = policy(4, 0);
const SVR4_RT: LeafPolicy = LeafPolicy {
    nice_is_real_time: true,
    ..SVR4_TS
};
const LINUX22: LeafPolicy = policy(6, 0);
const DEADLINE: LeafPolicy = policy(7, 20 * NS_PER_MS);

const fn policy(kind: u32, quantum_ns: Ns) -> LeafPolicy {
    LeafPolicy {
        kind,
        quantum_ns,
        nice_is_real_time: false,
    }
}

fn endless() -> impl Program {
    |_: &mut World<'_>| Step::ComputeForever
}

/// Works for 1 ms and sleeps for 9, again and again: less than the share of a class in which something is learnt.
fn periodic() -> impl Program {
    let mut works = false;
    move |world: &mut World<'_>| {
        works = !works;
        match works {
            true => Step::Compute(NS_PER_MS),
            false => Step::SleepUntil(world.now_ns + 9 * NS_PER_MS),
        }
    }
}

fn machine(cpus: usize, domain_cpus: Option<u32>) -> Kernel {
    let hardware = Hardware {
        cpus,
        domain_cpus,
        ..Hardware::default()
    };
    Kernel::new(&hardware, ANDANTE, 0..0)
}

fn starts(kernel: &mut Kernel, class: ClassId, nice: i32, program: impl Program + 'static) {
    let instance = kernel.instance();
    let spec = Spec {
        nice,
        ..Spec::of(class)
    };
    kernel.start(0, instance, spec, Box::new(program));
}

/// Each class has what its weight says, on one CPU and several, whatever its policy, with tasks of all kinds in it.
#[test]
fn shares_stand_whatever_a_leaf_does() {
    for (cpus, domain_cpus, within) in [
        (1, None, 0.01),
        (2, None, 0.01),
        (4, None, 0.01),
        (4, Some(2), 0.02),
    ] {
        let mut kernel = machine(cpus, domain_cpus);
        let classes = [
            (100, SVR4_TS),
            (200, RR),
            (400, SFQ),
            (100, FIFO),
            (200, LINUX22),
            (100, DEADLINE),
            (300, SVR4_RT),
        ];
        for (weight, policy) in classes {
            let class = kernel.create(ClassId(0), weight).expect("there is room");
            kernel.policy(0, class, policy);
            for at in 0..2 * cpus as i32 {
                starts(&mut kernel, class, -at, endless());
            }
            starts(&mut kernel, class, 0, periodic());
        }
        kernel.run_until(10 * NS_PER_S);
        assert_eq!(kernel.ejected(), None);
        let usage = kernel.usage();
        let all: Ns = usage.classes.iter().sum();
        let sum: u32 = classes.iter().map(|(weight, _)| weight).sum();
        let parts = usage.classes.iter().map(|used| *used as f64 / all as f64);
        let parts: Vec<_> = parts.collect();
        for (used, (weight, policy)) in usage.classes[1..].iter().zip(classes) {
            let part = *used as f64 / all as f64;
            let due = f64::from(weight) / f64::from(sum);
            assert!(
                (part - due).abs() < within,
                "{cpus} CPUs, {policy:?}: {part} instead of {due} of {parts:?}"
            );
        }
    }
}

/// What two loops of a class with half of a CPU get in two seconds after it has been given this policy, while
/// both run and wait, and was given that one before.
fn two_loops(before: LeafPolicy, after: LeafPolicy, nice: [i32; 2]) -> [f64; 2] {
    let mut kernel = machine(1, None);
    let class = kernel.create(ClassId(0), 100).expect("there is room");
    let other = kernel.create(ClassId(0), 100).expect("there is room");
    kernel.policy(0, class, before);
    kernel.policy(NS_PER_S, class, after);
    for nice in nice {
        starts(&mut kernel, class, nice, endless());
    }
    starts(&mut kernel, other, 0, endless());
    let used = |kernel: &Kernel| {
        let usage = kernel.usage();
        [usage.instances[0], usage.instances[1]]
    };
    // What was in service when the policy changed is asked within a quantum.
    kernel.run_until(NS_PER_S + 10 * NS_PER_MS);
    let begin = used(&kernel);
    kernel.run_until(3 * NS_PER_S + 10 * NS_PER_MS);
    assert_eq!(kernel.ejected(), None);
    let end = used(&kernel);
    let got = [0, 1].map(|at| (end[at] - begin[at]) as f64 / (2 * NS_PER_S) as f64);
    let class = got[0] + got[1];
    assert!((class - 0.5).abs() < 0.01, "{before:?}, {after:?}: {class}");
    got
}

/// The order is the new one from the next choice on, whatever it was before, and nobody is lost.
#[test]
fn a_policy_changes_while_tasks_run_and_wait() {
    let all = [SFQ, FIFO, RR, SVR4_TS, SVR4_RT, LINUX22, DEADLINE];
    for before in all {
        for after in all {
            let got = two_loops(before, after, [0, 0]);
            let why = format!("{before:?}, then {after:?}: {got:?}");
            match after {
                FIFO => assert!(got[0].min(got[1]) == 0.0, "{why}"),
                // A quantum of the first is 0.6 s.
                SVR4_TS | SVR4_RT => assert!(got[0].min(got[1]) > 0.1, "{why}"),
                LINUX22 => assert!((got[0] - got[1]).abs() < 0.11, "{why}"),
                _ => assert!((got[0] - got[1]).abs() < 0.03, "{why}"),
            }
            // Of the class RT.
            if after == SVR4_RT {
                let got = two_loops(before, after, [0, -1]);
                assert!(got[0] < 0.002, "{before:?}, then {after:?}: {got:?}");
            }
        }
    }
}

/// A policy that changes over and over, with tasks that sleep and wake in between: all are there in the end.
#[test]
fn nobody_is_lost_when_a_policy_changes_often() {
    for (cpus, domain_cpus) in [(1, None), (2, None), (4, Some(2))] {
        let mut kernel = machine(cpus, domain_cpus);
        let class = kernel.create(ClassId(0), 100).expect("there is room");
        for _ in 0..2 * cpus {
            starts(&mut kernel, class, 0, endless());
            starts(&mut kernel, class, 0, periodic());
        }
        let all = [FIFO, RR, SVR4_TS, SFQ, LINUX22, DEADLINE, SVR4_RT, SFQ];
        for (at, policy) in all.into_iter().cycle().take(200).enumerate() {
            kernel.policy((1 + at as Ns) * 17 * NS_PER_MS, class, policy);
        }
        let end_ns = 200 * 17 * NS_PER_MS;
        kernel.run_until(end_ns + 50 * NS_PER_MS);
        let begin = kernel.usage().instances;
        kernel.run_until(end_ns + 50 * NS_PER_MS + NS_PER_S);
        assert_eq!(kernel.ejected(), None);
        let usage = kernel.usage();
        let got = usage
            .instances
            .iter()
            .zip(&begin)
            .map(|(end, begin)| end - begin);
        let least = got.min().expect("there are some");
        assert!(least > NS_PER_S / 20, "{cpus} CPUs: {least}");
        assert!(
            usage.idle < NS_PER_S / 100,
            "{cpus} CPUs: {} idle",
            usage.idle
        );
    }
}
