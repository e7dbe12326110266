//! What programs do with each other, and what is recorded of it.

use andante_sim::programs::{Answerer, Audio, Batch, Desk, Loop, Player, Server, Typing};
use andante_sim::{
    ClassId, Costs, InstanceId, Machine, NS_PER_MS, NS_PER_S, Ns, OneClass, PolicyKind, Priority,
    Spec,
};

const ROOT: ClassId = ClassId(0);

/// One CPU, all tasks in one class under this policy.
fn machine(kind: PolicyKind) -> Machine<OneClass> {
    let scheduler = OneClass::new(1, kind, 2 * NS_PER_MS, 0);
    Machine::new(1, Costs::default(), scheduler, 0..0)
}

fn start(
    m: &mut Machine<OneClass>,
    spec: Spec,
    p: impl andante_sim::Program + 'static,
) -> InstanceId {
    let instance = m.instance();
    m.start(0, instance, spec, p);
    instance
}

/// In SVR4's real-time class.
fn real_time(level: i32) -> Spec {
    Spec {
        priority: Priority {
            level,
            real_time: true,
            round_robin: false,
        },
        ..Spec::of(ROOT)
    }
}

/// A player that is always behind, 20 ms of work a frame, with a server below it that needs 30 ms and
/// may be `ahead` frames behind; when frames were shown in the first 300 ms [ms].
fn shown_ms(ahead: u32) -> Vec<Ns> {
    let mut m = machine(PolicyKind::Svr4);
    let desk = Desk::new(m.channel(4096));
    let answers = m.filled_channel(4096, ahead);
    let client = desk.client(answers, 30 * NS_PER_MS);
    let client = match ahead {
        0 => client,
        _ => client.ahead(),
    };
    let player = Player::new(0, 50.0, vec![20 * NS_PER_MS], Some(client)).never_dropping();
    let player = start(&mut m, real_time(20), player);
    start(&mut m, real_time(10), Server::new(desk));
    m.run_until(300 * NS_PER_MS);
    let shown = m.record(player).shown_ns.iter();
    shown.map(|ns| ns / NS_PER_MS).collect()
}

#[test]
fn who_does_not_wait_runs_ahead_of_the_server() {
    // Waiting for each: 50 ms a frame.
    assert_eq!(shown_ms(0), [50, 100, 150, 200, 250, 300]);
    // Three ahead: the fourth frame, ready at 80 ms, waits until the first has been drawn: the player is
    // above the server, which has the CPU only then. Every frame drawn lets the player make another.
    assert_eq!(shown_ms(3), [110, 160, 210, 260]);
}

/// Frames that a player and a server in turn show in a second, and how often the server was asked.
fn exchanges(exchanges: u32) -> (usize, usize) {
    let mut m = machine(PolicyKind::Fifo);
    let (desk, answers) = (Desk::new(m.channel(4096)), m.channel(4096));
    let client = desk.client(answers, 4 * NS_PER_MS);
    let player = Player::new(0, 100.0, vec![4 * NS_PER_MS], Some(client)).exchanges(exchanges);
    let player = start(&mut m, Spec::of(ROOT), player);
    let server = start(&mut m, Spec::of(ROOT), Server::new(desk));
    m.run_until(NS_PER_S - 1);
    (
        m.record(player).shown_ns.len(),
        m.record(server).finished_ns.len(),
    )
}

#[test]
fn exchanges_without_work_take_no_time() {
    assert_eq!(exchanges(1), (100, 100));
    assert_eq!(exchanges(3), (100, 300));
}

#[test]
fn a_line_delays_keys_and_the_last_key_ends_the_typist() {
    let typing = Typing {
        keys_per_s: 2.0,
        regular: false,
        seed: 1,
        input_ns: vec![10 * NS_PER_MS, 30 * NS_PER_MS],
        work_ns: vec![5 * NS_PER_MS, NS_PER_MS],
        until_ns: 20 * NS_PER_S,
    };
    let mut m = machine(PolicyKind::Fifo);
    let typist = start(&mut m, Spec::of(ROOT), Answerer::typist(0, typing, None));
    m.run_until(60 * NS_PER_S);
    let record = m.record(typist).clone();
    assert!(record.latency_ns.len() > 20);
    assert!(
        record
            .latency_ns
            .iter()
            .all(|(at_ns, _)| *at_ns <= 20 * NS_PER_S)
    );
    assert!(!m.lives(typist));
    // The first key waits 10 ms and takes 5, the second 30 and 1, and no other is waited for.
    assert_eq!(record.latency_ns[0].1, 15 * NS_PER_MS);
    assert_eq!(record.latency_ns[1].1, 31 * NS_PER_MS);
}

