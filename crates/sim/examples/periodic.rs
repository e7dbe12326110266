//! Runs a set of periodic tasks under contracts of kind EDF on one CPU, and says how long that took: the simulator's
//! side of `benches/simso/compare.sh`.
//!
//! Arguments: seconds to simulate, then a file with a task per line, `period_ms work_ms`.

use std::time::Instant;

use andante_sim::{
    ClassId, Costs, Hardware, InCharge, Kernel, NS_PER_S, Ns, Promise, Settings, Simulation, Spec,
    Step, World,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, seconds, file] = arguments.as_slice() else {
        eprintln!("usage: periodic SECONDS FILE");
        std::process::exit(2);
    };
    let seconds: Ns = seconds.parse().expect("SECONDS is a whole number");
    let text = std::fs::read_to_string(file).expect("FILE can be read");
    let ns = |ms: &str| (ms.parse::<f64>().expect("times are numbers") * 1e6) as Ns;
    let set: Vec<(Ns, Ns)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(period, work)| (ns(period), ns(work)))
        .collect();

    let begin = Instant::now();
    let andante = InCharge::Andante(Settings {
        quantum_ns: 2_000_000,
        in_class_wake_ns: 200_000,
        contract_bound: 1024,
        learn_bound: 0,
        bindings: false,
        events: None,
    });
    let mut machine = Kernel::new(&Hardware::ideal(Costs::default()), andante, 0..0);
    let contracts: Vec<_> = set
        .iter()
        .map(|(period_ns, work_ns)| {
            let promise = Promise {
                budget_ns: *work_ns,
                period_ns: *period_ns,
                flags: Promise::EXHAUSTIVE,
                ..Promise::default()
            };
            machine.promise(&promise, &[], None).expect("there is room")
        })
        .collect();
    let instance = machine.instance();
    for ((period_ns, work_ns), contract) in set.iter().copied().zip(&contracts) {
        let spec = Spec {
            contract: Some(*contract),
            ..Spec::of(ClassId(0))
        };
        let (mut job, mut works) = (0, false);
        let program = move |_: &mut World<'_>| {
            works = !works;
            if works {
                return Step::Compute(work_ns);
            }
            job += 1;
            Step::SleepUntil(job * period_ns)
        };
        machine.start(0, instance, spec, Box::new(program));
    }
    machine.run_until(seconds * NS_PER_S);
    let took = begin.elapsed();
    let kept = |id| machine.kept(id).expect("it was made").0;
    let kept: Vec<_> = contracts.into_iter().map(kept).collect();
    let jobs: u64 = kept.iter().map(|kept| kept.deadlines).sum();
    let missed: u64 = kept.iter().map(|kept| kept.misses).sum();
    println!("{jobs} jobs, {missed} missed, {:.6} s", took.as_secs_f64());
}
