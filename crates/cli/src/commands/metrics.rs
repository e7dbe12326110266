//! `andante metrics`: figures for a monitoring system.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use andante_daemon::{List, Listed, MemorySeen, StatusSeen};
use andante_terminal::exit::Status;
use anyhow::{Context, Result};
use clap::Args;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{contracts, status};
use crate::{live, output};

/// Print figures for a monitoring system, as OpenMetrics (Prometheus reads it).
///
/// Tells whether Andante is in charge; of every class its CPU time, weight, tasks and throttled time; of every
/// contract that was promised its CPU time, jobs, late jobs and used-up budgets; of reserved memory what is used and how long
/// was waited for it; how many learnt contracts there are; and what the scheduler has counted since it was loaded.
#[derive(Args)]
#[command(after_long_help = "\
With --to it writes a file for node_exporter's textfile collector; the file is replaced as a whole, so that nobody
reads half of one. The timer andante-metrics.timer, which is installed and not enabled, does so every 15 seconds.

Examples:
  andante metrics
  sudo andante metrics --to /var/lib/prometheus/node-exporter/andante.prom
  sudo systemctl enable --now andante-metrics.timer")]
pub struct Metrics {
    /// Write them into this file.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Metrics {
    /// Looks once, and prints or writes.
    pub fn run(self) -> Result<Status> {
        let seen = match status::in_charge() {
            Ok(()) => Some(live::status()?),
            // That is a figure too, and the one that an alarm is made of.
            Err(_) => None,
        };
        let mut text = String::new();
        encode(
            &mut text,
            &registry(seen.as_ref(), contracts::list().as_ref()),
        )?;
        match &self.to {
            Some(file) => replace(file, &text)
                .with_context(|| format!("could not write {}", file.display()))?,
            None => output::print(&text)?,
        }
        Ok(Status::Ok)
    }
}

/// Puts the text there in one step, for everybody to read.
fn replace(file: &Path, text: &str) -> Result<()> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = file.file_name().context("it has no name")?;
    let new = folder.join(format!(".{}.new", name.to_string_lossy()));
    let written = fs::File::create(&new).and_then(|mut to| {
        to.write_all(text.as_bytes())?;
        to.set_permissions(fs::Permissions::from_mode(0o644))
    });
    let moved = written.and_then(|()| fs::rename(&new, file));
    if moved.is_err() {
        let _ = fs::remove_file(&new);
    }
    Ok(moved?)
}

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter<f64, AtomicU64>>;
type Gauges = Family<Labels, Gauge>;

fn registry(seen: Option<&StatusSeen>, list: Option<&List>) -> Registry {
    let mut registry = Registry::with_prefix("andante");
    let in_charge: Gauge = Gauge::default();
    in_charge.set(i64::from(seen.is_some()));
    registry.register(
        "in_charge",
        "Whether Andante schedules this machine",
        in_charge,
    );
    if let Some(seen) = seen {
        classes(&mut registry, seen);
        let learnt: Gauge = Gauge::default();
        let held = seen.seen.learnt_room.map_or(0, |room| room.held);
        learnt.set(i64::try_from(held).unwrap_or(i64::MAX));
        registry.register(
            "learnt_contracts",
            "Learnt contracts that there are",
            learnt,
        );
        let events = Counters::default();
        for (event, count) in &seen.seen.counters {
            counted(&events, vec![("event", event.clone())], *count as f64);
        }
        registry.register(
            "events",
            "What the scheduler has counted since it was loaded",
            events,
        );
    }
    if let Some(list) = list {
        promised(&mut registry, &list.contracts);
        if let Some(memory) = &list.memory {
            reserved(&mut registry, memory);
        }
    }
    registry
}

fn classes(registry: &mut Registry, seen: &StatusSeen) {
    let [cpu, throttled] = [Counters::default(), Counters::default()];
    let [weight, running, queued] = [Gauges::default(), Gauges::default(), Gauges::default()];
    for class in seen.seen.snapshot.classes.iter().filter(|class| !class.own) {
        let labels: Labels = vec![("class", class.path.clone())];
        counted(&cpu, labels.clone(), class.cpu_ns as f64 / 1e9);
        for (gauge, value) in [
            (&weight, class.weight),
            (&running, class.running),
            (&queued, class.queued),
        ] {
            gauge.get_or_create(&labels).set(i64::from(value));
        }
        if let Some(quota) = class.bandwidth {
            counted(&throttled, labels, quota.throttled_usec as f64 / 1e6);
        }
    }
    registry.register_with_unit(
        "class_cpu",
        "CPU time of a class and all below it",
        Unit::Seconds,
        cpu,
    );
    registry.register_with_unit(
        "class_throttled",
        "Time that a class has waited for its quota",
        Unit::Seconds,
        throttled,
    );
    registry.register(
        "class_weight",
        "Weight of a class among its siblings",
        weight,
    );
    registry.register("class_running", "Tasks of a class that run", running);
    registry.register(
        "class_queued",
        "Tasks of a class that wait for a CPU",
        queued,
    );
}

