//! What is read from the run of a draw, and how much of the machine a draw asks for.

use andante_result::cases::base_name;
use andante_result::figures::{late_share, number};
use andante_result::{ProgramResult, SchedulerResult};
use andante_scenario::{Display, Kind, Program, Workload};
use andante_sim::programs::key_presses;

/// One thing that is measured of every draw.
pub(crate) struct Measure {
    /// As options, families and JSON call it.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// As it is shown; empty for a ratio.
    pub unit: &'static str,
    /// From the figure to what is shown.
    pub scale: f64,
    pub decimals: usize,
    /// Whether more is better.
    pub more: bool,
    /// What is asked of a draw if nothing else is said; none: nothing.
    pub bound: Option<f64>,
    /// How much worse than under the reference still counts as being as good.
    pub within: f64,
    /// By how much worse than under the stock scheduler is worse, and no chance of one draw; none: it is
    /// not compared.
    pub worse_than_stock: Option<f64>,
    of: fn(&Workload, &SchedulerResult) -> Option<f64>,
}

const COUNT: usize = 10;
/// A figure, or something else, for each of [`MEASURES`].
pub(crate) type Figures = [Option<f64>; COUNT];

/// The place of the one that compares with the reference.
pub(crate) const BATCH: usize = 4;

/// All, in the order shown. The bounds are those that `scenarios/desktop.toml` and `audio.toml` ask for.
#[rustfmt::skip]
pub(crate) const MEASURES: [Measure; COUNT] = [
    Measure {
        name: "late_share", title: "frames not in time", unit: "%", scale: 100.0, decimals: 2, more: false,
        bound: Some(0.01), within: 0.01, worse_than_stock: Some(0.02), of: frames_late,
        meaning: "of the frames due, the part that was late, dropped, or never come to; of several films the worst",
    },
    Measure {
        name: "xrun_share", title: "sound not in time", unit: "%", scale: 100.0, decimals: 2, more: false,
        bound: Some(0.0), within: 0.01, worse_than_stock: Some(0.02), of: xrun_share,
        meaning: "of the periods of a sound card, the part for which sound did not come in time; of several programs the worst",
    },
    Measure {
        name: "key_p99_ms", title: "key to answer, p99", unit: "ms", scale: 1.0, decimals: 1, more: false,
        bound: Some(10.0), within: 2.0, worse_than_stock: Some(1.0), of: |workload, result| keys(workload, result, |p| Some(p.latency_us?.p99)),
        meaning: "99 of 100 keys are answered within this; of several typists the worst; the whole measurement, if no key was answered",
    },
    Measure {
        name: "key_max_ms", title: "key to answer, max", unit: "ms", scale: 1.0, decimals: 1, more: false,
        bound: None, within: 2.0, worse_than_stock: None, of: |workload, result| keys(workload, result, |p| Some(p.latency_us?.max)),
        meaning: "the longest time from a key to its answer",
    },
    Measure {
        name: "batch", title: "batch work", unit: "%", scale: 100.0, decimals: 1, more: true,
        bound: Some(0.95), within: 0.05, worse_than_stock: Some(0.03), of: |_, _| None,
        meaning: "what batch jobs, those that wait for their disk, and loops got done over what they got done under the reference; each kind by the CPU time that it had there",
    },
    Measure {
        name: "ejected", title: "let go by the kernel", unit: "%", scale: 100.0, decimals: 0, more: false,
        bound: Some(0.0), within: 0.0, worse_than_stock: None, of: |_, result| result.ejected.as_ref().map(|_| 1.0),
        meaning: "only of draws in which the kernel's watchdog has ejected the scheduler, since somebody had waited for too long",
    },
    Measure {
        name: "promised_late", title: "promised, not in time", unit: "%", scale: 100.0, decimals: 2, more: false,
        bound: None, within: 0.01, worse_than_stock: None, of: |workload, result| late_of(workload, result, true),
        meaning: "of the frames, or the periods of sound, of programs that were promised time, the part not in time; of several programs the worst",
    },
    Measure {
        name: "others_late", title: "others, not in time", unit: "%", scale: 100.0, decimals: 2, more: false,
        bound: None, within: 0.01, worse_than_stock: None, of: |workload, result| late_of(workload, result, false),
        meaning: "the same of the programs beside them that were promised nothing",
    },
    Measure {
        name: "packet_p99_ms", title: "packet, p99", unit: "ms", scale: 1.0, decimals: 2, more: false,
        bound: Some(PACKET_LATE_MS), within: 1.0, worse_than_stock: Some(1.0), of: |workload, result| packets(workload, result, |p| Some(p.latency_us?.p99 / 1e3)),
        meaning: "99 of 100 packets that somebody waits for are at the other end of the link within this; of several senders the worst",
    },
    Measure {
        name: "packet_loss", title: "packets lost", unit: "%", scale: 100.0, decimals: 2, more: false,
        bound: Some(PACKET_LOSS), within: PACKET_LOSS, worse_than_stock: Some(0.01), of: |workload, result| packets(workload, result, lost_share),
        meaning: "of those packets the part that never comes; of several senders the worst",
    },
];

