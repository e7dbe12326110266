// SPDX-License-Identifier: GPL-2.0
//! Contracts in the kernel: making, changing and reading them (`bpf/contracts.h`, `bpf/intf.h`).
//!
//! Whether a contract should be made is not asked here: that is admission's. The kernel ends a
//! contract by itself when the last thread that holds it exits, or its cgroup goes; so whoever keeps
//! books of them compares these with [`Scheduler::contracts`] from time to time.
//!
//! A call is a structure in the scheduler's memory and a run of the BPF program
//! `andante_contract`. There is one such structure, hence `&mut self`.

use libbpf_rs::ProgramInput;
use thiserror::Error;

use crate::loader::Scheduler;
use crate::session::Declared;
use crate::skel::types;
use crate::state::{LEAF, ROOT};

/// Contracts that there is room for, besides those that are learnt.
pub const MAX_CONTRACTS: usize = SLOTS - 1 - MAX_LEARNT;
/// Learnt contracts that there is room for (`AN_MAX_LEARNT`).
pub const MAX_LEARNT: usize = 1024;
/// Of the promised ones, those that are split at a time (`AN_MAX_SPLITS`; index 0 is nobody).
pub const MAX_SPLITS: usize = 127;
/// Places in the table (`AN_MAX_CONTRACTS`); index 0 is nobody.
const SLOTS: usize = 2048;
/// Pieces of a split contract (`AN_MAX_PIECES`).
pub const MAX_PIECES: usize = 16;
/// CPUs that contracts may run on are numbered below this (`AN_MAX_CONTRACT_CPUS`).
pub const MAX_CONTRACT_CPUS: u32 = 64;
/// Longest period [ns] (`AN_MAX_PERIOD_NS`).
pub const MAX_PERIOD_NS: u64 = 0xffff_ffff;
/// Longest window of losses [periods] (`AN_MAX_WINDOW`).
pub const MAX_WINDOW: u32 = 65_535;

/// `enum an_call`.
mod call {
    pub const CREATE: u32 = 1;
    pub const MOVE: u32 = 2;
    pub const REMOVE: u32 = 3;
    pub const BIND: u32 = 4;
    pub const SWEEP: u32 = 5;
    pub const NEST: u32 = 6;
    pub const DECLARE: u32 = 7;
    pub const LOOK: u32 = 8;
    pub const TELL: u32 = 9;
    pub const TELL_LATE: u32 = 10;
}

/// `AN_LEARNT_OF_THREAD` of `enum an_held_by`.
pub(crate) const LEARNT_OF_THREAD: u8 = 4;

/// `AN_TASK_SERVER`: of the event scheduler, not of anybody who asked.
const TASK_SERVER: u32 = 1 << 7;

/// A contract in the kernel: which slot, and which use of it. Never given out twice until the slot
/// has been used 32768 times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContractName(pub(crate) u32);

impl ContractName {
    /// For those who stand in for a kernel in tests.
    pub fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The same, back.
    pub fn raw(self) -> u32 {
        self.0
    }

    fn of(index: usize, generation: u16) -> Self {
        Self(index as u32 | u32::from(generation) << 16)
    }
}

/// What is promised (`struct an_promise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// C > 0 [ns].
    pub budget_ns: u64,
    /// T [ns], up to [`MAX_PERIOD_NS`].
    pub period_ns: u64,
    /// D [ns], C to T.
    pub deadline_ns: u64,
    /// x: of every `window` periods so many may be lost; only with [`Promise::WINDOW`].
    pub losses: u32,
    /// y.
    pub window: u32,
    /// The constants below, added up.
    pub flags: u32,
    /// Where it runs, below [`MAX_CONTRACT_CPUS`]; of a split contract, the first piece's.
    pub cpu: u32,
}

impl Promise {
    /// With its budget used up it runs on its class's share until the next one comes. Without this
    /// flag its deadline is put off instead, as long as contracts leave enough of the CPU to others.
    pub const HARD: u32 = 1;
    /// Uses what others leave of their budgets, and leaves them its own.
    pub const RECLAIM: u32 = 1 << 1;
    /// Soft: time that no other contract wants costs it no more than it must.
    pub const BORROW: u32 = 1 << 2;
    /// Soft: once no contract has anything to do its debts are forgotten.
    pub const CATCH_UP: u32 = 1 << 3;
    /// Served once in every period of a fixed grid, but for `losses` of every `window` (DWCS).
    pub const WINDOW: u32 = 1 << 4;
    /// Learnt: nobody seems to wait for what the thread does (`core/learn.h`).
    pub const UNAWAITED: u32 = 1 << 9;
    /// With a window: beyond its budget it goes on behind all that have theirs, and before everybody without
    /// a contract, within what contracts may have.
    pub const WORK_CONSERVING: u32 = 1 << 5;
    /// With its budget used up it is served as learnt contracts are, under their bound, until the next one
    /// comes; only with [`Promise::HARD`].
    pub const SPILLS: u32 = 1 << 10;
}

