//! What every class received between two snapshots.

use std::collections::HashMap;

use andante_sched::{Class, Snapshot};
use serde::Serialize;

/// One class over an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The class at the end of the interval.
    #[serde(flatten)]
    pub class: Class,
    /// CPU time received over CPU time of the whole machine [ratio].
    pub share_received: f64,
}

impl Row {
    /// The last component of the path.
    pub fn name(&self) -> &str {
        match self.class.path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => "/",
        }
    }

    /// Whether anything in the class runs, wants to run, or has run in the interval.
    pub fn is_busy(&self) -> bool {
        self.class.queued + self.class.running > 0 || self.share_received > 0.0
    }
}

/// The rows between two snapshots, in tree order. A class made in between counts from its birth.
pub fn between(before: &Snapshot, after: &Snapshot) -> Vec<Row> {
    let used: HashMap<_, _> = before
        .classes
        .iter()
        .map(|class| (class.cgroup_id, class.cpu_ns))
        .collect();
    let length_ns = after.now_ns.saturating_sub(before.now_ns);
    let machine_ns = length_ns as f64 * f64::from(after.cpus);
    let received = |class: &Class| {
        let earlier = used.get(&class.cgroup_id).copied().unwrap_or(0);
        match class.cpu_ns.saturating_sub(earlier) as f64 / machine_ns {
            share if share.is_finite() => share,
            _ => 0.0,
        }
    };
    let row = |class: &Class| Row {
        class: class.clone(),
        share_received: received(class),
    };
    after.classes.iter().map(row).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A class as a snapshot would have it.
    pub fn class(path: &str, weight: u32, cpu_ns: u64) -> Class {
        Class {
            path: path.into(),
            cgroup_id: path.bytes().map(u64::from).sum(),
            depth: path.split('/').filter(|name| !name.is_empty()).count() as u32,
            weight,
            queued: 0,
            running: 0,
            cpu_ns,
            share_asked: 1.0,
        }
    }

    #[test]
    fn received_is_relative_to_all_cpus() {
        let before = Snapshot {
            now_ns: 1_000,
            cpus: 4,
            domains: 1,
            classes: vec![class("/a", 100, 500)],
        };
        let classes = vec![class("/a", 100, 1_500), class("/new", 100, 400)];
        let after = Snapshot {
            now_ns: 2_000,
            cpus: 4,
            domains: 1,
            classes,
        };
        let rows = between(&before, &after);
        assert_eq!(rows[0].share_received, 0.25);
        assert_eq!(rows[1].share_received, 0.1, "born in between");
    }

    #[test]
    fn an_empty_interval_divides_nothing_by_zero() {
        let only = Snapshot {
            now_ns: 5,
            cpus: 2,
            domains: 1,
            classes: vec![class("/", 100, 9)],
        };
        assert_eq!(between(&only, &only)[0].share_received, 0.0);
        assert!(!between(&only, &only)[0].is_busy());
    }

    #[test]
    fn rows_are_named_by_their_last_component() {
        let only = Snapshot {
            now_ns: 5,
            cpus: 2,
            domains: 1,
            classes: vec![class("/", 1, 0), class("/a/b", 1, 0)],
        };
        let names: Vec<_> = between(&only, &only)
            .iter()
            .map(|row| row.name().to_owned())
            .collect();
        assert_eq!(names, ["/", "b"]);
    }
}
