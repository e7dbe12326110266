//! What an experiment may do with a simulated machine, whatever schedules it.

use andante_core_sys::Kept;

use crate::channel::ChannelId;
use crate::program::{Program, Record};
use crate::scheduler::Delivered;
use crate::spec::{ContractId, InstanceId, Spec, TaskId};
use crate::trace::Ran;
use crate::{Interrupts, Ns, Usage};

/// A machine with programs on it: [`Machine`](crate::Machine), or [`Kernel`](crate::Kernel).
/// Instants in ns since it began.
pub trait Simulation {
    /// A pipe that holds so many bytes, `filled` of which are in it from the beginning.
    fn channel(&mut self, capacity: u32, filled: u32) -> ChannelId;
    /// Something to measure, so far without tasks.
    fn instance(&mut self) -> InstanceId;
    /// A task of `instance` that begins at `at_ns`.
    fn start(&mut self, at_ns: Ns, instance: InstanceId, spec: Spec, program: Box<dyn Program>);
    /// The instance's tasks do not run from `at_ns` on (SIGSTOP).
    fn suspend(&mut self, at_ns: Ns, instance: InstanceId);
    /// They may again (SIGCONT).
    fn resume(&mut self, at_ns: Ns, instance: InstanceId);
    /// They end (SIGKILL).
    fn kill(&mut self, at_ns: Ns, instance: InstanceId);
    /// Adds a source of interrupts; the first comes after one gap.
    fn interrupt(&mut self, interrupts: Interrupts);
    /// At each of these instants, which never go back, the first task of `sink` has an event.
    fn raise(&mut self, sink: InstanceId, instants: Box<dyn Iterator<Item = Ns> + Send>);
    /// Lets time pass until `end_ns`, everything at that instant included.
    fn run_until(&mut self, end_ns: Ns);
    /// What an instance has done.
    fn record(&self, instance: InstanceId) -> &Record;
    /// Priority among all of the instance's first task that has not ended; 0 if there is none, or
    /// the scheduler knows no levels.
    fn level(&self, instance: InstanceId) -> u32;
    /// Which instance a task belongs to.
    fn instance_of(&self, task: TaskId) -> InstanceId;
    /// What has been used so far.
    fn usage(&self) -> Usage;
    /// Who ran when, in the stretch of time that is kept.
    fn runs(&self) -> &[Ran];
    /// What became of a contract so far, and of its events, where there are contracts.
    fn kept(&mut self, _contract: ContractId) -> Option<(Kept, Delivered)> {
        None
    }
    /// Why the scheduler was let go, if it was.
    fn ejected(&self) -> Option<&str> {
        None
    }
}

impl<S: crate::Scheduler> Simulation for crate::Machine<S> {
    fn channel(&mut self, capacity: u32, filled: u32) -> ChannelId {
        self.filled_channel(capacity, filled)
    }
    fn instance(&mut self) -> InstanceId {
        self.instance()
    }
    fn start(&mut self, at_ns: Ns, instance: InstanceId, spec: Spec, program: Box<dyn Program>) {
        self.start_boxed(at_ns, instance, spec, program);
    }
    fn suspend(&mut self, at_ns: Ns, instance: InstanceId) {
        self.suspend(at_ns, instance);
    }
    fn resume(&mut self, at_ns: Ns, instance: InstanceId) {
        self.resume(at_ns, instance);
    }
    fn kill(&mut self, at_ns: Ns, instance: InstanceId) {
        self.kill(at_ns, instance);
    }
    fn interrupt(&mut self, interrupts: Interrupts) {
        self.interrupt(interrupts);
    }
    fn raise(&mut self, sink: InstanceId, instants: Box<dyn Iterator<Item = Ns> + Send>) {
        self.raise(sink, instants);
    }
    fn run_until(&mut self, end_ns: Ns) {
        self.run_until(end_ns);
    }
    fn record(&self, instance: InstanceId) -> &Record {
        self.record(instance)
    }
    fn level(&self, instance: InstanceId) -> u32 {
        self.level(instance)
    }
    fn instance_of(&self, task: TaskId) -> InstanceId {
        self.instance_of(task)
    }
    fn usage(&self) -> Usage {
        self.usage()
    }
    fn runs(&self) -> &[Ran] {
        self.trace().runs()
    }
    fn kept(&mut self, contract: ContractId) -> Option<(Kept, Delivered)> {
        let scheduler = self.scheduler_mut();
        Some((scheduler.kept(contract)?, scheduler.delivered(contract)?))
    }
}
