//! What a run in the host's time is judged by (`--parallel`): only what needs no clock.
//!
//! Virtual CPUs are threads of the host there, so that none of the times says anything. What remains: the
//! scheduler stays in charge, the kernel does not complain, every program runs and ends, and nothing is
//! left behind. Expectations of the scenario about anything else are not judged, and say so.

use andante_result::{Judgement, RunResult, SchedulerResult, Unclocked, Verdict, measures};
use andante_scenario::{Bound, Expectation};

/// Why an expectation is not judged.
const DEPENDS_ON_TIME: &str = "depends on time, which a parallel run does not keep";

/// How many of a kind are named in a judgement; the result has all.
const NAMED: usize = 3;

/// How the kernel begins what it has to complain of, without regard to case. Not among them: what only says that
/// something took long (`hogged CPU`, clock sources found unstable), since the host may have been busy.
const COMPLAINTS: [&str; 19] = [
    "warning: ",
    "bug: ",
    "kernel bug at",
    "oops",
    "unable to handle",
    "general protection fault",
    "detected stall",
    "self-detected stall",
    "kthread starved",
    "kthread timer wakeup didn't happen",
    "blocked for more than",
    "blocked in i/o wait for more than",
    "soft lockup",
    "hard lockup",
    "circular locking dependency",
    "inconsistent lock state",
    "suspicious rcu usage",
    "scheduling while atomic",
    "ubsan:",
];

/// The message of a line of the console, if the kernel printed it: `[   12.345678] message`.
fn message(line: &str) -> Option<&str> {
    let (stamp, message) = line.strip_prefix('[')?.split_once("] ")?;
    let stamp = stamp.trim_start();
    let is_time = stamp.contains('.') && stamp.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_time.then_some(message)
}

/// Does the kernel complain in this line of its console?
pub fn complains(line: &str) -> bool {
    let Some(message) = message(line) else {
        return false;
    };
    let message = message.to_ascii_lowercase();
    // Ended by whoever had loaded it: no complaint.
    let let_go = message.starts_with("sched_ext:") && message.contains("disabled (");
    if let_go {
        return !message.contains("unregistered from user space");
    }
    COMPLAINTS.iter().any(|one| message.contains(one))
}

/// Whether an expectation can be judged without a clock: that something was counted at all.
fn needs_no_clock(expectation: &Expectation) -> bool {
    measures::COUNTED.contains(&&*expectation.figure.measure)
        && expectation.over.is_none()
        && matches!(expectation.bound, Bound::Min(least) if least <= 1.0)
}

/// Why this expectation is not judged in this run, if it is not.
pub(crate) fn skipped(expectation: &Expectation, run: &RunResult) -> Option<String> {
    let skipped = run.on == "parallel" && !needs_no_clock(expectation);
    skipped.then(|| DEPENDS_ON_TIME.to_owned())
}

/// What every parallel run is judged by, whatever its scenario says; none of other runs.
pub(crate) fn judgements(run: &RunResult) -> Vec<Judgement> {
    let schedulers = run.schedulers.iter();
    schedulers
        .filter_map(|scheduler| Some((scheduler, scheduler.unclocked.as_deref()?)))
        .flat_map(|(scheduler, found)| judge(scheduler, found))
        .collect()
}

fn judge(scheduler: &SchedulerResult, found: &Unclocked) -> Vec<Judgement> {
    let ejected: Vec<String> = scheduler.ejected.iter().cloned().collect();
    let kinds = [
        ("the scheduler stays in charge", &ejected),
        ("the kernel complains of nothing", &found.complaints),
        ("every program runs", &found.never_ran),
        ("every program ends when it is told to", &found.hung),
        ("nothing is left behind", &found.left),
    ];
    let judgement = |(what, found): (&str, &Vec<String>)| Judgement {
        expectation: format!("{}: {what}", scheduler.name),
        measure: None,
        program: None,
        verdict: match found.is_empty() {
            true => Verdict::Pass,
            false => Verdict::Fail,
        },
        tail: false,
        measured: Some(found.len() as f64),
        reason: in_words(found),
    };
    kinds.into_iter().map(judgement).collect()
}

fn in_words(found: &[String]) -> Option<String> {
    let more = found.len().saturating_sub(NAMED);
    let named = found.iter().take(NAMED).cloned().collect::<Vec<_>>();
    match (found.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named.join("; ")),
        (false, more) => Some(format!("{}; and {more} more", named.join("; "))),
    }
}

