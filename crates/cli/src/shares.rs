//! What every class received between two snapshots.

use std::borrow::Cow;
use std::collections::HashMap;

use andante_sched::text::shown;
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
    /// The part of the interval that it was throttled, for its quota was used up [ratio]; none: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_throttled: Option<f64>,
}

impl Row {
    /// The last component of the path, as it is shown.
    pub fn name(&self) -> Cow<'_, str> {
        if self.class.own {
            return Cow::Borrowed("(its own tasks)");
        }
        match self.class.path.rsplit('/').next() {
            Some(name) if !name.is_empty() => shown(name),
            _ => Cow::Borrowed("/"),
        }
    }

    /// Its quota, and how much of the time it was throttled; none: it has no quota.
    pub fn quota(&self) -> Option<String> {
        let bandwidth = self.class.bandwidth?;
        let throttled = self.share_throttled.unwrap_or(0.0) * 100.0;
        let cpus = format!("{:.2}", bandwidth.cpus());
        let cpus = cpus.trim_end_matches('0').trim_end_matches('.');
        let exceeded = match bandwidth.nr_exceeded {
            0 => "",
            _ => ", exceeded",
        };
        Some(format!(
            "quota {cpus} CPU{}, throttled {throttled:.0} %{exceeded}",
            if bandwidth.cpus() > 1.0 { "s" } else { "" }
        ))
    }

    /// Whether anything in the class runs, wants to run, or has run in the interval.
    pub fn is_busy(&self) -> bool {
        self.class.queued + self.class.running > 0 || self.share_received > 0.0
    }
}

/// The weight of a class, in a word. The root competes with nobody, so its weight says nothing.
pub fn weight(class: &Class) -> String {
    match class {
        Class { depth: 0, .. } => String::new(),
        Class { idle: true, .. } => "idle".to_owned(),
        Class { weight, .. } => weight.to_string(),
    }
}

/// The rows between two snapshots, in tree order. A class made in between counts from its birth.
pub fn between(before: &Snapshot, after: &Snapshot) -> Vec<Row> {
    let known: HashMap<_, _> = before
        .classes
        .iter()
        .map(|class| (class.key(), class))
        .collect();
    let length_ns = after.now_ns.saturating_sub(before.now_ns);
    let machine_ns = length_ns as f64 * f64::from(after.cpus);
    let received = |class: &Class| {
        let earlier = known.get(&class.key()).map_or(0, |class| class.cpu_ns);
        match class.cpu_ns.saturating_sub(earlier) as f64 / machine_ns {
            share if share.is_finite() => share,
            _ => 0.0,
        }
    };
    let throttled = |class: &Class| {
        let now_usec = class.bandwidth?.throttled_usec;
        let earlier = known.get(&class.key()).and_then(|class| class.bandwidth);
        let earlier_usec = earlier.map_or(0, |bandwidth| bandwidth.throttled_usec);
        let part = now_usec.saturating_sub(earlier_usec) as f64 * 1e3 / length_ns as f64;
        Some(if part.is_finite() { part.min(1.0) } else { 0.0 })
    };
    let row = |class: &Class| Row {
        class: class.clone(),
        share_throttled: throttled(class),
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
            own: false,
            weight,
            queued: 0,
            running: 0,
            cpu_ns,
            policy: None,
            bandwidth: None,
            idle: false,
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
    fn quotas_are_told_with_the_part_that_they_were_used_up() {
        let limited = |throttled_usec| Class {
            bandwidth: Some(andante_sched::Bandwidth {
                quota_usec: 250_000,
                period_usec: 100_000,
                burst_usec: 0,
                throttled: true,
                nr_periods: 10,
                nr_throttled: 9,
                throttled_usec,
                nr_exceeded: 0,
            }),
            ..class("/a", 100, 0)
        };
        let at = |now_ns, throttled_usec| Snapshot {
            now_ns,
            cpus: 4,
            domains: 1,
            classes: vec![limited(throttled_usec)],
        };
        let rows = between(&at(0, 500), &at(1_000_000_000, 400_500));
        assert_eq!(rows[0].share_throttled, Some(0.4));
        let text = rows[0].quota().unwrap();
        assert_eq!(text, "quota 2.5 CPUs, throttled 40 %");
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
            classes: vec![
                class("/", 1, 0),
                class("/a/b", 1, 0),
                class("/c\x1b[2J", 1, 0),
            ],
        };
        let rows = between(&only, &only);
        let names: Vec<_> = rows.iter().map(Row::name).collect();
        assert_eq!(names, ["/", "b", "c\\x1b[2J"]);
    }
}
