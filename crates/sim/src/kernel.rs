//! A machine whose kernel is modelled: sched_ext with the scheduler that users run, real-time tasks
//! and the stock scheduler, interrupts, and what all of it costs.
//!
//! ```text
//!   Program ──step──► Kernel ──wake, block, fork──► model (C) ──callbacks──► bpf/sched.bpf.c
//!   (what tasks do)   (programs, pipes, timers)     (kernel/)                 ──► core/
//! ```
//!
//! The model has the time, and says when a program has something to do; this part keeps what
//! programs are and what they wait for.

mod steps;

use andante_core_sys::{Kept, Piece, PolicyKind, Promise};

use crate::channel::{Channel, ChannelId};
use crate::costs::{COSTS, KernelCosts, SystemCalls};
use crate::machine::{Costs, Interrupts, Usage};
use crate::object::Object;
use crate::program::{NewTask, Program, Record};
use crate::random::Random;
use crate::scheduler::Delivered;
pub use crate::shell::raw::Learnt;
use crate::shell::{Shell, raw};
use crate::simulation::Simulation;
use crate::spec::{Bandwidth, ClassId, ContractId, InstanceId, LeafPolicy, Spec, TaskId};
use crate::trace::Ran;
use crate::{NS_PER_MS, NS_PER_S, Ns};

/// Steps without work that a program may take in one go.
const MAX_IDLE_STEPS: u32 = 100_000;
/// Who works by the clock looks at it no more often [ns].
const CLOCK_LOOK_NS: Ns = 5_000;
/// Tokens from here on are not a sleeping task's.
const EVENT: u64 = 1 << 63;

/// Who has the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InCharge {
    /// Andante, as `andante run` loads it with these settings.
    Andante(Settings),
    /// A historical policy, as `andante run --policy` loads it.
    Historical {
        /// One of those that order tasks by keys.
        policy: PolicyKind,
        /// SVR4: nice values below 0 are levels of the class RT.
        nice_is_real_time: bool,
    },
    /// The kernel's own scheduler.
    Stock,
}

/// Settings of `andante run` that its BPF part is given (`bpf/base.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Service of one pick [ns].
    pub quantum_ns: Ns,
    /// Service before a classmate may preempt [ns].
    pub in_class_wake_ns: Ns,
    /// What contracts may have of each CPU \[1/1024\].
    pub contract_bound: u32,
    /// What learnt ones may have \[1/1024\].
    pub learn_bound: u32,
    /// Whether servers work with the shares of their clients.
    pub bindings: bool,
    /// How events are coordinated with contracts that have windows; none: they are not.
    pub events: Option<Coordination>,
}

/// As `andante run --events` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coordination {
    /// Rules that are left out (of [`Contracts`](andante_core_sys::Contracts)).
    pub left_out: u32,
    /// Whether every CPU has a task server.
    pub task_server: bool,
}

/// Which CPUs are near one another, by their numbers; each part is some of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// CPUs that are threads of one core. None is slower for it; the kernel prefers cores that are idle.
    pub threads_of_core: u32,
    /// CPUs that share the last cache.
    pub cpus_of_cache: u32,
    /// CPUs of a node, with memory of its own.
    pub cpus_of_node: u32,
}

impl Default for Topology {
    /// Cores of one thread, of which any number share a cache.
    fn default() -> Self {
        Self {
            threads_of_core: 1,
            cpus_of_cache: 0,
            cpus_of_node: 0,
        }
    }
}

/// What a kernel is, beside who is in charge.
#[derive(Debug, Clone, Copy)]
pub struct Hardware {
    /// CPUs, 1 to 64.
    pub cpus: usize,
    /// Virtual CPUs of an emulator that gives n busy ones 1/n of the speed each, as QEMU does when
    /// its clock counts instructions.
    pub shared_budget: bool,
    /// Time between two ticks [ns]: 4 ms at 250 Hz.
    pub tick_ns: Ns,
    /// CPUs of a domain, each of which has a class tree of its own: so many, or as many as the next
    /// power of two says. None: as on a kernel, all CPUs up to 32, and 16
    /// where there are more.
    pub domain_cpus: Option<u32>,
    /// What the kernel's selection of an idle CPU goes by.
    pub topology: Topology,
    /// An ideal kernel, in which these take time and nothing else does. None: everything takes what
    /// it was measured to take.
    pub ideal: Option<Costs>,
}