/// A part of a split contract (`struct an_piece`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it runs.
    pub cpu: u32,
    /// Its budget [ns].
    pub budget_ns: u64,
    /// Its release, since the job's [ns].
    pub offset_ns: u64,
    /// Its deadline, since its release [ns].
    pub window_ns: u64,
}

/// Who holds a contract (`enum an_held_by`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// The tasks of one class itself, not those of classes below it.
    Class(ClassLeaf),
    /// One thread, to be bound.
    Thread,
    /// Threads of one process, to be bound, and those that they start.
    Process,
}

/// The leaf of the tree that holds a class's own tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLeaf {
    /// Its index.
    pub index: u32,
    /// Whether the class has children: they are not part of the leaf.
    pub has_children: bool,
}

/// A contract as the kernel has it at this instant. Counts begin with the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// Its name.
    pub name: ContractName,
    /// What is promised.
    pub promise: Promise,
    /// Whether nobody asked for it: the scheduler has learnt that a thread needs it.
    pub learnt: bool,
    /// If learnt: the thread that holds it.
    pub thread: Option<i32>,
    /// Threads that hold it; 0 if a class does.
    pub threads: u32,
    /// The CPU it is on now: of a split contract, the one of the piece in service.
    pub cpu: u32,
    /// Run under the contract, whatever it was charged to [ns].
    pub service_ns: u64,
    /// Of that beyond the promise [ns].
    pub extra_ns: u64,
    /// Of that on what others left of their budgets [ns].
    pub reclaimed_ns: u64,
    /// Jobs ended, or of one with a window the periods that counted. A job begins when something
    /// of the contract wants to run and ends when nothing does.
    pub deadlines: u64,
    /// Of those too late, or without their budget.
    pub misses: u64,
    /// Of those that the window did not allow.
    pub violations: u64,
    /// Times that the budget ran out.
    pub exhaustions: u64,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// There are as many as there is room for.
    #[error(
        "all {MAX_CONTRACTS} places for contracts in the kernel are taken, or the {MAX_SPLITS} for split ones: \
         release one first"
    )]
    NoRoom,
    /// The class has a contract.
    #[error("its class has a contract already")]
    ClassHasOne,
    /// The contract has ended.
    #[error("the contract has ended")]
    Ended,
    /// There is no such thread.
    #[error("there is no such thread")]
    NoThread,
    /// The thread takes part in a session already.
    #[error("it takes part in a session already")]
    InSession,
    /// The thread is one of the kernel's.
    #[error("kernel threads hold no contracts")]
    KernelThread,
    /// Anything else.
    #[error("the kernel refused the call ({0})")]
    Other(String),
}

impl Scheduler {
    /// Makes a contract, asleep. With two pieces or more it is split; they are those of
    /// `promise`, the first on `promise.cpu`.
    ///
    /// # Errors
    /// [`CallError::NoRoom`], [`CallError::ClassHasOne`].
    pub fn contract_create(
        &mut self,
        promise: &Promise,
        held_by: HeldBy,
        pieces: &[Piece],
    ) -> Result<ContractName, CallError> {
        if pieces.len() > MAX_PIECES {
            return Err(CallError::NoRoom);
        }
        let (kind, leaf) = match held_by {
            HeldBy::Class(leaf) => (1, leaf.index),
            HeldBy::Thread => (2, 0),
            HeldBy::Process => (3, 0),
        };
        let mut call = types::an_contract_call {
            op: call::CREATE,
            kind,
            leaf,
            pieces: pieces.len() as u32,
            promise: raw(promise),
            ..Default::default()
        };
        for (to, piece) in call.piece.iter_mut().zip(pieces) {
            *to = types::an_piece {
                budget_ns: piece.budget_ns,
                offset_ns: piece.offset_ns,
                window_ns: piece.window_ns,
                cpu: piece.cpu,
                pad: 0,
            };
        }
        let mut made = self.call(call);
        if matches!(made, Err(CallError::NoRoom)) {
            // One that has just ended keeps its place until it is swept.
            self.contract_sweep()?;
            made = self.call(call);
        }
        made.map(|answer| ContractName(answer.name))
    }

    /// Moves a contract that is not split to another CPU.
    ///
    /// # Errors
    /// [`CallError::Ended`].
    pub fn contract_move(&mut self, name: ContractName, cpu: u32) -> Result<(), CallError> {
        let mut call = named(call::MOVE, name);
        call.promise.cpu = cpu;
        self.call(call).map(drop)
    }

    /// Ends a contract; its holders run on their class's share from then on.
    ///
    /// # Errors
    /// [`CallError::Ended`].
    pub fn contract_remove(&mut self, name: ContractName) -> Result<(), CallError> {
        self.call(named(call::REMOVE, name)).map(drop)
    }

