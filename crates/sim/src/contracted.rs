//! Contracts before shares: on every CPU those that hold budget, by deadline; behind them the
//! scheduler that shares what is left; behind that, exhausted contracts that may use idle time.
//!
//! A task under a contract belongs to it alone: without budget it waits, unless its contract falls
//! back, when it competes as a task of its class until the budget comes. Events ([ECalls]) are
//! looked at after every pick.

use std::collections::VecDeque;

use andante_core_sys::{Contract, Contracts, Events, Kept, Piece, Promise, Rule};

use crate::Ns;
use crate::scheduler::{Delivered, Scheduler, Slice};
use crate::spec::{ContractId, Spec, TaskId};

/// How a task's contract is to be treated beyond what it promises.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// What is promised.
    pub promise: Promise,
    /// Its pieces, if it is split over several CPUs.
    pub pieces: Vec<Piece>,
    /// Whether its waking is an event, with itself as the sink.
    pub events: bool,
}

struct Held {
    contract: Contract,
    events: bool,
    delivered: Delivered,
    /// Tasks that want to run and do not, in order of arrival.
    queue: VecDeque<TaskId>,
    serving: Option<TaskId>,
}

/// Who has a CPU, if not the inner scheduler.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    /// The contract whose task runs.
    run: Option<usize>,
    /// The contract that pays; perhaps the task server, which is not held.
    charge: Option<Contract>,
}

/// What is to run on a CPU.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    /// The contract; none: best effort, in the task server's slot.
    run: Option<usize>,
    /// The contract that pays.
    charge: Option<Contract>,
    rule: Rule,
    /// For how long at most [ns].
    run_ns: Ns,
}

/// How events are coordinated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventOptions {
    /// Whether the event scheduler looks at every pick.
    pub coordinated: bool,
    /// A task server with this time base [ns], or none for 0.
    pub task_server_ns: Ns,
}

/// Contracts on every CPU of a machine, and a scheduler for what they leave.
pub struct Contracted<S> {
    inner: S,
    contracts: Contracts,
    events: Vec<Events>,
    options: EventOptions,
    held: Vec<Held>,
    /// Index in `held` by contract.
    by_contract: Vec<usize>,
    /// Of each task.
    tasks: Vec<Option<usize>>,
    cpus: Vec<Service>,
    /// When to look at each CPU's contracts and events again [ns].
    due_ns: Vec<Ns>,
    /// CPUs to pick again, and when: a split contract's task has left another CPU for them.
    kick: u64,
    kick_ns: Ns,
}

impl<S: Scheduler> Contracted<S> {
    /// No contracts yet. `options` are those of [`Contracts`].
    pub fn new(cpus: usize, inner: S, options: u32, events: EventOptions) -> Self {
        Self {
            inner,
            contracts: Contracts::new(options),
            events: (0..cpus).map(Events::new).collect(),
            options: events,
            held: Vec::new(),
            by_contract: Vec::new(),
            tasks: Vec::new(),
            cpus: vec![Service::default(); cpus],
            due_ns: vec![Ns::MAX; cpus],
            kick: 0,
            kick_ns: Ns::MAX,
        }
    }

    /// A contract for tasks to come; none if it may not be promised or there is no room. Whether
    /// it can be kept is for admission to say, not asked here.
    pub fn create(&mut self, terms: &Terms) -> Option<ContractId> {
        let contract = self.contracts.create(&terms.promise)?;
        if !terms.pieces.is_empty() && !self.contracts.split(contract, &terms.pieces) {
            self.contracts.remove(contract);
            return None;
        }
        let index = contract as usize;
        self.by_contract
            .resize(self.by_contract.len().max(index + 1), usize::MAX);
        self.by_contract[index] = self.held.len();
        self.held.push(Held {
            contract,
            events: terms.events,
            delivered: Delivered::default(),
            queue: VecDeque::new(),
            serving: None,
        });
        Some(ContractId(self.held.len() - 1))
    }

    /// Gives every CPU its task server, as the contracts now are.
    pub fn start_task_servers(&mut self, now_ns: Ns) {
        if self.options.task_server_ns == 0 {
            return;
        }
        for cpu in 0..self.events.len() {
            self.events[cpu].update_task_server(
                &mut self.contracts,
                self.options.task_server_ns,
                now_ns,
            );
            self.look_again(now_ns, cpu);
        }
    }

    /// The scheduler of what contracts leave.
    pub fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    fn cpu_of(&mut self, held: usize) -> usize {
        self.contracts.cpu(self.held[held].contract) as usize % self.cpus.len()
    }

    /// Notes when something is due on a CPU. An event that is due already has been looked at, and
    /// is again at every pick.
    fn look_again(&mut self, now_ns: Ns, cpu: usize) {
        let mut due_ns = self.contracts.due(cpu as u32);
        if self.options.coordinated {
            let event_ns = self.events[cpu].due();
            if event_ns > now_ns {
                due_ns = due_ns.min(event_ns);
            }
        }
        self.due_ns[cpu] = due_ns;
    }

