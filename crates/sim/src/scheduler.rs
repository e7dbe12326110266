//! What the machine asks of a scheduler.

use andante_core_sys::{Kept, Rule};

use crate::Ns;
use crate::spec::{ContractId, Spec, TaskId};

/// Who runs next on a CPU, and how long at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The task.
    pub task: TaskId,
    /// When the CPU is to be given away again, at the latest.
    pub until_ns: Ns,
    /// Why this task.
    pub rule: Rule,
}

/// What became of the events whose sink a contract is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Raised so far.
    pub raised: u64,
    /// Delivered by each rule of [ECalls], 1 to 5.
    pub by_rule: [u64; 5],
}

impl Delivered {
    /// Events for which the sink ran in the place of another: rules 2 to 5.
    pub fn swaps(&self) -> u64 {
        self.by_rule[1..].iter().sum()
    }
}

/// A scheduler, as the machine drives it. CPUs are numbered from 0.
///
/// A task is added asleep. `wake` queues it; a `pick` of a CPU takes it from the queue; from then
/// on it is in service there, until `block` or a `pick` that names it as `wanting` and returns
/// another. `used` tells, before either, what it has run.
pub trait Scheduler: Send {
    /// A new task, asleep.
    fn add(&mut self, task: TaskId, spec: &Spec);

    /// The child, added just now to the parent's class, was forked by it.
    fn fork(&mut self, _parent: TaskId, _child: TaskId) {}

    /// The task wants to run: it is queued.
    fn wake(&mut self, now_ns: Ns, task: TaskId);

    /// A queued task does not want to run any more.
    fn withdraw(&mut self, now_ns: Ns, task: TaskId);

    /// The task in service on `cpu` has run for `ran_ns` more.
    fn used(&mut self, now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns);

    /// The task in service on `cpu` wants to run no more.
    fn block(&mut self, now_ns: Ns, cpu: usize, task: TaskId);

    /// The job of the task in service has ended, and its next one was released at `released_ns`,
    /// not after now. True asks for a pick.
    fn next_job(&mut self, _now: Ns, _cpu: usize, _task: TaskId, _released_ns: Ns) -> bool {
        false
    }

    /// Another scheduler takes the CPU; `wanting` was in service there and is queued now.
    fn displace(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>);

    /// The only CPU the task can be picked on at present, if there is one.
    fn home(&mut self, _task: TaskId) -> Option<usize> {
        None
    }

    /// The task, asleep, has ended.
    fn remove(&mut self, task: TaskId);

    /// Whether the task just queued should have the CPU of the one in service there at once.
    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> bool;

    /// Who runs next on `cpu`; `wanting` is in service there and wants to go on.
    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice>;

    /// The task's priority among all, more is served first; 0 where there are no levels.
    fn level(&self, _task: TaskId) -> u32 {
        0
    }

    /// What became of a contract so far, where there are contracts.
    fn kept(&mut self, _contract: ContractId) -> Option<Kept> {
        None
    }

    /// What became of the events of a contract so far, where there are contracts.
    fn delivered(&self, _contract: ContractId) -> Option<Delivered> {
        None
    }

    /// An event for the task, which may be asleep or busy; returns the CPUs that must pick, one bit
    /// each.
    fn raise(&mut self, _now_ns: Ns, _task: TaskId) -> u64 {
        0
    }

    /// Time between two clock interrupts that it accounts by [ns], or 0.
    fn tick_ns(&self) -> Ns {
        0
    }

    /// The clock strikes while the task is in service: true asks for a pick.
    fn tick(&mut self, _now_ns: Ns, _cpu: usize, _serving: TaskId) -> bool {
        false
    }

    /// Time between two calls of `age` [ns], or 0.
    fn age_ns(&self) -> Ns {
        0
    }

    /// Time has passed for those that wait: true asks every CPU for a pick.
    fn age(&mut self, _now_ns: Ns) -> bool {
        false
    }

    /// The next instant at which `timer` must be called, if any.
    fn next_timer_ns(&self) -> Option<Ns> {
        None
    }

    /// That instant has come; returns the CPUs that must pick, one bit each.
    fn timer(&mut self, _now_ns: Ns) -> u64 {
        0
    }
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        (**self).add(task, spec);
    }
    fn fork(&mut self, parent: TaskId, child: TaskId) {
        (**self).fork(parent, child);
    }
    fn wake(&mut self, now_ns: Ns, task: TaskId) {
        (**self).wake(now_ns, task);
    }
    fn withdraw(&mut self, now_ns: Ns, task: TaskId) {
        (**self).withdraw(now_ns, task);
    }
    fn used(&mut self, now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        (**self).used(now_ns, cpu, task, ran_ns);
    }
    fn block(&mut self, now_ns: Ns, cpu: usize, task: TaskId) {
        (**self).block(now_ns, cpu, task);
    }
    fn next_job(&mut self, now_ns: Ns, cpu: usize, task: TaskId, released_ns: Ns) -> bool {
        (**self).next_job(now_ns, cpu, task, released_ns)
    }
    fn displace(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        (**self).displace(now_ns, cpu, wanting);
    }
    fn home(&mut self, task: TaskId) -> Option<usize> {
        (**self).home(task)
    }
    fn remove(&mut self, task: TaskId) {
        (**self).remove(task);
    }
    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> bool {
        (**self).preempts(now_ns, queued, cpu, serving)
    }
    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        (**self).pick(now_ns, cpu, wanting)
    }
    fn level(&self, task: TaskId) -> u32 {
        (**self).level(task)
    }
    fn kept(&mut self, contract: ContractId) -> Option<Kept> {
        (**self).kept(contract)
    }
    fn delivered(&self, contract: ContractId) -> Option<Delivered> {
        (**self).delivered(contract)
    }
    fn raise(&mut self, now_ns: Ns, task: TaskId) -> u64 {
        (**self).raise(now_ns, task)
    }
    fn tick_ns(&self) -> Ns {
        (**self).tick_ns()
    }
    fn tick(&mut self, now_ns: Ns, cpu: usize, serving: TaskId) -> bool {
        (**self).tick(now_ns, cpu, serving)
    }
    fn age_ns(&self) -> Ns {
        (**self).age_ns()
    }
    fn age(&mut self, now_ns: Ns) -> bool {
        (**self).age(now_ns)
    }
    fn next_timer_ns(&self) -> Option<Ns> {
        (**self).next_timer_ns()
    }
    fn timer(&mut self, now_ns: Ns) -> u64 {
        (**self).timer(now_ns)
    }
}
