//! All tasks in one class, in the order of one policy of the core: what schedulers of the past did.
//!
//! Classes, shares and contracts are the business of the scheduler that users run, which a
//! [`Kernel`](crate::Kernel) has.

use std::collections::BTreeSet;

use andante_core_sys::{Member, Policy, PolicyKind, Requeue, Rule};

use crate::Ns;
use crate::scheduler::{Scheduler, Slice};
use crate::spec::{Spec, TaskId};

struct Entry {
    member: Member,
    affinity: u64,
    gone: bool,
}

/// The task that a CPU serves.
#[derive(Default)]
struct Service {
    /// The task in service.
    task: Option<TaskId>,
    /// Left of its quantum [ns].
    left_ns: Ns,
    /// Had since it was taken from the queue [ns].
    used_ns: Ns,
    /// Another task should have the CPU.
    over: bool,
}

/// One queue, by the keys that a policy gives to tasks.
pub struct OneClass {
    kind: PolicyKind,
    policy: Policy,
    /// Service before a woken task may preempt, where all are served alike in turn [ns].
    wake_ns: Ns,
    /// Tasks by key, then by number.
    queue: BTreeSet<(u64, TaskId)>,
    tasks: Vec<Entry>,
    cpus: Vec<Service>,
    /// Some task may not run on every CPU.
    pinned: bool,
}

impl OneClass {
    /// No tasks yet. Round robin and the fair policies give a task `quantum_ns` in one go [ns], and
    /// under the latter who has had less than `wake_ns` is not preempted by a wake-up.
    pub fn new(cpus: usize, kind: PolicyKind, quantum_ns: Ns, wake_ns: Ns) -> Self {
        Self {
            kind,
            policy: Policy::new(kind, quantum_ns),
            wake_ns,
            queue: BTreeSet::new(),
            tasks: Vec::new(),
            cpus: (0..cpus).map(|_| Service::default()).collect(),
            pinned: false,
        }
    }

    fn entry(&mut self, task: TaskId) -> &mut Entry {
        &mut self.tasks[task.0 as usize]
    }

    fn member(&self, task: TaskId) -> &Member {
        &self.tasks[task.0 as usize].member
    }

    /// The first task that may run on `cpu`.
    fn head(&self, cpu: usize) -> Option<(u64, TaskId)> {
        if !self.pinned {
            return self.queue.first().copied();
        }
        let allowed =
            |(_, task): &&(u64, TaskId)| self.tasks[task.0 as usize].affinity & (1 << cpu) != 0;
        self.queue.iter().find(allowed).copied()
    }

    /// The key of the task in service from now on, which its quantum or another task displaces.
    fn requeue(&mut self, cpu: usize, task: TaskId) -> u64 {
        let why = match self.cpus[cpu].left_ns {
            0 => Requeue::UsedUp,
            _ => Requeue::Preempted,
        };
        let member = &mut self.tasks[task.0 as usize].member;
        self.policy.requeue(member, why)
    }

    fn slice(&self, now_ns: Ns, cpu: usize, task: TaskId, rule: Rule) -> Slice {
        let until_ns = now_ns.saturating_add(self.cpus[cpu].left_ns.max(1));
        Slice {
            task,
            until_ns,
            rule,
        }
    }

    fn take(&mut self, now_ns: Ns, cpu: usize, head: (u64, TaskId)) -> Slice {
        self.queue.remove(&head);
        let member = &self.tasks[head.1.0 as usize].member;
        self.policy.serve(member);
        self.cpus[cpu] = Service {
            task: Some(head.1),
            left_ns: self.policy.quantum_ns(member),
            used_ns: 0,
            over: false,
        };
        self.slice(now_ns, cpu, head.1, Rule::TURN)
    }
}

