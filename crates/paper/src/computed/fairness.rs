//! How near start-time fair queueing comes to the bound of its fairness theorem.

use andante_core_sys::{Leaf, Tree};
use andante_sim::Random;

use super::Output;
use crate::cell::compare;
use crate::result::{Column, Content, Published, Row, Table};
use crate::source::Demand;

/// Numbers of classes tried.
const CLASSES: [usize; 4] = [2, 4, 8, 16];
/// Random sets of each number.
const SETS: u64 = 75;
/// Quanta given away in each set.
const QUANTA: u32 = 2_000;
/// Weights are 1 to this.
const WEIGHTS: u64 = 20;
/// A class's quanta are of any length up to a limit of its own; no limit is above this [ns].
const LONGEST_NS: u64 = 20_000_000;

/// `sfq-fairness`: for two classes f and g that stay runnable, in any interval,
/// |W_f / r_f - W_g / r_g| <= l_f / r_f + l_g / r_g (Goyal, Guo, Vin, OSDI 1996, theorem 1), W being
/// service, r weights and l the longest quanta. The worst difference over its bound, over random
/// weights and quanta.
pub(super) fn table() -> Result<Output, String> {
    let row = |classes: usize| {
        let worst = (0..SETS)
            .map(|seed| worst(classes, seed))
            .fold(0.0, f64::max);
        let why = "it is a theorem: one set above 1 would be a fault of the core";
        Row {
            title: classes.to_string(),
            x: Some(classes as f64),
            labels: Vec::new(),
            cells: vec![compare(
                Published::Number(1.0),
                Demand::AtMost,
                &Ok(worst),
                why,
            )],
        }
    };
    let table = Table {
        row_title: "classes".to_owned(),
        label_titles: Vec::new(),
        columns: vec![Column {
            title: "worst difference over its bound".to_owned(),
            unit: String::new(),
            decimals: Some(4),
        }],
        rows: CLASSES.into_iter().map(row).collect(),
        fold: false,
    };
    Ok((Content::Table(table), Vec::new()))
}

/// A class that always wants to run.
struct Class {
    leaf: Leaf,
    weight: f64,
    limit_ns: u64,
    /// Service so far [ns].
    service_ns: u64,
    /// The longest quantum it had [ns].
    longest_ns: u64,
}

/// The worst ratio in one random set. The difference of two classes moves in one direction while
/// one of them is served, so its extremes lie at the ends of quanta.
fn worst(classes: usize, seed: u64) -> f64 {
    let mut random = Random::new(seed << 8 | classes as u64);
    let mut tree = Tree::new(LONGEST_NS, 1);
    let mut all: Vec<Class> = (0..classes)
        .map(|_| {
            let weight = 1 + random.below(WEIGHTS);
            let leaf = tree.create(Tree::ROOT, weight as u32);
            Class {
                leaf: leaf.expect("a tree has room for a few classes"),
                weight: weight as f64,
                limit_ns: 1 + random.below(LONGEST_NS),
                service_ns: 0,
                longest_ns: 0,
            }
        })
        .collect();
    for class in &all {
        tree.queue_add(class.leaf);
    }
    // Of each pair, the least and the largest difference of service over weight [ns].
    let mut ranges = vec![(0.0_f64, 0.0_f64); classes * classes];
    for _ in 0..QUANTA {
        let leaf = tree.pick();
        let picked = all.iter_mut().find(|class| Some(class.leaf) == leaf);
        let picked = picked.expect("every class wants to run");
        let length_ns = 1 + random.below(picked.limit_ns);
        tree.queue_add(picked.leaf);
        tree.stop(picked.leaf, length_ns);
        picked.service_ns += length_ns;
        picked.longest_ns = picked.longest_ns.max(length_ns);
        for (f, class) in all.iter().enumerate() {
            for (g, other) in all.iter().enumerate().skip(f + 1) {
                let (low, high) = &mut ranges[f * classes + g];
                let normalized = |class: &Class| class.service_ns as f64 / class.weight;
                let difference = normalized(class) - normalized(other);
                (*low, *high) = (low.min(difference), high.max(difference));
            }
        }
    }
    let mut worst = 0.0_f64;
    for (f, class) in all.iter().enumerate() {
        for (g, other) in all.iter().enumerate().skip(f + 1) {
            let (low, high) = ranges[f * classes + g];
            let longest = |class: &Class| class.longest_ns as f64 / class.weight;
            worst = worst.max((high - low) / (longest(class) + longest(other)));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_approached_and_kept() {
        // Far below, the sets would be too tame to show a fault.
        let worst_of_many = (0..10).map(|seed| worst(2, seed)).fold(0.0, f64::max);
        assert!((0.7..=1.0).contains(&worst_of_many), "{worst_of_many}");
        assert_eq!(worst(4, 3), worst(4, 3));
    }
}
