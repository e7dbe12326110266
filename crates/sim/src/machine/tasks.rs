//! What tasks do: waking, and the steps of their programs.

use super::*;

impl<S: Scheduler> Machine<S> {
    pub(super) fn wake(&mut self, task: TaskId) {
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
    pub(super) fn find_cpu(&mut self, task: TaskId, woken: bool) {
        let t = &self.tasks[task.0 as usize];
        let count = self.cpus.len();
        let nearby = (0..count).map(|step| (t.last_cpu as usize + step) % count);
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
            if self.scheduler.preempts(self.now_ns, task, cpu, serving) {
                self.cpus[cpu].must_pick = true;
                return;
            }
        }
    }

    /// Asks the task's program for steps until one needs time.
    pub(super) fn advance(&mut self, task: TaskId) -> After {
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
            let mut world = World {
                now_ns: self.now_ns,
                task,
                records: &mut self.records,
                parent: task,
                instance: self.tasks[task.0 as usize].instance,
                spec: &self.lives[task.0 as usize].spec,
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
    pub(super) fn take_step(&mut self, task: TaskId, step: Step) -> Option<After> {
        let now_ns = self.now_ns;
        let t = &mut self.tasks[task.0 as usize];
        match step {
            Step::Compute(0) | Step::ComputeByClock(0) => return None,
            // Its CPUs are equally fast at all times.
            Step::Compute(work_ns) | Step::ComputeByClock(work_ns) => {
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
                        let pick = self.scheduler.next_job(now_ns, cpu as usize, task, at_ns);
                        self.cpus[cpu as usize].must_pick |= pick;
                    }
                    return None;
                }
                t.worked = false;
                self.timers = self.timers.wrapping_add(1);
                let number = self.timers;
                t.wait = Wait::Timer(number);
                self.at(at_ns, Event::Timer { task, number });
            }
            // Executing takes no time here, and the parent waits for the child's end afterwards.
            Step::Take { .. } | Step::WaitForExec | Step::Exec => return None,
            // Its scheduler has no sessions.
            Step::Declare(_) | Step::Begin(_) | Step::RaiseAt(_) => return None,
            Step::Ask { bell, .. } => return self.take_step(task, Step::Send(bell, 1)),
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
                let life = &mut self.lives[task.0 as usize];
                if life.children_ended > 0 {
                    life.children_ended -= 1;
                    return None;
                }
                t.wait = Wait::Child;
            }
            Step::Exit => {
                if let Some(parent) = self.lives[task.0 as usize].parent {
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

    pub(super) fn serve(&mut self, channel: ChannelId) {
        while let Some(task) = self.channels[channel.0 as usize].next_served() {
            self.wake(task);
        }
    }

    pub(super) fn child_ends(&mut self, parent: TaskId) {
        if self.tasks[parent.0 as usize].wait == Wait::Child {
            self.wake(parent);
        } else {
            self.lives[parent.0 as usize].children_ended += 1;
        }
    }
}
