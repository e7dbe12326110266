//! mpv's own frame log, as `--dump-stats` writes it.
//!
//! ```text
//! 10082038 start video-flip          time event
//! 10306466 drop-vo
//! ```
//!
//! Up to mpv 0.36 the time is in µs, and begins at 10 s; since then it is in ns, and begins at 0.
//!
//! A frame is shown at the start of its flip, and dropped when the video output was given it too
//! late. Drops alone mislead: a starved player that never gets behind its own clock drops little and
//! takes three times the film's length. So freezes and the span are read as well.

/// What an older mpv calls the instant at which it started [µs].
const START_US: u64 = 10_000_000;

/// A log whose times span more than this is one in ns. No film here is shorter than a second, which is that many ns,
/// or longer than the thousand seconds that it would be in µs.
const SPAN_OF_US: u64 = 1_000_000_000;

/// The frames of one playback.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FrameLog {
    /// When frames were shown [µs since mpv started].
    pub shown_us: Vec<u64>,
    /// When frames were dropped [µs since mpv started].
    pub dropped_us: Vec<u64>,
    /// Whether mpv's clock began at 0, as a newer one's does, and not at 10 s.
    begins_at_0: bool,
}

impl FrameLog {
    /// The time by mpv's clock [µs], as it answers those who ask it, since mpv started.
    pub fn since_start_us(&self, clock_us: u64) -> u64 {
        match self.begins_at_0 {
            true => clock_us,
            false => clock_us.saturating_sub(START_US),
        }
    }
}

/// Reads the text of a stats file; a last line cut off by the end of the player is left out.
pub(crate) fn parse_stats(text: &str) -> FrameLog {
    let events: Vec<(u64, &str)> = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.split_once(' '))
        .filter_map(|(time, event)| Some((time.parse().ok()?, event.trim())))
        .collect();
    let in_ns = match (events.first(), events.last()) {
        (Some((first, _)), Some((last, _))) => last.saturating_sub(*first) > SPAN_OF_US,
        _ => false,
    };
    let since_start_us = |time: u64| match in_ns {
        true => time / 1_000,
        false => time.saturating_sub(START_US),
    };
    let all = |wanted| {
        let such = events.iter().filter(|(_, event)| *event == wanted);
        such.map(|(time, _)| since_start_us(*time)).collect()
    };
    FrameLog {
        shown_us: all("start video-flip"),
        dropped_us: all("drop-vo"),
        begins_at_0: in_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a file that mpv 0.35.1 wrote beside two endless loops.
    const STATS: &str = "\
10009545 start init
10082037 end video-draw
10082038 start video-flip
10082039 end video-flip
10304896 value 0.016000 frame-duration
10306466 drop-vo
10306473 start sleep
10339775 drop-vo
10352535 value 0.000010 audio-diff
10410012 start video-flip
10410014 end video-flip
104299";

    #[test]
    fn frames_shown_and_dropped_are_told_apart() {
        let log = parse_stats(STATS);
        assert_eq!(log.shown_us, [82_038, 410_012]);
        assert_eq!(log.dropped_us, [306_466, 339_775]);
        assert_eq!(log.since_start_us(10_306_466), 306_466);
    }

    /// Lines of a file that mpv 0.40.0 wrote.
    const STATS_NS: &str = "\
34178205 start init
34283131 end init
797881457 start video-flip
797881788 end video-flip
841739622 drop-vo
2853686350 end audio wait
";

    #[test]
    fn times_of_a_newer_mpv_are_in_ns() {
        let log = parse_stats(STATS_NS);
        assert_eq!(log.shown_us, [797_881]);
        assert_eq!(log.dropped_us, [841_739]);
        assert_eq!(log.since_start_us(841_739), 841_739);
    }

    #[test]
    fn a_line_cut_off_counts_for_nothing() {
        assert!(parse_stats("10500000 drop-vo").dropped_us.is_empty());
        assert_eq!(parse_stats(""), FrameLog::default());
    }
}