/// CPUs up to which one tree, under one lock, is best: `crates/sched/src/domains.rs`.
const CPUS_OF_ONE: u32 = 32;
/// CPUs of a domain where there are more: the same.
const CPUS_OF_EACH: u32 = 16;
/// Domains at most: `AN_MAX_DOMAINS`.
const MAX_DOMAINS: u32 = 64;

impl Hardware {
    /// Where nothing takes time but these: every CPU has its own speed, and the clock ticks at 1,000 Hz,
    /// as often as kernels are built for, so that quanta of whole milliseconds end when they are over.
    pub fn ideal(costs: Costs) -> Self {
        Self {
            tick_ns: NS_PER_MS,
            ideal: Some(costs),
            ..Self::default()
        }
    }

    /// CPUs of each domain, of which the last may have fewer; none: one tree is for all.
    pub fn domains_of(&self) -> Option<u32> {
        let cpus = self.cpus as u32;
        let each = match self.domain_cpus {
            Some(each) => each,
            None if cpus <= CPUS_OF_ONE => cpus,
            None => CPUS_OF_EACH,
        };
        let each = each.max(cpus.div_ceil(MAX_DOMAINS)).max(1);
        let each = each.next_power_of_two();
        (each < cpus).then_some(each)
    }
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            cpus: 1,
            shared_budget: false,
            tick_ns: 4 * NS_PER_MS,
            domain_cpus: None,
            topology: Topology::default(),
            ideal: None,
        }
    }
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    Timer(u32),
    Channel(ChannelId),
    Child,
    /// Its child, which it has made by vfork.
    Exec,
    Dead,
}

struct Task {
    program: Option<Box<dyn Program>>,
    wait: Wait,
    instance: InstanceId,
    spec: Spec,
    parent: Option<u32>,
    children_ended: u32,
    /// Until it has used so much it works by its clock; 0: it does not [ns].
    works_until_ns: Ns,
}

/// Something that happens to the machine at an instant, by its place in a list.
enum Event {
    Start(Option<Box<NewTask>>),
    Suspend(InstanceId),
    Resume(InstanceId),
    Kill(InstanceId),
    Limit(ClassId, Bandwidth),
    Policy(ClassId, LeafPolicy),
    Interrupt(Interrupts, Random),
    /// The first task of the instance has an event, to be delivered then; and again at the instants that
    /// follow.
    Raise(InstanceId, Ns, Box<dyn Iterator<Item = Ns> + Send>),
    /// What the daemon does every second.
    Sweep,
}

/// N CPUs, a kernel, and what runs on them.
pub struct Kernel {
    shell: Shell,
    cpus: usize,
    calls: SystemCalls,
    timer_resolution_ns: Ns,
    tasks: Vec<Task>,
    channels: Vec<Channel>,
    /// Of each channel: the connection to a server whose answers it carries, and who read it last.
    connections: Vec<Option<u32>>,
    readers: Vec<Option<u32>>,
    /// Whether a channel carries what clients ask of a server.
    bells: Vec<bool>,
    classes: Vec<u32>,
    events: Vec<Event>,
    timers: u32,
    records: Vec<Record>,
    keep: std::ops::Range<Ns>,
    runs: Vec<Ran>,
    /// Of tasks that have ended, by instance: used, and of that for their own work [ns].
    ended: Vec<(Ns, Ns)>,
    /// Tasks that have not ended, or have ended since their use was looked at last.
    alive: Vec<u32>,
    /// Names of contracts, in the order of creation.
    contracts: Vec<u32>,
    ejected: Option<String>,
}

