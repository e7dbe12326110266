//! Events under the scheduler that users run (`bpf/events.h`), on an ideal kernel: the sink of one runs at
//! once, by each of the rules that a kernel has, and pays for it.

mod ideal;

use andante_core_sys::Contracts;
use andante_sim::programs::Loop;
use andante_sim::{
    ContractId, InstanceId, Kernel, NS_PER_MS, Ns, Promise, Simulation, Spec, Step, World,
};
use ideal::{ROOT, server, start, under, with_events};

const MS: Ns = NS_PER_MS;
const NO_RULE_2: u32 = Contracts::EVENT_NO_RULE_2;
const NO_RULE_4: u32 = Contracts::EVENT_NO_RULE_4;

/// `budget` in `period` [ms], x of y lost.
fn window(m: &mut Kernel, budget: Ns, period: Ns, x: u32, y: u32) -> ContractId {
    let promise = Promise {
        x,
        y,
        ..server(budget * MS, period * MS, Promise::WINDOW, 0)
    };
    m.promise(&promise, &[], None).expect("there is room")
}

/// When the first task of the instance that was started as this one ran first, from `from_ns` on.
fn first_run(m: &Kernel, task: u32, from_ns: Ns) -> Ns {
    let mut runs = m.runs().iter();
    let run = runs.find(|run| run.task.0 == task && run.start_ns + run.length_ns > from_ns);
    run.map_or(Ns::MAX, |run| run.start_ns.max(from_ns))
}

fn hogs(m: &mut Kernel, count: u32) {
    for _ in 0..count {
        start(m, Spec::of(ROOT), Loop);
    }
}

/// A contract of 1 ms in 10, used up by then, and an event 5 ms into every period, beside eight loops.
fn beside_loops(mut m: Kernel) -> (Kernel, ContractId, InstanceId) {
    let contract = window(&mut m, 1, 10, 1, 2);
    let sink = start(&mut m, under(contract), Loop);
    hogs(&mut m, 8);
    m.raise(sink, Box::new((0..10).map(|period| (10 * period + 5) * MS)));
    m.run_until(100 * MS);
    (m, contract, sink)
}

/// Rule 2: it runs at once, and what it has for that it has less in the next period.
#[test]
fn a_sink_runs_in_the_place_of_best_effort_and_pays() {
    let (mut m, contract, _) = beside_loops(with_events(0));
    assert_eq!(first_run(&m, 0, 5 * MS), 5 * MS);
    for period in 1..10 {
        assert_eq!(
            first_run(&m, 0, (10 * period + 5) * MS),
            (10 * period + 5) * MS
        );
    }
    let kept = m.kept(contract).unwrap().0;
    assert_eq!((kept.misses, kept.violations), (0, 0));
    // Ten budgets, and one in advance.
    assert!(
        kept.service_ns >= 10 * MS && kept.service_ns < 11 * MS + MS / 10,
        "{kept:?}"
    );
}

#[test]
fn without_the_rule_it_waits_for_its_share() {
    for m in [
        ideal::kernel(1, ideal::QUANTUM_NS, Default::default()),
        with_events(NO_RULE_2),
    ] {
        let (mut m, contract, _) = beside_loops(m);
        assert!(first_run(&m, 0, 5 * MS) >= 7 * MS);
        let kept = m.kept(contract).unwrap().0;
        assert!(kept.service_ns <= 10 * MS + MS / 10, "{kept:?}");
    }
}

/// Rule 4: of two that are due together the one with the event goes first, if both are in time.
#[test]
fn a_sink_goes_before_one_that_can_wait() {
    let run = |left_out, events: bool| {
        let mut m = with_events(left_out);
        let loose = window(&mut m, 3, 20, 1, 2);
        let tight = window(&mut m, 3, 20, 0, 1);
        let sink = start(&mut m, under(loose), Loop);
        start(&mut m, under(tight), Loop);
        hogs(&mut m, 1);
        if events {
            m.raise(sink, Box::new([20 * MS].into_iter()));
        }
        m.run_until(40 * MS);
        for contract in [loose, tight] {
            assert_eq!(m.kept(contract).unwrap().0.misses, 0);
        }
        first_run(&m, 0, 20 * MS)
    };
    assert_eq!(run(0, true), 20 * MS);
    for (left_out, events) in [(NO_RULE_4, true), (0, false)] {
        assert!(run(left_out, events) >= 23 * MS);
    }
}

/// An event that is known before it is due, and a quantum of somebody's that ends in between.
#[test]
fn an_event_to_come_is_delivered_when_it_is_due() {
    let mut m = with_events(0);
    let contract = window(&mut m, 1, 20, 1, 2);
    let sink = start(&mut m, under(contract), Loop);
    hogs(&mut m, 8);
    m.raise_ahead(sink, 3 * MS, 11 * MS + MS / 2);
    m.run_until(20 * MS);
    let run_ns = first_run(&m, 0, 2 * MS);
    assert!(
        (11 * MS + MS / 2..=11 * MS + MS / 2 + 50_000).contains(&run_ns),
        "{run_ns}"
    );
}

/// Its event was due while it slept; it is delivered when it wakes, its budget being used up.
#[test]
fn a_sink_that_sleeps_takes_its_event_along() {
    let mut m = with_events(0);
    let contract = window(&mut m, 1, 10, 1, 2);
    let mut steps = [
        Step::Compute(MS),
        Step::SleepUntil(7 * MS),
        Step::Compute(5 * MS),
    ]
    .into_iter();
    let program = move |_: &mut World<'_>| steps.next().unwrap_or(Step::Exit);
    let sink = start(&mut m, under(contract), program);
    hogs(&mut m, 8);
    // With the first it finds that its work is done, and goes to sleep.
    m.raise(sink, Box::new([3 * MS, 5 * MS].into_iter()));
    m.run_until(10 * MS);
    // The core's timers are not set for less than 50 µs.
    let woken_ns = first_run(&m, 0, 4 * MS) - 7 * MS;
    assert!(woken_ns <= 50_000, "{woken_ns} ns");
}
