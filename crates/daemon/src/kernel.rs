// SPDX-License-Identifier: GPL-2.0
//! The scheduler in the kernel, as the books need it. A seam for tests, which stand in for it.

use std::os::fd::{BorrowedFd, OwnedFd};

use andante_sched::contracts::{
    CallError, ClassLeaf, Contract, ContractName, HeldBy, Piece, Promise,
};
use andante_sched::explained::Explained;
use andante_sched::session::{Calls, Declared, Source, ToldBy};
use andante_sched::{LeafPolicy, PolicyError, Scheduler, Seen, StateError};

/// Contracts in the kernel; see [`andante_sched::contracts`] for what each call does.
pub trait Kernel {
    /// Makes a contract.
    ///
    /// # Errors
    /// There is no room, or the class has one.
    fn create(
        &mut self,
        promise: &Promise,
        held_by: HeldBy,
        pieces: &[Piece],
    ) -> Result<ContractName, CallError>;

    /// Moves one that is not split to another CPU.
    ///
    /// # Errors
    /// It has ended.
    fn move_to(&mut self, name: ContractName, cpu: u32) -> Result<(), CallError>;

    /// Ends one.
    ///
    /// # Errors
    /// It has ended.
    fn remove(&mut self, name: ContractName) -> Result<(), CallError>;

    /// Charges what runs under one to another around it as well, or to none.
    ///
    /// # Errors
    /// It has ended.
    fn nest(&mut self, name: ContractName, around: Option<ContractName>) -> Result<(), CallError>;

    /// Lets a thread hold one.
    ///
    /// # Errors
    /// There is no such thread, it is the kernel's, or the contract has ended.
    fn bind(&mut self, tid: i32, name: ContractName) -> Result<(), CallError>;

    /// Lets a thread hold none.
    ///
    /// # Errors
    /// There is no such thread.
    fn unbind(&mut self, tid: i32) -> Result<(), CallError>;

    /// Says what a thread does in a session; none: it takes part in none.
    ///
    /// # Errors
    /// There is no such thread, or it is the kernel's.
    fn declare(&mut self, tid: i32, declared: Option<Declared>) -> Result<(), CallError>;

    /// Lets the scheduler read what a thread says in the page that is mapped there.
    ///
    /// # Errors
    /// There is no such thread, or the kernel cannot keep the page at hand.
    fn share_page(&mut self, tid: i32, page: *const u8) -> Result<(), CallError>;

    /// Hears fast calls from now on, or not any more; the ways in which programs may call.
    fn hear_calls(&mut self, on: bool) -> Calls;

    /// The program that general calls run; none can be passed on if this fails.
    fn call_program(&self) -> Option<OwnedFd>;

    /// Looks then, or at once if that is past, whether the thread that is called for as `sink` waits behind
    /// others, and has an event.
    ///
    /// # Errors
    /// Only such as should never be.
    fn look(&mut self, sink: u32, deliver_ns: u64) -> Result<(), CallError>;

    /// Tells the thread that is called for as `sink` of its events, at the word of that user; none: not any
    /// more. The ring, if that is the way.
    ///
    /// # Errors
    /// There is no room for a ring, or the kernel sends no signals for others.
    fn tell(
        &mut self,
        sink: u32,
        by: Option<ToldBy>,
        uid: u32,
    ) -> Result<Option<OwnedFd>, CallError>;

    /// Readable when [`Kernel::tell_late`] has something to do.
    fn late_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Sends the signals that the kernel could not send.
    fn tell_late(&mut self) {}

