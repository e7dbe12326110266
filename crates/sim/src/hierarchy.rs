//! The class tree with a policy in every class, as the kernel's shell (`bpf/sched.bpf.c`) drives
//! it: the same calls of the core in the same order, with queues of our own instead of the
//! kernel's.

use std::collections::BTreeSet;

use andante_core_sys::{Exclusion, Leaf, Member, Policy, PolicyKind, Requeue, Rule, Tree};

use crate::Ns;
use crate::scheduler::{Scheduler, Slice};
use crate::task::{Spec, TaskId};

/// A class, numbered in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub usize);

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
}

struct Entry {
    class: usize,
    member: Member,
    affinity: u64,
    state: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Asleep,
    Queued,
    InService,
    Gone,
}

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
}

/// Hierarchical start-time fair queueing of classes, each with its policy.
pub struct Hierarchy {
    tree: Tree,
    quantum_ns: Ns,
    classes: Vec<Class>,
    /// Class of each leaf.
    by_leaf: Vec<usize>,
    tasks: Vec<Entry>,
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

    fn enqueue(&mut self, task: TaskId, key: u64) {
        let entry = &mut self.tasks[task.0 as usize];
        entry.state = Place::Queued;
        let class = &mut self.classes[entry.class];
        class.queue.insert((key, task));
        self.tree.queue_add(class.leaf);
    }

    /// The first task of the class that may run on `cpu`.
    fn head(&self, class: usize, cpu: usize) -> Option<(u64, TaskId)> {
        let allowed =
            |(_, task): &&(u64, TaskId)| self.tasks[task.0 as usize].affinity & (1 << cpu) != 0;
        self.classes[class].queue.iter().find(allowed).copied()
    }

    /// The class's turn on `cpu` goes to the task at the head of its queue, which the tree counts
    /// as taken already.
    fn take_head(&mut self, now_ns: Ns, cpu: usize, head: (u64, TaskId), rule: Rule) -> Slice {
        let entry = &mut self.tasks[head.1.0 as usize];
        entry.state = Place::InService;
        let class = &mut self.classes[entry.class];
        class.queue.remove(&head);
        class.policy.serve(&entry.member);
        let service = &mut self.cpus[cpu];
        service.task_left_ns = class.policy.quantum_ns(&entry.member);
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
        let entry = &mut self.tasks[task.0 as usize];
        let class = &mut self.classes[entry.class];
        let fair = matches!(class.kind, PolicyKind::Sfq | PolicyKind::Fair);
        let class_over = service.over || service.used_ns >= self.quantum_ns;
        if service.task_left_ns > 0 && !service.task_over && !(fair && class_over) {
            return (true, entry.member.key());
        }
        let why = match service.task_left_ns {
            0 => Requeue::UsedUp,
            _ => Requeue::Preempted,
        };
        let key = class.policy.requeue(&mut entry.member, why);
        let class = entry.class;
        self.cpus[cpu].task_left_ns = self.classes[class]
            .policy
            .quantum_ns(&self.tasks[task.0 as usize].member);
        self.cpus[cpu].task_over = false;
        let first = self.head(class, cpu).is_none_or(|head| (key, task) < head);
        (first, key)
    }

