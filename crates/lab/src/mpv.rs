//! mpv's own frame log, as `--dump-stats` writes it.
//!
//! ```text
//! 10082038 start video-flip          time [µs, from mpv's start at 10 s] event
//! 10306466 drop-vo
//! ```
//!
//! A frame is shown at the start of its flip, and dropped when the video output was given it too
//! late. Drops alone mislead: a starved player that never gets behind its own clock drops little and
//! takes three times the film's length. So freezes and the span are read as well.

/// What mpv calls the instant at which it started [µs].
const START_US: u64 = 10_000_000;

/// The frames of one playback.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FrameLog {
    /// When frames were shown [µs since mpv started].
    pub shown_us: Vec<u64>,
    /// When frames were dropped [µs since mpv started].
    pub dropped_us: Vec<u64>,
}

/// Reads the text of a stats file; a last line cut off by the end of the player is left out.
pub(crate) fn parse_stats(text: &str) -> FrameLog {
    let mut log = FrameLog::default();
    for line in text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        let Some((time, event)) = line.split_once(' ') else {
            continue;
        };
        let list = match event.trim() {
            "start video-flip" => &mut log.shown_us,
            "drop-vo" => &mut log.dropped_us,
            _ => continue,
        };
        if let Ok(time_us) = time.parse::<u64>() {
            list.push(time_us.saturating_sub(START_US));
        }
    }
    log
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
    }

    #[test]
    fn a_line_cut_off_counts_for_nothing() {
        assert!(parse_stats("10500000 drop-vo").dropped_us.is_empty());
        assert_eq!(parse_stats(""), FrameLog::default());
    }
}
