//! What tasks do: the steps of their programs, in the context of the CPU that the model names.

use super::*;
use crate::program::{Cycle, Step, World};

impl Kernel {
    /// A new task, forked by the one that runs here, or by the laboratory.
    pub(super) fn begin(&mut self, new: NewTask) {
        let parent = new.parent.map(|parent| parent.0);
        let how = raw::Task {
            cgroup: self.classes[new.spec.class.0],
            nice: new.spec.nice,
            real_time: new.spec.fifo,
            flags: 0,
            affinity: [new.spec.affinity, 0, 0, 0],
            process_of: parent.filter(|_| new.thread).unwrap_or(u32::MAX),
            pad: 0,
        };
        // SAFETY: `how` lives during the call.
        let task = unsafe { (self.shell.fork)(&raw const how) };
        assert_eq!(task as usize, self.tasks.len(), "tasks come in order");
        self.tasks.push(Task {
            program: Some(new.program),
            wait: Wait::Nothing,
            instance: new.instance,
            spec: new.spec,
            parent,
            children_ended: 0,
            works_until_ns: 0,
        });
        self.alive.push(task);
        if let Some(contract) = self.tasks[task as usize].spec.contract {
            let refused = (self.shell.contract_bind)(task, self.contracts[contract.0]);
            assert_eq!(refused, 0, "its contract has not ended before it began");
        }
        (self.shell.wake_new)(task);
    }

    pub(super) fn timer(&mut self, task: u32, number: u32) {
        if self.tasks[task as usize].wait == Wait::Timer(number) {
            self.wake(task, false);
        }
    }

    fn wake(&mut self, task: u32, sync: bool) {
        self.tasks[task as usize].wait = Wait::Nothing;
        (self.shell.wake)(task, u32::from(sync));
    }

    /// The task that runs has done its step, or is to end: its program says what comes next.
    pub(super) fn steps(&mut self, task: u32, killed: bool) {
        if killed {
            if let Wait::Channel(channel) = self.tasks[task as usize].wait {
                self.channels[channel.0 as usize].forget(TaskId(task));
            }
            return self.exit(task);
        }
        if self.works_by_clock(task) {
            return;
        }
        let mut program = self.tasks[task as usize]
            .program
            .take()
            .expect("it has not ended");
        let mut forked = Vec::new();
        for steps in 0.. {
            assert!(
                steps < MAX_IDLE_STEPS,
                "a program takes steps without end and without work"
            );
            let t = &self.tasks[task as usize];
            let mut world = World {
                now_ns: (self.shell.now_ns)(),
                task: TaskId(task),
                records: &mut self.records,
                parent: TaskId(task),
                instance: t.instance,
                spec: &t.spec,
                forked: &mut forked,
            };
            let step = program.step(&mut world);
            for new in forked.drain(..) {
                if !new.paid {
                    self.spend(self.calls.fork);
                }
                self.begin(new);
            }
            if self.take(task, step) {
                break;
            }
        }
        self.tasks[task as usize].program = Some(program);
    }

    fn spend(&self, ns: Ns) {
        (self.shell.spend)(ns);
    }

    /// Programs ask servers, and are answered, through sockets; all else are pipes.
    fn send_ns(&self, channel: ChannelId) -> Ns {
        match self.bells[channel.0 as usize] || self.connections[channel.0 as usize].is_some() {
            true => self.calls.socket.send,
            false => self.calls.pipe.send,
        }
    }

    fn receive_ns(&self, channel: ChannelId) -> Ns {
        match self.connections[channel.0 as usize] {
            _ if self.bells[channel.0 as usize] => self.calls.serve,
            Some(_) => self.calls.socket.receive,
            None => self.calls.pipe.receive,
        }
    }

    fn work(&self, task: u32, ns: Ns) {
        (self.shell.work)(task, ns);
    }

    /// As the laboratory's programs do (`work::compute_for`): an eighth of what is left at a time, at full
    /// speed, then a look at the clock. True: there is more to do.
    fn works_by_clock(&mut self, task: u32) -> bool {
        let until_ns = self.tasks[task as usize].works_until_ns;
        if until_ns == 0 {
            return false;
        }
        let (used_ns, _) = self.used(task);
        if until_ns <= used_ns {
            self.tasks[task as usize].works_until_ns = 0;
            return false;
        }
        self.work(task, ((until_ns - used_ns) / 8).max(CLOCK_LOOK_NS));
        true
    }

    fn block(&mut self, task: u32, wait: Wait) -> bool {
        self.tasks[task as usize].wait = wait;
        (self.shell.block)(task);
        true
    }

