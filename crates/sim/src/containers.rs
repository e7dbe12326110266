//! Resource containers as a scheduler of one CPU: queues for the turns that `core/papers/containers.h`
//! gives.

use std::collections::VecDeque;

use andante_core_sys::{Container, ContainerShare, Containers, Rule};

use crate::Ns;
use crate::scheduler::{Scheduler, Slice};
use crate::spec::{ClassId, Spec, TaskId};

struct Kept {
    id: Container,
    /// Tasks that want to run and are not in service, in turn.
    queue: VecDeque<TaskId>,
}

/// Containers, fixed and shared, with first-in-first-out tasks.
pub struct ContainerScheduler {
    tree: Containers,
    tick_ns: Ns,
    /// By class number; the root is the first.
    containers: Vec<Kept>,
    /// Class of each task.
    classes: Vec<usize>,
    /// The one in service was found by the clock to have used up its turn.
    turn_over: bool,
}

impl ContainerScheduler {
    /// The root container alone. Turns end at ticks, as published, or to the nanosecond.
    pub fn new(ticked: bool) -> Self {
        let tick_ns = if ticked { Containers::TICK_NS } else { 0 };
        Self {
            tree: Containers::new(Containers::ROUND_NS, tick_ns),
            tick_ns,
            containers: vec![Kept {
                id: Containers::ROOT,
                queue: VecDeque::new(),
            }],
            classes: Vec::new(),
            turn_over: false,
        }
    }

    /// A container below `parent`; none if its share is not to be had, or there is no room.
    pub fn create(&mut self, parent: ClassId, share: ContainerShare) -> Option<ClassId> {
        let id = self.tree.create(self.containers[parent.0].id, share)?;
        self.containers.push(Kept {
            id,
            queue: VecDeque::new(),
        });
        Some(ClassId(self.containers.len() - 1))
    }

    fn kept(&mut self, task: TaskId) -> &mut Kept {
        &mut self.containers[self.classes[task.0 as usize]]
    }
}

impl Scheduler for ContainerScheduler {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        assert_eq!(task.0 as usize, self.classes.len(), "tasks come in order");
        self.classes.push(spec.class.0);
    }

    fn wake(&mut self, _now_ns: Ns, task: TaskId) {
        let kept = self.kept(task);
        kept.queue.push_back(task);
        let id = kept.id;
        self.tree.queue_add(id);
    }

    fn withdraw(&mut self, _now_ns: Ns, task: TaskId) {
        let kept = self.kept(task);
        kept.queue.retain(|queued| *queued != task);
        let id = kept.id;
        self.tree.queue_remove(id);
    }

    fn used(&mut self, _now_ns: Ns, _cpu: usize, task: TaskId, ran_ns: Ns) {
        let id = self.kept(task).id;
        self.tree.charge(id, ran_ns);
    }

    fn block(&mut self, _now_ns: Ns, _cpu: usize, task: TaskId) {
        let id = self.kept(task).id;
        self.tree.queue_remove(id);
    }

    fn displace(&mut self, _now_ns: Ns, _cpu: usize, wanting: Option<TaskId>) {
        if let Some(task) = wanting {
            self.kept(task).queue.push_front(task);
        }
    }

    fn remove(&mut self, _task: TaskId) {}

    fn preempts(&mut self, _now: Ns, _queued: TaskId, _cpu: usize, _serving: TaskId) -> bool {
        // Within a scheduling class RCLinux switches when an allotment ends, not on waking.
        false
    }

    fn pick(&mut self, now_ns: Ns, _cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        self.turn_over = false;
        if let Some(task) = wanting {
            self.kept(task).queue.push_back(task);
        }
        let id = self.tree.pick()?;
        let kept = self.containers.iter_mut().find(|kept| kept.id == id);
        let task = kept.expect("every container is kept").queue.pop_front();
        let task = task.expect("a container has a turn only if it has a task");
        let slice_ns = self.tree.slice_ns(id);
        Some(Slice {
            task,
            until_ns: now_ns.saturating_add(slice_ns),
            rule: Rule::TURN,
        })
    }

    fn tick_ns(&self) -> Ns {
        self.tick_ns
    }

    fn tick(&mut self, _now_ns: Ns, _cpu: usize, serving: TaskId) -> bool {
        let id = self.kept(serving).id;
        self.turn_over |= self.tree.tick(id);
        self.turn_over
    }
}
