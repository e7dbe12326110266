//! The class tree with a policy in every class, as the kernel's shell (`bpf/sched.bpf.c`) drives
//! it: the same calls of the core in the same order, with queues of our own instead of the
//! kernel's.

use std::collections::BTreeSet;

use andante_core_sys::{
    Exclusion, Leaf, Member, Policy, PolicyKind, Requeue, Rule, Tree, prefetch,
};

use crate::Ns;
use crate::scheduler::{Scheduler, Slice};
use crate::spec::{ClassId, Spec, TaskId};

/// Service before a classmate may preempt by the fair policies [ns]; as in the kernel.
const IN_CLASS_WAKE_NS: Ns = 200_000;

struct Class {
    leaf: Leaf,
    /// Levels below the root.
    depth: u32,
    kind: PolicyKind,
    policy: Policy,
    /// Tasks by key, then by number.
    queue: BTreeSet<(u64, TaskId)>,
    /// Some task may not run on every CPU.
    pinned: bool,
}

/// What is looked at only now and then: in classes with a task that may not run everywhere, and
/// when tasks age.
struct Entry {
    affinity: u64,
    gone: bool,
}

// With many tasks a decision costs what its cache misses cost: one for the policy's part of a task.
const _: () = assert!(size_of::<Member>() == 64);

/// What a CPU serves.
#[derive(Default)]
struct Service {
    /// The task in service.
    task: Option<TaskId>,
    /// The class whose quantum it is.
    class: Option<usize>,
    /// Levels of the tree gone down at the last pick.
    levels: u32,
    /// Of that quantum [ns].
    used_ns: Ns,
    /// Another class should have the CPU although the quantum is not used up.
    over: bool,
    /// Left of the task's own quantum in its policy [ns].
    task_left_ns: Ns,
    /// A classmate should have the CPU.
    task_over: bool,
    /// The first of the same class when the task was taken: the class's next turn is its.
    then: Option<TaskId>,
}

/// Hierarchical start-time fair queueing of classes, each with its policy.
pub struct Hierarchy {
    tree: Tree,
    quantum_ns: Ns,
    classes: Vec<Class>,
    /// Class of each leaf.
    by_leaf: Vec<usize>,
    tasks: Vec<Entry>,
    /// Class of each task.
    class_of: Vec<u16>,
    /// What its policy keeps for each task.
    members: Vec<Member>,
    cpus: Vec<Service>,
    tick_ns: Ns,
    age_ns: Ns,
}

impl Hierarchy {
    /// The root class.
    pub const ROOT: ClassId = ClassId(0);

    /// A tree of one class, the root, with this policy. `quantum_ns` is what a class gets at a
    /// pick, and round robin and the fair policy give a task in one go [ns].
    pub fn new(cpus: usize, quantum_ns: Ns, kind: PolicyKind) -> Self {
        let mut hierarchy = Self {
            tree: Tree::new(quantum_ns, cpus as u32),
            quantum_ns,
            classes: Vec::new(),
            by_leaf: Vec::new(),
            tasks: Vec::new(),
            class_of: Vec::new(),
            members: Vec::new(),
            cpus: (0..cpus).map(|_| Service::default()).collect(),
            tick_ns: 0,
            age_ns: 0,
        };
        hierarchy.enter(Tree::ROOT, 0, kind);
        hierarchy
    }

    /// A class below `parent`; none when the tree is full or too deep.
    pub fn create(&mut self, parent: ClassId, weight: u32, kind: PolicyKind) -> Option<ClassId> {
        let leaf = self.tree.create(self.classes[parent.0].leaf, weight)?;
        let depth = self.classes[parent.0].depth + 1;
        Some(self.enter(leaf, depth, kind))
    }

    fn enter(&mut self, leaf: Leaf, depth: u32, kind: PolicyKind) -> ClassId {
        let policy = Policy::new(kind, self.quantum_ns);
        self.tick_ns = self.tick_ns.max(policy.tick_ns());
        self.age_ns = self.age_ns.max(policy.age_ns());
        let id = self.classes.len();
        self.by_leaf
            .resize(self.by_leaf.len().max(leaf as usize + 1), usize::MAX);
        self.by_leaf[leaf as usize] = id;
        self.classes.push(Class {
            leaf,
            depth,
            kind,
            policy,
            queue: BTreeSet::new(),
            pinned: false,
        });
        ClassId(id)
    }