    /// A task of the contract begins to want to run.
    fn arrive(&mut self, now_ns: Ns, task: TaskId, held: usize) {
        let first = self.held[held].queue.is_empty() && self.held[held].serving.is_none();
        self.held[held].queue.push_back(task);
        if !first {
            return;
        }
        let contract = self.held[held].contract;
        self.contracts.wake(contract, now_ns);
        let cpu = self.cpu_of(held);
        if self.held[held].events {
            self.raise_for(now_ns, held);
        }
        self.look_again(now_ns, cpu);
    }

    /// The contract is the sink of an event, now.
    fn raise_for(&mut self, now_ns: Ns, held: usize) {
        let (contract, cpu) = (self.held[held].contract, self.cpu_of(held));
        self.held[held].delivered.raised += 1;
        if !self.options.coordinated {
            return;
        }
        let events = &mut self.events[cpu];
        events.raise(&mut self.contracts, contract, now_ns);
        if self.options.task_server_ns > 0 {
            events.update_task_server(&mut self.contracts, self.options.task_server_ns, now_ns);
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
    fn depart(&mut self, now_ns: Ns, held: usize) {
        let (contract, cpu) = (self.held[held].contract, self.cpu_of(held));
        if self.held[held].queue.is_empty() && self.held[held].serving.is_none() {
            self.contracts.sleep(contract, now_ns);
        }
        self.look_again(now_ns, cpu);
    }

    /// What to run on a CPU; none: what contracts leave.
    fn choose(&mut self, now_ns: Ns, cpu: usize, background: bool) -> Option<Chosen> {
        let picked = self.contracts.pick(cpu, now_ns, background);
        let selected = picked.map(|(contract, _)| contract);
        let held = |this: &Self, contract: Contract| {
            this.by_contract
                .get(contract as usize)
                .copied()
                .filter(|held| *held != usize::MAX)
        };
        if self.options.coordinated && !background {
            let decision = self.events[cpu].coordinate(&mut self.contracts, selected, now_ns);
            if decision.rule != 0 {
                if self.options.task_server_ns > 0 {
                    self.events[cpu].update_task_server(
                        &mut self.contracts,
                        self.options.task_server_ns,
                        now_ns,
                    );
                }
                let run = held(self, decision.run);
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
            run: Some(held(self, contract)?),
            charge: Some(contract),
            rule,
            run_ns: self.contracts.run_ns(contract, now_ns),
        })
    }

    /// The task of a contract leaves the CPU and goes on wanting to run; perhaps on another CPU,
    /// where its next piece is, and which may have looked for it already.
    fn put_back(&mut self, now_ns: Ns, cpu: usize, task: TaskId, held: usize) {
        self.held[held].serving = None;
        self.held[held].queue.push_front(task);
        let home = self.cpu_of(held);
        if home != cpu {
            self.kick |= 1 << home;
            self.kick_ns = now_ns;
        }
    }

    /// Whether the contract's only task is still on the CPU of the piece before, which is to pick in
    /// this instant too.
    fn is_elsewhere(&self, run: Option<usize>) -> bool {
        run.is_some_and(|run| self.held[run].queue.is_empty())
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
                self.inner.displace(now_ns, cpu, shared);
                let task = self.held[run].queue.pop_front();
                let task = task.expect("a contract that is runnable has a task");
                self.held[run].serving = Some(task);
                Some(Slice {
                    task,
                    until_ns: end_ns,
                    rule: chosen.rule,
                })
            }
            None => self.inner.pick(now_ns, cpu, shared).map(|slice| Slice {
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

impl<S: Scheduler> Scheduler for Contracted<S> {
    fn add(&mut self, task: TaskId, spec: &Spec) {
        self.inner.add(task, spec);
        self.tasks.push(spec.contract.map(|id| id.0));
    }

    fn fork(&mut self, parent: TaskId, child: TaskId) {
        // Its class's policy knows nothing of what one under a contract has done.
        if self.tasks[parent.0 as usize].is_none() {
            self.inner.fork(parent, child);
        }
    }

    fn wake(&mut self, now_ns: Ns, task: TaskId) {
        match self.tasks[task.0 as usize] {
            Some(held) => self.arrive(now_ns, task, held),
            None => self.inner.wake(now_ns, task),
        }
    }

    fn withdraw(&mut self, now_ns: Ns, task: TaskId) {
        match self.tasks[task.0 as usize] {
            Some(held) => {
                self.held[held].queue.retain(|queued| *queued != task);
                self.depart(now_ns, held);
            }
            None => self.inner.withdraw(now_ns, task),
        }
    }

    fn used(&mut self, now_ns: Ns, cpu: usize, task: TaskId, ran_ns: Ns) {
        let service = self.cpus[cpu];
        if let Some(payer) = service.charge {
            self.contracts.charge(payer, ran_ns, now_ns);
        }
        match self.tasks[task.0 as usize] {
            None => self.inner.used(now_ns, cpu, task, ran_ns),
            Some(held) => {
                let contract = self.held[held].contract;
                if service.charge != Some(contract) {
                    self.contracts.charge_extra(contract, ran_ns);
                }
            }
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
            None => self.inner.block(now_ns, cpu, task),
        }
    }

    fn next_job(&mut self, now_ns: Ns, _cpu: usize, task: TaskId, released_ns: Ns) -> bool {
        let Some(held) = self.tasks[task.0 as usize] else {
            return false;
        };
        let contract = self.held[held].contract;
        self.contracts.next_job(contract, released_ns, now_ns);
        let cpu = self.cpu_of(held);
        self.look_again(now_ns, cpu);
        true
    }

    fn remove(&mut self, task: TaskId) {
        self.inner.remove(task);
    }

    fn home(&mut self, task: TaskId) -> Option<usize> {
        let held = self.tasks[task.0 as usize]?;
        Some(self.cpu_of(held))
    }

    fn preempts(&mut self, now_ns: Ns, queued: TaskId, cpu: usize, serving: TaskId) -> Option<Ns> {
        let running = self.cpus[cpu].run;
        let Some(held) = self.tasks[queued.0 as usize] else {
            return match running {
                Some(_) => None,
                None => self.inner.preempts(now_ns, queued, cpu, serving),
            };
        };
        if self.options.coordinated && self.held[held].events {
            // The event scheduler may prefer it to whatever runs.
            return Some(now_ns);
        }
        let running = running.map(|run| self.held[run].contract);
        let preempts = self.contracts.preempts(self.held[held].contract, running);
        preempts.then_some(now_ns)
    }

    fn pick(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) -> Option<Slice> {
        // A contract's task that wants to go on competes with the others again.
        let mut shared = wanting;
        if let Some(task) = wanting
            && let Some(held) = self.tasks[task.0 as usize]
        {
            self.put_back(now_ns, cpu, task, held);
            shared = None;
        }
        self.cpus[cpu] = Service::default();
        while let Some(chosen) = self.choose(now_ns, cpu, false) {
            if self.is_elsewhere(chosen.run) {
                break;
            }
            if let Some(slice) = self.serve(now_ns, cpu, chosen, shared) {
                return Some(slice);
            }
        }
        self.look_again(now_ns, cpu);
        if let Some(slice) = self.inner.pick(now_ns, cpu, shared) {
            return Some(slice);
        }
        let chosen = self
            .choose(now_ns, cpu, true)
            .filter(|chosen| !self.is_elsewhere(chosen.run))?;
        self.serve(now_ns, cpu, chosen, None)
    }

    fn displace(&mut self, now_ns: Ns, cpu: usize, wanting: Option<TaskId>) {
        self.inner.displace(now_ns, cpu, wanting);
    }

    fn level(&self, task: TaskId) -> u32 {
        self.inner.level(task)
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

    fn tick_ns(&self) -> Ns {
        self.inner.tick_ns()
    }

    fn tick(&mut self, now_ns: Ns, cpu: usize, serving: TaskId) -> bool {
        self.cpus[cpu].run.is_none() && self.inner.tick(now_ns, cpu, serving)
    }

    fn age_ns(&self) -> Ns {
        self.inner.age_ns()
    }

    fn age(&mut self, now_ns: Ns) -> bool {
        self.inner.age(now_ns)
    }

    fn next_timer_ns(&self) -> Option<Ns> {
        let due_ns = self.due_ns.iter().copied().min().unwrap_or(Ns::MAX);
        let inner_ns = self.inner.next_timer_ns().unwrap_or(Ns::MAX);
        Some(due_ns.min(inner_ns).min(self.kick_ns)).filter(|at_ns| *at_ns != Ns::MAX)
    }

    fn timer(&mut self, now_ns: Ns) -> u64 {
        let mut kick = std::mem::take(&mut self.kick);
        self.kick_ns = Ns::MAX;
        for cpu in 0..self.cpus.len() {
            if self.due_ns[cpu] > now_ns {
                continue;
            }
            while self.contracts.expire(cpu, now_ns, &mut kick) <= now_ns {}
            kick |= 1 << cpu;
        }
        for cpu in 0..self.cpus.len() {
            self.look_again(now_ns, cpu);
        }
        if self
            .inner
            .next_timer_ns()
            .is_some_and(|at_ns| at_ns <= now_ns)
        {
            kick |= self.inner.timer(now_ns);
        }
        kick
    }
}
