//! The machine: time, CPUs, and tasks that wait for each other.
//!
//! Time jumps from one instant at which something happens to the next. Within an instant, first
//! everything that makes tasks runnable happens, then the CPUs whose task has come to an end or
//! whose slice is over are seen to, then CPUs pick; each in the order of the numbers involved. So a
//! wake-up that falls on the end of a quantum is seen by the pick at that end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use andante_core_sys::Rule;

use crate::channel::{Channel, ChannelId};
use crate::hierarchy::ClassId;
use crate::program::{Program, Record, Step, World};
use crate::random::Random;
use crate::scheduler::Scheduler;
use crate::task::{InstanceId, Spec, State, Task, TaskId, Wait};
use crate::trace::{Ran, Trace};
use crate::{NS_PER_S, Ns};

/// Steps without work that a program may take in one go.
const MAX_IDLE_STEPS: u32 = 100_000;
/// CPUs looked at for one whose task should make way for a woken one.
const WAKE_SCAN_CPUS: usize = 16;
/// No instant: nothing is going to happen.
const NEVER: Ns = Ns::MAX;

/// What running costs beside the work [ns]. Charged to the task that comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// A switch to another task.
    pub switch_ns: Ns,
    /// Coming from another CPU, on top of that.
    pub migration_ns: Ns,
    /// Timers expire at multiples of this; 0 and 1: to the nanosecond.
    pub timer_resolution_ns: Ns,
    /// A quantum, for each level of the tree that the scheduler goes down to give it.
    pub level_ns: Ns,
}

/// Interrupts that take a CPU away from whoever has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupts {
    /// Which CPU.
    pub cpu: usize,
    /// Mean time from one to the next [ns].
    pub gap_ns: Ns,
    /// How long each takes [ns].
    pub cost_ns: Ns,
    /// At random instants (a Poisson process) of this seed; none: at even distances.
    pub seed: Option<u64>,
}

/// What has been used so far [ns].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// By each instance.
    pub instances: Vec<Ns>,
    /// By each instance for its own work: the same without the [`Costs`].
    pub work: Vec<Ns>,
    /// By the tasks of each class, not counting classes below it.
    pub classes: Vec<Ns>,
    /// By nobody, summed over the CPUs.
    pub idle: Ns,
    /// By interrupts.
    pub stolen: Ns,
}

pub(crate) struct NewTask {
    pub program: Box<dyn Program>,
    pub spec: Spec,
    pub instance: InstanceId,
    pub parent: Option<TaskId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Timer { task: TaskId, number: u32 },
    Start { index: u32 },
    Suspend(InstanceId),
    Resume(InstanceId),
    Kill(InstanceId),
    Interrupt { source: u32 },
    Tick,
    Age,
}

#[derive(Debug, Default)]
struct Cpu {
    current: Option<TaskId>,
    /// Its service is accounted up to here; later than now while an interrupt has the CPU.
    since_ns: Ns,
    /// The slice's end.
    until_ns: Ns,
    /// When it is to be looked at: its task has come to an end, or its slice.
    end_ns: Ns,
    /// Interrupts have it until here.
    stolen_until_ns: Ns,
    must_pick: bool,
    busy_ns: Ns,
    stolen_ns: Ns,
}

enum After {
    Works,
    Blocks,
    Exits,
}

/// N CPUs, what runs on them, and what decides.
pub struct Machine<S> {
    now_ns: Ns,
    sequence: u64,
    events: BinaryHeap<Reverse<(Ns, u64, Event)>>,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    channels: Vec<Channel>,
    to_start: Vec<Option<NewTask>>,
    interrupts: Vec<(Interrupts, Random)>,
    records: Vec<Record>,
    instance_ns: Vec<Ns>,
    work_ns: Vec<Ns>,
    class_ns: Vec<Ns>,
    costs: Costs,
    scheduler: S,
    trace: Trace,
}

