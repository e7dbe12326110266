//! Why a frame was late: who had the CPUs between its release and its being shown, and by which
//! rule each was chosen.
//!
//! Everything is read from a result that was traced (`trace_s` in the scenario); nothing is run
//! again. Results of a kernel name who ran; those of the simulator also the rule.

use std::fmt::Write;

use serde::Serialize;

use crate::title::scheduler_title;
use crate::{ProgramResult, Run, RunResult, SchedulerResult};

/// What to explain.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Name of the player; none: the only one, or the first with a late frame.
    pub task: Option<String>,
    /// Number of the frame, dropped ones counted, from 0; none: the first that was late or dropped.
    pub frame: Option<usize>,
    /// Name of the scheduler; none: the first.
    pub scheduler: Option<String>,
}

/// The history of one frame. All instants in ms since the measurement began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Under which scheduler.
    pub scheduler: String,
    /// The player.
    pub task: String,
    /// The frame's number.
    pub frame: usize,
    /// When it could be begun.
    pub released_ms: f64,
    /// When the next one was released.
    pub due_ms: f64,
    /// When it was shown; none: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_ms: Option<f64>,
    /// Who ran from its release to its being shown, the longest first.
    pub ran: Vec<Ran>,
    /// Time in which a CPU ran nobody, summed over the CPUs [ms].
    pub idle_ms: f64,
    /// The same, in order.
    pub order: Vec<Run>,
    /// Other frames of the task that were late or dropped.
    pub others: Vec<usize>,
}

/// All that a task ran by one rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ran {
    /// The task's program.
    pub comm: String,
    /// The rule it was chosen by, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// For so long [ms].
    pub ms: f64,
    /// In so many pieces.
    pub times: usize,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WhyError {
    /// The result does not have it.
    #[error("the result has no {what}; it has {known}")]
    Unknown {
        /// What was asked for.
        what: String,
        /// What there is.
        known: String,
    },
    /// Nothing to explain.
    #[error("no frame of {task} was late or dropped under {scheduler}; name one with --frame")]
    NoneLate {
        /// The players looked at.
        task: String,
        /// The scheduler.
        scheduler: String,
    },
    /// The trace does not cover the frame.
    #[error(
        "frame {frame} was shown or given up at {at_ms:.1} ms, but who ran is known only up to {until_ms:.1} ms: run the scenario again with --set 'trace_s = {needed_s:.0}'"
    )]
    NotTraced {
        /// The frame.
        frame: usize,
        /// When it ended.
        at_ms: f64,
        /// End of the trace.
        until_ms: f64,
        /// What `trace_s` would cover it [s].
        needed_s: f64,
    },
}

/// One frame of a player.
struct Frame {
    released_ms: f64,
    shown_ms: Option<f64>,
}

/// Answers `question` from `result`.
///
/// # Errors
/// If the result does not have what is asked for, or was not traced that far.
pub fn explain(result: &RunResult, question: &Question) -> Result<Explanation, WhyError> {
    let scheduler = find_scheduler(result, question.scheduler.as_deref())?;
    let (program, frames, period_ms) = find_player(scheduler, question.task.as_deref())?;
    let late: Vec<usize> = late_frames(&frames, period_ms);
    let number = match question.frame {
        Some(number) => number,
        None => *late.first().ok_or_else(|| WhyError::NoneLate {
            task: program.name.clone(),
            scheduler: scheduler.name.clone(),
        })?,
    };
    let frame = frames.get(number).ok_or_else(|| WhyError::Unknown {
        what: format!("frame {number} of {}", program.name),
        known: format!("frames 0 to {}", frames.len().saturating_sub(1)),
    })?;
    let due_ms = frame.released_ms + period_ms;
    let end_ms = frame.shown_ms.unwrap_or(due_ms);
    let traced_ms = scheduler.runs.iter().map(end_of_run_ms).fold(0.0, f64::max);
    if traced_ms < end_ms {
        return Err(WhyError::NotTraced {
            frame: number,
            at_ms: end_ms,
            until_ms: traced_ms,
            needed_s: (end_ms / 1e3).ceil() + 1.0,
        });
    }
    let order = cut(&scheduler.runs, frame.released_ms, end_ms);
    let ran = sum_up(&order);
    let busy_ms: f64 = ran.iter().map(|ran| ran.ms).sum();
    Ok(Explanation {
        scheduler: scheduler.name.clone(),
        task: program.name.clone(),
        frame: number,
        released_ms: frame.released_ms,
        due_ms,
        shown_ms: frame.shown_ms,
        idle_ms: ((end_ms - frame.released_ms) * f64::from(result.cpus) - busy_ms).max(0.0),
        ran,
        order,
        others: late.into_iter().filter(|other| *other != number).collect(),
    })
}