/// Bounds on the variation in delay and on the loss of packets of speech and pictures: ITU-T Y.1541
/// (2011), table 1, classes 0 and 1 (IPDV, IPLR).
const PACKET_LATE_MS: f64 = 50.0;
const PACKET_LOSS: f64 = 1e-3;

impl Measure {
    /// A figure as it is shown, without its unit.
    pub fn show(&self, figure: f64) -> String {
        number(figure * self.scale, self.decimals)
    }

    /// A figure with its unit.
    pub fn show_with_unit(&self, figure: f64) -> String {
        format!("{} {}", self.show(figure), self.unit)
    }

    /// By how much `figure` is worse than `other`; below 0: better.
    pub fn worse(&self, figure: f64, other: f64) -> f64 {
        match self.more {
            true => other - figure,
            false => figure - other,
        }
    }

    /// Whether `figure` is within `bound`.
    pub fn keeps(&self, figure: f64, bound: f64) -> bool {
        self.worse(figure, bound) <= 0.0
    }
}

/// What one scheduler made of a draw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// By measure; the one that compares is added later.
    pub figures: Figures,
    /// Units of batch work and the CPU time they took [ns], by program.
    work: Vec<(String, u64, u64)>,
}

impl Outcome {
    pub fn of(workload: &Workload, result: &SchedulerResult) -> Self {
        let mut work: Vec<(String, u64, u64)> = Vec::new();
        let batch =
            |p: &&ProgramResult| matches!(p.kind.as_str(), "batch" | "disk" | "loop" | "dhrystone");
        for program in result.programs.iter().filter(batch) {
            let name = base_name(program);
            let iterations = program.iterations.unwrap_or(0);
            match work.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, units, cpu_ns)) => {
                    *units += iterations;
                    *cpu_ns += program.cpu_ns;
                }
                None => work.push((name.to_owned(), iterations, program.cpu_ns)),
            }
        }
        Self {
            figures: std::array::from_fn(|at| (MEASURES[at].of)(workload, result)),
            work,
        }
    }

    /// Batch work done over that of `reference`. Programs do units of different lengths: each counts by
    /// the CPU time that it had under the reference.
    pub fn work_over(&self, reference: &Self) -> Option<f64> {
        let (mut done, mut all) = (0.0, 0.0);
        for (name, units, cpu_ns) in &reference.work {
            let own = self.work.iter().find(|(known, ..)| known == name);
            if let (Some((_, own, _)), true) = (own, *units > 0) {
                done += *own as f64 / *units as f64 * *cpu_ns as f64;
                all += *cpu_ns as f64;
            }
        }
        (all > 0.0).then(|| done / all)
    }
}

/// The programs that somebody waits for, with their results: those that were niced, or put under SCHED_IDLE, are to
/// have what is left, and are late as it may be.
fn awaited<'a>(
    workload: &'a Workload,
    result: &'a SchedulerResult,
) -> impl Iterator<Item = (&'a Program, &'a ProgramResult)> {
    workload
        .instances()
        .zip(&result.programs)
        .filter(|(program, _)| !program.is_background())
}

fn frames_late(workload: &Workload, result: &SchedulerResult) -> Option<f64> {
    awaited(workload, result)
        .filter_map(|(_, result)| late_share(result))
        .reduce(f64::max)
}

fn xrun_share(workload: &Workload, result: &SchedulerResult) -> Option<f64> {
    let share = |(program, result)| xruns_of(workload, program, result);
    awaited(workload, result).filter_map(share).reduce(f64::max)
}

fn xruns_of(workload: &Workload, program: &Program, result: &ProgramResult) -> Option<f64> {
    let Kind::Audio {
        frames, rate_hz, ..
    } = &program.kind
    else {
        return None;
    };
    let periods = Kind::periods_per_s(*frames, *rate_hz) * measured_s(workload, program);
    Some((result.xruns? as f64 / periods.max(1.0)).min(1.0))
}

