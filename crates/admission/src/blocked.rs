// SPDX-License-Identifier: GPL-2.0
//! Contracts of what cannot be preempted, a link or a disk: the test of one CPU, for deadlines that are earlier by the time
//! for which a job may be blocked.

use crate::answer::Admission;
use crate::contract::Contract;
use crate::policy::Policy;
use crate::system::{AskError, Machine, System};

/// All of them on one CPU, of which so much is left to others [1/1000]; none: there is no room for them.
pub(crate) fn all(
    left_for_others_per_mille: u32,
    blocked_ns: u64,
    contracts: impl Iterator<Item = Contract>,
) -> Result<Option<System>, AskError> {
    let machine = Machine {
        cpus: 1,
        left_for_others_per_mille,
    };
    let mut all = System::new(machine, Policy::default())?;
    for contract in contracts {
        match admits(&all, blocked_ns, &contract) {
            Some(_) => all.admit(earlier(&contract, blocked_ns))?,
            None => return Ok(None),
        };
    }
    Ok(Some(all))
}

/// Is there room for one more?
pub(crate) fn admits(others: &System, blocked_ns: u64, contract: &Contract) -> Option<Admission> {
    others
        .would_admit(&earlier(contract, blocked_ns))
        .ok()
        .flatten()
}

/// The contract with a deadline that is so much before its period's end; 0: it comes too late.
fn earlier(contract: &Contract, blocked_ns: u64) -> Contract {
    let deadline_ns = contract.period_ns.saturating_sub(blocked_ns);
    contract.clone().with_deadline_ns(deadline_ns)
}