/// What parallel runs were judged by, a line each, and how many expectations were left out.
pub fn summary(runs: &[RunResult]) -> String {
    let general = |run: &RunResult| {
        let lines = judgements(run).into_iter().map(|one| {
            let sign = match one.verdict {
                Verdict::Pass => '✓',
                Verdict::Fail | Verdict::NotJudged => '✗',
            };
            let reason = one
                .reason
                .map_or_else(String::new, |text| format!(": {text}"));
            format!("{sign} {}{reason}\n", one.expectation)
        });
        let case = run.case.iter().map(|case| format!("{case}\n"));
        case.chain(lines).collect::<String>()
    };
    let skipped = match skipped_for_time(runs) {
        0 => "nothing else was expected that depends on time".to_owned(),
        1 => "1 expectation depends on time, and was not judged".to_owned(),
        more => format!("{more} expectations depend on time, and were not judged"),
    };
    let general = runs.iter().map(general).collect::<String>();
    format!("{general}{skipped}\n")
}

/// How many expectations of these runs were not judged for want of a clock.
pub fn skipped_for_time(runs: &[RunResult]) -> usize {
    let judgements = runs.iter().flat_map(|run| &run.expectations);
    judgements
        .filter(|one| one.reason.as_deref() == Some(DEPENDS_ON_TIME))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge as judge_all;
    use andante_scenario::Scenario;

    #[test]
    fn the_kernel_complains_only_where_it_is_the_kernel() {
        let complaints = [
            "[   84.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[   12.000001] WARNING: kernel/sched/ext.c:2345 at dispatch_enqueue+0x1/0x2, CPU#3: x/1",
            "[    9.5] BUG: workqueue lockup - pool cpus=5 node=0 flags=0x0 nice=0 stuck for 34s!",
            "[    1.0] sched_ext: BPF scheduler \"andante\" disabled (runnable task stall)",
            "[  243.7] INFO: task make:17 blocked for more than 120 seconds.",
        ];
        for line in complaints {
            assert!(complains(line), "{line}");
        }
        let others = [
            "[    1.0] sched_ext: BPF scheduler \"andante\" disabled (unregistered from user space)",
            "[    1.0] sched_ext: BPF scheduler \"andante\" enabled",
            "[    0.068000] tsc: Unable to calibrate against PIT",
            "[  187.1] process 2877 (stress-ng-affin) no longer affine to cpu6",
            "make: WARNING: BUG: printed by a program",
            "[a.b] BUG: no time",
        ];
        for line in others {
            assert!(!complains(line), "{line}");
        }
    }

    fn judged(found: Unclocked) -> RunResult {
        let text = "title = 'x'\nduration_s = 1\n[programs.keys]\nclass = '/'\nkind = 'waker'\n\
                    interval_us = 1000\n\
                    [[expect]]\nmeasure = 'latency_us.p99'\nprogram = 'keys'\nmax = 10\n\
                    [[expect]]\nmeasure = 'frames'\nprogram = 'keys'\nmin = 1\n";
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let mut runs = [RunResult {
            on: "parallel".to_owned(),
            schedulers: vec![SchedulerResult {
                name: "andante".to_owned(),
                unclocked: Some(Box::new(found)),
                ..Default::default()
            }],
            ..RunResult::default()
        }];
        judge_all(&scenario, &mut runs);
        let [run] = runs;
        run
    }

    #[test]
    fn what_depends_on_time_is_not_judged_and_counted() {
        let run = judged(Unclocked::default());
        let verdicts: Vec<_> = run.expectations.iter().map(|one| one.verdict).collect();
        // The waker shows no frames, which is missing whatever time does.
        assert_eq!(verdicts[..2], [Verdict::NotJudged, Verdict::Fail]);
        assert_eq!(verdicts[2..], [Verdict::Pass; 5]);
        assert_eq!(skipped_for_time(&[run]), 1);
    }

    #[test]
    fn what_was_found_fails_and_is_named() {
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let run = judged(Unclocked {
            never_ran: names,
            ..Unclocked::default()
        });
        let failed: Vec<_> = run.expectations[2..]
            .iter()
            .filter(|one| one.verdict == Verdict::Fail)
            .collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].expectation, "andante: every program runs");
        assert_eq!(failed[0].reason.as_deref(), Some("a; b; c; and 2 more"));
        let text = summary(&[run]);
        assert!(text.contains("✗ andante: every program runs: a; b; c; and 2 more\n"));
        assert!(text.ends_with("1 expectation depends on time, and was not judged\n"));
    }
}