impl Kernel {
    /// A machine under `in_charge`; who runs from `keep.start` to `keep.end` is kept.
    pub fn new(hardware: &Hardware, in_charge: InCharge, keep: std::ops::Range<Ns>) -> Self {
        let (object, options) = begins_with(hardware, in_charge, !keep.is_empty());
        let shell = Shell::load(object);
        let costs = match &hardware.ideal {
            Some(named) => &KernelCosts::ideal(named),
            None => &*COSTS,
        };
        // SAFETY: both live during the call.
        unsafe { (shell.begin)(&raw const options, &raw const costs.model) };
        let mut kernel = Self {
            shell,
            cpus: hardware.cpus,
            calls: costs.calls,
            timer_resolution_ns: hardware
                .ideal
                .map_or(1, |costs| costs.timer_resolution_ns.max(1)),
            tasks: Vec::new(),
            channels: Vec::new(),
            connections: Vec::new(),
            readers: Vec::new(),
            bells: Vec::new(),
            classes: vec![0],
            events: Vec::new(),
            timers: 0,
            records: Vec::new(),
            keep,
            runs: Vec::new(),
            ended: Vec::new(),
            alive: Vec::new(),
            contracts: Vec::new(),
            ejected: None,
        };
        if matches!(in_charge, InCharge::Andante(_)) {
            // As the daemon does every second, or what has ended would keep its place.
            kernel.at(NS_PER_S, Event::Sweep);
        }
        kernel
    }

    /// A class below `parent`; none when the scheduler has no room for it.
    pub fn create(&mut self, parent: ClassId, weight: u32) -> Option<ClassId> {
        let cgroup = (self.shell.cgroup)(self.classes[parent.0], weight);
        (cgroup != u32::MAX).then(|| {
            self.classes.push(cgroup);
            ClassId(self.classes.len() - 1)
        })
    }

    /// Removes a class without tasks and classes; whether it was one.
    pub fn remove(&mut self, class: ClassId) -> bool {
        (self.shell.cgroup_remove)(self.classes[class.0]) == 0
    }

    /// A class that shares its parent's, for there was no room, gets its own, as the daemon asks for it once
    /// a second: 0, or why there is none still (`AN_CLASS_…` of bpf/intf.h).
    pub fn own_class(&mut self, class: ClassId) -> i32 {
        (self.shell.class)(self.classes[class.0])
    }

    /// Classes that share their parent's.
    pub fn classes_shared(&self) -> u32 {
        (self.shell.classes_shared)()
    }

    /// Learnt contracts: how many there are, were not made for want of room, and made room for others.
    pub fn learnt(&self) -> Learnt {
        let mut learnt = Learnt::default();
        // SAFETY: it lives during the call, and is laid out as in `kernel/sim.h`.
        unsafe { (self.shell.contracts_learnt)(&raw mut learnt) };
        learnt
    }

    /// The class gets what nobody else wants (`cpu.idle`).
    pub fn idle(&mut self, class: ClassId) {
        (self.shell.cgroup_idle)(self.classes[class.0], 1);
    }

    /// The tasks of a class are ordered by this policy from `at_ns` on; 0: from the beginning.
    pub fn policy(&mut self, at_ns: Ns, class: ClassId, policy: LeafPolicy) {
        match at_ns {
            0 => self.takes_policy(class, policy),
            _ => self.at(at_ns, Event::Policy(class, policy)),
        }
    }

    fn takes_policy(&mut self, class: ClassId, policy: LeafPolicy) {
        let cgroup = self.classes[class.0];
        let LeafPolicy {
            kind,
            quantum_ns,
            nice_is_real_time,
        } = policy;
        let done = (self.shell.policy)(cgroup, kind, quantum_ns, nice_is_real_time.into());
        assert_eq!(done, 0, "a leaf takes any policy");
    }

    /// What a class may use from `at_ns` on; 0: from the beginning.
    pub fn limit(&mut self, at_ns: Ns, class: ClassId, bandwidth: Bandwidth) {
        match at_ns {
            0 => self.limits(class, bandwidth),
            _ => self.at(at_ns, Event::Limit(class, bandwidth)),
        }
    }