    /// True: the step takes time.
    fn take(&mut self, task: u32, step: Step) -> bool {
        match step {
            Step::Compute(0) => false,
            Step::Compute(ns) => {
                self.work(task, ns);
                true
            }
            Step::ComputeByClock(ns) => {
                let (used_ns, _) = self.used(task);
                self.tasks[task as usize].works_until_ns = used_ns + ns;
                self.works_by_clock(task)
            }
            Step::ComputeForever => {
                self.work(task, Ns::MAX);
                true
            }
            Step::SleepUntil(at_ns) => {
                self.spend(self.calls.sleep);
                if at_ns <= (self.shell.now_ns)() {
                    return false;
                }
                self.timers = self.timers.wrapping_add(1);
                let at_ns = at_ns.next_multiple_of(self.timer_resolution_ns);
                let token = u64::from(task) << 32 | u64::from(self.timers);
                (self.shell.timer)(at_ns, token);
                self.block(task, Wait::Timer(self.timers))
            }
            Step::Ask { bell, answers } => {
                self.bells[bell.0 as usize] = true;
                if let Some(end) = self.connection(task, bell, answers) {
                    (self.shell.data_ready)(end);
                }
                self.take(task, Step::Send(bell, 1))
            }
            Step::Take { answers } => {
                if let Some(end) = self.connections[answers.0 as usize] {
                    (self.shell.received)(end);
                }
                false
            }
            Step::Send(channel, bytes) => {
                self.spend(self.send_ns(channel));
                if let Some(end) = self.connections[channel.0 as usize] {
                    (self.shell.data_ready)(end + 1);
                }
                if self.channels[channel.0 as usize].send(TaskId(task), bytes) {
                    self.serve(channel);
                    return false;
                }
                self.block(task, Wait::Channel(channel))
            }
            Step::Receive(channel, bytes) => {
                self.spend(self.receive_ns(channel));
                self.readers[channel.0 as usize] = Some(task);
                if self.channels[channel.0 as usize].receive(TaskId(task), bytes) {
                    self.serve(channel);
                    return false;
                }
                self.block(task, Wait::Channel(channel))
            }
            Step::WaitForChild => {
                self.spend(self.calls.wait);
                let t = &mut self.tasks[task as usize];
                if t.children_ended > 0 {
                    t.children_ended -= 1;
                    return false;
                }
                self.block(task, Wait::Child)
            }
            Step::WaitForExec => self.block(task, Wait::Exec),
            Step::Exec => {
                self.executes(task);
                false
            }
            Step::Declare(cycle) => {
                // Whoever has no sessions refuses, and the program goes on without.
                let Cycle {
                    period_ns,
                    deadline_ns,
                    budget_ns,
                } = cycle;
                (self.shell.declare)(task, period_ns, deadline_ns, budget_ns);
                false
            }
            Step::Begin(due_ns) => {
                // Of a cycle that is late already only that it begins.
                let late = due_ns <= (self.shell.now_ns)();
                (self.shell.cycle)(task, if late { 0 } else { due_ns });
                false
            }
            Step::RaiseAt(at_ns) => {
                (self.shell.raise)(task, 0, at_ns);
                false
            }
            Step::Exit => {
                self.exit(task);
                true
            }
        }
    }

    /// The accepted end of the task's connection to the server that reads `bell`; none while nobody
    /// has read it.
    fn connection(&mut self, task: u32, bell: ChannelId, answers: ChannelId) -> Option<u32> {
        let server = self.readers[bell.0 as usize]?;
        let connection = &mut self.connections[answers.0 as usize];
        if connection.is_none() {
            *connection = Some((self.shell.socket)(server, task));
        }
        *connection
    }

    fn serve(&mut self, channel: ChannelId) {
        while let Some(task) = self.channels[channel.0 as usize].next_served() {
            self.wake(task.0, true);
        }
    }

    /// mm_release() wakes the parent from within execve, as the scheduler can tell.
    fn executes(&mut self, task: u32) {
        let parent = self.tasks[task as usize].parent;
        let waits = |parent: &u32| self.tasks[*parent as usize].wait == Wait::Exec;
        if let Some(parent) = parent.filter(waits) {
            (self.shell.executes)(task, 1);
            self.wake(parent, false);
            (self.shell.executes)(task, 0);
        }
    }

    fn exit(&mut self, task: u32) {
        self.spend(self.calls.exit);
        (self.shell.exiting)(task);
        if let Some(parent) = self.tasks[task as usize].parent {
            let p = &mut self.tasks[parent as usize];
            match p.wait {
                Wait::Child => self.wake(parent, true),
                _ => p.children_ended += 1,
            }
        }
        let t = &mut self.tasks[task as usize];
        t.wait = Wait::Dead;
        t.program = None;
        (self.shell.exit)(task);
    }
}
