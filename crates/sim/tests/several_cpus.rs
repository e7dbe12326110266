//! Several CPUs under the scheduler that users run, on an ideal kernel: shares where the weights can be
//! honoured, progress for everybody where they cannot, and nobody starved when that ends.

mod ideal;

use andante_sim::programs::Loop;
use andante_sim::{
    ClassId, InstanceId, Kernel, NS_PER_MS, NS_PER_S, Ns, Random, Simulation, Spec, Step, World,
};
use ideal::{QUANTUM_NS, ROOT};

const EVERYWHERE: u64 = u64::MAX;

/// A machine, and whose a task is.
struct Smp {
    kernel: Kernel,
    cpus: usize,
    now_ns: Ns,
    class_of: Vec<ClassId>,
}

impl Smp {
    fn new(cpus: usize) -> Self {
        Self {
            kernel: ideal::kernel(cpus, QUANTUM_NS, andante_sim::Costs::default()),
            cpus,
            now_ns: 0,
            class_of: Vec::new(),
        }
    }

    fn class(&mut self, parent: ClassId, weight: u32) -> ClassId {
        self.kernel.create(parent, weight).expect("there is room")
    }

    /// An endless loop, from now on.
    fn hog(&mut self, class: ClassId, affinity: u64) -> InstanceId {
        self.task(class, affinity, Box::new(Loop))
    }

    /// Works for a quantum again and again, and sleeps for up to 4 ms after three of ten.
    fn sleeper(&mut self, class: ClassId, seed: u64) {
        self.sleeper_on(class, EVERYWHERE, seed);
    }

    fn sleeper_on(&mut self, class: ClassId, affinity: u64, seed: u64) {
        let mut random = Random::new(seed);
        let mut works = false;
        let program = move |world: &mut World<'_>| {
            works = !works;
            match works {
                true => Step::Compute(QUANTUM_NS),
                false if random.below(10) < 3 => {
                    Step::SleepUntil(world.now_ns + random.below(4 * NS_PER_MS))
                }
                false => Step::Compute(0),
            }
        };
        self.task(class, affinity, Box::new(program));
    }

    fn task(
        &mut self,
        class: ClassId,
        affinity: u64,
        program: Box<dyn andante_sim::Program>,
    ) -> InstanceId {
        let instance = self.kernel.instance();
        let spec = Spec {
            affinity,
            ..Spec::of(class)
        };
        self.kernel.start(self.now_ns, instance, spec, program);
        self.class_of.push(class);
        instance
    }

    fn run(&mut self, ns: Ns) {
        self.now_ns += ns;
        self.kernel.run_until(self.now_ns);
        assert_eq!(self.kernel.ejected(), None);
    }

    /// The service of each class, without those below it, in the next while [ns].
    fn given(&mut self, ns: Ns) -> impl Fn(ClassId) -> Ns + use<> {
        let before = self.kernel.usage().classes;
        self.run(ns);
        let after = self.kernel.usage().classes;
        move |class| after[class.0] - before.get(class.0).copied().unwrap_or(0)
    }

    /// The class gets this many thousandths of one CPU, to 1 %.
    fn assert_given(&mut self, wanted: &[(ClassId, u64)]) {
        let length_ns = 20 * NS_PER_S;
        let given = self.given(length_ns);
        for (class, permille) in wanted {
            let got = given(*class) * 1000 / length_ns;
            let off = got.abs_diff(*permille) * 100;
            assert!(off <= *permille, "{got} instead of {permille}");
        }
    }

    /// The longest time for which no task of the class ran on any CPU from `from_ns` on [ns].
    fn longest_gap_ns(&self, class: ClassId, from_ns: Ns) -> Ns {
        let runs = self.kernel.runs().iter().filter(|run| {
            self.class_of[run.task.0 as usize] == class && run.start_ns + run.length_ns > from_ns
        });
        let mut spans: Vec<(Ns, Ns)> = runs
            .map(|run| (run.start_ns, run.start_ns + run.length_ns))
            .collect();
        spans.sort_unstable();
        let (mut served_ns, mut gap_ns) = (from_ns, 0);
        for (start_ns, end_ns) in spans {
            gap_ns = gap_ns.max(start_ns.saturating_sub(served_ns));
            served_ns = served_ns.max(end_ns);
        }
        gap_ns.max(self.now_ns - served_ns.min(self.now_ns))
    }
}

