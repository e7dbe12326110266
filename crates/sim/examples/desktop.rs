//! A desktop on a modelled kernel: a film and its drawing, somebody who types, batch jobs. Prints what
//! each got under Andante, under the stock scheduler, and there with nice values or SCHED_FIFO by hand
//! for film, typist and server.
//!
//! ```text
//! cargo run --release -p andante-sim --example desktop -- 8 4    # batch jobs, drawing [ms]
//! ```

use andante_sim::programs::{Answerer, Batch, Desk, FORK_NS, Loaded, Player, Server, Typing};
use andante_sim::{
    ClassId, Hardware, InCharge, InstanceId, Kernel, NS_PER_MS, NS_PER_S, Ns, Program, Settings,
    Simulation, Spec,
};

const BEGIN_NS: Ns = 2 * NS_PER_S;
const END_NS: Ns = BEGIN_NS + 9 * NS_PER_S;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<f64>());
    let mut number = |default| numbers.next().map_or(default, |n| n.expect("a number"));
    let (jobs, display_ms) = (number(8.0) as usize, number(4.0));
    let cpus = number(1.0) as usize;
    let andante = InCharge::Andante(Settings {
        quantum_ns: 2 * NS_PER_MS,
        in_class_wake_ns: 200_000,
        contract_bound: 819,
        learn_bound: 819,
        bindings: true,
        events: None,
    });
    desktop("andante", andante, cpus, jobs, display_ms);
    for name in ["stock", "nice by hand", "FIFO by hand"] {
        desktop(name, InCharge::Stock, cpus, jobs, display_ms);
    }
}

fn desktop(name: &str, in_charge: InCharge, cpus: usize, jobs: usize, display_ms: f64) {
    let hardware = Hardware {
        cpus,
        shared_budget: cpus > 1,
        ..Hardware::default()
    };
    let mut kernel = Kernel::new(&hardware, in_charge, 0..0);
    let by_hand = name == "FIFO by hand";
    let nice = name == "nice by hand";
    let of = |fifo| Spec {
        fifo: if by_hand { fifo } else { 0 },
        nice: if nice && fifo > 0 { -10 } else { 0 },
        ..Spec::of(ClassId(0))
    };
    let ms = |ms: f64| (ms * 1e6 / cpus as f64) as Ns;
    let bell = kernel.channel(65_536, 0);
    let desk = Desk::new(bell);
    let [server, typist, film] = [(); 3].map(|()| kernel.instance());
    kernel.start(
        0,
        server,
        of(52),
        loaded(Box::new(Server::new(desk.clone()))),
    );
    let answer = kernel.channel(65_536, 0);
    let typing = Typing {
        keys_per_s: 5.0,
        regular: false,
        seed: 4,
        input_ns: vec![0],
        work_ns: vec![ms(1.0), ms(3.0), ms(2.0)],
        until_ns: Ns::MAX,
    };
    let asks = desk.client(answer, ms(1.0));
    let types = Answerer::typist(BEGIN_NS, typing, Some(asks));
    kernel.start(0, typist, of(51), loaded(Box::new(types)));
    let frames = [16.0, 5.5, 5.5, 8.0, 5.5, 5.5, 8.0, 5.5, 5.5, 8.0, 5.5, 5.5].map(ms);
    let answer = kernel.channel(65_536, 0);
    let asks = desk.client(answer, ms(display_ms));
    let plays = Player::new(BEGIN_NS, 30.0, frames.to_vec(), Some(asks));
    kernel.start(0, film, of(50), loaded(Box::new(plays)));
    let batch: Vec<InstanceId> = (0..jobs * cpus)
        .map(|_| {
            let id = kernel.instance();
            let job = Batch::new(vec![ms(3.0), ms(5.0)], FORK_NS / cpus as u64);
            kernel.start(0, id, of(0), loaded(Box::new(job)));
            id
        })
        .collect();
    kernel.run_until(END_NS);
    let film = kernel.record(film);
    let late = film
        .shown_ns
        .iter()
        .zip(&film.released_ns)
        .filter(|(at, released)| **at - **released > NS_PER_S / 30 && **released >= BEGIN_NS)
        .count();
    let dropped = film.dropped_ns.iter().filter(|at| **at >= BEGIN_NS).count();
    let mut keys: Vec<Ns> = kernel
        .record(typist)
        .latency_ns
        .iter()
        .map(|key| key.1)
        .collect();
    if std::env::var_os("KEYS").is_some() {
        println!(
            "{:?}",
            kernel
                .record(typist)
                .latency_ns
                .iter()
                .map(|k| ((k.0 - BEGIN_NS) / 100_000, k.1 / 10_000))
                .collect::<Vec<_>>()
        );
    }
    keys.sort_unstable();
    let jobs: usize = batch
        .iter()
        .map(|id| {
            kernel
                .record(*id)
                .finished_ns
                .iter()
                .filter(|at| **at >= BEGIN_NS)
                .count()
        })
        .sum();
    println!(
        "{name}: {late} late, {dropped} dropped, keys mean {:.2} max {:.2} ms, {jobs} jobs, {:?}",
        keys.iter().sum::<Ns>() as f64 / keys.len() as f64 / 1e6,
        *keys.last().unwrap_or(&0) as f64 / 1e6,
        kernel.ejected(),
    );
}

fn loaded(program: Box<dyn Program>) -> Box<dyn Program> {
    Box::new(Loaded::new(program, BEGIN_NS - NS_PER_S, 1.0))
}
