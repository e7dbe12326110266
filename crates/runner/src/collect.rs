//! Turns what was read and left behind into the figures of a result.

use std::fs;

use andante_programs::Samples;
use andante_result::{ClassResult, ProgramResult, Spread, Unclocked};
use andante_scenario::{Kind, Workload};

use super::instance::Instance;
use super::process::{Process, last_line};
use super::real::{Command, moments_file, stats_file};
use super::timeline::Measured;
use crate::mpv;

/// A gap between frames that anybody notices [ms].
const GAP_MS: f64 = 100.0;

/// The figures of all classes.
pub(super) fn classes(workload: &Workload, measured: &Measured) -> Vec<ClassResult> {
    let machine_ns = measured.length_ns as f64 * online_cpus() as f64;
    let classes = workload.classes.iter().zip(&measured.class_cpu_ns);
    // Where memory is not looked at there is nothing of it.
    let memory = measured.class_memory.iter().map(Vec::as_slice);
    let memory = memory.chain(std::iter::repeat(&[][..]));
    classes
        .zip(memory)
        .map(|((class, samples), memory)| {
            let cpu_ns = samples.last().copied().unwrap_or(0);
            let counted = memory.last().copied().unwrap_or_default();
            ClassResult {
                path: class.path.clone(),
                weight: class.weight,
                share_asked: workload.share_asked(&class.path),
                share_usable: workload.share_usable(&class.path, online_cpus()),
                share_received: cpu_ns as f64 / machine_ns,
                cpu_ns,
                samples: samples.clone(),
                swapped_in: counted.swapped_in,
                swapped_out: memory.iter().filter_map(|it| it.swapped_out).collect(),
                refaults: counted.refaults,
            }
        })
        .collect()
}

/// CPUs that the machine has, whatever this thread may use.
pub fn online_cpus() -> u32 {
    // SAFETY: no arguments that could be wrong.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) })
        .unwrap_or(1)
        .max(1)
}

/// The figures of one instance.
pub(super) fn program(
    workload: &Workload,
    instance: &mut Instance<'_>,
    measured: &Measured,
) -> ProgramResult {
    let [before, after] = instance.major_faults;
    let mut result = ProgramResult {
        name: instance.name.clone(),
        class: instance.program.class.clone(),
        kind: instance.program.kind.name().to_owned(),
        cpu_ns: instance.cpu_ns[1].saturating_sub(instance.cpu_ns[0]),
        major_faults: workload.memory.map(|_| after.saturating_sub(before)),
        failed: failure(instance, measured),
        ..ProgramResult::default()
    };
    let counted = instance.counted[1].saturating_sub(instance.counted[0]);
    match &instance.program.kind {
        Kind::Mpv { .. } => read_frame_log(instance, measured, &mut result),
        Kind::FilmPlayer { fps, .. } => {
            read_moments(instance, measured, f64::from(*fps), &mut result);
        }
        Kind::Make { .. } => {
            result.iterations = Some(counted);
        }
        Kind::Jack { .. } => result.xruns = Some(counted),
        Kind::Command { .. }
        | Kind::Xvfb { .. }
        | Kind::JackClient { .. }
        | Kind::FilmServer { .. }
        | Kind::WebServer { .. }
        | Kind::RtpServer { .. } => {}
        kind => match read_samples(instance) {
            Some(samples) => {
                result.read_bytes_per_s = samples.read_bytes.map(|bytes| {
                    let length_s = measured.length_ns as f64 / 1e9;
                    bytes as f64 / length_s
                });
                take_samples(kind, &samples.later(instance.beats_later_ns()), &mut result);
            }
            None => {
                result
                    .failed
                    .get_or_insert_with(|| without_samples(instance));
            }
        },
    }
    result
}

/// What needs no clock of these instances, which have been told to end: who did not run, and who has not ended.
pub(super) fn found(instances: &[Instance<'_>]) -> Unclocked {
    let named = |wanted: &dyn Fn(&Instance<'_>) -> bool| {
        let names = instances.iter().filter(|instance| wanted(instance));
        names.map(|instance| instance.name.clone()).collect()
    };
    let halted = |instance: &Instance<'_>| instance.program.suspend_s.is_some();
    // A command may do nothing but wait for those that it has started. All other programs have work of their own.
    let waits = |instance: &Instance<'_>| {
        matches!(instance.program.kind, Kind::Command { .. }) && instance.asleep
    };
    // CPU time in the measurement, and not of its whole life: whoever was lost has run before.
    let ran = |instance: &Instance<'_>| instance.cpu_ns[1] > instance.cpu_ns[0];
    Unclocked {
        never_ran: named(&|one| one.told_to_end && !halted(one) && !waits(one) && !ran(one)),
        hung: named(&|one| one.process.as_ref().is_some_and(|it| it.ended.is_none())),
        ..Unclocked::default()
    }
}