fn find_scheduler<'a>(
    result: &'a RunResult,
    name: Option<&str>,
) -> Result<&'a SchedulerResult, WhyError> {
    let found = match name {
        Some(name) => result.schedulers.iter().find(|s| s.name == name),
        None => result.schedulers.first(),
    };
    found.ok_or_else(|| WhyError::Unknown {
        what: format!("scheduler {}", name.unwrap_or("at all")),
        known: list(result.schedulers.iter().map(|s| s.name.as_str())),
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// The player asked for, or the first that has a frame to explain.
fn find_player<'a>(
    scheduler: &'a SchedulerResult,
    name: Option<&str>,
) -> Result<(&'a ProgramResult, Vec<Frame>, f64), WhyError> {
    let players: Vec<_> = scheduler
        .programs
        .iter()
        .filter(|program| !program.released_ms.is_empty())
        .collect();
    let read = |program: &'a ProgramResult| {
        let (frames, period_ms) = frames(program);
        (program, frames, period_ms)
    };
    let found = match name {
        Some(name) => players.iter().find(|player| player.name == name),
        None => {
            let late = |player: &&&ProgramResult| {
                let (frames, period_ms) = frames(player);
                !late_frames(&frames, period_ms).is_empty()
            };
            players.iter().find(late).or(players.first())
        }
    };
    found
        .map(|player| read(player))
        .ok_or_else(|| WhyError::Unknown {
            what: name.map_or("player".to_owned(), |name| {
                format!("player {name} with its releases")
            }),
            known: list(players.iter().map(|player| player.name.as_str())),
        })
}

/// All frames in the order of their release, and the time between two releases [ms].
fn frames(program: &ProgramResult) -> (Vec<Frame>, f64) {
    let shown = program.released_ms.iter().zip(&program.shown_ms);
    let mut frames: Vec<Frame> = shown
        .map(|(released_ms, shown_ms)| Frame {
            released_ms: *released_ms,
            shown_ms: Some(*shown_ms),
        })
        .collect();
    frames.extend(program.dropped_ms.iter().map(|at_ms| Frame {
        released_ms: *at_ms,
        shown_ms: None,
    }));
    frames.sort_by(|a, b| a.released_ms.total_cmp(&b.released_ms));
    let gaps = frames
        .windows(2)
        .map(|pair| pair[1].released_ms - pair[0].released_ms);
    let period_ms = gaps.fold(f64::INFINITY, f64::min);
    (frames, period_ms)
}

fn late_frames(frames: &[Frame], period_ms: f64) -> Vec<usize> {
    // Releases are written with the precision of a nanosecond.
    const ROUNDING_MS: f64 = 2e-6;
    let late = |frame: &Frame| {
        frame
            .shown_ms
            .is_none_or(|at_ms| at_ms > frame.released_ms + period_ms + ROUNDING_MS)
    };
    let numbered = frames.iter().enumerate();
    numbered
        .filter(|(_, frame)| late(frame))
        .map(|(number, _)| number)
        .collect()
}

fn end_of_run_ms(run: &Run) -> f64 {
    (run.start_ns + run.length_ns) as f64 / 1e6
}

/// The parts of `runs` between two instants [ms], in the order of their beginning.
fn cut(runs: &[Run], from_ms: f64, to_ms: f64) -> Vec<Run> {
    let (from_ns, to_ns) = ((from_ms * 1e6).round() as u64, (to_ms * 1e6).round() as u64);
    let mut cut: Vec<Run> = runs
        .iter()
        .filter_map(|run| {
            let start_ns = run.start_ns.max(from_ns);
            let end_ns = (run.start_ns + run.length_ns).min(to_ns);
            (end_ns > start_ns).then(|| Run {
                start_ns,
                length_ns: end_ns - start_ns,
                ..run.clone()
            })
        })
        .collect();
    cut.sort_by_key(|run| (run.start_ns, run.cpu));
    cut
}

fn sum_up(runs: &[Run]) -> Vec<Ran> {
    let mut sums: Vec<Ran> = Vec::new();
    for run in runs {
        let ms = run.length_ns as f64 / 1e6;
        match sums
            .iter_mut()
            .find(|sum| sum.comm == run.comm && sum.rule == run.rule)
        {
            Some(sum) => {
                sum.ms += ms;
                sum.times += 1;
            }
            None => sums.push(Ran {
                comm: run.comm.clone(),
                rule: run.rule.clone(),
                ms,
                times: 1,
            }),
        }
    }
    sums.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    sums
}

impl Explanation {
    /// How it ended, e.g. `late by 3.2 ms`.
    pub fn outcome(&self) -> String {
        match self.shown_ms {
            None => "dropped".to_owned(),
            Some(at_ms) if at_ms > self.due_ms => format!("late by {:.1} ms", at_ms - self.due_ms),
            Some(at_ms) => format!("in time, {:.1} ms early", self.due_ms - at_ms),
        }
    }