/// Two inner classes and a leaf of random weights, each leaf with work for every CPU: the worst
/// error of a share.
fn worst_error(cpus: usize, sleeping: bool) -> f64 {
    let mut random = Random::new(cpus as u64);
    let mut weight = || 1 + random.below(8) as u32;
    let weights: Vec<u32> = (0..7).map(|_| weight()).collect();
    let top = f64::from(weights[0] + weights[1] + weights[6]);
    let mut m = Smp::new(cpus);
    let mut due = Vec::new();
    for inner in 0..2 {
        let parent = m.class(ROOT, weights[inner]);
        let below = &weights[2 + 2 * inner..4 + 2 * inner];
        let siblings = f64::from(below[0] + below[1]);
        for weight in below {
            let part = f64::from(weights[inner]) / top * f64::from(*weight) / siblings;
            due.push((m.class(parent, *weight), part));
        }
    }
    due.push((m.class(ROOT, weights[6]), f64::from(weights[6]) / top));
    for (class, _) in &due {
        for n in 0..cpus as u64 + if sleeping { 3 } else { 0 } {
            match sleeping {
                true => m.sleeper(*class, class.0 as u64 * 100 + n),
                false => _ = m.hog(*class, EVERYWHERE),
            }
        }
    }
    m.run(NS_PER_S);
    let given = m.given(40 * NS_PER_S / m.cpus as u64);
    let all: Ns = due.iter().map(|(class, _)| given(*class)).sum();
    let error = |(class, part): &(ClassId, f64)| {
        let wanted_ns = part * all as f64;
        (given(*class) as f64 / wanted_ns - 1.0).abs()
    };
    due.iter().map(error).fold(0.0, f64::max)
}

#[test]
fn classes_have_their_shares_at_every_level() {
    for sleeping in [false, true] {
        let worst = (2..=8).map(|cpus| worst_error(cpus, sleeping));
        let worst = worst.fold(0.0, f64::max);
        println!("sleeping: {sleeping}, worst error of a share: {worst:.4}");
        assert!(worst <= 0.01, "sleeping: {sleeping}: {worst}");
    }
}

/// a is worth 8/11 of three CPUs and has one task. It gets the one CPU that it can use; b and c share
/// the others by weight. With a second task its share is honoured at once, and b and c wait no longer
/// than they do anyway.
#[test]
fn what_a_class_could_not_use_it_is_not_owed() {
    let mut m = Smp::new(3);
    let [a, b, c] = [8, 1, 2].map(|weight| m.class(ROOT, weight));
    m.hog(a, EVERYWHERE);
    for _ in 0..3 {
        m.hog(b, EVERYWHERE);
        m.hog(c, EVERYWHERE);
    }
    m.run(NS_PER_S);
    m.assert_given(&[(a, 1000), (b, 667), (c, 1333)]);
    let from_ns = m.now_ns;
    m.hog(a, EVERYWHERE);
    m.assert_given(&[(a, 2000), (b, 333), (c, 667)]);
    for (class, bound_ms) in [(b, 16), (c, 8)] {
        let gap_ns = m.longest_gap_ns(class, from_ns);
        assert!(gap_ns <= bound_ms * NS_PER_MS, "{class:?}: {gap_ns}");
    }
}

/// a outweighs everybody but may use the first CPU only, where it always has another task queued;
/// the others share the second by weight, a newcomer among them.
#[test]
fn a_heavy_class_on_one_cpu_does_not_starve_those_on_others() {
    let mut m = Smp::new(2);
    let [a, b, c, d] = [10_000, 1, 3, 10].map(|weight| m.class(ROOT, weight));
    m.hog(a, 1);
    m.hog(a, 1);
    for _ in 0..2 {
        m.hog(b, EVERYWHERE);
        m.hog(c, EVERYWHERE);
    }
    m.assert_given(&[(a, 1000), (b, 250), (c, 750)]);
    assert!(m.longest_gap_ns(b, 0) <= 16 * NS_PER_MS);
    // One who comes late is ahead of the others by what they may owe, once.
    let from_ns = m.now_ns;
    m.hog(d, EVERYWHERE);
    m.run(NS_PER_S);
    assert!(m.longest_gap_ns(b, from_ns) <= 250 * NS_PER_MS);
    m.assert_given(&[(b, 71), (c, 214), (d, 714)]);
}

/// Two groups of classes that share no CPU, at weights that no set of CPUs could honour.
#[test]
fn groups_that_share_no_cpu_do_not_disturb_each_other() {
    let mut m = Smp::new(2);
    let [a, b, c] = [100, 300, 1].map(|weight| m.class(ROOT, weight));
    m.hog(a, 1);
    m.hog(b, 1);
    m.hog(c, 2);
    m.hog(c, 2);
    m.assert_given(&[(a, 250), (b, 750), (c, 1000)]);
}