    /// A new weight, from the next charge on.
    pub fn set_weight(&mut self, class: ClassId, weight: u32) {
        self.tree.set_weight(self.classes[class.0].leaf, weight);
    }

    /// CPU time charged to a class and those below it so far [ns].
    pub fn service_ns(&mut self, class: ClassId) -> Ns {
        self.tree.service_ns(self.classes[class.0].leaf)
    }

    /// What a task's policy keeps for it, and its class.
    fn parts(&mut self, task: TaskId) -> (&mut Member, &mut Class) {
        let class = self.class_of(task);
        (&mut self.members[task.0 as usize], &mut self.classes[class])
    }

    fn member(&self, task: TaskId) -> &Member {
        &self.members[task.0 as usize]
    }

    fn class_of(&self, task: TaskId) -> usize {
        self.class_of[task.0 as usize] as usize
    }

    fn enqueue(&mut self, task: TaskId, key: u64) {
        let class = &mut self.classes[self.class_of[task.0 as usize] as usize];
        let leaf = class.leaf;
        class.queue.insert((key, task));
        self.tree.queue_add(leaf);
    }

    /// The first task of the class that may run on `cpu`.
    fn head(&self, class: usize, cpu: usize) -> Option<(u64, TaskId)> {
        let class = &self.classes[class];
        if !class.pinned {
            return class.queue.first().copied();
        }
        let allowed =
            |(_, task): &&(u64, TaskId)| self.tasks[task.0 as usize].affinity & (1 << cpu) != 0;
        class.queue.iter().find(allowed).copied()
    }

    /// The class's turn on `cpu` goes to the task at the head of its queue, which the tree counts
    /// as taken already.
    fn take_head(&mut self, now_ns: Ns, cpu: usize, head: (u64, TaskId), rule: Rule) -> Slice {
        let (member, class) = self.parts(head.1);
        if class.pinned {
            class.queue.remove(&head);
        } else {
            class.queue.pop_first();
        }
        class.policy.serve(member);
        let task_left_ns = class.policy.quantum_ns(member);
        let then = class.queue.first().map(|(_, task)| *task);
        if let Some(task) = then {
            prefetch(&self.members[task.0 as usize]);
        }
        let service = &mut self.cpus[cpu];
        service.then = then;
        service.task_left_ns = task_left_ns;
        service.task_over = false;
        self.slice(now_ns, cpu, head.1, rule)
    }

    fn slice(&mut self, now_ns: Ns, cpu: usize, task: TaskId, rule: Rule) -> Slice {
        let service = &mut self.cpus[cpu];
        service.task = Some(task);
        let left_ns = self
            .quantum_ns
            .saturating_sub(service.used_ns)
            .min(service.task_left_ns);
        Slice {
            task,
            until_ns: now_ns + left_ns.max(1),
            rule,
        }
    }

    /// The task in service goes on wanting to run: does it still come first in its class? If its
    /// own quantum is over or a classmate should have the CPU, its key says so from now on.
    fn still_first(&mut self, cpu: usize, task: TaskId) -> (bool, u64) {
        let service = &self.cpus[cpu];
        let (task_left_ns, task_over) = (service.task_left_ns, service.task_over);
        let class_over = service.over || service.used_ns >= self.quantum_ns;
        let (member, class) = self.parts(task);
        let fair = matches!(class.kind, PolicyKind::Sfq | PolicyKind::Fair);
        if task_left_ns > 0 && !task_over && !(fair && class_over) {
            return (true, member.key());
        }
        let why = match task_left_ns {
            0 => Requeue::UsedUp,
            _ => Requeue::Preempted,
        };
        let key = class.policy.requeue(member, why);
        let task_left_ns = class.policy.quantum_ns(member);
        let service = &mut self.cpus[cpu];
        service.task_left_ns = task_left_ns;
        service.task_over = false;
        let head = self.head(self.class_of(task), cpu);
        (head.is_none_or(|head| (key, task) < head), key)
    }

