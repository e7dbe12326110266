//! The measures that there are: what each is called, whose it is, and how it is read from a result.

use crate::figures::{frame_rate, late_share, least_frame_rate, not_in_time};
use crate::{ClassResult, ProgramResult, RunResult, SchedulerResult, Spread};

/// What a measure can be a measure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureKind {
    /// Needs no subject.
    Machine,
    /// Needs `class`.
    Class,
    /// Needs `program`.
    Program,
}

type MachineMeasure = fn(&SchedulerResult, &RunResult) -> Option<f64>;
type ClassMeasure = fn(&ClassResult, &SchedulerResult, &RunResult) -> Option<f64>;
type ProgramMeasure = fn(&ProgramResult) -> Option<f64>;
type InClassMeasure = fn(&ProgramResult, &ClassResult) -> Option<f64>;
type SpreadOf = fn(&ProgramResult) -> Option<Spread>;
type SpreadMeasure = fn(&Spread) -> f64;

/// Measures of the machine.
pub const MACHINE: &[(&str, MachineMeasure)] = &[
    ("idle_share", |s, run| {
        Some(s.idle_ns as f64 / machine_ns(run))
    }),
    ("load_ms", |s, _| s.load_ms),
];
/// Measures that a simulated machine does not have.
pub const ONLY_ON_KERNEL: &[&str] = &["load_ms"];
/// Measures that count what happened, and that it did at all needs no clock.
pub const COUNTED: &[&str] = &["frames", "iterations", "deadlines", "events"];
/// Measures of a class.
pub const CLASS: &[(&str, ClassMeasure)] = &[
    ("share_received", |class, _, _| Some(class.share_received)),
    ("share_over_asked", |class, _, _| {
        Some(class.share_received / class.share_asked)
    }),
    ("share_of_rest", |class, scheduler, run| {
        Some(share_of_rest(class, scheduler, run))
    }),
    ("class_cpu_s", |class, _, _| Some(class.cpu_ns as f64 / 1e9)),
    ("least_in_a_second", |class, scheduler, _| {
        Some(in_seconds(class, scheduler).fold(f64::INFINITY, f64::min))
    }),
    ("most_in_a_second", |class, scheduler, _| {
        Some(in_seconds(class, scheduler).fold(0.0, f64::max))
    }),
    ("swapped_in", |class, _, _| {
        class.swapped_in.map(|n| n as f64)
    }),
    ("swapped_out", |class, _, _| {
        class.swapped_out.last().map(|n| *n as f64)
    }),
    ("most_swapped_out", |class, _, _| {
        let pairs = class.swapped_out.windows(2);
        let most = pairs.map(|pair| pair[1] - pair[0]).max();
        most.map(|n| n as f64)
    }),
    ("refaults", |class, _, _| class.refaults.map(|n| n as f64)),
];
/// Measures of a program.
pub const PROGRAM: &[(&str, ProgramMeasure)] = &[
    ("frames", |program| program.frames.map(|n| n as f64)),
    ("late", |program| program.late.map(|n| n as f64)),
    ("late_share", late_share),
    ("due", |program| program.due.map(|n| n as f64)),
    ("not_in_time", |program| {
        not_in_time(program).map(|(missed, _)| missed as f64)
    }),
    ("dropped", |program| program.dropped.map(|n| n as f64)),
    ("xruns", |program| program.xruns.map(|n| n as f64)),
    ("iterations", |program| program.iterations.map(|n| n as f64)),
    ("received_bytes", |program| {
        program.received_bytes.map(|n| n as f64)
    }),
    ("goodput_share", |program| program.goodput_share),
    ("lost", |program| program.lost.map(|n| n as f64)),
    ("iterations_per_cpu_s", |program| {
        let cpu_s = program.cpu_ns as f64 / 1e9;
        (cpu_s > 0.0).then_some(program.iterations? as f64 / cpu_s)
    }),
    ("skipped", |program| program.skipped.map(|n| n as f64)),
    ("read_bytes_per_s", |program| program.read_bytes_per_s),
    ("major_faults", |program| {
        program.major_faults.map(|n| n as f64)
    }),
    ("first_touch_ms", |program| program.first_touch_ms),
    ("first_read_ms", |program| program.first_read_ms),
    ("resume_ms", |program| program.resume_ms),
    ("deadlines", |program| program.deadlines.map(|n| n as f64)),
    ("missed", |program| program.missed.map(|n| n as f64)),
    ("violations", |program| program.violations.map(|n| n as f64)),
    ("exhaustions", |program| {
        program.exhaustions.map(|n| n as f64)
    }),
    ("events", |program| program.events.map(|n| n as f64)),
    ("swaps", |program| program.swaps.map(|n| n as f64)),
    ("cpu_s", |program| Some(program.cpu_ns as f64 / 1e9)),
    ("longest_freeze_ms", |program| program.longest_freeze_ms),
    ("gaps_over_100ms", |program| {
        program.gaps_over_100ms.map(|n| n as f64)
    }),
    ("span_s", |program| program.span_s),
    ("frame_rate", frame_rate),
    ("least_frame_rate", least_frame_rate),
];
/// Spreads of a program; each stands for the measures of [`OF_SPREAD`].
pub const SPREADS: &[(&str, SpreadOf)] = &[
    ("frame_ms", |program| program.frame_ms),
    ("iteration_ms", |program| program.iteration_ms),
    ("latency_us", |program| program.latency_us),
    ("lateness_us", |program| program.lateness_us),
];
/// What is measured of a spread.
pub const OF_SPREAD: &[(&str, SpreadMeasure)] = &[
    ("mean", |spread| spread.mean),
    ("sd", |spread| spread.sd),
    ("p50", |spread| spread.p50),
    ("p99", |spread| spread.p99),
    ("max", |spread| spread.max),
];

