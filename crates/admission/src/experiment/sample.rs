// SPDX-License-Identifier: GPL-2.0
//! Placing whole sets, and drawing sets that are admitted, for a simulator to run.

use serde::Serialize;

use super::generator::{Generator, Random};
use crate::partition::Partition;
use crate::placement::Placement;
use crate::policy::{Order, Policy};
use crate::task::{Supply, Task, by_decreasing_utilisation};

/// Most sets drawn in search of one that is admitted.
pub const MAX_DRAWS_PER_SET: u32 = 1000;

/// A set that an algorithm admits, and how it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdmittedSet {
    /// Draws this set again, with [`Generator::draw`].
    pub seed: u64,
    /// The tasks, in the order drawn.
    pub tasks: Vec<Task>,
    /// Where each of them runs.
    pub placements: Vec<Placement>,
}

/// The first `count` sets of `generator` and `seed` that `policy` admits on whole CPUs, with their
/// placements; with `only_split`, of those only the ones in which a task is split. Fewer if
/// [`MAX_DRAWS_PER_SET`] draws per set do not suffice.
///
/// Run by plain EDF per CPU, no task of such a set may ever miss a deadline.
pub fn admitted_sets(
    generator: &Generator,
    policy: &Policy,
    count: u32,
    seed: u64,
    only_split: bool,
) -> Vec<AdmittedSet> {
    let draw = |set| {
        let seed = generator.seed_of(seed, set);
        let tasks = generator.draw(&mut Random::new(seed));
        let placements = place_all(&tasks, generator.cpus, policy)?;
        let wanted = !only_split || placements.iter().any(Placement::is_split);
        wanted.then_some(AdmittedSet {
            seed,
            tasks,
            placements,
        })
    };
    let draws = 0..count.saturating_mul(MAX_DRAWS_PER_SET);
    draws.filter_map(draw).take(count as usize).collect()
}

/// Where each task of a set runs on `cpus` whole CPUs; none if one of them has no place.
pub fn place_all(tasks: &[Task], cpus: u32, policy: &Policy) -> Option<Vec<Placement>> {
    let mut partition = Partition::new(cpus, Supply::WHOLE);
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    if policy.order == Order::Decreasing {
        order.sort_by(|&a, &b| by_decreasing_utilisation(&tasks[a], &tasks[b]));
    }
    let mut placements = vec![None; tasks.len()];
    for at in order {
        let placement = partition.place(&tasks[at], None, policy)?;
        partition.put(at as u32, &tasks[at], &placement);
        placements[at] = Some(placement);
    }
    placements.into_iter().collect()
}
