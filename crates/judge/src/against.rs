//! Agreement of one place with another: the simulator's figures beside those of a real kernel.
//!
//! Shares (of classes, and of programs), frame rates, late frames, latencies, what batch programs get done and
//! what became of contracts are compared, of every scheduler that both results have. The comparisons are judged like a scenario's own expectations, and stand beside
//! them in the result and the report.

use std::path::Path;

use andante_job::LabError;
use andante_result::cases::base_name;
use andante_result::figures::{frame_rate, late_share, number};
use andante_result::{Judgement, ProgramResult, RunResult, SchedulerResult, Spread, Verdict};

/// How far shares may lie apart [ratio of all CPUs]. CPU time that contracts leave over goes to whoever is behind: with
/// one scheduler, compiled in three ways, `contract-windows` has 18.9 to 20.5 % in the virtual machine.
const SHARE_WITHIN: f64 = 0.03;
/// What every comparison's text begins with.
const AS_ON: &str = "as on ";

/// Adds to each of `runs` how it compares with the result of the same scenario and case below
/// `folder`.
///
/// # Errors
/// If a result is missing, is no result, or has no scheduler in common with the run.
pub fn judge(runs: &mut [RunResult], folder: &Path) -> Result<(), LabError> {
    for run in runs {
        let case = run.case.clone().unwrap_or_default();
        let file = folder.join(&run.scenario).join(case).join("result.json");
        let text = std::fs::read(&file).map_err(|e| LabError::file("read", &file, e))?;
        let other: RunResult = serde_json::from_slice(&text)
            .map_err(|e| LabError::io(format!("read {}", file.display()), e))?;
        let common = compare(run, &other);
        if common.is_empty() {
            let nothing = std::io::Error::other(
                "it has no share or frame rate of a scheduler that was run here",
            );
            return Err(LabError::file("compare with", &file, nothing));
        }
        run.expectations.extend(common);
    }
    Ok(())
}

/// How many comparisons `runs` hold, and how many of them are within bounds.
pub fn agreement(runs: &[RunResult]) -> (usize, usize) {
    let all = runs.iter().flat_map(|run| &run.expectations);
    let compared = all.filter(|judgement| judgement.expectation.starts_with(AS_ON));
    let verdicts: Vec<Verdict> = compared.map(|judgement| judgement.verdict).collect();
    let holds = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Pass)
        .count();
    (verdicts.len(), holds)
}

fn compare(run: &RunResult, other: &RunResult) -> Vec<Judgement> {
    let place = format!("{AS_ON}{} ({})", other.on, other.kernel);
    let mut judgements = Vec::new();
    for here in &run.schedulers {
        let Some(there) = other
            .schedulers
            .iter()
            .find(|there| there.name == here.name)
        else {
            continue;
        };
        judgements.extend(shares(&place, here, there));
        let of_each_ns = run.duration_s * 1e9 * f64::from(run.cpus);
        judgements.extend(used(&place, of_each_ns, here, there));
        judgements.extend(programs(&place, here, there));
    }
    judgements
}

fn shares(place: &str, here: &SchedulerResult, there: &SchedulerResult) -> Vec<Judgement> {
    let judge = |class: &andante_result::ClassResult| {
        let other = there
            .classes
            .iter()
            .find(|other| other.path == class.path)?;
        let (measured, wanted) = (class.share_received, other.share_received);
        let text = format!(
            "{place}, {}: share of {} within {} points of {} %",
            here.name,
            class.path,
            number(SHARE_WITHIN * 100.0, 0),
            number(wanted * 100.0, 2)
        );
        Some(judgement(
            text,
            measured,
            (measured - wanted).abs() <= SHARE_WITHIN,
        ))
    };
    here.classes.iter().filter_map(judge).collect()
}

/// The CPU that each program had, its instances together, as a part of `whole_ns`: that of all CPUs.
fn used(
    place: &str,
    whole_ns: f64,
    here: &SchedulerResult,
    there: &SchedulerResult,
) -> Vec<Judgement> {
    let of = |scheduler: &SchedulerResult, name: &str| {
        // Of the two processes of a pair a kernel's result has the first one's.
        let alone = instances(scheduler, name).filter(|program| program.kind != "pingpong");
        let used_ns = alone.map(|program| program.cpu_ns as f64);
        used_ns
            .reduce(|a, b| a + b)
            .map(|used_ns| used_ns / whole_ns)
    };
    let judge = |name: &str| {
        let (measured, wanted) = (of(here, name)?, of(there, name)?);
        let text = format!(
            "{place}, {}: CPU of {name} within {} points of {} %",
            here.name,
            number(SHARE_WITHIN * 100.0, 0),
            number(wanted * 100.0, 2)
        );
        let holds = (measured - wanted).abs() <= SHARE_WITHIN;
        Some(judgement(text, measured, holds))
    };
    names(here).into_iter().filter_map(judge).collect()
}