/// Measures of a program that its class has a part in.
pub const IN_CLASS: &[(&str, InClassMeasure)] = &[("frame_rate_over_asked", |program, class| {
    Some(frame_rate(program)? / class.share_asked)
})];

/// CPU time of the whole machine in the measurement [ns].
fn machine_ns(run: &RunResult) -> f64 {
    run.duration_s * 1e9 * f64::from(run.cpus)
}

/// What a class used in each second, as far as readings of its CPU time tell [CPUs]. There are no more of
/// them than readings: set `sample_ms` to less than a second.
fn in_seconds(class: &ClassResult, scheduler: &SchedulerResult) -> impl Iterator<Item = f64> {
    let readings = scheduler.sample_ns.iter().zip(&class.samples);
    let readings: Vec<_> = std::iter::once((&0, &0)).chain(readings).collect();
    (0..readings.len()).filter_map(move |at| {
        let (from_ns, before_ns) = readings[at];
        let second = |(at_ns, _): &&(&u64, &u64)| **at_ns >= from_ns + 1_000_000_000;
        let (until_ns, after_ns) = readings[at..].iter().find(second)?;
        Some((*after_ns - before_ns) as f64 / (*until_ns - from_ns) as f64)
    })
}

/// What a class received of the time that the other classes at the top leave.
fn share_of_rest(class: &ClassResult, scheduler: &SchedulerResult, run: &RunResult) -> f64 {
    let top = |path: &str| path.matches('/').count() == 1;
    let inside = |other: &ClassResult| {
        class
            .path
            .strip_prefix(&other.path)
            .is_some_and(|r| r.is_empty() || r.starts_with('/'))
    };
    let others = scheduler
        .classes
        .iter()
        .filter(|other| top(&other.path) && !inside(other));
    let taken_ns: u64 = others.map(|other| other.cpu_ns).sum();
    class.cpu_ns as f64 / (machine_ns(run) - taken_ns as f64)
}

/// The entry of this name.
pub fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

/// The names of all measures; those of a spread (`frame_ms`, `iteration_ms`, `latency_us`, …) stand for
/// `frame_ms.mean`, `.sd`, `.p50`, `.p99` and `.max`.
pub fn names() -> impl Iterator<Item = &'static str> {
    let names = MACHINE
        .iter()
        .map(|(name, _)| *name)
        .chain(CLASS.iter().map(|(name, _)| *name));
    names
        .chain(PROGRAM.iter().map(|(name, _)| *name))
        .chain(IN_CLASS.iter().map(|(name, _)| *name))
        .chain(SPREADS.iter().map(|(name, _)| *name))
}

/// What `measure` is a measure of; none if there is no such measure.
pub fn kind(measure: &str) -> Option<MeasureKind> {
    if find(MACHINE, measure).is_some() {
        Some(MeasureKind::Machine)
    } else if find(CLASS, measure).is_some() {
        Some(MeasureKind::Class)
    } else if find(PROGRAM, measure).is_some() || find(IN_CLASS, measure).is_some() {
        Some(MeasureKind::Program)
    } else {
        let (spread, of) = measure.split_once('.')?;
        find(SPREADS, spread)
            .and(find(OF_SPREAD, of))
            .map(|_| MeasureKind::Program)
    }
}