/// How a synthetic program ended that was told to write its samples, and did not.
fn without_samples(instance: &Instance<'_>) -> String {
    let ended = instance
        .process
        .as_ref()
        .map(|process| match &process.ended {
            Some(ended) => with_words("left no samples, and ended", &ended.how, process),
            None => "left no samples: it had not ended in the time that it was given".to_owned(),
        });
    ended.unwrap_or_else(|| "left no samples".to_owned())
}

/// How it ended, if it should not have.
fn failure(instance: &Instance<'_>, measured: &Measured) -> Option<String> {
    let Some(process) = &instance.process else {
        return Some("was never started".to_owned());
    };
    let end_ns = measured.begin_ns + measured.length_ns;
    let plays = instance.program.kind.ends_by_itself();
    match &process.ended {
        _ if plays && instance.told_to_end => {
            Some("still played when its time was over".to_owned())
        }
        Some(ended) if plays && !ended.success => Some(with_words("ended", &ended.how, process)),
        Some(ended) if !instance.told_to_end && instance.program.stop_s.is_none() => {
            let early = ended.at_ns < end_ns && !instance.program.may_end || !ended.success;
            early.then(|| with_words("ended early", &ended.how, process))
        }
        _ => None,
    }
}

fn with_words(what: &str, how: &str, process: &Process) -> String {
    match last_line(&process.output) {
        Some(words) => format!("{what} {how}: {words}"),
        None => format!("{what} {how}"),
    }
}

fn read_samples(instance: &Instance<'_>) -> Option<Samples> {
    serde_json::from_slice(&fs::read(instance.samples_file()).ok()?).ok()
}

/// The figures of a synthetic program, from what it left.
pub fn take_samples(kind: &Kind, samples: &Samples, result: &mut ProgramResult) {
    result.iterations = samples.iterations;
    result.xruns = samples.xruns;
    result.received_bytes = samples.received_bytes;
    result.lost = samples.lost;
    result.skipped = samples.skipped;
    result.first_touch_ms = samples.first_touch_ns.map(|ns| ns as f64 / 1e6);
    result.first_read_ms = samples.first_read_ns.map(|ns| ns as f64 / 1e6);
    let latency_us: Vec<f64> = samples.latency_ns.iter().map(|ns| ns / 1e3).collect();
    result.latency_us = Spread::of(&latency_us);
    let iteration_ms: Vec<f64> = samples.iteration_ns.iter().map(|ns| ns / 1e6).collect();
    result.iteration_ms = Spread::of(&iteration_ms);
    if let Kind::Player { fps, .. }
    | Kind::Game { fps, .. }
    | Kind::MemoryPlayer { fps, .. }
    | Kind::Sink {
        events_per_s: fps, ..
    } = kind
    {
        let period_us = 1e6 / fps;
        let frames = samples.shown_ns.iter().zip(&samples.released_ns);
        let lateness_us: Vec<f64> = frames
            .map(|(shown_ns, released_ns)| {
                ((*shown_ns as f64 - *released_ns as f64) / 1e3 - period_us).max(0.0)
            })
            .collect();
        result.lateness_us = Spread::of(&lateness_us);
        let ms = |list: &[u64]| list.iter().map(|ns| *ns as f64 / 1e6).collect::<Vec<_>>();
        take_frames(ms(&samples.shown_ns), ms(&samples.dropped_ns), result);
        result.released_ms = ms(&samples.released_ns);
    }
    result.late = samples.late;
    result.due = samples.due;
}

/// Gives each sender its part of what arrived from those of its network; `programs` are the workload's instances.
pub fn share_arrivals(workload: &Workload, programs: &mut [ProgramResult]) {
    let networks: Vec<_> = workload
        .instances()
        .map(|program| &program.network)
        .collect();
    let arrived = |network| {
        let from_there = (programs.iter().zip(&networks)).filter(|(_, other)| **other == network);
        from_there
            .filter_map(|(program, _)| program.received_bytes)
            .sum::<u64>()
    };
    let sums: Vec<u64> = networks.iter().map(|network| arrived(*network)).collect();
    for (program, sum) in programs.iter_mut().zip(sums) {
        let part = |bytes: u64| (sum > 0).then(|| bytes as f64 / sum as f64);
        program.goodput_share = program.received_bytes.and_then(part);
    }
}