/// Of the programs, whatever number of instances they have.
fn names(scheduler: &SchedulerResult) -> Vec<&str> {
    let mut names: Vec<&str> = scheduler.programs.iter().map(base_name).collect();
    names.dedup();
    names
}

/// The instances of the program of that name.
fn instances<'a>(
    scheduler: &'a SchedulerResult,
    name: &'a str,
) -> impl Iterator<Item = &'a ProgramResult> {
    let programs = scheduler.programs.iter();
    programs.filter(move |program| base_name(program) == name)
}

/// A measure of programs that is compared.
struct Compared {
    name: &'static str,
    unit: &'static str,
    decimals: usize,
    of: fn(&ProgramResult) -> Option<f64>,
    /// Of the instances of a program: the worst, or the sum.
    join: fn(f64, f64) -> f64,
    /// How far the figures may lie apart: this part of the other, or so much, whichever is more.
    relative: f64,
    absolute: f64,
    /// The figure's standard error, for what is known of its samples' spread, in its unit.
    error: fn(&ProgramResult) -> f64,
}

/// What people see of a scheduler; bounds as ARCHITECTURE.md gives them for `make agreement`.
const COMPARED: [Compared; 8] = [
    Compared {
        name: "frame rate",
        unit: "/s",
        decimals: 2,
        of: frame_rate,
        join: f64::min,
        relative: 0.03,
        absolute: 0.0,
        error: |_| 0.0,
    },
    Compared {
        name: "late share",
        unit: " %",
        decimals: 2,
        of: |program| late_share(program).map(|share| share * 100.0),
        join: f64::max,
        relative: 0.0,
        absolute: 2.0,
        error: |_| 0.0,
    },
    Compared {
        name: "part of what arrived",
        unit: " %",
        decimals: 2,
        of: |program| program.goodput_share.map(|share| share * 100.0),
        join: |a, b| a + b,
        relative: 0.0,
        absolute: 0.5,
        error: |_| 0.0,
    },
    Compared {
        name: "latency, mean",
        unit: " ms",
        decimals: 3,
        of: |program| latency(program).map(|spread| spread.mean / 1e3),
        join: f64::max,
        relative: 0.05,
        // Where a kernel's timers happen to lie is worth microseconds: of `wakeup`, in one build, 10.9 beside four
        // loops and 12.1 beside two.
        absolute: 0.005,
        error: error_of_mean,
    },
    Compared {
        name: "latency, p99",
        unit: " ms",
        decimals: 2,
        // Of fewer than a hundred that is the latest of all, which a race of microseconds decides.
        of: |program| {
            let spread = latency(program).filter(|spread| spread.n >= 100);
            spread.map(|spread| spread.p99 / 1e3)
        },
        join: f64::max,
        relative: 0.15,
        absolute: 1.0,
        error: error_of_p99,
    },
    Compared {
        name: "iterations",
        unit: "",
        decimals: 0,
        of: |program| match program.kind.as_str() {
            "batch" => program.iterations.map(|n| n as f64),
            _ => None, // loops count what only ratios of mean anything
        },
        join: |a, b| a + b,
        relative: 0.03,
        // One piece of work more or less at an edge of the measurement is none.
        absolute: 2.0,
        error: |_| 0.0,
    },
    Compared {
        name: "deadlines missed",
        unit: " %",
        decimals: 2,
        of: |program| match (program.missed, program.deadlines) {
            (Some(missed), Some(deadlines)) if deadlines > 0 => {
                Some(missed as f64 / deadlines as f64 * 100.0)
            }
            _ => None,
        },
        join: f64::max,
        relative: 0.0,
        absolute: 2.0,
        error: |_| 0.0,
    },
    Compared {
        name: "violations",
        unit: "",
        decimals: 0,
        of: |program| program.violations.map(|n| n as f64),
        join: |a, b| a + b,
        // Kept is kept: where a kernel violates no window, the simulator may not either.
        relative: 0.15,
        absolute: 0.0,
        error: |_| 0.0,
    },
];

/// A program's latency, if it says anything: who sends more than a link carries always has as many packets waiting
/// as there is room for, and of several such it is chance who has the last place.
fn latency(program: &ProgramResult) -> Option<Spread> {
    program
        .latency_us
        .filter(|_| program.lost.unwrap_or(0) == 0)
}