/// The worst part not in time of the programs that were promised time, or of the others beside them; none where
/// nobody was promised any.
fn late_of(workload: &Workload, result: &SchedulerResult, promised: bool) -> Option<f64> {
    let mut instances = workload.instances();
    instances.find(|program| program.contract.is_some())?;
    let of = |(program, result)| xruns_of(workload, program, result).or_else(|| late_share(result));
    awaited(workload, result)
        .filter(|(program, _)| program.contract.is_some() == promised)
        .filter_map(of)
        .reduce(f64::max)
}

/// The worst figure of a sender that somebody waits for. One of which nothing arrives has lost all of it.
fn packets(
    workload: &Workload,
    result: &SchedulerResult,
    of: fn(&ProgramResult) -> Option<f64>,
) -> Option<f64> {
    let sends = |program: &Program| matches!(program.kind, Kind::Sender { .. });
    awaited(workload, result)
        .filter(|(program, _)| sends(program))
        .filter_map(|(_, result)| of(result))
        .reduce(f64::max)
}

fn lost_share(program: &ProgramResult) -> Option<f64> {
    let (arrived, lost) = (program.iterations? as f64, program.lost? as f64);
    Some(lost / (arrived + lost).max(1.0))
}

/// How long the program runs in the measurement [s].
fn measured_s(workload: &Workload, program: &Program) -> f64 {
    let end_s = program.stop_s.unwrap_or(f64::MAX).min(workload.duration_s);
    (end_s - program.start_s.unwrap_or(0.0).max(0.0)).max(0.0)
}

/// The worst figure of a typist [ms]. One whose keys all wait for ever has no latencies: it is as bad as
/// the measurement is long.
fn keys(
    workload: &Workload,
    result: &SchedulerResult,
    of_us: fn(&ProgramResult) -> Option<f64>,
) -> Option<f64> {
    let figure = |(program, result): (&Program, &ProgramResult)| match &program.kind {
        Kind::Typist { .. } => match of_us(result) {
            Some(us) => Some(us / 1e3),
            None => presses(workload, program).then_some(workload.duration_s * 1e3),
        },
        _ => None,
    };
    awaited(workload, result)
        .filter_map(figure)
        .reduce(f64::max)
}

/// Whether a key of this typist comes while it runs and something is measured.
fn presses(workload: &Workload, program: &Program) -> bool {
    let Kind::Typist {
        keys_per_s,
        regular,
        seed,
        until_s,
        ..
    } = &program.kind
    else {
        return false;
    };
    let first_ns = key_presses(0, *keys_per_s, *regular, *seed).next();
    let first_s = first_ns.map_or(f64::MAX, |ns| ns as f64 / 1e9);
    first_s < workload.duration_s.min(until_s.unwrap_or(f64::MAX))
}

/// CPU time that the programs somebody waits for ask for, over what the machine has [ratio]: films and
/// their drawing, keys, sound, and clients with their servers. Above 1 nobody can serve them all.
pub(crate) fn load(workload: &Workload) -> f64 {
    let of = |program: &Program| f64::from(program.count) * demand(&program.kind);
    let programs = workload.programs.iter();
    let awaited = programs.filter(|program| !program.is_background());
    awaited.map(of).sum::<f64>() / f64::from(workload.cpus)
}