fn read_frame_log(instance: &mut Instance<'_>, measured: &Measured, result: &mut ProgramResult) {
    let Ok(stats) = fs::read_to_string(stats_file(&instance.folder)) else {
        result
            .failed
            .get_or_insert_with(|| "left no frame log".to_owned());
        return;
    };
    let log = mpv::parse_stats(&stats);
    // mpv's clock starts with mpv, a few milliseconds after we started it.
    let start_ms = (instance.started_ns as f64 - measured.begin_ns as f64) / 1e6;
    let ms = |list: &[u64]| {
        list.iter()
            .map(|us| start_ms + *us as f64 / 1e3)
            .collect::<Vec<_>>()
    };
    let (mut shown_ms, mut dropped_ms) = (ms(&log.shown_us), ms(&log.dropped_us));
    let length_ms = measured.length_ns as f64 / 1e6;
    if !instance.program.kind.ends_by_itself() {
        // It played before the measurement and after it.
        shown_ms.retain(|at_ms| (0.0..length_ms).contains(at_ms));
        dropped_ms.retain(|at_ms| (0.0..length_ms).contains(at_ms));
    }
    // When its user had it go on elsewhere, or after a pause.
    let mut told_ms = |wanted| {
        let told = instance.told.iter_mut().find(|told| told.command == wanted);
        let at_us = told?.at_us()?;
        Some(start_ms + log.since_start_us(at_us) as f64 / 1e3)
    };
    let resumed_ms = told_ms(Command::GoOn);
    let sought_ms = told_ms(Command::Seek);
    take_frames_around(shown_ms, dropped_ms, resumed_ms, result);
    if let Kind::Mpv {
        clip,
        stream,
        untimed: false,
        ..
    } = &instance.program.kind
    {
        let period_ms = 1e3 / f64::from(clip.fps);
        let parts = parts(result, [resumed_ms, sought_ms]);
        let late = |part: &Part| late_frames(part, period_ms, stream.is_some());
        result.late = Some(parts.iter().map(late).sum());
        result.due = Some(match (stream, sought_ms) {
            (None, None) => clip.frames(),
            // How many it was still to show nobody knows: those that it did show, or gave up.
            (None, Some(_)) => (result.shown_ms.len() + result.dropped_ms.len()) as u64,
            // From the first one to the last; when it was told to end its own clock does not say.
            (Some(_), _) => parts.iter().map(|part| part.due(period_ms)).sum(),
        });
    }
}

/// Frames of a film from one interruption by its user to the next.
#[derive(Debug, Default)]
struct Part {
    shown_ms: Vec<f64>,
    dropped_ms: Vec<f64>,
}

impl Part {
    /// Frames from the first one to the last.
    fn due(&self, period_ms: f64) -> u64 {
        let all = || self.shown_ms.iter().chain(&self.dropped_ms).copied();
        let first_ms = all().fold(f64::INFINITY, f64::min);
        let periods = (all().fold(0.0, f64::max) - first_ms) / period_ms;
        periods.round().max(0.0) as u64 + u64::from(first_ms.is_finite())
    }
}

/// The parts of a film that was interrupted at these instants.
fn parts(result: &ProgramResult, at_ms: [Option<f64>; 2]) -> Vec<Part> {
    let mut ends_ms: Vec<f64> = at_ms.into_iter().flatten().collect();
    ends_ms.sort_by(f64::total_cmp);
    ends_ms.push(f64::INFINITY);
    let mut begin_ms = f64::NEG_INFINITY;
    let part = |end_ms: f64| {
        let within = |list: &[f64]| {
            let list = list.iter().copied();
            list.filter(|ms| (begin_ms..end_ms).contains(ms)).collect()
        };
        let part = Part {
            shown_ms: within(&result.shown_ms),
            dropped_ms: within(&result.dropped_ms),
        };
        begin_ms = end_ms;
        part
    };
    ends_ms.into_iter().map(part).collect()
}

/// What a film player noted: a line for each picture, when it was due, decoded, and shown (or 0: it was
/// dropped) [ns of CLOCK_MONOTONIC].
fn read_moments(
    instance: &Instance<'_>,
    measured: &Measured,
    fps: f64,
    result: &mut ProgramResult,
) {
    let text = fs::read_to_string(moments_file(&instance.folder)).unwrap_or_default();
    let moments: Vec<[f64; 3]> = text.lines().filter_map(parse_moment).collect();
    if moments.is_empty() {
        let why = || "left no note of its pictures".to_owned();
        result.failed.get_or_insert_with(why);
    }
    take_moments(&moments, measured.begin_ns as f64, fps, result);
}