    /// For a terminal; `order` of them adds who ran piece by piece.
    pub fn text(&self, order: bool) -> String {
        let mut text = String::new();
        let scheduler = scheduler_title(&self.scheduler);
        let _ = writeln!(
            text,
            "frame {} of {} under {scheduler}: {}",
            self.frame,
            self.task,
            self.outcome()
        );
        let shown = self.shown_ms.map_or("never shown".to_owned(), |at_ms| {
            format!("shown at {at_ms:.3} ms")
        });
        let _ = writeln!(
            text,
            "released at {:.3} ms, due at {:.3} ms, {shown}\n",
            self.released_ms, self.due_ms
        );
        let width = self
            .ran
            .iter()
            .map(|ran| ran.comm.chars().count())
            .max()
            .unwrap_or(0)
            .max(4);
        for ran in &self.ran {
            let rule = ran
                .rule
                .as_deref()
                .map_or(String::new(), |rule| format!("  by rule: {rule}"));
            let _ = writeln!(
                text,
                "{:>10.3} ms  {:width$}  {:>4} ×{rule}",
                ran.ms, ran.comm, ran.times
            );
        }
        if self.idle_ms > 0.0005 {
            let _ = writeln!(text, "{:>10.3} ms  {:width$}", self.idle_ms, "idle");
        }
        if order {
            let _ = writeln!(text, "\nin order");
            for run in &self.order {
                let rule = run.rule.as_deref().unwrap_or_default();
                let (at_ms, ms) = (run.start_ns as f64 / 1e6, run.length_ns as f64 / 1e6);
                let _ = writeln!(
                    text,
                    "{at_ms:>12.3} ms  CPU {}  {:width$}  {ms:>9.3} ms  {rule}",
                    run.cpu, run.comm
                );
            }
        }
        let others = self.others.len();
        if others > 0 {
            let some: Vec<String> = self.others.iter().take(12).map(usize::to_string).collect();
            let more = if others > some.len() { ", …" } else { "" };
            let _ = writeln!(
                text,
                "\n{others} other frames late or dropped: {}{more}",
                some.join(", ")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(comm: &str, start_ms: u64, length_ms: u64) -> Run {
        Run {
            cpu: 0,
            tid: 1,
            comm: comm.to_owned(),
            start_ns: start_ms * 1_000_000,
            length_ns: length_ms * 1_000_000,
            rule: Some("share".to_owned()),
        }
    }

    fn result() -> RunResult {
        let film = ProgramResult {
            name: "film".to_owned(),
            released_ms: vec![0.0, 10.0, 30.0],
            shown_ms: vec![5.0, 22.0, 38.0],
            dropped_ms: vec![20.0],
            ..ProgramResult::default()
        };
        let runs = vec![
            run("film", 0, 5),
            run("build", 5, 14),
            run("film", 19, 3),
            run("build", 22, 8),
            run("film", 30, 8),
        ];
        RunResult {
            scenario: "test".to_owned(),
            on: "sim".to_owned(),
            duration_s: 1.0,
            schedulers: vec![SchedulerResult {
                name: "andante".to_owned(),
                programs: vec![film],
                runs,
                ..SchedulerResult::default()
            }],
            ..RunResult::default()
        }
    }

    #[test]
    fn the_first_late_frame_is_explained_by_who_ran() {
        let why = explain(&result(), &Question::default()).unwrap();
        assert_eq!((why.frame, why.outcome().as_str()), (1, "late by 2.0 ms"));
        let ran: Vec<_> = why
            .ran
            .iter()
            .map(|ran| (ran.comm.as_str(), ran.ms))
            .collect();
        assert_eq!(ran, [("build", 9.0), ("film", 3.0)]);
        assert_eq!(why.others, [2], "the dropped one");
        assert_eq!(why.idle_ms, 0.0);
        let text = why.text(true);
        assert!(text.contains("by rule: share"));
        // No instant without its unit.
        assert!(
            text.contains("released at 10.000 ms, due at 20.000 ms, shown at 22.000 ms"),
            "{text}"
        );
        assert!(text.contains("      10.000 ms  CPU 0  build"), "{text}");
    }

    #[test]
    fn dropped_frames_and_frames_in_time_have_a_history_too() {
        let ask = |frame| {
            let question = Question {
                frame: Some(frame),
                ..Question::default()
            };
            explain(&result(), &question)
        };
        assert_eq!(ask(2).unwrap().outcome(), "dropped");
        assert_eq!(ask(0).unwrap().outcome(), "in time, 5.0 ms early");
        assert_eq!(
            ask(9).unwrap_err().to_string(),
            "the result has no frame 9 of film; it has frames 0 to 3"
        );
    }

    #[test]
    fn what_was_not_traced_is_said() {
        let mut result = result();
        result.schedulers[0].runs.truncate(1);
        let error = explain(&result, &Question::default()).unwrap_err();
        assert!(error.to_string().contains("--set 'trace_s = 2'"), "{error}");
        let nobody = Question {
            task: Some("music".to_owned()),
            ..Question::default()
        };
        let error = explain(&result, &nobody).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the result has no player music with its releases; it has film"
        );
    }
}