    /// Picks the class whose quantum begins on `cpu`, among those with a task that may run there.
    fn next_quantum(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        let mut excluded = Exclusion::default();
        let wanting_class = wanting.map(|task| self.class_of(task));
        if let Some(class) = wanting_class {
            self.tree.queue_add(self.classes[class].leaf);
        }
        let service = &mut self.cpus[cpu];
        if let Some(class) = service.class.take() {
            self.tree.stop(self.classes[class].leaf, service.used_ns);
        }
        service.used_ns = 0;
        service.over = false;
        loop {
            let Some(leaf) = self.tree.pick(&excluded) else {
                return wanting.map(|task| self.unpicked(now_ns, cpu, task));
            };
            let class = self.by_leaf[leaf as usize];
            if Some(class) == wanting_class {
                self.begin_quantum(cpu, class);
                let task = wanting.expect("its class is known");
                let (member, class) = self.parts(task);
                class.policy.serve(member);
                return Some(self.slice(now_ns, cpu, task, Rule::GOES_ON));
            }
            if let Some(head) = self.head(class, cpu) {
                self.begin_quantum(cpu, class);
                // The one that wanted to go on is queued like the others from here on: the tree
                // counts it already.
                if let Some(task) = wanting {
                    let (member, class) = self.parts(task);
                    class.queue.insert((member.key(), task));
                }
                return Some(self.take_head(now_ns, cpu, head, Rule::SHARE));
            }
            self.tree.unpick(leaf);
            if !excluded.add(leaf) {
                return wanting.map(|task| self.unpicked(now_ns, cpu, task));
            }
        }
    }

    fn begin_quantum(&mut self, cpu: usize, class: usize) {
        self.cpus[cpu].class = Some(class);
        self.cpus[cpu].levels = self.classes[class].depth;
    }

    /// The task goes on although its class was not picked: too many classes hold only tasks that
    /// may not run on `cpu`.
    fn unpicked(&mut self, now_ns: Ns, cpu: usize, task: TaskId) -> Slice {
        let class = self.class_of(task);
        self.tree.queue_withdraw(self.classes[class].leaf);
        self.tree.serve_unpicked(self.classes[class].leaf);
        self.begin_quantum(cpu, class);
        self.slice(now_ns, cpu, task, Rule::GOES_ON)
    }
}

