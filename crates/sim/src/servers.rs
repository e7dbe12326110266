//! Contracts as published: each is a server on its CPU that alone serves its tasks. Those that hold budget
//! come first, by deadline or window; behind them one queue for all others; behind that exhausted
//! contracts that may use idle time. Events ([ECalls]) are looked at after every pick.
//!
//! The scheduler that users run is another one: there a task whose contract has no budget left competes
//! by its class's share, and who runs for an event pays for it. A [`Kernel`](crate::Kernel) has it.

use std::collections::VecDeque;

use andante_core_sys::{Contract, Contracts, Kept, PolicyKind, Promise, Rule};

use crate::Ns;
use crate::one_class::OneClass;
use crate::scheduler::{Delivered, Scheduler, Slice};
use crate::spec::{ContractId, Spec, TaskId};

struct Held {
    contract: Contract,
    /// Whether its waking is an event, with itself as the sink.
    events: bool,
    delivered: Delivered,
    /// Tasks that want to run and do not, in order of arrival.
    queue: VecDeque<TaskId>,
    serving: Option<TaskId>,
}

/// The contract that has the CPU; none: one of the queue.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    /// The contract whose task runs.
    run: Option<usize>,
    /// The contract that is charged; perhaps the task server, which is not held.
    charge: Option<Contract>,
}

/// The choice of a pick.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    /// The contract; none: best effort, in the task server's slot.
    run: Option<usize>,
    /// The contract that is charged.
    charge: Option<Contract>,
    rule: Rule,
    /// For how long at most [ns].
    run_ns: Ns,
}

/// How contracts are ordered and events coordinated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerOptions {
    /// Of [`Contracts`].
    pub contracts: u32,
    /// Whether the event scheduler looks at every pick.
    pub coordinated: bool,
    /// A task server with this time base [ns], or none for 0.
    pub task_server_ns: Ns,
}

/// Events that wait for a CPU at most; more are lost.
const QUEUE: usize = 255;

/// Contracts on every CPU of a machine, and one queue for what they leave.
pub struct Servers {
    others: OneClass,
    contracts: Contracts,
    /// Events of each CPU, in the order they were raised. The first alone is looked at: so the core is told
    /// of no other, and they wait behind one whose sink sleeps.
    events: Vec<VecDeque<Contract>>,
    options: ServerOptions,
    held: Vec<Held>,
    /// Of each task.
    tasks: Vec<Option<usize>>,
    cpus: Vec<Service>,
    /// When to look at each CPU's contracts and events again [ns].
    due_ns: Vec<Ns>,
}

impl Servers {
    /// No contracts yet. Those without one take turns of `quantum_ns`.
    pub fn new(cpus: usize, quantum_ns: Ns, options: ServerOptions) -> Self {
        Self {
            others: OneClass::new(cpus, PolicyKind::Sfq, quantum_ns, 0),
            contracts: Contracts::new(options.contracts | Contracts::EVENT_AS_PUBLISHED),
            events: vec![VecDeque::new(); cpus],
            options,
            held: Vec::new(),
            tasks: Vec::new(),
            cpus: vec![Service::default(); cpus],
            due_ns: vec![Ns::MAX; cpus],
        }
    }

    /// A contract for tasks to come, its waking an event if `events`; none if it may not be promised or
    /// there is no room. Whether it can be kept is for admission to say, not asked here.
    pub fn create(&mut self, promise: &Promise, events: bool) -> Option<ContractId> {
        let contract = self.contracts.create(promise)?;
        self.held.push(Held {
            contract,
            events,
            delivered: Delivered::default(),
            queue: VecDeque::new(),
            serving: None,
        });
        Some(ContractId(self.held.len() - 1))
    }

    /// Gives every CPU its task server, as the contracts now are.
    pub fn start_task_servers(&mut self, now_ns: Ns) {
        for cpu in 0..self.cpus.len() {
            self.update_task_server(now_ns, cpu);
            self.look_again(now_ns, cpu);
        }
    }

    fn update_task_server(&mut self, now_ns: Ns, cpu: usize) {
        let base_ns = self.options.task_server_ns;
        if base_ns > 0 {
            self.contracts
                .update_task_server(cpu as u32, base_ns, now_ns);
        }
    }

    fn cpu_of(&mut self, index: usize) -> usize {
        self.contracts.cpu(self.held[index].contract) as usize % self.cpus.len()
    }

    /// Notes when something is due on a CPU. An event that is due already has been looked at, and is again at
    /// every pick.
    fn look_again(&mut self, now_ns: Ns, cpu: usize) {
        let mut due_ns = self.contracts.due(cpu as u32);
        if self.options.coordinated {
            let event_ns = self.contracts.events_due(cpu as u32);
            if event_ns > now_ns {
                due_ns = due_ns.min(event_ns);
            }
        }
        self.due_ns[cpu] = due_ns;
    }