    /// Lets a thread have an event whenever so much has come to the socket; none: nobody has.
    ///
    /// # Errors
    /// It is no socket, or the kernel cannot tell.
    fn subscribe(
        &mut self,
        socket: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError>;

    /// Looks at no socket any more.
    fn hear_no_sources(&mut self);

    /// Frees what has ended.
    ///
    /// # Errors
    /// Only such as should never be.
    fn sweep(&mut self) -> Result<(), CallError>;

    /// Gives classes of their own to cgroups that have none for want of room, so many at most, if there is
    /// room now; how many have got one.
    fn own_classes(&mut self, most: usize) -> usize;

    /// Orders the tasks of the class of a cgroup by a policy of its own.
    ///
    /// # Errors
    /// It is no leaf, or no class.
    fn set_policy(&mut self, cgroup_id: u64, policy: LeafPolicy) -> Result<(), PolicyError>;

    /// The contracts that there are.
    fn contracts(&self) -> Vec<Contract>;

    /// Classes and counters.
    ///
    /// # Errors
    /// They cannot be read.
    fn seen(&self) -> Result<Seen, StateError>;

    /// What was learnt of the threads of a process, or of one thread; none: there is no such process.
    ///
    /// # Errors
    /// It cannot be read.
    fn explained(&self, pid: i32) -> Result<Option<Vec<Explained>>, StateError>;

    /// The rhythm in which a thread wakes by itself [ns]; none: there is none, or no such thread.
    fn rhythm_ns(&self, tid: i32) -> Option<u32>;

    /// The leaf of the class of a cgroup, if it has a class of its own.
    fn class_leaf(&self, cgroup_id: u64) -> Option<ClassLeaf>;
}

impl Kernel for Scheduler {
    fn create(
        &mut self,
        promise: &Promise,
        held_by: HeldBy,
        pieces: &[Piece],
    ) -> Result<ContractName, CallError> {
        self.contract_create(promise, held_by, pieces)
    }

    fn move_to(&mut self, name: ContractName, cpu: u32) -> Result<(), CallError> {
        self.contract_move(name, cpu)
    }

    fn remove(&mut self, name: ContractName) -> Result<(), CallError> {
        self.contract_remove(name)
    }

    fn nest(&mut self, name: ContractName, around: Option<ContractName>) -> Result<(), CallError> {
        self.contract_nest(name, around)
    }

    fn bind(&mut self, tid: i32, name: ContractName) -> Result<(), CallError> {
        self.contract_bind(tid, name)
    }

    fn unbind(&mut self, tid: i32) -> Result<(), CallError> {
        self.contract_unbind(tid)
    }

    fn declare(&mut self, tid: i32, declared: Option<Declared>) -> Result<(), CallError> {
        Self::declare(self, tid, declared)
    }

    fn share_page(&mut self, tid: i32, page: *const u8) -> Result<(), CallError> {
        Self::share_page(self, tid, page)
    }

    fn hear_calls(&mut self, on: bool) -> Calls {
        Self::hear_calls(self, on)
    }

    fn call_program(&self) -> Option<OwnedFd> {
        Self::call_program(self).ok()
    }

    fn look(&mut self, sink: u32, deliver_ns: u64) -> Result<(), CallError> {
        Self::look(self, sink, deliver_ns)
    }

    fn tell(
        &mut self,
        sink: u32,
        by: Option<ToldBy>,
        uid: u32,
    ) -> Result<Option<OwnedFd>, CallError> {
        Self::tell(self, sink, by, uid)
    }

    fn late_fd(&self) -> Option<BorrowedFd<'_>> {
        Self::late_fd(self)
    }

    fn tell_late(&mut self) {
        Self::tell_late(self);
    }

    fn subscribe(
        &mut self,
        socket: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        Self::subscribe(self, socket, source)
    }

    fn hear_no_sources(&mut self) {
        Self::hear_no_sources(self);
    }

    fn sweep(&mut self) -> Result<(), CallError> {
        self.contract_sweep()
    }

    fn own_classes(&mut self, most: usize) -> usize {
        Self::own_classes(self, most)
    }

    fn set_policy(&mut self, cgroup_id: u64, policy: LeafPolicy) -> Result<(), PolicyError> {
        Self::set_policy(self, cgroup_id, policy)
    }

    fn contracts(&self) -> Vec<Contract> {
        Self::contracts(self)
    }

    fn seen(&self) -> Result<Seen, StateError> {
        Self::seen(self)
    }

    fn explained(&self, pid: i32) -> Result<Option<Vec<Explained>>, StateError> {
        Self::explained(self, pid)
    }

    fn rhythm_ns(&self, tid: i32) -> Option<u32> {
        Self::rhythm_ns(self, tid)
    }

    fn class_leaf(&self, cgroup_id: u64) -> Option<ClassLeaf> {
        Self::class_leaf(self, cgroup_id)
    }
}
