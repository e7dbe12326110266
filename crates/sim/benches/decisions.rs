//! Scheduling decisions a second of the scheduler that users run, on an ideal kernel, by number of tasks
//! and classes: `cargo bench -p andante-sim`. The model of the kernel is a part of what is measured.
//!
//! With a number of tasks, `loop` or `block`, and a number of decisions, it makes so many in 16
//! classes and says nothing: `instructions.sh` counts what they cost.

use std::time::Duration;

use andante_sim::programs::Loop;
use andante_sim::{
    ClassId, Costs, Hardware, InCharge, Kernel, NS_PER_MS, NS_PER_S, Ns, Random, Settings,
    Simulation, Spec, Step, World,
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
        let Timed { mut machine, .. } = timed(number(tasks), 16, kind == "block");
        let mut end_ns = 0;
        while machine.decisions() < u64::from(number(decisions)) {
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
            let (decisions, seconds) = timed(tasks, classes, blocking).measure();
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
    let mut machines = GROWTH.map(|tasks| timed(tasks, 16, blocking));
    for (machine, tasks) in machines.iter_mut().zip(GROWTH) {
        machine.run_for(2 * u64::from(tasks) * NS_PER_MS);
    }
    let mut costs = [f64::INFINITY; GROWTH.len()];
    for _ in 0..ROUNDS {
        for (machine, cost) in machines.iter_mut().zip(&mut costs) {
            let (decisions, seconds) = machine.measure();
            *cost = cost.min(seconds / decisions as f64);
        }
    }
    costs[1] / costs[0]
}

/// A machine, and how far its time has come.
struct Timed {
    machine: Kernel,
    now_ns: Ns,
}

/// Tasks that compute for ever, or work and sleep at random.
fn timed(tasks: u32, classes: usize, blocking: bool) -> Timed {
    let andante = InCharge::Andante(Settings {
        quantum_ns: NS_PER_MS,
        in_class_wake_ns: 200_000,
        contract_bound: 819,
        learn_bound: 0,
        bindings: false,
        events: None,
    });
    let mut machine = Kernel::new(&Hardware::ideal(Costs::default()), andante, 0..0);
    let classes: Vec<_> = (0..classes)
        .map(|n| machine.create(ClassId(0), 100 + n as u32))
        .map(|class| class.expect("there is room"))
        .collect();
    let instance = machine.instance();
    for n in 0..tasks {
        let spec = Spec::of(classes[n as usize % classes.len()]);
        if blocking {
            let mut random = Random::new(u64::from(n));
            let mut work = false;
            let gap_ns = u64::from(tasks) * NS_PER_MS;
            let program = move |world: &mut World<'_>| {
                work = !work;
                if work {
                    Step::Compute(random.below(2 * NS_PER_MS) + 1)
                } else {
                    Step::SleepUntil(world.now_ns + random.below(gap_ns))
                }
            };
            machine.start(0, instance, spec, Box::new(program));
        } else {
            machine.start(0, instance, spec, Box::new(Loop));
        }
    }
    Timed { machine, now_ns: 0 }
}

impl Timed {
    fn run_for(&mut self, ns: Ns) {
        self.now_ns += ns;
        self.machine.run_until(self.now_ns);
    }

    /// Decisions in the next while, and the CPU time they took [s].
    fn measure(&mut self) -> (u64, f64) {
        let before = self.machine.decisions();
        let begin = cpu_time();
        while cpu_time() - begin < Duration::from_secs(1) {
            self.run_for(NS_PER_S);
        }
        (
            self.machine.decisions() - before,
            (cpu_time() - begin).as_secs_f64(),
        )
    }
}

/// Of this thread: whoever else uses the machine does not count.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("every kernel has this clock")
        .into()
}