    /// A task of the contract begins to want to run.
    fn arrive(&mut self, now_ns: Ns, task: TaskId, index: usize) {
        let held = &mut self.held[index];
        let first = held.queue.is_empty() && held.serving.is_none();
        held.queue.push_back(task);
        if !first {
            return;
        }
        let (contract, events) = (held.contract, held.events);
        self.contracts.wake(contract, now_ns);
        if events {
            self.raise_for(now_ns, index);
        }
        let cpu = self.cpu_of(index);
        self.look_again(now_ns, cpu);
    }

    /// The contract is the sink of an event, now.
    fn raise_for(&mut self, now_ns: Ns, index: usize) {
        let cpu = self.cpu_of(index);
        let held = &mut self.held[index];
        held.delivered.raised += 1;
        if self.options.coordinated {
            let queue = &mut self.events[cpu];
            if queue.len() < QUEUE {
                queue.push_back(held.contract);
            }
            if queue.len() == 1 {
                self.contracts.raise(held.contract, 0, now_ns, now_ns);
            }
            self.update_task_server(now_ns, cpu);
        }
    }

    /// The first event of a CPU was delivered: the next one is the first.
    fn next_event(&mut self, now_ns: Ns, cpu: usize) {
        self.events[cpu].pop_front();
        if let Some(first) = self.events[cpu].front() {
            self.contracts.raise(*first, 0, now_ns, now_ns);
        }
    }

    /// An event was delivered by `rule`, and `run` has the CPU for it.
    fn count_delivered(&mut self, run: Option<usize>, rule: Rule) {
        let number = rule.0.wrapping_sub(Rule::EVENT_1.0) as usize;
        if let Some(run) = run
            && let Some(count) = self.held[run].delivered.by_rule.get_mut(number)
        {
            *count += 1;
        }
    }

    /// A task of the contract wants to run no more.
    fn depart(&mut self, now_ns: Ns, index: usize) {
        let held = &self.held[index];
        if held.queue.is_empty() && held.serving.is_none() {
            self.contracts.sleep(held.contract, now_ns);
        }
        let cpu = self.cpu_of(index);
        self.look_again(now_ns, cpu);
    }

    fn held(&self, contract: Contract) -> Option<usize> {
        self.held.iter().position(|held| held.contract == contract)
    }

    /// What to run on a CPU; none: what contracts leave.
    fn choose(&mut self, now_ns: Ns, cpu: usize, background: bool) -> Option<Chosen> {
        let picked = self.contracts.pick(cpu, now_ns, background);
        if self.options.coordinated && !background {
            let selected = picked.map(|(contract, _)| contract);
            let decision = self.contracts.coordinate(cpu, selected, now_ns);
            if decision.delivered != 0 {
                self.next_event(now_ns, cpu);
            }
            if decision.rule != 0 {
                self.update_task_server(now_ns, cpu);
                let run = self.held(decision.run);
                self.count_delivered(run, Rule(decision.rule));
                return Some(Chosen {
                    run,
                    charge: (decision.charge != 0).then_some(decision.charge),
                    rule: Rule(decision.rule),
                    run_ns: decision.run_ns,
                });
            }
        }
        let (contract, rule) = picked?;
        Some(Chosen {
            run: Some(self.held(contract)?),
            charge: Some(contract),
            rule,
            run_ns: self.contracts.run_ns(contract, now_ns),
        })
    }

    /// The slice of what was chosen. None: it was the task server's slot, nobody can use it, and
    /// the server has forfeited it; choose again.
    fn serve(
        &mut self,
        now_ns: Ns,
        cpu: usize,
        chosen: Chosen,
        shared: Option<TaskId>,
    ) -> Option<Slice> {
        let end_ns = now_ns.saturating_add(chosen.run_ns.max(1));
        let slice = match chosen.run {
            Some(run) => {
                self.others.displace(now_ns, cpu, shared);
                let task = self.held[run].queue.pop_front();
                let task = task.expect("a contract that is runnable has a task");
                self.held[run].serving = Some(task);
                Some(Slice {
                    task,
                    until_ns: end_ns,
                    rule: chosen.rule,
                })
            }
            None => self.others.pick(now_ns, cpu, shared).map(|slice| Slice {
                until_ns: slice.until_ns.min(end_ns),
                rule: chosen.rule,
                ..slice
            }),
        };
        match slice {
            Some(_) => {
                let (run, charge) = (chosen.run, chosen.charge);
                self.cpus[cpu] = Service { run, charge };
            }
            None => {
                let server = chosen.charge.expect("its slots are charged to it");
                self.contracts.charge(server, chosen.run_ns, now_ns);
            }
        }
        self.look_again(now_ns, cpu);
        slice
    }
}

