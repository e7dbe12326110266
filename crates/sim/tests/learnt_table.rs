//! More threads that behave like media than there is room for learnt contracts: what is promised finds room
//! all the same, and those that sleep for long make room for others.

mod usual;

use andante_sim::{
    ClassId, Hardware, Kernel, NS_PER_MS, NS_PER_S, Ns, Promise, Simulation, Spec, Step, World,
};
use usual::ANDANTE;

const ROOT: ClassId = ClassId(0);
/// `AN_MAX_LEARNT`, and so many of them are kept free.
const PLACES: u64 = 1024;
const KEPT_FREE: u64 = PLACES / 8;
/// `AN_MAX_CONTRACTS` without those and without index 0.
const PROMISED: usize = 1023;
const THREADS: u64 = 1100;
/// Jobs until one is sure to have been learnt, 33 ms apart.
const JOBS: u64 = 12;
const PERIOD_NS: Ns = 33 * NS_PER_MS;

/// Some jobs, and then nothing any more.
fn falls_asleep(m: &mut Kernel, begin_ns: Ns) {
    let mut steps = (1..=JOBS)
        .flat_map(move |job| {
            let next_ns = begin_ns + job * PERIOD_NS;
            [Step::Compute(10_000), Step::SleepUntil(next_ns)]
        })
        .chain([Step::SleepUntil(1000 * NS_PER_S)]);
    let program = move |_: &mut World<'_>| steps.next().unwrap_or(Step::Exit);
    let instance = m.instance();
    m.start(begin_ns, instance, Spec::of(ROOT), Box::new(program));
}

fn promise(m: &mut Kernel) -> bool {
    let promise = Promise {
        budget_ns: NS_PER_MS,
        period_ns: 1000 * NS_PER_MS,
        flags: Promise::HARD,
        ..Promise::default()
    };
    m.promise(&promise, &[], None).is_some()
}

#[test]
fn a_thousand_sleeping_threads_keep_nobody_from_a_contract() {
    let hardware = Hardware {
        cpus: 2,
        ..Hardware::default()
    };
    let mut m = Kernel::new(&hardware, ANDANTE, 0..0);
    assert!(promise(&mut m));
    for thread in 0..THREADS {
        falls_asleep(&mut m, thread * 2 * NS_PER_MS);
    }
    // All have done their jobs, and none has slept for longer than a period may last.
    m.run_until(3 * NS_PER_S);
    let full = m.learnt();
    assert_eq!((full.held, full.gave_way), (PLACES, 0));
    assert!(full.refused > 0, "{full:?}");
    for at in 1..PROMISED {
        assert!(promise(&mut m), "{at} are promised");
    }
    assert!(!promise(&mut m), "there is no room for one more");

    // Tasks that have slept for long make room, as much as is kept free and no more; and another one is learnt.
    m.run_until(9 * NS_PER_S);
    let swept = m.learnt();
    assert_eq!(swept.gave_way, KEPT_FREE);
    assert_eq!(swept.held, PLACES - KEPT_FREE);
    // Beside loops: whoever finds an idle CPU needs no contract, and is given none.
    for _ in 0..2 {
        let endless = |_: &mut World<'_>| Step::ComputeForever;
        let instance = m.instance();
        m.start(9 * NS_PER_S, instance, Spec::of(ROOT), Box::new(endless));
    }
    falls_asleep(&mut m, 9 * NS_PER_S + PERIOD_NS);
    m.run_until(9 * NS_PER_S + JOBS * PERIOD_NS);
    assert_eq!(m.learnt().held, swept.held + 1);
    assert_eq!(m.learnt().refused, full.refused);
    assert_eq!(m.ejected(), None);
}

/// A thread that works once, and ends.
fn passes_by(m: &mut Kernel, begin_ns: Ns) {
    let mut steps = [
        Step::Compute(10_000),
        Step::SleepUntil(begin_ns + NS_PER_MS),
    ]
    .into_iter();
    let program = move |_: &mut World<'_>| steps.next().unwrap_or(Step::Exit);
    let instance = m.instance();
    m.start(begin_ns, instance, Spec::of(ROOT), Box::new(program));
}

/// With nothing promised as well: the places of threads that have ended are given out again.
#[test]
fn threads_that_have_ended_keep_nobody_from_a_contract() {
    let mut m = Kernel::new(&Hardware::default(), ANDANTE, 0..0);
    let endless = |_: &mut World<'_>| Step::ComputeForever;
    let instance = m.instance();
    m.start(0, instance, Spec::of(ROOT), Box::new(endless));
    for thread in 0..3 * PLACES {
        passes_by(&mut m, NS_PER_MS + thread * 2 * NS_PER_MS);
    }
    m.run_until(7 * NS_PER_S);
    let passed = m.learnt();
    assert!(passed.held < PLACES / 2, "{passed:?}");
    assert_eq!(passed.refused, 0);
}