    fn limits(&mut self, class: ClassId, bandwidth: Bandwidth) {
        let quota_us = bandwidth.quota_us.unwrap_or(u64::MAX);
        let cgroup = self.classes[class.0];
        (self.shell.cgroup_bandwidth)(cgroup, quota_us, bandwidth.period_us, bandwidth.burst_us);
    }

    /// A contract for the first task of an instance to come ([`Spec::contract`]), or for all tasks of
    /// `class`; none if the scheduler refuses it. Whether it can be kept is not asked here.
    pub fn promise(
        &mut self,
        promise: &Promise,
        pieces: &[Piece],
        class: Option<ClassId>,
    ) -> Option<ContractId> {
        let cgroup = class.map_or(-1, |class| self.classes[class.0] as i32);
        // SAFETY: both live during the call, and the class is known.
        let name = unsafe {
            let count = pieces.len() as u32;
            (self.shell.contract_create)(promise, pieces.as_ptr(), count, cgroup)
        };
        (name != 0).then(|| {
            self.contracts.push(name);
            ContractId(self.contracts.len() - 1)
        })
    }

    /// At `at_ns` it becomes known that the first task of the instance has an event at `deliver_ns`.
    pub fn raise_ahead(&mut self, sink: InstanceId, at_ns: Ns, deliver_ns: Ns) {
        let raise = Event::Raise(sink, deliver_ns, Box::new(std::iter::empty()));
        self.at(at_ns, raise);
    }

    /// The tasks of the instance hold this contract from now on, and none that they held before.
    pub fn bind(&mut self, instance: InstanceId, contract: ContractId) {
        let name = self.contracts[contract.0];
        self.each(instance, |shell, task| {
            (shell.contract_bind)(task, name);
        });
    }

    /// How often the scheduler was asked so far whom a CPU is to run.
    pub fn decisions(&self) -> u64 {
        // SAFETY: it is the object's, and is not written during the call.
        unsafe { (*(self.shell.stats)()).dispatches }
    }

    fn at(&mut self, at_ns: Ns, event: Event) {
        let token = EVENT | self.events.len() as u64;
        self.events.push(event);
        (self.shell.interrupt)(at_ns, 0, token);
    }

    fn happens(&mut self, index: usize) {
        match &mut self.events[index] {
            Event::Start(new) => {
                if let Some(new) = new.take() {
                    self.begin(*new);
                }
            }
            Event::Suspend(instance) => {
                let instance = *instance;
                self.each(instance, |shell, task| (shell.stop)(task, 1));
            }
            Event::Resume(instance) => {
                let instance = *instance;
                self.each(instance, |shell, task| (shell.stop)(task, 0));
            }
            Event::Kill(instance) => {
                let instance = *instance;
                for event in &mut self.events {
                    if let Event::Start(new) = event {
                        new.take_if(|new| new.instance == instance);
                    }
                }
                self.each(instance, |shell, task| (shell.kill)(task));
            }
            Event::Limit(class, bandwidth) => {
                let (class, bandwidth) = (*class, *bandwidth);
                self.limits(class, bandwidth);
            }
            Event::Policy(class, policy) => {
                let (class, policy) = (*class, *policy);
                self.takes_policy(class, policy);
            }
            Event::Raise(instance, deliver_ns, instants) => {
                let (instance, deliver_ns) = (*instance, *deliver_ns);
                let next_ns = instants.next();
                let first = |task: &&u32| self.tasks[**task as usize].instance == instance;
                if let Some(task) = self.alive.iter().find(first) {
                    (self.shell.event_raise)(*task, 0, deliver_ns);
                }
                if let Some(at_ns) = next_ns {
                    (self.shell.interrupt)(at_ns, 0, EVENT | index as u64);
                }
            }
            Event::Sweep => {
                (self.shell.contract_sweep)();
                let at_ns = (self.shell.now_ns)() + NS_PER_S;
                (self.shell.interrupt)(at_ns, 0, EVENT | index as u64);
            }
            Event::Interrupt(interrupts, random) => {
                let gap_ns = match interrupts.seed {
                    Some(_) => random.exponential(interrupts.gap_ns as f64) as Ns,
                    None => interrupts.gap_ns,
                };
                (self.shell.steal)(interrupts.cpu as u32, interrupts.cost_ns);
                let at_ns = (self.shell.now_ns)() + gap_ns.max(1);
                (self.shell.interrupt)(at_ns, interrupts.cpu as u32, EVENT | index as u64);
            }
        }
    }