/// Partial masks under which the weights can still be honoured do not disturb them.
#[test]
fn masks_that_leave_the_shares_possible_do_not_matter() {
    let mut m = Smp::new(4);
    let [a, b, c] = [100, 200, 400].map(|weight| m.class(ROOT, weight));
    for _ in 0..4 {
        m.hog(a, 1);
        m.hog(b, 6);
        m.hog(c, EVERYWHERE);
    }
    m.assert_given(&[(a, 571), (b, 1143), (c, 2286)]);
}

/// Random weights, tasks and masks. Whatever cannot be honoured, nobody starves: a class whose fair
/// round is W / w quanta long waits for 16 of those per CPU, and 16 more, at most.
#[test]
fn nobody_starves_under_random_masks() {
    let mut worst = 0.0_f64;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let cpus = 2 + seed % 7;
        let mut m = Smp::new(cpus as usize);
        let mut classes = Vec::new();
        for _ in 0..2 + random.below(6) {
            let weight = 1 << random.below(8);
            let class = m.class(ROOT, weight);
            for _ in 0..=random.below(4) {
                m.hog(class, 1 + random.below((1 << cpus) - 1));
            }
            classes.push((class, weight));
        }
        m.run(10 * NS_PER_S);
        let total: u32 = classes.iter().map(|(_, weight)| weight).sum();
        for (class, weight) in &classes {
            let round_ns = Ns::from(total) * QUANTUM_NS / Ns::from(*weight);
            let bound_ns = 16 * (cpus + 1) * round_ns;
            let part = m.longest_gap_ns(*class, 0) as f64 / bound_ns as f64;
            worst = worst.max(part);
            assert!(part <= 1.0, "seed {seed}: {class:?} of weight {weight}");
        }
    }
    println!("longest wait: {worst:.3} of the bound");
}

/// What all classes are given in a while [ns].
fn given_to_all(m: &mut Smp, ns: Ns) -> Ns {
    let before: Ns = m.kernel.usage().classes.iter().sum();
    m.run(ns);
    let after: Ns = m.kernel.usage().classes.iter().sum();
    after - before
}

/// As a manager of containers pins them: by the hundred to one CPU, a class each, some below others.
#[test]
fn no_cpu_idles_beside_work_however_many_classes_are_pinned_elsewhere() {
    for (cpus, pinned) in [(2, 12), (4, 100), (4, 700)] {
        let mut m = Smp::new(cpus);
        let mut pod = ROOT;
        for n in 0..pinned {
            if n % 7 == 0 {
                pod = m.class(ROOT, 100);
            }
            let container = m.class(pod, 1 + n % 100);
            m.hog(container, 1);
        }
        // Of six that sleep less than they work one is always awake.
        for n in 0..6 * (cpus as u64 - 1) {
            let free = m.class(ROOT, 100);
            m.sleeper_on(free, EVERYWHERE - 1, n);
        }
        m.run(NS_PER_S);
        let length_ns = 20 * NS_PER_S;
        let given_ns = given_to_all(&mut m, length_ns);
        let idle_ns = (cpus as Ns * length_ns).saturating_sub(given_ns);
        assert!(
            idle_ns <= length_ns / 1000,
            "{cpus} CPUs, {pinned} pinned: {} ms idle",
            idle_ns / NS_PER_MS
        );
    }
}

/// Each class may use some CPUs only, any of them: whichever CPU has nothing to do could do nothing.
#[test]
fn no_cpu_idles_beside_work_that_it_may_do_whatever_the_masks_are() {
    let cpus = 8;
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut m = Smp::new(cpus);
        let mut masks = 0;
        for n in 0..40 {
            let class = m.class(ROOT, 1 + random.below(100) as u32);
            let mask = 1 << random.below(cpus as u64) | 1 << random.below(cpus as u64);
            masks |= mask;
            match n % 4 {
                0 => m.sleeper_on(class, mask, seed * 100 + n),
                _ => _ = m.hog(class, mask),
            }
        }
        let usable = Ns::from(masks.count_ones());
        m.run(NS_PER_S);
        let length_ns = 10 * NS_PER_S;
        let given_ns = given_to_all(&mut m, length_ns);
        // A CPU that only sleepers may use idles while they sleep: of ten that is none.
        let idle_ns = (usable * length_ns).saturating_sub(given_ns);
        assert!(
            idle_ns <= length_ns / 1000,
            "seed {seed}: {} ms idle",
            idle_ns / NS_PER_MS
        );
    }
}