/// As with mpv, a picture that is shown half a period after its time is late.
fn take_moments(moments: &[[f64; 3]], begin_ns: f64, fps: f64, result: &mut ProgramResult) {
    let ms = |ns: f64| (ns - begin_ns) / 1e6;
    let (shown, dropped): (Vec<&[f64; 3]>, Vec<_>) =
        moments.iter().partition(|moment| moment[2] > 0.0);
    let late_us: Vec<f64> = shown.iter().map(|m| (m[2] - m[0]) / 1e3).collect();
    let shown_ms = shown.iter().map(|m| ms(m[2])).collect();
    let dropped_ms = dropped.iter().map(|m| ms(m[0])).collect();
    take_frames(shown_ms, dropped_ms, result);
    result.released_ms = shown.iter().map(|m| ms(m[0])).collect();
    result.latency_us = Spread::of(&late_us);
    result.late = Some(late_us.iter().filter(|us| **us > 0.5e6 / fps).count() as u64);
    result.due = Some(moments.len() as u64);
}

fn parse_moment(line: &str) -> Option<[f64; 3]> {
    let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

/// Frames shown more than half a period after their place in the even rhythm of the first second's
/// frames (their median); dropped frames keep their place. No single frame can begin the rhythm: mpv
/// shows the first as soon as it has it, and may start its clock anew when its sound begins, some
/// frames later. That is a freeze, and no reason to call all frames after it late. Of a stream frames
/// may be missing, which nobody has seen: whole periods by which all frames are later from one on are their
/// places.
fn late_frames(part: &Part, period_ms: f64, may_miss: bool) -> u64 {
    let shown = part.shown_ms.iter().map(|ms| (*ms, true));
    let mut frames: Vec<_> = shown
        .chain(part.dropped_ms.iter().map(|ms| (*ms, false)))
        .collect();
    frames.sort_by(|a, b| a.0.total_cmp(&b.0));
    // When each says that the rhythm began.
    let begun_ms: Vec<(f64, bool)> = (frames.iter().skip(1).enumerate())
        .map(|(place, (ms, shown))| (ms - place as f64 * period_ms, *shown))
        .collect();
    let mut first_ms: Vec<f64> = (begun_ms.iter().map(|(ms, _)| *ms))
        .take((1e3 / period_ms) as usize)
        .collect();
    first_ms.sort_by(f64::total_cmp);
    let Some(begin_ms) = first_ms.get(first_ms.len() / 2) else {
        return 0;
    };
    let mut late = 0;
    let mut least_ms = f64::INFINITY;
    for (ms, shown) in begun_ms.iter().rev() {
        least_ms = ms.min(least_ms);
        let missing = ((least_ms - begin_ms) / period_ms).round().max(0.0);
        let behind_ms = if may_miss { missing * period_ms } else { 0.0 };
        late += u64::from(*shown && *ms > begin_ms + behind_ms + 0.5 * period_ms);
    }
    late
}

fn take_frames(shown_ms: Vec<f64>, dropped_ms: Vec<f64>, result: &mut ProgramResult) {
    take_frames_around(shown_ms, dropped_ms, None, result);
}

/// The same of a film that its user had go on at this instant: what was not shown in the pause nobody missed.
fn take_frames_around(
    shown_ms: Vec<f64>,
    dropped_ms: Vec<f64>,
    resumed_ms: Option<f64>,
    result: &mut ProgramResult,
) {
    let paused = |pair: &[f64]| resumed_ms.is_some_and(|at_ms| pair[0] <= at_ms && at_ms < pair[1]);
    let (pauses, pairs): (Vec<&[f64]>, Vec<_>) = shown_ms.windows(2).partition(|pair| paused(pair));
    let gap_ms = |pair: &&[f64]| pair[1] - pair[0];
    let gaps_ms: Vec<f64> = pairs.iter().map(gap_ms).collect();
    result.resume_ms = pauses.first().map(gap_ms);
    result.frames = Some(shown_ms.len() as u64);
    result.dropped = Some(dropped_ms.len() as u64);
    result.frame_ms = Spread::of(&gaps_ms);
    result.longest_freeze_ms = result.frame_ms.map(|spread| spread.max);
    result.gaps_over_100ms = Some(gaps_ms.iter().filter(|ms| **ms > GAP_MS).count() as u64);
    if let (Some(first), Some(last)) = (shown_ms.first(), shown_ms.last()) {
        result.span_s = Some((last - first) / 1e3);
    }
    result.shown_ms = shown_ms;
    result.dropped_ms = dropped_ms;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(result: &ProgramResult) -> Part {
        parts(result, [None, None]).remove(0)
    }

    #[test]
    fn a_pause_is_no_freeze_and_the_rhythm_begins_anew_after_it() {
        let mut result = ProgramResult::default();
        // Every 10 ms; a pause of 500 ms, after which the first frame is shown 3 ms too late, and one is dropped.
        let before_ms = (0..120).map(|place| f64::from(place) * 10.0);
        let after_ms = (0..20)
            .filter(|place| *place != 4)
            .map(|place| 1703.0 + f64::from(place) * 10.0);
        let shown_ms = before_ms.chain(after_ms).collect();
        take_frames_around(shown_ms, vec![1743.0], Some(1700.0), &mut result);
        assert_eq!((result.frames, result.dropped), (Some(139), Some(1)));
        assert_eq!(
            (result.resume_ms, result.longest_freeze_ms),
            (Some(513.0), Some(20.0))
        );
        assert_eq!(result.gaps_over_100ms, Some(0));
        assert_eq!(
            late_frames(&whole(&result), 10.0, false),
            19,
            "off the rhythm before it"
        );
        let parts = parts(&result, [Some(1700.0), None]);
        let late: Vec<u64> = parts
            .iter()
            .map(|part| late_frames(part, 10.0, false))
            .collect();
        let due: Vec<u64> = parts.iter().map(|part| part.due(10.0)).collect();
        assert_eq!((late, due), (vec![0, 0], vec![120, 20]));
    }

    #[test]
    fn late_frames_are_those_off_the_rhythm() {
        let mut result = ProgramResult::default();
        // Every 10 ms after the first; the third is dropped, the fourth comes 8 ms late, the last
        // is in time.
        take_frames(vec![-2.0, 15.0, 43.0, 46.0, 55.0], vec![25.0], &mut result);
        assert_eq!(late_frames(&whole(&result), 10.0, false), 1);
        assert_eq!((result.frames, result.dropped), (Some(5), Some(1)));
        assert_eq!(result.longest_freeze_ms, Some(28.0));
        assert_eq!(result.gaps_over_100ms, Some(0));
        assert_eq!(result.span_s, Some(0.057));
    }

    #[test]
    fn frames_behind_one_that_is_missing_are_in_time() {
        let mut result = ProgramResult::default();
        // Every 10 ms after the first; the 20th is missing, the 22nd comes 8 ms late.
        let place_ms = |place: u32| f64::from(place) * 10.0 + if place == 22 { 8.0 } else { 0.0 };
        let shown_ms = (0..25).filter(|place| *place != 20).map(place_ms).collect();
        take_frames(shown_ms, vec![], &mut result);
        let late = |may_miss| late_frames(&whole(&result), 10.0, may_miss);
        assert_eq!((late(true), late(false)), (1, 4));
    }

    #[test]
    fn a_film_player_notes_when_pictures_were_due_and_shown() {
        // Of 25 a second: in time, 21 ms late, dropped; and a line that was cut off.
        let text = "1000000000 990000000 1000100000\n1040000000 1050000000 1061000000\n\
                    1080000000 1121000000 0\n1120000000 11";
        let moments: Vec<_> = text.lines().filter_map(parse_moment).collect();
        let mut result = ProgramResult::default();
        take_moments(&moments, 1e9, 25.0, &mut result);
        assert_eq!((result.due, result.frames), (Some(3), Some(2)));
        assert_eq!((result.late, result.dropped), (Some(1), Some(1)));
        assert_eq!(result.latency_us.unwrap().max, 21_000.0);
        assert_eq!(result.released_ms, [0.0, 40.0]);
        assert_eq!(result.shown_ms, [0.1, 61.0]);
        assert_eq!(result.dropped_ms, [80.0]);
    }

    #[test]
    fn a_player_that_showed_nothing_has_no_freeze_and_no_span() {
        let mut result = ProgramResult::default();
        take_frames(Vec::new(), vec![25.0], &mut result);
        assert_eq!(
            (result.frames, result.longest_freeze_ms, result.span_s),
            (Some(0), None, None)
        );
    }
}
