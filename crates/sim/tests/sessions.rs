//! Programs that say what they do, and are late.

mod usual;

use andante_sim::programs::{InSession, Player};
use andante_sim::{
    ClassId, Cycle, Hardware, Kernel, NS_PER_MS, NS_PER_S, Ns, Program, Simulation, Spec, Step,
    World,
};
use usual::ANDANTE;

const ROOT: ClassId = ClassId(0);
const PERIOD_NS: Ns = NS_PER_S / 60;
const END_NS: Ns = 9 * NS_PER_S;

/// How many of its frames are shown within a period, of those that are released from `from_ns` on: of a game of 60 frames a
/// second times 9 ms beside four loops, which shows every frame however late, in a session. Its first one takes 400 ms.
fn in_time(says_cycles: bool, from_ns: Ns) -> usize {
    let mut m = Kernel::new(&Hardware::default(), ANDANTE, 0..0);
    for _ in 0..4 {
        let endless = |_: &mut World<'_>| Step::ComputeForever;
        let instance = m.instance();
        m.start(0, instance, Spec::of(ROOT), Box::new(endless));
    }
    let mut works = vec![9 * NS_PER_MS; 1000];
    works[0] = 400 * NS_PER_MS;
    let mut player = Player::new(NS_PER_S, 60.0, works, None).never_dropping();
    let game = move |world: &mut World<'_>| match player.step(world) {
        Step::Begin(_) if !says_cycles => Step::Compute(0),
        step => step,
    };
    let cycle = Cycle {
        period_ns: PERIOD_NS,
        deadline_ns: PERIOD_NS,
        budget_ns: 9 * NS_PER_MS,
    };
    let instance = m.instance();
    let program = Box::new(InSession::new(game, cycle));
    m.start(NS_PER_S - NS_PER_MS, instance, Spec::of(ROOT), program);
    m.run_until(END_NS);
    assert_eq!(m.ejected(), None);
    let record = m.record(instance);
    record
        .released_ns
        .iter()
        .zip(&record.shown_ns)
        .filter(|(released, shown)| **released >= from_ns && **shown <= **released + PERIOD_NS)
        .count()
}

/// A frame that takes longer than its period ends the contract. From then on the game is late, and never sleeps; but the
/// next cycle that it begins is a job of its own.
#[test]
fn a_program_that_is_late_and_says_when_its_cycles_begin_catches_up() {
    let caught_up_ns = 7 * NS_PER_S;
    // All that there are, but perhaps for the last.
    let frames = (END_NS - caught_up_ns) / PERIOD_NS - 1;
    assert!(in_time(true, caught_up_ns) as u64 >= frames);
    assert_eq!(
        in_time(false, caught_up_ns),
        0,
        "or this test shows nothing"
    );
}
