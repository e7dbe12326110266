//! Scheduling decisions a second, by number of tasks and classes: `cargo bench -p andante-sim`.
//!
//! With a number of tasks, `loop` or `block`, and a number of decisions, it makes so many in 16
//! classes and says nothing: `instructions.sh` counts what they cost.

use std::time::Duration;

use andante_sim::programs::Loop;
use andante_sim::{
    Costs, Hierarchy, Machine, NS_PER_MS, NS_PER_S, PolicyKind, Random, Spec, Step, World,
};
use nix::time::{ClockId, clock_gettime};

/// The numbers of tasks, in 16 classes, that the growth is told of.
const GROWTH: [u32; 2] = [100, 100_000];
/// How often each is measured for that, in turn: others use the machine's caches too, so that the
/// least time of several is what a decision costs.
const ROUNDS: u32 = 5;

fn main() {
    // Cargo adds --bench.
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [tasks, kind, decisions, ..] = &args[..] {
        let number = |text: &str| text.parse().expect("a number");
        let mut machine = machine(number(tasks), 16, kind == "block");
        let mut end_ns = 0;
        while machine.trace().decisions() < u64::from(number(decisions)) {
            end_ns += NS_PER_MS;
            machine.run_until(end_ns);
        }
        return;
    }
    println!(
        "{:>8} {:>8} {:>6} {:>12} {:>14}",
        "tasks", "classes", "kind", "decisions", "decisions/s"
    );
    for (tasks, classes) in [
        (10, 1),
        (100, 1),
        (100, 16),
        (1_000, 16),
        (10_000, 16),
        (100_000, 16),
    ] {
        for blocking in [false, true] {
            let (decisions, seconds) = measure(&mut machine(tasks, classes, blocking));
            let kind = if blocking { "block" } else { "loop" };
            let rate = decisions as f64 / seconds;
            println!("{tasks:>8} {classes:>8} {kind:>6} {decisions:>12} {rate:>14.0}");
        }
    }
    let [few, many] = GROWTH;
    println!(
        "a decision costs {:.1} (loop) and {:.1} (block) times as much with {many} tasks as with \
         {few}; their logarithms are as {:.1} to 1",
        growth(false),
        growth(true),
        f64::from(many).ln() / f64::from(few).ln()
    );
}

/// By what a decision costs more with the many tasks of [`GROWTH`] than with the few, once every
/// task has run.
fn growth(blocking: bool) -> f64 {
    let mut machines = GROWTH.map(|tasks| machine(tasks, 16, blocking));
    for (machine, tasks) in machines.iter_mut().zip(GROWTH) {
        machine.run_until(2 * u64::from(tasks) * NS_PER_MS);
    }
    let mut costs = [f64::INFINITY; GROWTH.len()];
    for _ in 0..ROUNDS {
        for (machine, cost) in machines.iter_mut().zip(&mut costs) {
            let (decisions, seconds) = measure(machine);
            *cost = cost.min(seconds / decisions as f64);
        }
    }
    costs[1] / costs[0]
}

/// Tasks that compute for ever, or work and sleep at random.
fn machine(tasks: u32, classes: usize, blocking: bool) -> Machine<Hierarchy> {
    let mut hierarchy = Hierarchy::new(1, NS_PER_MS, PolicyKind::Sfq);
    let classes: Vec<_> = (0..classes)
        .map(|n| {
            hierarchy
                .create(Hierarchy::ROOT, 100 + n as u32, PolicyKind::Sfq)
                .expect("there is room")
        })
        .collect();
    let mut machine = Machine::new(1, Costs::default(), hierarchy, 0..0);
    let instance = machine.instance();
    for n in 0..tasks {
        let spec = Spec::of(classes[n as usize % classes.len()]);
        if blocking {
            let mut random = Random::new(u64::from(n));
            let mut work = false;
            let gap_ns = u64::from(tasks) * NS_PER_MS;
            machine.start(0, instance, spec, move |world: &mut World<'_>| {
                work = !work;
                if work {
                    Step::Compute(random.below(2 * NS_PER_MS) + 1)
                } else {
                    Step::SleepUntil(world.now_ns + random.below(gap_ns))
                }
            });
        } else {
            machine.start(0, instance, spec, Loop);
        }
    }
    machine
}

/// Decisions in the machine's next while, and the CPU time they took [s].
fn measure(machine: &mut Machine<Hierarchy>) -> (u64, f64) {
    let before = machine.trace().decisions();
    let begin = cpu_time();
    let mut end_ns = machine.now_ns();
    while cpu_time() - begin < Duration::from_secs(1) {
        end_ns += NS_PER_S;
        machine.run_until(end_ns);
    }
    (
        machine.trace().decisions() - before,
        (cpu_time() - begin).as_secs_f64(),
    )
}

/// Of this thread: whoever else uses the machine does not count.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("every kernel has this clock")
        .into()
}