impl Scheduler for OneClass {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        assert_eq!(task.0 as usize, self.tasks.len(), "tasks come in order");
        let everywhere = u64::MAX >> (64 - self.cpus.len());
        self.pinned |= !spec.affinity & everywhere != 0;
        self.tasks.push(Entry {
            member: self.policy.join(&spec.parameters()),
            affinity: spec.affinity,
            gone: false,
        });
    }

    fn fork(&mut self, parent: TaskId, child: TaskId) {
        let [parent, child] = self
            .tasks
            .get_disjoint_mut([parent.0 as usize, child.0 as usize])
            .expect("a child is another task than its parent");
        self.policy.fork(&mut parent.member, &mut child.member);
    }

    fn wake(&mut self, _now_ns: Ns, task: TaskId) {
        let key = self.policy.wake(&mut self.tasks[task.0 as usize].member);
        self.queue.insert((key, task));
    }

    fn withdraw(&mut self, _now_ns: Ns, task: TaskId) {
        let key = self.member(task).key();
        self.queue.remove(&(key, task));
    }

    fn used(&mut self, _now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        let member = &mut self.tasks[task.0 as usize].member;
        self.policy.used(member, ran_ns);
        let service = &mut self.cpus[cpu];
        service.used_ns += ran_ns;
        service.left_ns = service.left_ns.saturating_sub(ran_ns);
    }

    fn displace(&mut self, _now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        if let Some(task) = wanting {
            let key = self.requeue(cpu, task);
            self.queue.insert((key, task));
        }
        self.cpus[cpu] = Service::default();
    }

    fn remove(&mut self, task: TaskId) {
        self.entry(task).gone = true;
    }

    fn block(&mut self, _now_ns: Ns, cpu: usize, task: TaskId) {
        self.cpus[cpu].task = None;
        self.policy.block(&mut self.tasks[task.0 as usize].member);
    }

    fn preempts(&mut self, _now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> bool {
        let in_turn = matches!(self.kind, PolicyKind::Sfq | PolicyKind::Fair);
        if in_turn && self.cpus[cpu].used_ns < self.wake_ns {
            return false;
        }
        let now = self
            .policy
            .preempts(self.member(queued), self.member(serving));
        self.cpus[cpu].over |= now;
        now
    }

    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        if let Some(task) = wanting {
            let service = &self.cpus[cpu];
            if service.left_ns > 0 && !service.over {
                return Some(self.slice(now_ns, cpu, task, Rule::GOES_ON));
            }
            let key = self.requeue(cpu, task);
            if self.head(cpu).is_none_or(|head| (key, task) < head) {
                self.cpus[cpu].left_ns = self.policy.quantum_ns(self.member(task));
                self.cpus[cpu].over = false;
                return Some(self.slice(now_ns, cpu, task, Rule::GOES_ON));
            }
            self.queue.insert((key, task));
        }
        let head = self.head(cpu)?;
        Some(self.take(now_ns, cpu, head))
    }

    fn level(&self, task: TaskId) -> u32 {
        self.policy.level(self.member(task))
    }

    fn tick_ns(&self) -> Ns {
        self.policy.tick_ns()
    }

    fn tick(&mut self, _now_ns: Ns, cpu: usize, serving: TaskId) -> bool {
        let over = self.policy.tick(&mut self.tasks[serving.0 as usize].member);
        if over {
            self.cpus[cpu].left_ns = 0;
        }
        over
    }

    fn age_ns(&self) -> Ns {
        self.policy.age_ns()
    }

    fn age(&mut self, _now_ns: Ns) -> bool {
        for (index, entry) in self.tasks.iter_mut().enumerate() {
            if entry.gone {
                continue;
            }
            let before = (entry.member.key(), TaskId(index as u32));
            let queued = self.queue.contains(&before);
            if self.policy.age(&mut entry.member, queued) && queued {
                self.queue.remove(&before);
                self.queue.insert((entry.member.key(), before.1));
            }
        }
        // Whoever has risen may have risen above the one in service.
        let mut changed = false;
        for cpu in 0..self.cpus.len() {
            let (Some(serving), Some((_, first))) = (self.cpus[cpu].task, self.head(cpu)) else {
                continue;
            };
            let over = self
                .policy
                .preempts(self.member(first), self.member(serving));
            self.cpus[cpu].over |= over;
            changed |= over;
        }
        changed
    }
}