/// Of a mean latency, in ms. One late key of 51 moves their mean by more than 5 %.
fn error_of_mean(program: &ProgramResult) -> f64 {
    let spread = program.latency_us;
    spread.map_or(0.0, |spread| spread.sd / 1e3 / (spread.n as f64).sqrt())
}

/// Of a p99, in ms, with the tail that an exponential distribution has: a quantile q of it has the density
/// (1 - q) / sd, so that q of n samples has the error sd sqrt(q / ((1 - q) n)).
fn error_of_p99(program: &ProgramResult) -> f64 {
    let spread = program.latency_us;
    spread.map_or(0.0, |spread| {
        spread.sd / 1e3 * (99.0 / spread.n as f64).sqrt()
    })
}

/// Instances of one program are taken together: which of several alike gets a little more is chance.
fn programs(place: &str, here: &SchedulerResult, there: &SchedulerResult) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for name in names(here) {
        for compared in &COMPARED {
            let (Some(measured), Some(wanted)) =
                (compared.joined(here, name), compared.joined(there, name))
            else {
                continue;
            };
            let error = compared
                .error(here, name)
                .hypot(compared.error(there, name));
            let within = (compared.relative * wanted).max(compared.absolute);
            // Of two figures with that error 95 of 100 pairs lie no further apart.
            let within = within.max(2.0 * error);
            let text = format!(
                "{place}, {}: {} of {name} within {}{unit} of {}{unit}",
                here.name,
                compared.name,
                number(within, compared.decimals),
                number(wanted, compared.decimals),
                unit = compared.unit,
            );
            let holds = (measured - wanted).abs() <= within;
            judgements.push(judgement(text, measured, holds));
        }
    }
    judgements
}

impl Compared {
    /// The figure of all instances of a program.
    fn joined(&self, scheduler: &SchedulerResult, name: &str) -> Option<f64> {
        instances(scheduler, name)
            .filter_map(|program| (self.of)(program))
            .reduce(self.join)
    }

    /// The largest standard error of its instances.
    fn error(&self, scheduler: &SchedulerResult, name: &str) -> f64 {
        instances(scheduler, name)
            .map(self.error)
            .fold(0.0, f64::max)
    }
}

fn judgement(expectation: String, measured: f64, holds: bool) -> Judgement {
    Judgement {
        expectation,
        measure: None,
        program: None,
        verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        tail: false,
        measured: Some(measured),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(cpu_ns: u64, missed: u64, violations: u64) -> SchedulerResult {
        let program = |name: &str| ProgramResult {
            name: name.to_owned(),
            kind: "loop".to_owned(),
            cpu_ns,
            deadlines: Some(100),
            missed: Some(missed),
            violations: Some(violations),
            ..ProgramResult::default()
        };
        SchedulerResult {
            programs: vec![program("a.1"), program("a.2")],
            ..SchedulerResult::default()
        }
    }

    #[test]
    fn figures_of_few_latencies_may_differ_by_two_standard_errors() {
        let typing = |mean: f64, p99: f64| SchedulerResult {
            programs: vec![ProgramResult {
                name: "typing".to_owned(),
                latency_us: Some(Spread {
                    n: 100,
                    mean,
                    sd: 2000.0, // standard errors of 200 µs and of 1.99 ms, and √2 as much of a difference
                    p50: 2000.0,
                    p99,
                    max: 20_000.0,
                }),
                ..ProgramResult::default()
            }],
            ..SchedulerResult::default()
        };
        let there = typing(3000.0, 8000.0);
        let verdicts = |mean, p99| {
            let all = programs("as on x", &typing(mean, p99), &there);
            all.iter().map(|j| j.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(3560.0, 13_600.0), [Verdict::Pass; 2]);
        assert_eq!(verdicts(3570.0, 13_700.0), [Verdict::Fail; 2]);
    }

    fn verdicts(here: &SchedulerResult, there: &SchedulerResult) -> Vec<Verdict> {
        let mut all = used("as on x", 1e9, here, there);
        all.extend(programs("as on x", here, there));
        all.iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn programs_are_compared_by_what_all_instances_had_and_by_what_became_of_contracts() {
        use Verdict::{Fail, Pass};
        let there = result(100_000_000, 10, 0);
        // 2 × 14 ms of a second are 2.8 points, 2 × 16 are 3.2.
        let near = result(114_000_000, 12, 0);
        let far = result(116_000_000, 13, 1);
        assert_eq!(verdicts(&near, &there), [Pass; 3]);
        assert_eq!(verdicts(&far, &there), [Fail; 3]);
    }
}
