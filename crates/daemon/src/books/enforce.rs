// SPDX-License-Identifier: GPL-2.0
//! From an admission to a contract in the kernel, with its threads bound to it.

use std::collections::HashSet;

use andante_admission::{Admission, Placement, Test, Tolerance};
use andante_sched::contracts::{CallError, ContractName, HeldBy, Piece, Promise};

use super::holder::Resolved;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, Holder};
use crate::terms::Terms;

/// Looks at a process's threads until none is new: one that was started by a thread not yet bound
/// may have been missed. Two suffice unless threads are started faster than bound.
const MAX_LOOKS: u32 = 16;

/// Whether the kernel serves the contract by windows: because it tolerates losses, or because it
/// shares a CPU with those who do and that cannot serve all. Pieces of a split one have windows of
/// their own, and every one of them is served.
pub fn by_windows(terms: &Terms, admission: &Admission) -> bool {
    !admission.placement.is_split()
        && (terms.tolerance.window > 0 || admission.test == Test::WindowConstraint)
}

/// The contract as the kernel is told of it.
///
/// If nothing else is asked for it is hard: beyond its budget it runs on its class's share, beside
/// everybody else. Of the rules of the flexible server [core/fcbs.h] that leaves reclaiming: the share
/// is what borrowing would give, and one that is throttled has no debts to be forgiven. A soft one has
/// all three, or is work-conserving [core/dwcs.h] if it
/// may lose periods: under plain DWCS only. A split contract is hard, and reclaims nothing [core/edfwm.h].
pub fn promise(terms: &Terms, placement: &Placement, window: bool) -> (Promise, Vec<Piece>) {
    let pieces: Vec<Piece> = match placement {
        Placement::Whole { .. } => Vec::new(),
        Placement::Split { pieces } => pieces
            .iter()
            .map(|piece| Piece {
                cpu: piece.cpu,
                budget_ns: piece.budget_ns,
                offset_ns: piece.offset_ns,
                window_ns: piece.window_ns,
            })
            .collect(),
    };
    let cpu = match placement {
        Placement::Whole { cpu } => *cpu,
        Placement::Split { pieces } => pieces.first().map_or(0, |piece| piece.cpu),
    };
    let (flags, tolerance) = if window {
        let served = Tolerance {
            losses: 0,
            window: 1,
        };
        let tolerance = match terms.tolerance.window {
            0 => served,
            _ => terms.tolerance,
        };
        let more = match terms.soft && terms.tolerance.window > 0 {
            true => Promise::WORK_CONSERVING,
            false => 0,
        };
        (Promise::WINDOW | more, tolerance)
    } else {
        let flags = match (terms.soft, terms.flexible) {
            _ if !pieces.is_empty() => Promise::HARD,
            (false, false) if terms.spills => Promise::HARD | Promise::SPILLS,
            (false, false) => Promise::HARD,
            (false, true) => Promise::HARD | Promise::RECLAIM,
            (true, false) => 0,
            (true, true) => Promise::RECLAIM | Promise::BORROW | Promise::CATCH_UP,
        };
        (flags, Tolerance::NONE)
    };
    let promise = Promise {
        budget_ns: terms.budget_ns,
        period_ns: terms.period_ns,
        deadline_ns: terms.deadline_ns.unwrap_or(terms.period_ns),
        losses: tolerance.losses,
        window: tolerance.window,
        flags,
        cpu,
    };
    (promise, pieces)
}

/// Makes the contract in the kernel and binds its holder's threads to it. Whatever they held before
/// ends. Nothing is left in the kernel after an error.
///
/// # Errors
/// The kernel's, or the holder is gone.
pub fn make(
    kernel: &mut dyn Kernel,
    host: &dyn Host,
    by: &Resolved,
    terms: &Terms,
    placement: &Placement,
    window: bool,
) -> Result<ContractName, Fault> {
    let held_by = match by.holder {
        Holder::Process(_) => HeldBy::Process,
        Holder::Thread(_) | Holder::Session(_) => HeldBy::Thread,
        Holder::Class(_) => {
            let leaf = kernel.class_leaf(by.identity);
            HeldBy::Class(leaf.ok_or_else(|| gone(by))?)
        }
    };
    let (promise, pieces) = promise(terms, placement, window);
    let name = kernel
        .create(&promise, held_by, &pieces)
        .map_err(|error| failed(by, &error))?;
    let bound = match by.holder {
        Holder::Process(pid) => bind_process(kernel, host, pid, by.most_threads, name),
        Holder::Thread(tid) => kernel.bind(tid, name),
        Holder::Session(_) => bind_members(kernel, &by.members, name),
        // The leaf may have become another class's while the contract was made.
        Holder::Class(_) => match kernel.class_leaf(by.identity) {
            Some(leaf) if HeldBy::Class(leaf) == held_by => Ok(()),
            _ => Err(CallError::Ended),
        },
    };
    match bound {
        // Not one that has got the number of the one meant.
        Ok(()) if by.is_alive(host) => Ok(name),
        Ok(()) => {
            let _ = kernel.remove(name);
            Err(gone(by))
        }
        Err(error) => {
            let _ = kernel.remove(name);
            Err(failed(by, &error))
        }
    }
}

/// Binds the threads of a session; that some have just exited is as good.
fn bind_members(
    kernel: &mut dyn Kernel,
    members: &[i32],
    name: ContractName,
) -> Result<(), CallError> {
    let mut bound = Err(CallError::NoThread);
    for tid in members {
        match kernel.bind(*tid, name) {
            Err(CallError::NoThread) => {}
            Err(error) => return Err(error),
            Ok(()) => bound = Ok(()),
        }
    }
    bound
}

/// Binds all threads of a process. Those that it starts from then on inherit the contract.
fn bind_process(
    kernel: &mut dyn Kernel,
    host: &dyn Host,
    pid: i32,
    most: usize,
    name: ContractName,
) -> Result<(), CallError> {
    let mut seen = HashSet::new();
    let mut bound = false;
    for _ in 0..MAX_LOOKS {
        let mut fresh = host.threads(pid, most);
        fresh.retain(|tid| seen.insert(*tid));
        if fresh.is_empty() {
            break;
        }
        for tid in fresh {
            match kernel.bind(tid, name) {
                Ok(()) => bound = true,
                // It has just exited.
                Err(CallError::NoThread) => {}
                Err(error) => return Err(error),
            }
        }
    }
    if bound {
        Ok(())
    } else {
        Err(CallError::NoThread)
    }
}

fn gone(by: &Resolved) -> Fault {
    Fault::new(
        FaultKind::NoProcess,
        format!("{} is gone: nothing was reserved", by.named()),
    )
}

fn failed(by: &Resolved, error: &CallError) -> Fault {
    let kind = match error {
        CallError::NoThread | CallError::Ended => return gone(by),
        CallError::NoRoom => FaultKind::Full,
        CallError::ClassHasOne => FaultKind::Taken,
        CallError::KernelThread => FaultKind::KernelThread,
        CallError::InSession | CallError::Other(_) => FaultKind::Failed,
    };
    Fault::new(kind, format!("no contract for {}: {error}", by.named()))
}
