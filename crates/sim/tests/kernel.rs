//! Machines with a modelled kernel, under each of the schedulers in `bpf/`.

mod usual;

use andante_sim::{
    ClassId, Hardware, InCharge, Kernel, NS_PER_MS, NS_PER_S, Ns, PolicyKind, Program, Simulation,
    Spec, Step, Usage, World,
};
use usual::ANDANTE;

fn historical(policy: PolicyKind) -> InCharge {
    InCharge::Historical {
        policy,
        nice_is_real_time: false,
    }
}

fn hardware(cpus: usize, domain_cpus: Option<u32>) -> Hardware {
    Hardware {
        cpus,
        domain_cpus,
        ..Hardware::default()
    }
}

fn endless() -> impl Program {
    |_: &mut World<'_>| Step::ComputeForever
}

/// Works for 3 ms and sleeps for 5, again and again.
fn periodic() -> impl Program {
    let mut works = false;
    move |world: &mut World<'_>| {
        works = !works;
        match works {
            true => Step::Compute(3 * NS_PER_MS),
            false => Step::SleepUntil(world.now_ns + 5 * NS_PER_MS),
        }
    }
}

/// A class for each weight, each with loops for all CPUs and one task that sleeps between: what the
/// machine has come to after `end_ns`.
fn shared(hardware: &Hardware, by: InCharge, weights: &[u32], end_ns: Ns, sleeps: bool) -> Usage {
    let mut kernel = Kernel::new(hardware, by, 0..0);
    for weight in weights {
        let class = kernel.create(ClassId(0), *weight).expect("there is room");
        for _ in 0..hardware.cpus {
            let instance = kernel.instance();
            kernel.start(0, instance, Spec::of(class), Box::new(endless()));
        }
        if sleeps {
            let instance = kernel.instance();
            kernel.start(0, instance, Spec::of(class), Box::new(periodic()));
        }
    }
    kernel.run_until(end_ns);
    assert_eq!(kernel.ejected(), None);
    kernel.usage()
}

/// The classes' parts are those of their weights, to `within` of all.
fn assert_shares(usage: &Usage, weights: &[u32], within: f64) {
    let all: Ns = usage.classes.iter().sum();
    let sum: u32 = weights.iter().sum();
    for (used, weight) in usage.classes[1..].iter().zip(weights) {
        let part = *used as f64 / all as f64;
        let due = f64::from(*weight) / f64::from(sum);
        assert!((part - due).abs() < within, "{part} instead of {due}");
    }
}

/// A machine for each object.
fn each() -> [(Hardware, InCharge); 3] {
    [
        (hardware(2, None), ANDANTE),
        (hardware(4, Some(2)), ANDANTE),
        (hardware(2, None), historical(PolicyKind::Svr4)),
    ]
}

fn figures(usage: &Usage) -> (&[Ns], &[Ns], Ns) {
    (&usage.instances, &usage.work, usage.idle)
}

// Loading one looks all of its functions up.
#[test]
fn two_runs_give_the_same_figures() {
    for (hardware, by) in each() {
        let run = || shared(&hardware, by, &[100, 300], 2 * NS_PER_S, true);
        let (first, second) = (run(), run());
        assert!(first.instances.iter().sum::<Ns>() > NS_PER_S, "{by:?}");
        assert_eq!(figures(&first), figures(&second), "{by:?}");
    }
}

#[test]
fn machines_in_threads_do_not_disturb_each_other() {
    for (hardware, by) in each() {
        let run = move || shared(&hardware, by, &[100, 300], 2 * NS_PER_S, true);
        let alone = run();
        let beside = [(); 2].map(|()| std::thread::spawn(run));
        for thread in beside {
            let usage = thread.join().expect("it ends");
            assert_eq!(figures(&alone), figures(&usage), "{by:?}");
        }
    }
}

#[test]
fn loops_have_their_classes_shares() {
    for cpus in [1, 2, 4] {
        let usage = shared(
            &hardware(cpus, None),
            ANDANTE,
            &[100, 300],
            10 * NS_PER_S,
            false,
        );
        assert_shares(&usage, &[100, 300], 0.01);
    }
}

#[test]
fn forty_cpus_are_domains_that_share_and_never_idle() {
    let hardware = hardware(40, None);
    assert_eq!(hardware.domains_of(), Some(16));
    let usage = shared(&hardware, ANDANTE, &[100, 300], 4 * NS_PER_S, false);
    assert_shares(&usage, &[100, 300], 0.02);
    let idle = usage.idle as f64 / (40 * 4 * NS_PER_S) as f64;
    assert!(idle < 0.001, "{idle} of the CPUs' time is idle");
}

#[test]
fn few_cpus_are_one_domain_as_on_a_kernel() {
    assert_eq!(hardware(32, None).domains_of(), None);
    assert_eq!(hardware(4, Some(2)).domains_of(), Some(2));
    assert_eq!(hardware(4, Some(3)).domains_of(), None);
    assert_eq!(hardware(33, None).domains_of(), Some(16));
}

// The first loop of two has the CPU for good, under first in, first out: the kernel lets the policy
// go when the other has waited for 30 s.
#[test]
fn first_in_first_out_starves_and_is_let_go() {
    let mut kernel = Kernel::new(&hardware(1, None), historical(PolicyKind::Fifo), 0..0);
    let instances = [kernel.instance(), kernel.instance()];
    for instance in instances {
        kernel.start(0, instance, Spec::of(ClassId(0)), Box::new(endless()));
    }
    kernel.run_until(20 * NS_PER_S);
    assert_eq!(kernel.usage().instances[1], 0);
    kernel.run_until(60 * NS_PER_S);
    assert!(kernel.ejected().is_some());
}