impl<S: Scheduler> Machine<S> {
    /// A machine of 1 to 64 CPUs. What happens from `keep_from_ns` to `keep_until_ns` is kept in
    /// full in the trace.
    pub fn new(cpus: usize, costs: Costs, scheduler: S, keep: std::ops::Range<Ns>) -> Self {
        assert!((1..=64).contains(&cpus), "a machine has 1 to 64 CPUs");
        let idle = || Cpu {
            end_ns: NEVER,
            ..Cpu::default()
        };
        let mut machine = Self {
            now_ns: 0,
            sequence: 0,
            events: BinaryHeap::new(),
            cpus: std::iter::repeat_with(idle).take(cpus).collect(),
            tasks: Vec::new(),
            channels: Vec::new(),
            to_start: Vec::new(),
            interrupts: Vec::new(),
            records: Vec::new(),
            instance_ns: Vec::new(),
            work_ns: Vec::new(),
            class_ns: Vec::new(),
            costs,
            scheduler,
            trace: Trace::keep(keep.start, keep.end),
        };
        if machine.scheduler.tick_ns() > 0 {
            machine.at(machine.scheduler.tick_ns(), Event::Tick);
        }
        if machine.scheduler.age_ns() > 0 {
            machine.at(machine.scheduler.age_ns(), Event::Age);
        }
        machine
    }

    /// A pipe that holds so many bytes.
    pub fn channel(&mut self, capacity: u32) -> ChannelId {
        self.filled_channel(capacity, 0)
    }

    /// A pipe that holds so many bytes, `filled` of which are in it from the beginning.
    pub fn filled_channel(&mut self, capacity: u32, filled: u32) -> ChannelId {
        self.channels.push(Channel::new(capacity, filled));
        ChannelId(self.channels.len() as u32 - 1)
    }

    /// Something to measure, so far without tasks.
    pub fn instance(&mut self) -> InstanceId {
        self.records.push(Record::default());
        self.instance_ns.push(0);
        self.work_ns.push(0);
        InstanceId(self.records.len() as u32 - 1)
    }

    /// A task of `instance` that begins at `at_ns`.
    pub fn start(
        &mut self,
        at_ns: Ns,
        instance: InstanceId,
        spec: Spec,
        program: impl Program + 'static,
    ) {
        let index = self.to_start.len() as u32;
        self.to_start.push(Some(NewTask {
            program: Box::new(program),
            spec,
            instance,
            parent: None,
        }));
        self.at(at_ns, Event::Start { index });
    }