    /// What runs under the contract is charged to the one around it as well, that of a class, from
    /// now on; or to none.
    ///
    /// # Errors
    /// [`CallError::Ended`].
    pub fn contract_nest(
        &mut self,
        name: ContractName,
        around: Option<ContractName>,
    ) -> Result<(), CallError> {
        let mut call = named(call::NEST, name);
        call.around = around.map_or(0, |around| around.0);
        self.call(call).map(drop)
    }

    /// The thread `tid` of the root pid namespace holds the contract from now on, and no other.
    ///
    /// # Errors
    /// [`CallError::NoThread`], [`CallError::KernelThread`], [`CallError::Ended`].
    pub fn contract_bind(&mut self, tid: i32, name: ContractName) -> Result<(), CallError> {
        let mut call = named(call::BIND, name);
        call.pid = tid;
        self.call(call).map(drop)
    }

    /// Frees what has ended and could not be freed at once. To be called every second or so.
    ///
    /// # Errors
    /// Only such as should never be.
    pub fn contract_sweep(&mut self) -> Result<(), CallError> {
        self.call(named(call::SWEEP, ContractName(0)))?;
        self.event_servers()
    }

    /// The contracts that there are.
    pub fn contracts(&self) -> Vec<Contract> {
        let Some(section) = self.object.contracts() else {
            return Vec::new();
        };
        // SAFETY: the pointers are to fields of the mapped section, which lives as long as the
        // skeleton. The kernel writes it at any time, hence the volatile reads.
        unsafe {
            let unused = (&raw const (*section).contracts.unused).read_volatile() as usize;
            (1..unused.min(SLOTS))
                .filter_map(|index| {
                    let holder = (&raw const (*section).holders[index]).read_volatile();
                    let found = (&raw const (*section).contracts.contracts[index]).read_volatile();
                    let held = found.promise.flags & TASK_SERVER == 0;
                    (found.used != 0 && holder.ended == 0 && held)
                        .then(|| seen(index, &found, &holder))
                })
                .collect()
        }
    }

    /// The leaf of the class of this cgroup; none if the cgroup has no class of its own.
    pub fn class_leaf(&self, cgroup_id: u64) -> Option<ClassLeaf> {
        let tree = self.object.tree()?;
        // SAFETY: as above; indices are below the length of the array.
        let node = |index: usize| unsafe { (&raw const (*tree).nodes[index]).read_volatile() };
        // SAFETY: as above.
        let cgroup =
            |index: usize| unsafe { (&raw const (*tree).cgroup_id[index]).read_volatile() };
        // SAFETY: as above.
        let unused = unsafe { (&raw const (*tree).unused).read_volatile() } as usize;
        let found = (ROOT..unused).find(|&index| {
            let node = node(index);
            node.kind != 0 && node.own == 0 && cgroup(index) == cgroup_id
        })?;
        if node(found).kind == LEAF {
            return Some(ClassLeaf {
                index: found as u32,
                has_children: false,
            });
        }
        let own = (ROOT..unused).find(|&index| {
            let node = node(index);
            node.kind == LEAF && node.own != 0 && usize::from(node.parent) == found
        })?;
        Some(ClassLeaf {
            index: own as u32,
            has_children: node(found).children > 1,
        })
    }

    /// Lets a thread hold no contract that was made for it.
    ///
    /// # Errors
    /// There is no such thread, or it is the kernel's.
    pub fn contract_unbind(&mut self, tid: i32) -> Result<(), CallError> {
        let mut call = named(call::BIND, ContractName(0));
        call.pid = tid;
        self.call(call).map(|_| ())
    }

    /// Says what a thread does in a session; none: it takes part in none.
    ///
    /// # Errors
    /// There is no such thread, or it is the kernel's.
    pub fn declare(&mut self, tid: i32, declared: Option<Declared>) -> Result<(), CallError> {
        let declared = declared.unwrap_or_default();
        let mut call = named(call::DECLARE, ContractName(0));
        call.pid = tid;
        call.session = declared.session;
        call.sink = declared.sink;
        call.promise.period_ns = declared.period_ns.into();
        call.promise.deadline_rel_ns = declared.deadline_ns.into();
        call.promise.budget_ns = declared.budget_ns.into();
        self.call(call).map(|_| ())
    }

    /// Has the scheduler look then \[ns of CLOCK_MONOTONIC\], or at once if that is past, whether the thread that
    /// is called for as `sink` waits behind others of its contract, and has an event.
    ///
    /// # Errors
    /// Only such as should never be.
    pub fn look(&mut self, sink: u32, deliver_ns: u64) -> Result<(), CallError> {
        let mut call = named(call::LOOK, ContractName(0));
        call.sink = sink;
        call.deliver_ns = deliver_ns;
        self.call(call).map(|_| ())
    }