/// CPU time per time; of programs that nobody waits for 0.
fn demand(kind: &Kind) -> f64 {
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len().max(1) as f64;
    let drawn = |work_ms: &[f64], display: &Display| (mean(work_ms) + display.work_ms) / 1e3;
    match kind {
        Kind::Player {
            fps,
            work_ms,
            display,
            ..
        } => fps * drawn(work_ms, display),
        Kind::Game {
            fps,
            work_ms,
            updates_per_s,
            update_ms,
        } => fps * mean(work_ms) / 1e3 + updates_per_s * update_ms / 1e3,
        Kind::Typist {
            keys_per_s,
            work_ms,
            display,
            ..
        } => keys_per_s * drawn(work_ms, display),
        Kind::Audio {
            frames,
            rate_hz,
            work_ms,
        } => Kind::periods_per_s(*frames, *rate_hz) * mean(work_ms) / 1e3,
        Kind::Sink {
            events_per_s,
            work_ms,
            ..
        } => events_per_s * mean(work_ms) / 1e3,
        // A closed loop: what it asks for if it never waits longer than the work takes.
        Kind::Client {
            work_ms, think_ms, ..
        } if *work_ms > 0.0 => work_ms / (work_ms + think_ms),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_scenario::Scenario;

    fn workload(programs: &str) -> Workload {
        let text = format!("title = 'x'\ncpus = 2\nduration_s = 4\n{programs}");
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload
    }

    fn batch(name: &str, iterations: u64, cpu_ms: u64) -> ProgramResult {
        ProgramResult {
            name: name.to_owned(),
            kind: "batch".to_owned(),
            iterations: Some(iterations),
            cpu_ns: cpu_ms * 1_000_000,
            ..ProgramResult::default()
        }
    }

    #[test]
    fn the_load_is_what_somebody_waits_for() {
        let workload = workload(
            "[programs.film]\nclass = '/'\nkind = 'player'\nfps = 50\nwork_ms = [4, 8]\ndisplay_ms = 2\n\
             [programs.keys]\nclass = '/'\nkind = 'typist'\nkeys_per_s = 10\nwork_ms = 1\n\
             [programs.sound]\nclass = '/'\nkind = 'audio'\nframes = 480\nload = 0.2\ncount = 2\n\
             [programs.back]\nclass = '/'\nkind = 'player'\nfps = 50\nwork_ms = 9\nnice = 1\n\
             [programs.game]\nclass = '/'\nkind = 'game'\nfps = 50\nwork_ms = [2, 6]\nupdates_per_s = 20\nupdate_ms = 1\n\
             [programs.jobs]\nclass = '/'\nkind = 'batch'\ncount = 9\n",
        );
        assert!((load(&workload) - (0.4 + 0.01 + 0.4 + 0.22) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn batch_programs_count_by_their_time() {
        let outcome = |programs: Vec<ProgramResult>| {
            let result = SchedulerResult {
                programs,
                ..SchedulerResult::default()
            };
            Outcome::of(
                &workload("[programs.a]\nclass = '/'\nkind = 'loop'\n"),
                &result,
            )
        };
        let reference = outcome(vec![
            batch("a.1", 10, 300),
            batch("a.2", 20, 300),
            batch("b", 1000, 200),
            batch("never", 0, 50),
        ]);
        let other = outcome(vec![
            batch("a.1", 15, 1),
            batch("b", 2000, 1),
            batch("never", 3, 1),
        ]);
        // a: half of 600 ms, b: twice 200 ms.
        assert_eq!(
            other.work_over(&reference),
            Some((0.5 * 600.0 + 2.0 * 200.0) / 800.0)
        );
        assert_eq!(reference.work_over(&reference), Some(1.0));
        assert_eq!(outcome(Vec::new()).figures, Figures::default());
    }

    #[test]
    fn who_was_promised_time_is_told_apart_from_who_was_not() {
        let film = |name: &str, more: &str| {
            format!(
                "[programs.{name}]\nclass = '/'\nkind = 'player'\nfps = 10\nwork_ms = 1\n{more}"
            )
        };
        let promise = "session = true\npromise_ms = 2\n";
        let result = |late: &[u64]| SchedulerResult {
            programs: (late.iter())
                .map(|late| ProgramResult {
                    frames: Some(40),
                    late: Some(*late),
                    dropped: Some(0),
                    due: Some(40),
                    ..ProgramResult::default()
                })
                .collect(),
            ..SchedulerResult::default()
        };
        let apart = |programs: &str, late: &[u64]| {
            let figures = Outcome::of(&workload(programs), &result(late)).figures;
            [figures[6], figures[7]]
        };
        let both = film("a", promise) + &film("b", "");
        assert_eq!(apart(&both, &[4, 10]), [Some(0.1), Some(0.25)]);
        assert_eq!(apart(&film("a", promise), &[4]), [Some(0.1), None]);
        assert_eq!(apart(&film("a", ""), &[4]), [None, None], "nobody was");
    }

    #[test]
    fn keys_that_are_never_answered_are_no_good_figure() {
        let workload = workload("[programs.keys]\nclass = '/'\nkind = 'typist'\nkeys_per_s = 10\n");
        let result = SchedulerResult {
            programs: vec![ProgramResult::default()],
            ..SchedulerResult::default()
        };
        assert_eq!(Outcome::of(&workload, &result).figures[2], Some(4000.0));
    }

    #[test]
    fn worse_is_worse_whichever_way_a_measure_goes() {
        let (late, batch) = (&MEASURES[0], &MEASURES[BATCH]);
        assert!(late.worse(0.3, 0.1) > 0.0 && batch.worse(0.3, 0.1) < 0.0);
        assert!(late.keeps(0.01, 0.01) && !late.keeps(0.02, 0.01));
        assert!(batch.keeps(0.96, 0.95) && !batch.keeps(0.9, 0.95));
        assert_eq!(MEASURES[BATCH].name, "batch");
    }
}