    fn each(&mut self, instance: InstanceId, act: impl Fn(&Shell, u32)) {
        for task in &self.alive {
            let t = &self.tasks[*task as usize];
            if t.instance == instance && t.wait != Wait::Dead {
                act(&self.shell, *task);
            }
        }
    }

    /// Of each task: used, and worked.
    fn used(&self, task: u32) -> (Ns, Ns) {
        ((self.shell.used_ns)(task), (self.shell.worked_ns)(task))
    }

    /// The figures of tasks that have left their CPU for good are summed up.
    fn forget_ended(&mut self) {
        let mut alive = std::mem::take(&mut self.alive);
        alive.retain(|task| {
            let t = &self.tasks[*task as usize];
            if t.wait != Wait::Dead {
                return true;
            }
            let (used, worked) = self.used(*task);
            let sum = &mut self.ended[t.instance.0 as usize];
            sum.0 += used;
            sum.1 += worked;
            false
        });
        self.alive = alive;
    }

    fn take_runs(&mut self) {
        if self.keep.is_empty() {
            return;
        }
        let mut count = 0;
        // SAFETY: the object says how many there are, and does not change them meanwhile.
        let runs = unsafe {
            let first = (self.shell.runs)(&raw mut count);
            match count {
                0 => &[][..],
                _ => std::slice::from_raw_parts(first, count as usize),
            }
        };
        let kept = runs.iter().filter(|run| {
            run.start_ns + run.length_ns > self.keep.start && run.start_ns < self.keep.end
        });
        self.runs.extend(kept.map(|run| Ran {
            cpu: run.cpu,
            task: TaskId(run.task),
            start_ns: run.start_ns,
            length_ns: run.length_ns,
            rule: andante_core_sys::Rule::SHARE,
        }));
    }
}

impl Simulation for Kernel {
    fn channel(&mut self, capacity: u32, filled: u32) -> ChannelId {
        self.channels.push(Channel::new(capacity, filled));
        self.connections.push(None);
        self.readers.push(None);
        self.bells.push(false);
        ChannelId(self.channels.len() as u32 - 1)
    }

    fn instance(&mut self) -> InstanceId {
        self.records.push(Record::default());
        self.ended.push((0, 0));
        InstanceId(self.records.len() as u32 - 1)
    }

    fn start(&mut self, at_ns: Ns, instance: InstanceId, spec: Spec, program: Box<dyn Program>) {
        let new = NewTask {
            program,
            spec,
            instance,
            parent: None,
            paid: true,
            thread: false,
        };
        self.at(at_ns, Event::Start(Some(Box::new(new))));
    }

