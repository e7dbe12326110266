//! More cgroups than there is room for classes: some share their parent's, until there is room again.

mod usual;

use andante_sim::{ClassId, Hardware, Kernel, NS_PER_S, Ns, Simulation, Spec, Step, World};
use usual::ANDANTE;

const PARENT_SHARES: i32 = -11;
const NO_ROOM: i32 = -28;

/// A machine whose table is full, and the classes that fill it.
fn full(cpus: usize, domain_cpus: Option<u32>) -> (Kernel, Vec<ClassId>) {
    let hardware = Hardware {
        cpus,
        domain_cpus,
        ..Hardware::default()
    };
    let mut kernel = Kernel::new(&hardware, ANDANTE, 0..0);
    let mut fill = Vec::new();
    while kernel.classes_shared() == 0 {
        fill.push(kernel.create(ClassId(0), 100).expect("a cgroup"));
    }
    let one_too_many = fill.pop().expect("many");
    assert!(kernel.remove(one_too_many));
    assert!(fill.len() > 8000, "{}", fill.len());
    (kernel, fill)
}

/// As many loops in the class as there are CPUs; where their figures are.
fn loops(kernel: &mut Kernel, class: ClassId, cpus: usize) -> Vec<usize> {
    let start = |_| {
        let instance = kernel.instance();
        let endless = |_: &mut World<'_>| Step::ComputeForever;
        kernel.start(0, instance, Spec::of(class), Box::new(endless));
        instance.0 as usize
    };
    (0..cpus).map(start).collect()
}

/// What the instances of each of these have of all while this goes on.
fn parts(kernel: &mut Kernel, of: &[&Vec<usize>], length_ns: Ns, now_ns: &mut Ns) -> Vec<f64> {
    let before = kernel.usage().instances;
    *now_ns += length_ns;
    kernel.run_until(*now_ns);
    assert_eq!(kernel.ejected(), None);
    let after = kernel.usage().instances;
    let used = |at: &usize| after[*at] - before.get(*at).copied().unwrap_or(0);
    let used: Vec<Ns> = of.iter().map(|each| each.iter().map(used).sum()).collect();
    let all: Ns = used.iter().sum();
    used.iter().map(|used| *used as f64 / all as f64).collect()
}

fn assert_near(parts: &[f64], due: &[f64], within: f64) {
    for (part, due) in parts.iter().zip(due) {
        assert!((part - due).abs() < within, "{parts:?}");
    }
}

/// The table is full, two classes with loops share the root's; then others go.
fn shares_and_gets_its_own(cpus: usize, domain_cpus: Option<u32>) {
    let (mut kernel, mut fill) = full(cpus, domain_cpus);
    let light = kernel.create(ClassId(0), 100).expect("a cgroup");
    let heavy = kernel.create(ClassId(0), 300).expect("a cgroup");
    // Below one that shares, also once there is room: it would be beside it.
    let below = kernel.create(heavy, 100).expect("a cgroup");
    assert_eq!(kernel.classes_shared(), 3);
    let all = [light, heavy, below].map(|class| loops(&mut kernel, class, cpus));
    let of = [&all[0], &all[1], &all[2]];
    let mut now_ns = 0;
    let even = parts(&mut kernel, &of, 3 * NS_PER_S, &mut now_ns);
    assert_near(&even, &[1.0 / 3.0; 3], 0.03);
    assert_eq!(kernel.own_class(light), NO_ROOM);
    assert_eq!(kernel.own_class(below), PARENT_SHARES);

    // One class goes, and one gets its own; that of weight 100 beside the root's own tasks.
    let gone = fill.pop().expect("many");
    assert!(kernel.remove(gone));
    assert_eq!(kernel.own_class(below), PARENT_SHARES);
    assert_eq!(kernel.own_class(light), 0);
    assert_eq!(kernel.own_class(heavy), NO_ROOM);
    assert_eq!(kernel.classes_shared(), 2);
    parts(&mut kernel, &of, NS_PER_S / 10, &mut now_ns);
    let half = parts(&mut kernel, &of, 3 * NS_PER_S, &mut now_ns);
    assert_near(&half, &[0.5, 0.25, 0.25], 0.03);

    // Room for all: an inner class takes two nodes.
    for _ in 0..3 {
        let gone = fill.pop().expect("many");
        assert!(kernel.remove(gone));
    }
    for class in [heavy, below, light] {
        assert_eq!(kernel.own_class(class), 0);
    }
    assert_eq!(kernel.classes_shared(), 0);
    parts(&mut kernel, &of, NS_PER_S / 10, &mut now_ns);
    let own = parts(&mut kernel, &of, 5 * NS_PER_S, &mut now_ns);
    // The heavy one has its own tasks beside its child, at the same weight.
    assert_near(&own, &[0.25, 0.375, 0.375], 0.03);
}

#[test]
fn classes_that_share_get_their_own_when_there_is_room() {
    shares_and_gets_its_own(1, None);
    shares_and_gets_its_own(2, None);
}

#[test]
fn in_domains_too() {
    shares_and_gets_its_own(4, Some(2));
}

#[test]
fn one_that_goes_while_it_shares_is_counted_no_more() {
    let (mut kernel, mut fill) = full(1, None);
    let shares = kernel.create(ClassId(0), 100).expect("a cgroup");
    assert!(kernel.remove(shares));
    assert_eq!(kernel.classes_shared(), 0);
    assert_eq!(kernel.own_class(shares), 0, "there is none any more");
    let gone = fill.pop().expect("many");
    assert!(kernel.remove(gone));
    // The place is there for the next.
    kernel.create(ClassId(0), 100).expect("a cgroup");
    assert_eq!(kernel.classes_shared(), 0);
}