fn promised(registry: &mut Registry, list: &[Listed]) {
    let [cpu, jobs, late, exhausted] = [(); 4].map(|()| Counters::default());
    for contract in list {
        let kept = contract.kept.unwrap_or_default();
        let labels: Labels = vec![
            ("contract", contract.name.clone()),
            ("uid", contract.uid.to_string()),
        ];
        counted(&cpu, labels.clone(), kept.service_ns as f64 / 1e9);
        counted(&jobs, labels.clone(), kept.deadlines as f64);
        counted(&late, labels.clone(), kept.misses as f64);
        counted(&exhausted, labels, kept.exhaustions as f64);
    }
    registry.register_with_unit(
        "contract_cpu",
        "CPU time under a promised contract",
        Unit::Seconds,
        cpu,
    );
    registry.register(
        "contract_jobs",
        "Jobs of a promised contract that have ended",
        jobs,
    );
    registry.register("contract_late_jobs", "Of those, late ones", late);
    registry.register(
        "contract_exhaustions",
        "Budgets of a promised contract that were used up",
        exhausted,
    );
}

fn reserved(registry: &mut Registry, memory: &MemorySeen) {
    let [reserved, used, swapped] = [Gauges::default(), Gauges::default(), Gauges::default()];
    let [refaults, faults, waited] = [(); 3].map(|()| Counters::default());
    for one in &memory.reservations {
        let labels: Labels = vec![("class", one.class.clone())];
        for (gauge, bytes) in [
            (&reserved, one.bytes),
            (&used, one.found.used),
            (&swapped, one.found.swapped),
        ] {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            gauge.get_or_create(&labels).set(bytes);
        }
        counted(&refaults, labels.clone(), one.found.refaults as f64);
        counted(&faults, labels.clone(), one.found.major_faults as f64);
        counted(&waited, labels, one.found.stalled_us as f64 / 1e6);
    }
    for (name, help, gauge) in [
        ("memory_reserved", "Memory reserved for a class", reserved),
        (
            "memory_used",
            "Memory that a class with a reservation uses",
            used,
        ),
        ("memory_swapped", "Of it in the swap", swapped),
    ] {
        registry.register_with_unit(name, help, Unit::Bytes, gauge);
    }
    registry.register(
        "memory_refaults",
        "Pages of a class with a reservation that had been taken and were needed again",
        refaults,
    );
    registry.register(
        "memory_major_faults",
        "Accesses of it that waited for a disk",
        faults,
    );
    registry.register_with_unit(
        "memory_waited",
        "Time in which some program of it waited for memory",
        Unit::Seconds,
        waited,
    );
}

fn counted(of: &Counters, labels: Labels, value: f64) {
    of.get_or_create(&labels).inc_by(value);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use andante_sched::{Seen, Snapshot};

    use super::*;
    use crate::commands::contracts::tests::list;
    use crate::shares::tests::class;

    fn text(seen: Option<&StatusSeen>, list: Option<&List>) -> String {
        let mut text = String::new();
        encode(&mut text, &registry(seen, list)).unwrap();
        text
    }

    #[test]
    fn classes_contracts_and_counts_are_told() {
        let seen = StatusSeen {
            seen: Seen {
                snapshot: Snapshot {
                    now_ns: 1,
                    cpus: 1,
                    domains: 1,
                    classes: vec![class("/a \"b\"", 300, 1_500_000_000)],
                },
                sharing: None,
                learnt_room: None,
                counters: BTreeMap::from([("picks".to_owned(), 7)]),
            },
            learnt: Vec::new(),
            stands_ns: 0,
        };
        let text = text(Some(&seen), Some(&list(1_000, 2_000_000_000)));
        for line in [
            "andante_in_charge 1",
            "andante_class_cpu_seconds_total{class=\"/a \\\"b\\\"\"} 1.5",
            "andante_class_weight{class=\"/a \\\"b\\\"\"} 300",
            "andante_events_total{event=\"picks\"} 7.0",
            "andante_contract_cpu_seconds_total{contract=\"mpv-7\",uid=\"0\"} 2.0",
            "andante_contract_late_jobs_total{contract=\"mpv-7\",uid=\"0\"} 1.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}:\n{text}");
        }
    }

    #[test]
    fn that_it_is_not_in_charge_is_told_too() {
        let text = text(None, None);
        assert!(
            text.contains("andante_in_charge 0\n") && text.ends_with("# EOF\n"),
            "{text}"
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("andante.prom");
        for text in ["one", "two"] {
            replace(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("none/x"), "").is_err());
    }
}