impl Scheduler for Servers {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        self.others.add(task, spec);
        self.tasks.push(spec.contract.map(|id| id.0));
    }

    fn fork(&mut self, parent: TaskId, child: TaskId) {
        // The queue's policy knows nothing of what one under a contract has done.
        if self.tasks[parent.0 as usize].is_none() {
            self.others.fork(parent, child);
        }
    }

    fn wake(&mut self, now_ns: Ns, task: TaskId) {
        match self.tasks[task.0 as usize] {
            Some(held) => self.arrive(now_ns, task, held),
            None => self.others.wake(now_ns, task),
        }
    }

    fn withdraw(&mut self, now_ns: Ns, task: TaskId) {
        match self.tasks[task.0 as usize] {
            Some(held) => {
                self.held[held].queue.retain(|queued| *queued != task);
                self.depart(now_ns, held);
            }
            None => self.others.withdraw(now_ns, task),
        }
    }

    fn used(&mut self, now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        let service = self.cpus[cpu];
        if let Some(payer) = service.charge {
            self.contracts.charge(payer, ran_ns, now_ns);
        }
        if self.tasks[task.0 as usize].is_none() {
            self.others.used(now_ns, cpu, task, ran_ns);
        }
        self.look_again(now_ns, cpu);
    }

    fn block(&mut self, now_ns: Ns, cpu: usize, task: TaskId) {
        match self.tasks[task.0 as usize] {
            Some(held) => {
                self.held[held].serving = None;
                self.cpus[cpu] = Service::default();
                self.depart(now_ns, held);
            }
            None => self.others.block(now_ns, cpu, task),
        }
    }

    fn next_job(&mut self, now_ns: Ns, cpu: usize, task: TaskId, released_ns: Ns) -> bool {
        let Some(held) = self.tasks[task.0 as usize] else {
            return false;
        };
        let contract = self.held[held].contract;
        self.contracts.next_job(contract, released_ns, now_ns);
        self.look_again(now_ns, cpu);
        true
    }

    fn remove(&mut self, task: TaskId) {
        self.others.remove(task);
    }

    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> bool {
        let running = self.cpus[cpu].run;
        let Some(held) = self.tasks[queued.0 as usize] else {
            return match running {
                Some(_) => false,
                None => self.others.preempts(now_ns, queued, cpu, serving),
            };
        };
        if self.options.coordinated && self.held[held].events {
            // The event scheduler may prefer it to whatever runs.
            return true;
        }
        let running = running.map(|run| self.held[run].contract);
        self.contracts.preempts(self.held[held].contract, running)
    }

    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        // A contract's task that wants to go on competes with the others again.
        let mut shared = wanting;
        if let Some(task) = wanting
            && let Some(held) = self.tasks[task.0 as usize]
        {
            self.held[held].serving = None;
            self.held[held].queue.push_front(task);
            shared = None;
        }
        self.cpus[cpu] = Service::default();
        while let Some(chosen) = self.choose(now_ns, cpu, false) {
            if let Some(slice) = self.serve(now_ns, cpu, chosen, shared) {
                return Some(slice);
            }
        }
        self.look_again(now_ns, cpu);
        if let Some(slice) = self.others.pick(now_ns, cpu, shared) {
            return Some(slice);
        }
        let chosen = self.choose(now_ns, cpu, true)?;
        self.serve(now_ns, cpu, chosen, None)
    }

    fn displace(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        self.others.displace(now_ns, cpu, wanting);
    }

    fn kept(&mut self, id: ContractId) -> Option<Kept> {
        let contract = self.held.get(id.0)?.contract;
        Some(self.contracts.kept(contract))
    }

    fn delivered(&self, id: ContractId) -> Option<Delivered> {
        Some(self.held.get(id.0)?.delivered)
    }

    fn raise(&mut self, now_ns: Ns, task: TaskId) -> u64 {
        let Some(held) = self.tasks[task.0 as usize] else {
            return 0;
        };
        self.raise_for(now_ns, held);
        let cpu = self.cpu_of(held);
        self.look_again(now_ns, cpu);
        u64::from(self.options.coordinated) << cpu
    }

    fn home(&mut self, task: TaskId) -> Option<usize> {
        let held = self.tasks[task.0 as usize]?;
        Some(self.cpu_of(held))
    }

    fn next_timer_ns(&self) -> Option<Ns> {
        let due_ns = self.due_ns.iter().copied().min();
        due_ns.filter(|at_ns| *at_ns != Ns::MAX)
    }

    fn timer(&mut self, now_ns: Ns) -> u64 {
        let mut kick = 0;
        for cpu in 0..self.cpus.len() {
            if self.due_ns[cpu] <= now_ns {
                while self.contracts.expire(cpu, now_ns, &mut kick) <= now_ns {}
                kick |= 1 << cpu;
            }
        }
        for cpu in 0..self.cpus.len() {
            self.look_again(now_ns, cpu);
        }
        kick
    }
}