impl Scheduler for Hierarchy {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        assert_eq!(task.0 as usize, self.tasks.len(), "tasks come in order");
        let class = spec.class.0;
        let member = self.classes[class].policy.join(&spec.parameters());
        self.members.push(member);
        self.class_of
            .push(u16::try_from(class).expect("the tree has fewer classes"));
        let everywhere = u64::MAX >> (64 - self.cpus.len());
        self.classes[class].pinned |= !spec.affinity & everywhere != 0;
        self.tasks.push(Entry {
            affinity: spec.affinity,
            gone: false,
        });
    }

    fn fork(&mut self, parent: TaskId, child: TaskId) {
        let class = self.class_of(child);
        let [parent, child] = self
            .members
            .get_disjoint_mut([parent.0 as usize, child.0 as usize])
            .expect("a child is another task than its parent");
        self.classes[class].policy.fork(parent, child);
    }

    fn wake(&mut self, _now_ns: Ns, task: TaskId) {
        let (member, class) = self.parts(task);
        let key = class.policy.wake(member);
        self.enqueue(task, key);
    }

    fn withdraw(&mut self, _now_ns: Ns, task: TaskId) {
        let (member, class) = self.parts(task);
        class.queue.remove(&(member.key(), task));
        let leaf = class.leaf;
        self.tree.queue_withdraw(leaf);
    }

    fn used(&mut self, _now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        let (member, class) = self.parts(task);
        class.policy.used(member, ran_ns);
        let service = &mut self.cpus[cpu];
        service.used_ns += ran_ns;
        service.task_left_ns = service.task_left_ns.saturating_sub(ran_ns);
    }

    fn displace(&mut self, _now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        if let Some(task) = wanting {
            let why = match self.cpus[cpu].task_left_ns {
                0 => Requeue::UsedUp,
                _ => Requeue::Preempted,
            };
            let (member, class) = self.parts(task);
            let key = class.policy.requeue(member, why);
            self.enqueue(task, key);
        }
        let service = std::mem::take(&mut self.cpus[cpu]);
        if let Some(class) = service.class {
            self.tree.stop(self.classes[class].leaf, service.used_ns);
        }
    }

    fn remove(&mut self, task: TaskId) {
        self.tasks[task.0 as usize].gone = true;
    }

    fn block(&mut self, _now_ns: Ns, cpu: usize, task: TaskId) {
        self.cpus[cpu].task = None;
        let (member, class) = self.parts(task);
        class.policy.block(member);
    }

    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> Option<Ns> {
        let (queued_class, serving_class) = (self.class_of(queued), self.class_of(serving));
        let used_ns = self.cpus[cpu].used_ns;
        let class = &self.classes[queued_class];
        if queued_class == serving_class {
            let fair = matches!(class.kind, PolicyKind::Sfq | PolicyKind::Fair);
            if fair && used_ns < IN_CLASS_WAKE_NS {
                return None;
            }
            let now = class
                .policy
                .preempts(self.member(queued), self.member(serving));
            self.cpus[cpu].task_over |= now;
            return now.then_some(now_ns);
        }
        let after_ns = self
            .tree
            .preempt_after_ns(class.leaf, self.classes[serving_class].leaf);
        if used_ns >= after_ns {
            self.cpus[cpu].over = true;
            return Some(now_ns);
        }
        let at_ns = now_ns + (after_ns - used_ns);
        (after_ns < self.quantum_ns).then_some(at_ns)
    }

    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        let service = &mut self.cpus[cpu];
        service.levels = 0;
        let over = service.over || service.used_ns >= self.quantum_ns;
        let Some(task) = wanting else {
            if let Some(class) = service.class.filter(|_| !over)
                && let Some(head) = self.head(class, cpu)
                && self.tree.continue_with(self.classes[class].leaf)
            {
                return Some(self.take_head(now_ns, cpu, head, Rule::SAME_QUANTUM));
            }
            return self.next_quantum(now_ns, cpu, None);
        };
        let (first, key) = self.still_first(cpu, task);
        if first {
            if over {
                return self.next_quantum(now_ns, cpu, wanting);
            }
            return Some(self.slice(now_ns, cpu, task, Rule::GOES_ON));
        }
        self.enqueue(task, key);
        self.pick(now_ns, cpu, None)
    }

    fn wakes_soon(&self, task: TaskId) {
        prefetch(&self.members[task.0 as usize]);
        prefetch(&self.class_of[task.0 as usize]);
    }

    fn next_in_line(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].then
    }

    fn levels(&self, cpu: usize) -> u32 {
        self.cpus[cpu].levels
    }

    fn level(&self, task: TaskId) -> u32 {
        let class = &self.classes[self.class_of(task)];
        class.policy.level(self.member(task))
    }

    fn tick_ns(&self) -> Ns {
        self.tick_ns
    }

    fn tick(&mut self, _now_ns: Ns, cpu: usize, serving: TaskId) -> bool {
        let (member, class) = self.parts(serving);
        let over = class.policy.tick(member);
        if over {
            self.cpus[cpu].task_left_ns = 0;
        }
        over
    }

    fn age_ns(&self) -> Ns {
        self.age_ns
    }

    fn age(&mut self, _now_ns: Ns) -> bool {
        for task in (0..self.tasks.len() as u32).map(TaskId) {
            let gone = self.tasks[task.0 as usize].gone;
            let (member, class) = self.parts(task);
            if gone || class.policy.age_ns() == 0 {
                continue;
            }
            let before = (member.key(), task);
            let queued = class.queue.contains(&before);
            if class.policy.age(member, queued) && queued {
                class.queue.remove(&before);
                class.queue.insert((member.key(), task));
            }
        }
        // Whoever has risen may have risen above the one in service.
        let mut changed = false;
        for cpu in 0..self.cpus.len() {
            let Some(serving) = self.cpus[cpu].task else {
                continue;
            };
            let class = self.class_of(serving);
            if let Some((_, first)) = self.head(class, cpu) {
                let over = self.classes[class]
                    .policy
                    .preempts(self.member(first), self.member(serving));
                self.cpus[cpu].task_over |= over;
                changed |= over;
            }
        }
        changed
    }
}
