//! Why a frame was late: who had the CPUs between its release and its being shown, and by which
//! rule each was chosen.
//!
//! Everything is read from a result that was traced (`trace_s` in the scenario); nothing is run
//! again. Results of a kernel name who ran; those of the simulator also the rule.
//!
//! Players of ours note when each frame could be begun. Real ones, such as mpv, do not: a frame of theirs can be
//! worked on from the showing of the one before, and is due half a period after its place in the rhythm.

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
    /// When it could be begun; if the player does not note that, when the frame before it was shown.
    pub released_ms: f64,
    /// Whether the player notes releases.
    pub noted: bool,
    /// When the next one was released; if releases are not noted, half a period after its place, which is a
    /// period after the one before it.
    pub due_ms: f64,
    /// When it was shown; none: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_ms: Option<f64>,
    /// When its history ends: with its being shown, or when it was given up.
    pub end_ms: f64,
    /// The tasks that ran from its release until then, the longest first.
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
    due_ms: f64,
    shown_ms: Option<f64>,
    /// Its history ends here: with its being shown, or when it was given up.
    end_ms: f64,
}

impl Frame {
    fn is_late(&self) -> bool {
        // Releases are written with the precision of a nanosecond.
        const ROUNDING_MS: f64 = 2e-6;
        let late = |at_ms| at_ms > self.due_ms + ROUNDING_MS;
        self.shown_ms.is_none_or(late)
    }
}

/// A player, and its frames in the order of their release.
struct Player<'a> {
    program: &'a ProgramResult,
    frames: Vec<Frame>,
}

/// Answers `question` from `result`.
///
/// # Errors
/// If the result does not have what is asked for, or was not traced that far.
pub fn explain(result: &RunResult, question: &Question) -> Result<Explanation, WhyError> {
    let scheduler = find_scheduler(result, question.scheduler.as_deref())?;
    let player = find_player(result, scheduler, question.task.as_deref())?;
    let (program, frames) = (player.program, &player.frames);
    let late = player.late_frames();
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
    let end_ms = frame.end_ms;
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
        noted: !program.released_ms.is_empty(),
        due_ms: frame.due_ms,
        shown_ms: frame.shown_ms,
        end_ms,
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
    result: &RunResult,
    scheduler: &'a SchedulerResult,
    name: Option<&str>,
) -> Result<Player<'a>, WhyError> {
    let programs = scheduler.programs.iter();
    let mut players: Vec<_> = programs
        .filter_map(|program| Player::of(result, program))
        .collect();
    let names = list(players.iter().map(|player| player.program.name.as_str()));
    let place = match name {
        Some(name) => players.iter().position(|one| one.program.name == name),
        None => {
            let late = players.iter().position(|one| !one.late_frames().is_empty());
            late.or((!players.is_empty()).then_some(0))
        }
    };
    match place {
        Some(place) => Ok(players.swap_remove(place)),
        None => Err(WhyError::Unknown {
            what: name.map_or("player".to_owned(), |name| {
                format!("player {name} with its frames")
            }),
            known: names,
        }),
    }
}

impl<'a> Player<'a> {
    /// None if the program shows no frames.
    fn of(result: &RunResult, program: &'a ProgramResult) -> Option<Self> {
        let frames = match program.released_ms.is_empty() {
            false => noted(program),
            true => in_rhythm(program, period_ms(result, &program.name)?),
        };
        Some(Self { program, frames })
    }

    fn late_frames(&self) -> Vec<usize> {
        let numbered = self.frames.iter().enumerate();
        let late = numbered.filter(|(_, frame)| frame.is_late());
        late.map(|(number, _)| number).collect()
    }
}

/// The frames of a player that notes its releases.
fn noted(program: &ProgramResult) -> Vec<Frame> {
    let shown = program.shown_ms.iter().copied().map(Some);
    let shown = program.released_ms.iter().copied().zip(shown);
    let dropped = program.dropped_ms.iter().map(|at_ms| (*at_ms, None));
    let mut all: Vec<(f64, Option<f64>)> = shown.chain(dropped).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gaps = all.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let period_ms = gaps.fold(f64::INFINITY, f64::min);
    let frame = |(released_ms, shown_ms): (f64, Option<f64>)| Frame {
        released_ms,
        due_ms: released_ms + period_ms,
        shown_ms,
        end_ms: shown_ms.unwrap_or(released_ms + period_ms),
    };
    all.into_iter().map(frame).collect()
}

/// Between two frames of the player [ms]: the median where it was the smoothest; none if it showed nothing.
fn period_ms(result: &RunResult, name: &str) -> Option<f64> {
    let programs = result.schedulers.iter().flat_map(|one| &one.programs);
    let medians = programs
        .filter(|program| program.name == name)
        .filter_map(|program| program.frame_ms.map(|spread| spread.p50));
    medians.reduce(f64::min)
}

/// The frames of one that notes none. The history of a dropped one ends with the next that is shown: for so long
/// the picture stood still.
fn in_rhythm(program: &ProgramResult, period_ms: f64) -> Vec<Frame> {
    let shown = program.shown_ms.iter().map(|at_ms| (*at_ms, true));
    let dropped = program.dropped_ms.iter().map(|at_ms| (*at_ms, false));
    let mut all: Vec<(f64, bool)> = shown.chain(dropped).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown_from = |place: usize| all[place..].iter().find(|one| one.1).map(|one| one.0);
    // Nothing came before the first: it has no history.
    let (mut before_ms, mut places) = (all.first().map_or(0.0, |one| one.0), 0.0);
    let mut frames = Vec::new();
    for (place, (at_ms, is_shown)) in all.iter().copied().enumerate() {
        frames.push(Frame {
            released_ms: before_ms,
            due_ms: before_ms + (places + 0.5) * period_ms,
            shown_ms: is_shown.then_some(at_ms),
            end_ms: shown_from(place).unwrap_or(at_ms),
        });
        if is_shown {
            (before_ms, places) = (at_ms, 0.0);
        }
        places += 1.0;
    }
    frames
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
            None if self.noted => "dropped".to_owned(),
            None => format!(
                "dropped, and the picture stood for {:.1} ms",
                self.end_ms - self.released_ms
            ),
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
        let released = match self.noted {
            true => "released",
            false => "the one before was shown",
        };
        let _ = writeln!(
            text,
            "{released} at {:.3} ms, due at {:.3} ms, {shown}\n",
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
    use crate::Spread;

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

    /// As mpv tells it: no releases, and drops when they happen.
    #[test]
    fn a_player_without_releases_is_explained_by_its_rhythm() {
        let mut result = result();
        result.schedulers[0].programs[0] = ProgramResult {
            name: "film".to_owned(),
            shown_ms: vec![2.0, 12.0, 22.5, 38.0],
            dropped_ms: vec![32.0],
            frame_ms: Spread::of(&[10.0, 10.5, 15.5]),
            ..ProgramResult::default()
        };
        let why = explain(&result, &Question::default()).unwrap();
        assert_eq!(why.frame, 3, "those before came in their rhythm");
        assert_eq!(why.outcome(), "dropped, and the picture stood for 15.5 ms");
        let ran: Vec<_> = why.ran.iter().map(|ran| ran.comm.as_str()).collect();
        assert_eq!(ran, ["film", "build"], "from 22.5 to 38 ms");
        assert_eq!(why.others, [0; 0], "the last has kept its place");
        assert!(
            why.text(false)
                .contains("the one before was shown at 22.500 ms")
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
            "the result has no player music with its frames; it has film"
        );
    }
}