    /// The instance's tasks do not run from `at_ns` on (SIGSTOP).
    pub fn suspend(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Suspend(instance));
    }

    /// They may again (SIGCONT).
    pub fn resume(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Resume(instance));
    }

    /// They end (SIGKILL).
    pub fn kill(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Kill(instance));
    }

    /// Adds a source of interrupts; the first comes after one gap.
    pub fn interrupt(&mut self, interrupts: Interrupts) {
        let seed = interrupts.seed.unwrap_or(0);
        self.interrupts.push((interrupts, Random::new(seed)));
        self.next_interrupt(self.interrupts.len() as u32 - 1);
    }

    /// Lets time pass until `end_ns`, everything at that instant included.
    pub fn run_until(&mut self, end_ns: Ns) {
        loop {
            let next_ns = self.next_ns();
            if next_ns > end_ns {
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.happen();
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].end_ns <= self.now_ns {
                    self.comes_to_end(cpu);
                }
            }
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].must_pick {
                    self.pick(cpu);
                }
            }
        }
        self.now_ns = self.now_ns.max(end_ns);
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
        }
    }

    /// Now.
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// What an instance has done.
    pub fn record(&self, instance: InstanceId) -> &Record {
        &self.records[instance.0 as usize]
    }

    /// Priority among all of the instance's first task that has not ended; 0 if there is none, or
    /// the scheduler knows no levels.
    pub fn level(&self, instance: InstanceId) -> u32 {
        let alive = |task: &Task| task.instance == instance && task.state != State::Dead;
        let first = self.tasks.iter().position(alive);
        first.map_or(0, |index| self.scheduler.level(TaskId(index as u32)))
    }

    /// Which instance a task belongs to.
    pub fn instance_of(&self, task: TaskId) -> InstanceId {
        self.tasks[task.0 as usize].instance
    }

    /// Whether any task of the instance has not ended, or is yet to start.
    pub fn lives(&self, instance: InstanceId) -> bool {
        let alive = |task: &Task| task.instance == instance && task.state != State::Dead;
        self.tasks.iter().any(alive)
            || self
                .to_start
                .iter()
                .flatten()
                .any(|new| new.instance == instance)
    }

    /// What has been used so far.
    pub fn usage(&self) -> Usage {
        let busy: Ns = self.cpus.iter().map(|cpu| cpu.busy_ns).sum();
        let stolen: Ns = self.cpus.iter().map(|cpu| cpu.stolen_ns).sum();
        Usage {
            instances: self.instance_ns.clone(),
            work: self.work_ns.clone(),
            classes: self.class_ns.clone(),
            idle: (self.now_ns * self.cpus.len() as Ns).saturating_sub(busy + stolen),
            stolen,
        }
    }

    /// What was decided.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Who decides.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Who decides; to change a weight, for example.
    pub fn scheduler_mut(&mut self) -> &mut S {
        &mut self.scheduler
    }

    // ---- what happens ----

    fn at(&mut self, at_ns: Ns, event: Event) {
        self.events
            .push(Reverse((at_ns.max(self.now_ns), self.sequence, event)));
        self.sequence += 1;
    }

    fn next_ns(&self) -> Ns {
        let event_ns = self
            .events
            .peek()
            .map_or(NEVER, |Reverse((at_ns, ..))| *at_ns);
        let timer_ns = self.scheduler.next_timer_ns().unwrap_or(NEVER);
        let cpu_ns = self
            .cpus
            .iter()
            .map(|cpu| cpu.end_ns)
            .min()
            .unwrap_or(NEVER);
        event_ns.min(timer_ns).min(cpu_ns)
    }

    /// Everything of this instant that makes tasks runnable, or stops them.
    fn happen(&mut self) {
        while let Some(Reverse((at_ns, _, event))) = self.events.peek().copied()
            && at_ns <= self.now_ns
        {
            self.events.pop();
            self.handle(event);
        }
        if self
            .scheduler
            .next_timer_ns()
            .is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            self.settle_all();
            let cpus = self.scheduler.timer(self.now_ns);
            self.ask_for_picks(cpus);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Timer { task, number } => {
                if self.tasks[task.0 as usize].wait == Wait::Timer(number) {
                    self.wake(task);
                }
            }
            Event::Start { index } => {
                let new = self.to_start[index as usize].take().expect("starts once");
                self.begin(new);
            }
            Event::Suspend(instance) => self.each_task(instance, Self::suspend_task),
            Event::Resume(instance) => self.each_task(instance, Self::resume_task),
            Event::Kill(instance) => {
                for new in &mut self.to_start {
                    new.take_if(|new| new.instance == instance);
                }
                self.each_task(instance, Self::end_task);
            }
            Event::Interrupt { source } => self.take_interrupt(source),
            Event::Tick => self.tick(),
            Event::Age => {
                self.settle_all();
                if self.scheduler.age(self.now_ns) {
                    self.ask_for_picks(u64::MAX);
                }
                self.at(self.now_ns + self.scheduler.age_ns(), Event::Age);
            }
        }
    }

    fn each_task(&mut self, instance: InstanceId, act: fn(&mut Self, TaskId)) {
        for index in 0..self.tasks.len() {
            if self.tasks[index].instance == instance {
                act(self, TaskId(index as u32));
            }
        }
    }

    fn begin(&mut self, new: NewTask) {
        let task = TaskId(self.tasks.len() as u32);
        let last_cpu = match new.parent {
            Some(parent) => self.tasks[parent.0 as usize].last_cpu,
            None => (new.spec.affinity.trailing_zeros() as usize).min(self.cpus.len() - 1),
        };
        self.scheduler.add(task, &new.spec);
        if let Some(parent) = new.parent {
            self.scheduler.fork(parent, task);
        }
        self.tasks.push(Task {
            program: Some(new.program),
            spec: new.spec,
            instance: new.instance,
            parent: new.parent,
            children_ended: 0,
            state: State::Asleep,
            wait: Wait::Nothing,
            stopped: false,
            work_ns: 0,
            overhead_ns: 0,
            last_cpu,
            worked: false,
            timers: 0,
            rule: Rule::SHARE,
        });
        self.wake(task);
    }

    fn suspend_task(&mut self, task: TaskId) {
        self.tasks[task.0 as usize].stopped = true;
        self.leave(task);
    }

    fn resume_task(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.0 as usize];
        t.stopped = false;
        if t.state == State::Asleep && t.wait == Wait::Nothing {
            self.wake(task);
        }
    }

    fn end_task(&mut self, task: TaskId) {
        self.leave(task);
        if let Wait::Channel(channel) = self.tasks[task.0 as usize].wait {
            self.channels[channel.0 as usize].forget(task);
        }
        if self.tasks[task.0 as usize].state != State::Dead {
            self.forget(task);
        }
    }

    fn forget(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.0 as usize];
        t.state = State::Dead;
        t.wait = Wait::Nothing;
        t.program = None;
        self.scheduler.remove(task);
    }

    /// The task wants no CPU any more, whether it has one or waits for one.
    fn leave(&mut self, task: TaskId) {
        match self.tasks[task.0 as usize].state {
            State::Running(cpu) => {
                self.settle(cpu);
                self.free(cpu, task);
            }
            State::Queued => self.scheduler.withdraw(self.now_ns, task),
            State::Asleep | State::Dead => return,
        }
        self.tasks[task.0 as usize].state = State::Asleep;
    }

    fn free(&mut self, cpu: usize, task: TaskId) {
        self.scheduler.block(self.now_ns, cpu, task);
        let c = &mut self.cpus[cpu];
        c.current = None;
        c.end_ns = NEVER;
        c.must_pick = true;
    }

    fn tick(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
            if let Some(task) = self.cpus[cpu].current
                && self.scheduler.tick(self.now_ns, cpu, task)
            {
                self.cpus[cpu].must_pick = true;
            }
        }
        self.at(self.now_ns + self.scheduler.tick_ns(), Event::Tick);
    }

    fn next_interrupt(&mut self, source: u32) {
        let (interrupts, random) = &mut self.interrupts[source as usize];
        let gap_ns = match interrupts.seed {
            Some(_) => random.exponential(interrupts.gap_ns as f64) as Ns,
            None => interrupts.gap_ns,
        };
        self.at(self.now_ns + gap_ns.max(1), Event::Interrupt { source });
    }

    fn take_interrupt(&mut self, source: u32) {
        let interrupts = &self.interrupts[source as usize].0;
        let (cpu, cost_ns) = (interrupts.cpu, interrupts.cost_ns);
        self.settle(cpu);
        let c = &mut self.cpus[cpu];
        c.stolen_until_ns = c.stolen_until_ns.max(self.now_ns) + cost_ns;
        c.stolen_ns += cost_ns;
        if c.current.is_some() {
            c.since_ns = c.stolen_until_ns;
            c.until_ns += cost_ns;
            c.end_ns += cost_ns;
        }
        self.next_interrupt(source);
    }

    // ---- tasks ----

    fn wake(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.0 as usize];
        t.wait = Wait::Nothing;
        if t.stopped || t.state != State::Asleep {
            return;
        }
        t.state = State::Queued;
        self.scheduler.wake(self.now_ns, task);
        self.find_cpu(task, true);
    }

    /// Finds a CPU for a queued task: an idle one or, if it has just woken, one whose task should
    /// make way.
    fn find_cpu(&mut self, task: TaskId, woken: bool) {
        let t = &self.tasks[task.0 as usize];
        let count = self.cpus.len();
        let nearby = (0..count).map(|step| (t.last_cpu + step) % count);
        let home = self.scheduler.home(task);
        let allowed: Vec<usize> = nearby
            .filter(|cpu| t.may_run_on(*cpu) && home.is_none_or(|home| home == *cpu))
            .collect();
        let idle = |cpu: &&usize| self.cpus[**cpu].current.is_none() && !self.cpus[**cpu].must_pick;
        if let Some(cpu) = allowed.iter().find(idle) {
            self.cpus[*cpu].must_pick = true;
            return;
        }
        if !woken {
            return;
        }
        for cpu in allowed.into_iter().take(WAKE_SCAN_CPUS) {
            let Some(serving) = self.cpus[cpu].current else {
                continue;
            };
            self.settle(cpu);
            let at_ns = self.scheduler.preempts(self.now_ns, task, cpu, serving);
            let c = &mut self.cpus[cpu];
            match at_ns {
                Some(at_ns) if at_ns <= self.now_ns => {
                    c.must_pick = true;
                    return;
                }
                Some(at_ns) => {
                    c.until_ns = c.until_ns.min(at_ns);
                    c.end_ns = c.end_ns.min(at_ns);
                }
                None => {}
            }
        }
    }

    /// Asks the task's program for steps until one needs time.
    fn advance(&mut self, task: TaskId) -> After {
        let mut program = self.tasks[task.0 as usize]
            .program
            .take()
            .expect("it has not ended");
        let mut forked = Vec::new();
        let mut steps = 0;
        let after = loop {
            steps += 1;
            assert!(
                steps < MAX_IDLE_STEPS,
                "a program takes steps without end and without work"
            );
            let t = &self.tasks[task.0 as usize];
            let mut world = World {
                now_ns: self.now_ns,
                task,
                records: &mut self.records,
                parent: task,
                instance: t.instance,
                spec: &t.spec,
                forked: &mut forked,
            };
            let step = program.step(&mut world);
            for new in forked.drain(..) {
                self.begin(new);
            }
            if let Some(after) = self.take_step(task, step) {
                break after;
            }
        };
        self.tasks[task.0 as usize].program = Some(program);
        after
    }

    /// None if the step is done already.
    fn take_step(&mut self, task: TaskId, step: Step) -> Option<After> {
        let now_ns = self.now_ns;
        let t = &mut self.tasks[task.0 as usize];
        match step {
            Step::Compute(0) => return None,
            Step::Compute(work_ns) => {
                t.work_ns = work_ns;
                t.worked = true;
            }
            Step::ComputeForever => t.work_ns = NEVER,
            Step::SleepUntil(at_ns) => {
                let at_ns = at_ns.next_multiple_of(self.costs.timer_resolution_ns.max(1));
                if at_ns <= now_ns {
                    let worked = std::mem::take(&mut t.worked);
                    if let State::Running(cpu) = t.state
                        && worked
                    {
                        let pick = self.scheduler.next_job(now_ns, cpu, task, at_ns);
                        self.cpus[cpu].must_pick |= pick;
                    }
                    return None;
                }
                t.worked = false;
                t.timers += 1;
                let number = t.timers;
                t.wait = Wait::Timer(number);
                self.at(at_ns, Event::Timer { task, number });
            }
            Step::Send(channel, bytes) => {
                if self.channels[channel.0 as usize].send(task, bytes) {
                    self.serve(channel);
                    return None;
                }
                t.wait = Wait::Channel(channel);
            }
            Step::Receive(channel, bytes) => {
                if self.channels[channel.0 as usize].receive(task, bytes) {
                    self.serve(channel);
                    return None;
                }
                t.wait = Wait::Channel(channel);
            }
            Step::WaitForChild => {
                if t.children_ended > 0 {
                    t.children_ended -= 1;
                    return None;
                }
                t.wait = Wait::Child;
            }
            Step::Exit => {
                let parent = t.parent;
                if let Some(parent) = parent {
                    self.child_ends(parent);
                }
                return Some(After::Exits);
            }
        }
        Some(match self.tasks[task.0 as usize].wait {
            Wait::Nothing => After::Works,
            _ => After::Blocks,
        })
    }

    fn serve(&mut self, channel: ChannelId) {
        while let Some(task) = self.channels[channel.0 as usize].next_served() {
            self.wake(task);
        }
    }

    fn child_ends(&mut self, parent: TaskId) {
        let p = &mut self.tasks[parent.0 as usize];
        if p.wait == Wait::Child {
            self.wake(parent);
        } else {
            p.children_ended += 1;
        }
    }

    // ---- CPUs ----

    fn ask_for_picks(&mut self, cpus: u64) {
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.must_pick |= cpus & (1 << number) != 0;
        }
    }

    fn settle_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
        }
    }

    /// Accounts what the task on this CPU has run so far.
    fn settle(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else { return };
        if self.now_ns <= c.since_ns {
            return;
        }
        let (start_ns, ran_ns) = (c.since_ns, self.now_ns - c.since_ns);
        c.since_ns = self.now_ns;
        c.busy_ns += ran_ns;
        let t = &mut self.tasks[task.0 as usize];
        let overhead_ns = ran_ns.min(t.overhead_ns);
        t.overhead_ns -= overhead_ns;
        if t.work_ns != NEVER {
            t.work_ns -= ran_ns - overhead_ns;
        }
        self.instance_ns[t.instance.0 as usize] += ran_ns;
        self.work_ns[t.instance.0 as usize] += ran_ns - overhead_ns;
        let ClassId(class) = t.spec.class;
        if self.class_ns.len() <= class {
            self.class_ns.resize(class + 1, 0);
        }
        self.class_ns[class] += ran_ns;
        let rule = t.rule;
        self.scheduler.used(self.now_ns, cpu, task, ran_ns);
        self.trace.ran(Ran {
            cpu: cpu as u32,
            task,
            start_ns,
            length_ns: ran_ns,
            rule,
        });
    }

    /// The task's step is finished, or the slice is over.
    fn comes_to_end(&mut self, cpu: usize) {
        self.settle(cpu);
        let task = self.cpus[cpu].current.expect("an idle CPU comes to no end");
        let t = &self.tasks[task.0 as usize];
        if t.work_ns == 0 && t.overhead_ns == 0 {
            match self.advance(task) {
                After::Works => {}
                After::Blocks => {
                    self.tasks[task.0 as usize].state = State::Asleep;
                    self.free(cpu, task);
                    return;
                }
                After::Exits => {
                    self.free(cpu, task);
                    self.forget(task);
                    return;
                }
            }
        }
        if self.cpus[cpu].until_ns <= self.now_ns {
            self.cpus[cpu].must_pick = true;
        }
        self.plan_end(cpu);
    }

    fn plan_end(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            c.end_ns = NEVER;
            return;
        };
        let t = &self.tasks[task.0 as usize];
        let done_ns = c
            .since_ns
            .saturating_add(t.overhead_ns)
            .saturating_add(t.work_ns);
        c.end_ns = done_ns.min(c.until_ns);
    }

    fn pick(&mut self, cpu: usize) {
        self.settle(cpu);
        self.cpus[cpu].must_pick = false;
        let wanting = self.cpus[cpu].current;
        let slice = self.scheduler.pick(self.now_ns, cpu, wanting);
        let next = slice.map(|slice| slice.task);
        if let Some(task) = wanting
            && next != wanting
        {
            self.tasks[task.0 as usize].state = State::Queued;
        }
        let c = &mut self.cpus[cpu];
        c.current = next;
        if let Some(slice) = slice {
            c.until_ns = slice.until_ns;
            let levels = Ns::from(self.scheduler.levels(cpu));
            let t = &mut self.tasks[slice.task.0 as usize];
            t.rule = slice.rule;
            t.overhead_ns += self.costs.level_ns * levels;
            if next != wanting {
                t.state = State::Running(cpu);
                t.overhead_ns += self.costs.switch_ns;
                if t.last_cpu != cpu {
                    t.overhead_ns += self.costs.migration_ns;
                    t.last_cpu = cpu;
                }
                c.since_ns = self.now_ns.max(c.stolen_until_ns);
            }
            self.trace.decided(self.now_ns, cpu, slice.task, slice.rule);
        }
        self.plan_end(cpu);
        if let Some(task) = wanting
            && next != wanting
        {
            self.find_cpu(task, false);
        }
    }
}

impl<S> std::fmt::Debug for Machine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at_s = self.now_ns as f64 / NS_PER_S as f64;
        write!(
            f,
            "{} CPUs, {} tasks at {at_s} s",
            self.cpus.len(),
            self.tasks.len()
        )
    }
}