    fn suspend(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Suspend(instance));
    }

    fn resume(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Resume(instance));
    }

    fn kill(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Kill(instance));
    }

    fn interrupt(&mut self, interrupts: Interrupts) {
        let mut random = Random::new(interrupts.seed.unwrap_or(0));
        let gap_ns = match interrupts.seed {
            Some(_) => random.exponential(interrupts.gap_ns as f64) as Ns,
            None => interrupts.gap_ns,
        };
        self.at(gap_ns, Event::Interrupt(interrupts, random));
    }

    /// Without [`Settings::events`] nobody hears of them.
    fn raise(&mut self, sink: InstanceId, mut instants: Box<dyn Iterator<Item = Ns> + Send>) {
        if let Some(at_ns) = instants.next() {
            self.at(at_ns, Event::Raise(sink, 0, instants));
        }
    }

    fn run_until(&mut self, end_ns: Ns) {
        loop {
            let mut event = raw::Event::default();
            // SAFETY: it lives during the call.
            unsafe { (self.shell.run)(end_ns, &raw mut event) };
            match event.kind {
                raw::STEP => self.steps(event.task, event.token != 0),
                raw::TIMER if event.token & EVENT != 0 => {
                    self.happens((event.token & !EVENT) as usize);
                }
                raw::TIMER => self.timer((event.token >> 32) as u32, event.token as u32),
                raw::EJECTED => {
                    // SAFETY: it is the object's, and is not written any more.
                    let stats = unsafe { &*(self.shell.stats)() };
                    self.ejected = Some(text(&stats.reason) + ": " + &text(&stats.message));
                }
                raw::UNTIL => break,
                kind => unreachable!("the model has no event {kind}"),
            }
        }
        self.forget_ended();
        self.take_runs();
    }

    fn record(&self, instance: InstanceId) -> &Record {
        &self.records[instance.0 as usize]
    }

    fn level(&self, _instance: InstanceId) -> u32 {
        0
    }

    fn instance_of(&self, task: TaskId) -> InstanceId {
        self.tasks[task.0 as usize].instance
    }

    fn usage(&self) -> Usage {
        let mut instances: Vec<Ns> = self.ended.iter().map(|(used, _)| *used).collect();
        let mut work: Vec<Ns> = self.ended.iter().map(|(_, worked)| *worked).collect();
        let mut classes = vec![0; self.classes.len()];
        for task in &self.alive {
            let t = &self.tasks[*task as usize];
            let (used, worked) = self.used(*task);
            instances[t.instance.0 as usize] += used;
            work[t.instance.0 as usize] += worked;
            classes[t.spec.class.0] += used;
        }
        Usage {
            instances,
            work,
            classes,
            idle: (self.shell.idle_ns)(),
            stolen: (self.shell.stolen_ns)(),
        }
    }

    fn runs(&self) -> &[Ran] {
        &self.runs
    }

    fn kept(&mut self, contract: ContractId) -> Option<(Kept, Delivered)> {
        let mut kept = Kept::default();
        // SAFETY: the contract is known, and what it came to is laid out as in `kernel/sim.h`.
        unsafe { (self.shell.contract_kept)(self.contracts[contract.0], &raw mut kept) };
        Some((kept, Delivered::default()))
    }

    fn ejected(&self) -> Option<&str> {
        self.ejected.as_deref()
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at_s = (self.shell.now_ns)() as f64 / NS_PER_S as f64;
        write!(
            f,
            "{} CPUs, {} tasks at {at_s} s",
            self.cpus,
            self.alive.len()
        )
    }
}

/// The object that is in charge, and what it is told.
fn begins_with(hardware: &Hardware, in_charge: InCharge, trace: bool) -> (Object, raw::Options) {
    let options = raw::Options {
        cpus: hardware.cpus as u32,
        load: 1,
        shared_budget: u32::from(hardware.shared_budget),
        trace: u32::from(trace),
        tick_ns: hardware.tick_ns,
        threads_of_core: hardware.topology.threads_of_core,
        cpus_of_cache: hardware.topology.cpus_of_cache,
        cpus_of_node: hardware.topology.cpus_of_node,
        ..raw::Options::default()
    };
    match in_charge {
        InCharge::Andante(settings) => {
            let domain_cpus = hardware.domains_of();
            let options = raw::Options {
                quantum_ns: settings.quantum_ns,
                in_class_wake_ns: settings.in_class_wake_ns,
                contract_bound: settings.contract_bound,
                learn_bound: settings.learn_bound,
                bindings: u32::from(settings.bindings),
                events: settings
                    .events
                    .map_or(0, |on| 1 + u32::from(on.task_server)),
                event_options: settings.events.map_or(0, |on| on.left_out),
                domain_cpus: domain_cpus.unwrap_or(0),
                ..options
            };
            match domain_cpus {
                Some(_) => (Object::Domains, options),
                None => (Object::Tree, options),
            }
        }
        InCharge::Historical {
            policy,
            nice_is_real_time,
        } => (
            Object::Historical,
            raw::Options {
                policy_kind: policy as u32,
                nice_is_real_time: u32::from(nice_is_real_time),
                ..options
            },
        ),
        InCharge::Stock => (Object::Tree, raw::Options { load: 0, ..options }),
    }
}

/// Text that ends with a zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}
