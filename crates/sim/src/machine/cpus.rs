//! What CPUs do: accounting, ends of service, picks.

use super::*;

impl<S: Scheduler> Machine<S> {
    pub(super) fn ask_for_picks(&mut self, cpus: u64) {
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.must_pick |= cpus & (1 << number) != 0;
        }
    }

    pub(super) fn settle_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
        }
    }

    /// Accounts what the task on this CPU has run so far.
    pub(super) fn settle(&mut self, cpu: usize) {
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
        let class = t.class as usize;
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
    pub(super) fn comes_to_end(&mut self, cpu: usize) {
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

    pub(super) fn plan_end(&mut self, cpu: usize) {
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

    pub(super) fn pick(&mut self, cpu: usize) {
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
            let t = &mut self.tasks[slice.task.0 as usize];
            t.rule = slice.rule;
            if next != wanting {
                t.state = State::Running(cpu as u8);
                t.overhead_ns += self.costs.switch_ns;
                if t.last_cpu != cpu as u8 {
                    t.overhead_ns += self.costs.migration_ns;
                    t.last_cpu = cpu as u8;
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