    /// Picks the class whose quantum begins on `cpu`, among those with a task that may run there.
    fn next_quantum(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        let mut excluded = Exclusion::default();
        let wanting_class = wanting.map(|task| self.tasks[task.0 as usize].class);
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
                let class = &mut self.classes[class];
                class.policy.serve(&self.tasks[task.0 as usize].member);
                return Some(self.slice(now_ns, cpu, task, Rule::GOES_ON));
            }
            if let Some(head) = self.head(class, cpu) {
                self.begin_quantum(cpu, class);
                // The one that wanted to go on is queued like the others from here on: the tree
                // counts it already.
                if let Some(task) = wanting {
                    let entry = &mut self.tasks[task.0 as usize];
                    entry.state = Place::Queued;
                    self.classes[entry.class]
                        .queue
                        .insert((entry.member.key(), task));
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
        let class = self.tasks[task.0 as usize].class;
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
        self.tasks.push(Entry {
            class,
            member,
            affinity: spec.affinity,
            state: Place::Asleep,
        });
    }

    fn fork(&mut self, parent: TaskId, child: TaskId) {
        let [parent, child] = self
            .tasks
            .get_disjoint_mut([parent.0 as usize, child.0 as usize])
            .expect("a child is another task than its parent");
        let policy = &self.classes[child.class].policy;
        policy.fork(&parent.member, &mut child.member);
    }

    fn wake(&mut self, _now_ns: Ns, task: TaskId) {
        let entry = &mut self.tasks[task.0 as usize];
        let key = self.classes[entry.class].policy.wake(&mut entry.member);
        self.enqueue(task, key);
    }

    fn withdraw(&mut self, _now_ns: Ns, task: TaskId) {
        let entry = &mut self.tasks[task.0 as usize];
        entry.state = Place::Asleep;
        let class = &mut self.classes[entry.class];
        class.queue.remove(&(entry.member.key(), task));
        self.tree.queue_withdraw(class.leaf);
    }

    fn used(&mut self, _now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        let entry = &mut self.tasks[task.0 as usize];
        self.classes[entry.class]
            .policy
            .used(&mut entry.member, ran_ns);
        let service = &mut self.cpus[cpu];
        service.used_ns += ran_ns;
        service.task_left_ns = service.task_left_ns.saturating_sub(ran_ns);
    }

    fn displace(&mut self, _now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        if let Some(task) = wanting {
            let entry = &mut self.tasks[task.0 as usize];
            let why = match self.cpus[cpu].task_left_ns {
                0 => Requeue::UsedUp,
                _ => Requeue::Preempted,
            };
            let key = self.classes[entry.class]
                .policy
                .requeue(&mut entry.member, why);
            self.enqueue(task, key);
        }
        let service = std::mem::take(&mut self.cpus[cpu]);
        if let Some(class) = service.class {
            self.tree.stop(self.classes[class].leaf, service.used_ns);
        }
    }

    fn remove(&mut self, task: TaskId) {
        self.tasks[task.0 as usize].state = Place::Gone;
    }

    fn block(&mut self, _now_ns: Ns, cpu: usize, task: TaskId) {
        self.cpus[cpu].task = None;
        let entry = &mut self.tasks[task.0 as usize];
        entry.state = Place::Asleep;
        self.classes[entry.class].policy.block(&mut entry.member);
    }

    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> Option<Ns> {
        let (q, s) = (
            &self.tasks[queued.0 as usize],
            &self.tasks[serving.0 as usize],
        );
        let used_ns = self.cpus[cpu].used_ns;
        let class = &self.classes[q.class];
        if q.class == s.class {
            let fair = matches!(class.kind, PolicyKind::Sfq | PolicyKind::Fair);
            if fair && used_ns < IN_CLASS_WAKE_NS {
                return None;
            }
            let now = class.policy.preempts(&q.member, &s.member);
            self.cpus[cpu].task_over |= now;
            return now.then_some(now_ns);
        }
        let after_ns = self
            .tree
            .preempt_after_ns(class.leaf, self.classes[s.class].leaf);
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

    fn levels(&self, cpu: usize) -> u32 {
        self.cpus[cpu].levels
    }

    fn level(&self, task: TaskId) -> u32 {
        let entry = &self.tasks[task.0 as usize];
        self.classes[entry.class].policy.level(&entry.member)
    }

    fn tick_ns(&self) -> Ns {
        self.tick_ns
    }

    fn tick(&mut self, _now_ns: Ns, cpu: usize, serving: TaskId) -> bool {
        let entry = &mut self.tasks[serving.0 as usize];
        let over = self.classes[entry.class].policy.tick(&mut entry.member);
        if over {
            self.cpus[cpu].task_left_ns = 0;
        }
        over
    }

    fn age_ns(&self) -> Ns {
        self.age_ns
    }

    fn age(&mut self, _now_ns: Ns) -> bool {
        for index in 0..self.tasks.len() {
            let entry = &mut self.tasks[index];
            let class = &mut self.classes[entry.class];
            if class.policy.age_ns() == 0 || entry.state == Place::Gone {
                continue;
            }
            let before = (entry.member.key(), TaskId(index as u32));
            let queued = entry.state == Place::Queued;
            if class.policy.age(&mut entry.member, queued) && queued {
                class.queue.remove(&before);
                class.queue.insert((entry.member.key(), before.1));
            }
        }
        // Whoever has risen may have risen above the one in service.
        let mut changed = false;
        for cpu in 0..self.cpus.len() {
            let Some(serving) = self.cpus[cpu].task else {
                continue;
            };
            let class = self.tasks[serving.0 as usize].class;
            if let Some((_, first)) = self.head(class, cpu) {
                let member = |task: TaskId| &self.tasks[task.0 as usize].member;
                let over = self.classes[class]
                    .policy
                    .preempts(member(first), member(serving));
                self.cpus[cpu].task_over |= over;
                changed |= over;
            }
        }
        changed
    }
}
