//! What happens at an instant: timers, beginnings and ends of tasks, signals, interrupts, ticks.

use super::*;

impl<S: Scheduler> Machine<S> {
    pub(super) fn at(&mut self, at_ns: Ns, event: Event) {
        self.events.put(at_ns.max(self.now_ns), event);
    }

    pub(super) fn next_ns(&self) -> Ns {
        let event_ns = self.events.next_ns().unwrap_or(NEVER);
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
    pub(super) fn happen(&mut self) {
        while let Some(event) = self.events.take_due(self.now_ns) {
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

    pub(super) fn handle(&mut self, event: Event) {
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
            Event::Raise { source } => self.take_event(source),
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

    pub(super) fn each_task(&mut self, instance: InstanceId, act: fn(&mut Self, TaskId)) {
        for index in 0..self.tasks.len() {
            if self.tasks[index].instance == instance {
                act(self, TaskId(index as u32));
            }
        }
    }

    pub(super) fn begin(&mut self, new: NewTask) {
        let task = TaskId(self.tasks.len() as u32);
        let last_cpu = match new.parent {
            Some(parent) => self.tasks[parent.0 as usize].last_cpu,
            None => (new.spec.affinity.trailing_zeros() as u8).min(self.cpus.len() as u8 - 1),
        };
        self.scheduler.add(task, &new.spec);
        if let Some(parent) = new.parent {
            self.scheduler.fork(parent, task);
        }
        self.tasks
            .push(Task::new(&new.spec, new.instance, last_cpu, new.program));
        self.lives.push(Life {
            spec: new.spec,
            parent: new.parent,
            children_ended: 0,
        });
        self.wake(task);
    }

    pub(super) fn suspend_task(&mut self, task: TaskId) {
        self.tasks[task.0 as usize].stopped = true;
        self.leave(task);
    }

    pub(super) fn resume_task(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.0 as usize];
        t.stopped = false;
        if t.state == State::Asleep && t.wait == Wait::Nothing {
            self.wake(task);
        }
    }

    pub(super) fn end_task(&mut self, task: TaskId) {
        self.leave(task);
        if let Wait::Channel(channel) = self.tasks[task.0 as usize].wait {
            self.channels[channel.0 as usize].forget(task);
        }
        if self.tasks[task.0 as usize].state != State::Dead {
            self.forget(task);
        }
    }

    pub(super) fn forget(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.0 as usize];
        t.state = State::Dead;
        t.wait = Wait::Nothing;
        t.program = None;
        self.scheduler.remove(task);
    }

    /// The task wants no CPU any more, whether it has one or waits for one.
    pub(super) fn leave(&mut self, task: TaskId) {
        match self.tasks[task.0 as usize].state {
            State::Running(cpu) => {
                self.settle(cpu as usize);
                self.free(cpu as usize, task);
            }
            State::Queued => self.scheduler.withdraw(self.now_ns, task),
            State::Asleep | State::Dead => return,
        }
        self.tasks[task.0 as usize].state = State::Asleep;
    }

    pub(super) fn free(&mut self, cpu: usize, task: TaskId) {
        self.scheduler.block(self.now_ns, cpu, task);
        let c = &mut self.cpus[cpu];
        c.current = None;
        c.end_ns = NEVER;
        c.must_pick = true;
    }

    pub(super) fn tick(&mut self) {
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

    pub(super) fn next_interrupt(&mut self, source: u32) {
        let (interrupts, random) = &mut self.interrupts[source as usize];
        let gap_ns = match interrupts.seed {
            Some(_) => random.exponential(interrupts.gap_ns as f64) as Ns,
            None => interrupts.gap_ns,
        };
        self.at(self.now_ns + gap_ns.max(1), Event::Interrupt { source });
    }

    pub(super) fn next_event(&mut self, source: u32) {
        if let Some(at_ns) = self.sources[source as usize].instants.next() {
            self.at(at_ns, Event::Raise { source });
        }
    }

    pub(super) fn take_event(&mut self, source: u32) {
        let sink = self.sources[source as usize].sink;
        let first = self.tasks.iter().position(|task| task.instance == sink);
        if let Some(index) = first
            && self.tasks[index].state != State::Dead
        {
            self.settle_all();
            let cpus = self.scheduler.raise(self.now_ns, TaskId(index as u32));
            self.ask_for_picks(cpus);
        }
        self.next_event(source);
    }

    pub(super) fn take_interrupt(&mut self, source: u32) {
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
}
