// SPDX-License-Identifier: GPL-2.0
//! The thread that keeps free what is not lent. It waits for the swap, if what it takes has to be written first.

use std::time::Duration;

use super::{Shared, State, locked};
use crate::cgroup::Cgroup;
use crate::demand::{self, Now, Plan, Take};
use crate::machine;

/// At once no more is taken than this [bytes], so that the next look is not late: some 250 pages of 4 KiB for every
/// millisecond of a pause.
const MOST_AT_ONCE: u64 = 64 << 20;

pub(super) fn run(state: &State, everybody: &Cgroup) {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    loop {
        let (plan, classes) = {
            let mut state = locked(state);
            if state.over {
                return;
            }
            let plan = look(&mut state, u32::try_from(cpus).unwrap_or(1));
            for (take, number) in plan.classes.iter().zip(numbers(&state)) {
                if take.held > 0 {
                    state.holder.let_go_of(number, take.held);
                }
            }
            let cgroups: Vec<_> = state.tracked.iter().map(|one| one.cgroup.clone()).collect();
            (plan, cgroups)
        };
        for (index, (take, cgroup)) in plan.classes.iter().zip(&classes).enumerate() {
            let taken = take_from(cgroup, take);
            if taken > 0
                && let Some(tracked) = locked(state).tracked.get_mut(index)
                && tracked.cgroup == *cgroup
            {
                tracked.taken += taken;
            }
        }
        // The kernel leaves alone what is protected, and begins with what was used longest ago.
        let most = plan.everybody.min(MOST_AT_ONCE);
        let before = machine::free();
        if most > 0 {
            let _ = everybody.reclaim(most, None);
            locked(state).taken += machine::free().saturating_sub(before).min(most);
        }
        std::thread::park_timeout(pause(&plan));
    }
}

fn numbers(state: &Shared) -> Vec<u64> {
    state.tracked.iter().map(|one| one.number).collect()
}

/// Without reservations there is nothing to do until there are.
fn pause(plan: &Plan) -> Duration {
    if plan.classes.is_empty() {
        demand::MOST_PAUSE
    } else {
        plan.pause
    }
}

fn look(state: &mut Shared, cpus: u32) -> Plan {
    let Shared {
        tracked,
        holder,
        machine,
        ..
    } = state;
    for one in tracked.iter_mut() {
        one.look(holder);
    }
    let now = Now {
        free: machine::free(),
        floor: machine.floor,
        total: machine.total,
        cpus,
    };
    demand::plan(now, &state.seen())
}

/// Takes from a class that is over, and says how much that was. The kernel may not have so much of a kind.
fn take_from(cgroup: &Cgroup, take: &Take) -> u64 {
    let orders = [(take.files, Some(0)), (take.anonymous, Some(u8::MAX))];
    let mut taken = 0;
    for (bytes, swappiness) in orders {
        let bytes = bytes.min(MOST_AT_ONCE);
        if bytes == 0 {
            continue;
        }
        let before = cgroup.current().unwrap_or(0);
        let _ = cgroup.reclaim(bytes, swappiness);
        taken += before.saturating_sub(cgroup.current().unwrap_or(before));
    }
    taken
}