#[test]
fn a_server_answers_for_a_typist_that_never_runs_again() {
    let typing = Typing {
        keys_per_s: 10.0,
        regular: false,
        seed: 1,
        input_ns: vec![0],
        work_ns: vec![NS_PER_MS],
        until_ns: NS_PER_S,
    };
    let mut m = machine(PolicyKind::Svr4);
    let desk = Desk::new(m.channel(4096));
    let answers = m.filled_channel(4096, 100);
    let client = desk.client(answers, 100 * NS_PER_MS).ahead();
    let typist = start(
        &mut m,
        real_time(20),
        Answerer::typist(0, typing, Some(client)),
    );
    start(&mut m, real_time(10), Server::new(desk));
    m.run_until(NS_PER_S);
    m.kill(NS_PER_S, typist);
    let before = m.record(typist).latency_ns.len();
    m.run_until(5 * NS_PER_S);
    let after = m.record(typist).latency_ns.len();
    assert!(
        after > before,
        "{before} {after}: what was asked for is drawn"
    );
}

/// The level of a batch beside a loop after ten seconds, and the times of its children.
fn batch(kind: PolicyKind) -> (u32, Vec<Ns>) {
    let mut m = machine(kind);
    let work_ns = vec![40 * NS_PER_MS, 60 * NS_PER_MS];
    let batch = start(&mut m, Spec::of(ROOT), Batch::new(work_ns, 20 * NS_PER_MS));
    start(&mut m, Spec::of(ROOT), Loop);
    m.run_until(10 * NS_PER_S - NS_PER_MS);
    let times = m.record(batch).latency_ns.iter();
    (
        m.level(batch),
        times.map(|(_, ns)| ns / NS_PER_MS).collect(),
    )
}

#[test]
fn svr4_takes_a_batch_for_interactive_and_its_children_too() {
    let (level, times_ms) = batch(PolicyKind::Svr4);
    assert_eq!(level, 59);
    // Once at the top it has the CPU whenever it wants, parent and children.
    assert!(times_ms.len() > 130, "{}", times_ms.len());
    assert!(
        times_ms[20..].iter().all(|ms| [60, 80].contains(ms)),
        "{times_ms:?}"
    );
    let (level, times_ms) = batch(PolicyKind::Svr4New);
    assert!(level < 59);
    assert!(times_ms.len() < 110, "{}", times_ms.len());
}

/// Under Linux 2.2 a child shares what its parent has left of the epoch, so that nobody gains by
/// forking. What a child leaves over is lost: a loop has more than the batch job.
#[test]
fn linux_2_2_gives_nothing_for_forking() {
    let mut m = machine(PolicyKind::Linux22);
    let work_ns = vec![15 * NS_PER_MS];
    let batch = start(&mut m, Spec::of(ROOT), Batch::new(work_ns, 5 * NS_PER_MS));
    let hog = start(&mut m, Spec::of(ROOT), Loop);
    m.run_until(60 * NS_PER_S);
    let used = m.usage().instances;
    let (batch_ns, hog_ns) = (used[batch.0 as usize], used[hog.0 as usize]);
    assert!(batch_ns < hog_ns, "{batch_ns} {hog_ns}");
    assert!(
        batch_ns > 5 * NS_PER_S,
        "{batch_ns}: it is not starved either"
    );
}

#[test]
fn a_callback_too_long_delays_the_next_and_loses_what_passes_meanwhile() {
    let mut m = machine(PolicyKind::Fifo);
    // Periods of 10 ms; every fourth callback takes 25 ms.
    let work_ns = [2, 2, 2, 25].map(|ms| ms * NS_PER_MS).to_vec();
    let audio = start(&mut m, Spec::of(ROOT), Audio::new(0, 100.0, work_ns));
    m.run_until(80 * NS_PER_MS);
    let latencies = m.record(audio).latency_ns.iter();
    let ms: Vec<(Ns, Ns)> = latencies
        .map(|(at, ns)| (at / NS_PER_MS, ns / NS_PER_MS))
        .collect();
    // The one of 30 ms ends at 55: that of 40 is lost, that of 50 begins late and ends in time.
    let expected = [(0, 2), (10, 2), (20, 2), (30, 25), (50, 7), (60, 2)];
    assert_eq!(ms, expected);
}