    /// Has the thread that is called for as `sink` told of its events by this signal, or its ring
    /// (`ANDANTE_TOLD_BY_RING`), at the word of that user; 0: by nothing.
    pub(crate) fn told_by(&mut self, sink: u32, by: u32, uid: u32) -> Result<(), CallError> {
        let mut call = named(call::TELL, ContractName(0));
        call.sink = sink;
        call.told_by = by;
        call.uid = uid;
        self.call(call).map(|_| ())
    }

    /// Has it told now, if anything is due.
    pub(crate) fn told_late(&mut self, sink: u32) -> Result<(), CallError> {
        let mut call = named(call::TELL_LATE, ContractName(0));
        call.sink = sink;
        self.call(call).map(|_| ())
    }

    /// Runs the call; the structure as it is afterwards.
    fn call(
        &mut self,
        call: types::an_contract_call,
    ) -> Result<types::an_contract_call, CallError> {
        let unmapped = || CallError::Other("its memory is not mapped".into());
        let section = self.object.contracts_mut().ok_or_else(unmapped)?;
        // SAFETY: as above.
        let slot = unsafe { &raw mut (*section).contract_call };
        // SAFETY: the pointer is to the mapped section. Only this process writes there and, while
        // the program below runs, the kernel.
        unsafe { slot.write_volatile(call) };
        let ran = self
            .object
            .contract_program()
            .test_run(ProgramInput::default())
            .map_err(|error| CallError::Other(error.to_string()))?;
        match ran.return_value as i32 {
            // SAFETY: as above.
            0 => Ok(unsafe { slot.read_volatile() }),
            -28 => Err(CallError::NoRoom),
            -17 => Err(CallError::ClassHasOne),
            -3 => Err(CallError::NoThread),
            -16 => Err(CallError::InSession),
            -2 => Err(CallError::Ended),
            -95 => Err(CallError::Other(
                "this kernel sends no signals for others".into(),
            )),
            -1 if matches!(call.op, call::BIND | call::DECLARE) => Err(CallError::KernelThread),
            other => Err(CallError::Other(format!("status {other}"))),
        }
    }
}

fn named(op: u32, name: ContractName) -> types::an_contract_call {
    types::an_contract_call {
        op,
        name: name.0,
        ..Default::default()
    }
}

fn raw(promise: &Promise) -> types::an_promise {
    types::an_promise {
        budget_ns: promise.budget_ns,
        period_ns: promise.period_ns,
        deadline_rel_ns: promise.deadline_ns,
        x: promise.losses,
        y: promise.window,
        flags: promise.flags,
        cpu: promise.cpu,
    }
}

fn seen(index: usize, found: &types::an_contract, holder: &types::an_holder) -> Contract {
    let promise = &found.promise;
    Contract {
        name: ContractName::of(index, found.generation),
        promise: Promise {
            budget_ns: promise.budget_ns,
            period_ns: promise.period_ns,
            deadline_ns: promise.deadline_rel_ns,
            losses: promise.x,
            window: promise.y,
            flags: promise.flags,
            cpu: promise.cpu,
        },
        learnt: holder.kind == LEARNT_OF_THREAD,
        thread: (holder.kind == LEARNT_OF_THREAD).then_some(holder.pid as i32),
        threads: holder.bound,
        cpu: u32::from(found.cpu),
        service_ns: found.service_ns,
        extra_ns: found.extra_ns,
        reclaimed_ns: found.reclaimed_ns,
        deadlines: found.deadlines,
        misses: found.misses,
        violations: found.violations,
        exhaustions: found.exhaustions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants above are the core's.
    #[test]
    fn the_tables_are_as_long_as_the_kernels() {
        type Set = types::an_contracts;
        /// Without a value, which is larger than a thread's stack.
        const fn length<S, T, const LENGTH: usize>(_: fn(&S) -> &[T; LENGTH]) -> usize {
            LENGTH
        }
        let cpus = length(|set: &Set| &set.cpus);
        assert_eq!(length(|set: &Set| &set.contracts), SLOTS);
        assert_eq!(length(|set: &Set| &set.splits), MAX_SPLITS + 1);
        assert_eq!(cpus, MAX_CONTRACT_CPUS as usize);
        assert_eq!(length(|split: &types::an_split| &split.piece), MAX_PIECES);
        // AN_MAX_LEARNT, by which it is derived.
        assert_eq!(MAX_LEARNT, 16 * cpus);
    }

    #[test]
    fn names_tell_two_uses_of_a_slot_apart() {
        assert_ne!(ContractName::of(5, 1), ContractName::of(5, 3));
        assert_eq!(ContractName::of(5, 0x8001).0, 0x8001_0005);
    }
}
