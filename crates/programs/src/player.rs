//! The periodic player: releases a frame per period, decodes it, and has it shown.
//!
//! ```text
//!   release i            release i+1 = deadline of i
//!   |----[ work ]--shown i-----|----[ work ]---…
//! ```
//!
//! - A frame is **late** if it is shown after its deadline, the release of the next one.
//! - A frame is **dropped** if its deadline has passed before work on it could begin: the player
//!   is a whole period behind and goes on with the newest frame that can still be in time. A
//!   player told not to drop shows every frame, however late, and never sleeps while behind.
//!
//! With a display server, a frame is shown when the server, a process of its own, has done its
//! part and answered: as with a real one, the player's smoothness then needs both to run. A player
//! that does not wait for the answers has its frames shown when the server has done its part.

use std::io;
use std::ops::ControlFlow;

use andante_job::stop;
use andante_scenario as scenario;

use super::display::Display;
use super::session::Speaks;
use super::{Order, Samples, preallocated, record, work};
use crate::clock::{NS_PER_S, now_ns, sleep_until};

/// What is played, see [`scenario::Kind::Player`].
pub(super) struct Playing<'a> {
    pub fps: f64,
    pub work_ms: &'a [f64],
    pub display: &'a scenario::Display,
    pub drops: bool,
    pub by_clock: bool,
}

pub(super) fn run(order: &Order, playing: &Playing<'_>, speaks: &Speaks) -> io::Result<Samples> {
    let &Playing { fps, drops, .. } = playing;
    let mut display = Display::open(order, playing.display)?;
    let decode = |frame: i64| {
        let at = frame.rem_euclid(playing.work_ms.len() as i64) as usize;
        let ms = playing.work_ms[at];
        match playing.by_clock {
            true => work::compute_for((ms * 1e6) as u64, order.steps_per_ms),
            false => work::compute(order.steps(ms)),
        }
    };
    let mut shown = Shown::new(order, fps);
    let paced = pace(order, fps, drops, |frame, release_ns| {
        speaks.begin(release_ns(frame + 1));
        decode(frame);
        let mut note = |released_ns, at_ns| shown.note(released_ns, at_ns);
        match &mut display {
            None => note(release_ns(frame), now_ns()),
            Some(display) => {
                if display.show(release_ns(frame), &mut note).is_err() {
                    return ControlFlow::Break(());
                }
            }
        }
        speaks.end();
        ControlFlow::Continue(())
    });
    if let Some(display) = display {
        display.close(&mut |released_ns, at_ns| shown.note(released_ns, at_ns))?;
    }
    Ok(Samples {
        due: Some(paced.due()),
        dropped_ns: paced.dropped_ns,
        ..shown.samples()
    })
}

/// The frames that were not shown.
pub(super) struct Paced<'a> {
    order: &'a Order,
    fps: f64,
    first: i64,
    /// When those that were never shown were due [ns since the measurement began].
    pub dropped_ns: Vec<u64>,
}

impl Paced<'_> {
    /// Frames that had their whole time, up to now, in the measurement.
    pub fn due(&self) -> u64 {
        let order = self.order;
        let until_ns = now_ns().min(order.end_ns).saturating_sub(order.begin_ns);
        frames_due(self.first, self.fps, until_ns)
    }
}

/// Has each frame from now on shown by `show` when its time has come, until SIGTERM or until that breaks off; the
/// frame's number, and when a frame is released, are given to it.
pub(super) fn pace<'a>(
    order: &'a Order,
    fps: f64,
    drops: bool,
    mut show: impl FnMut(i64, &dyn Fn(i64) -> u64) -> ControlFlow<()>,
) -> Paced<'a> {
    let period_ns = NS_PER_S / fps;
    let mut dropped_ns = preallocated(order.capacity(fps), u64::MAX);
    // Frames are numbered from the beginning of the measurement, negative in the warm-up, so that
    // frame 0 is always the same one.
    let release_ns =
        |frame: i64| (order.begin_ns as i64 + (frame as f64 * period_ns) as i64) as u64;
    let started_ns = now_ns() as i64 - order.begin_ns as i64;
    let first = (started_ns as f64 / period_ns).ceil() as i64;
    let mut frame = first;
    while !stop::requested() {
        while now_ns() < release_ns(frame) && !stop::requested() {
            sleep_until(release_ns(frame));
        }
        let ready_ns = now_ns();
        while drops && ready_ns >= release_ns(frame + 1) {
            if order.measures(release_ns(frame)) {
                record(&mut dropped_ns, release_ns(frame) - order.begin_ns);
            }
            frame += 1;
        }
        if stop::requested() || show(frame, &release_ns).is_break() {
            break;
        }
        frame += 1;
    }
    Paced {
        order,
        fps,
        first,
        dropped_ns,
    }
}

/// Frames from `first` on, but not before the measurement began, whose deadline is at the latest at
/// `until_ns` [ns since then].
pub fn frames_due(first: i64, fps: f64, until_ns: u64) -> u64 {
    // A little more, lest rounding take away the one that ends right there.
    let past = (until_ns as f64 / NS_PER_S * fps + 1e-6).floor() as i64;
    (past - first.max(0)).max(0) as u64
}

/// The frames shown so far; a frame is late that is shown a period after its release.
pub(super) struct Shown<'a> {
    order: &'a Order,
    period_ns: f64,
    shown_ns: Vec<u64>,
    released_ns: Vec<u64>,
    late: u64,
}

impl<'a> Shown<'a> {
    pub fn new(order: &'a Order, fps: f64) -> Self {
        Self {
            order,
            period_ns: NS_PER_S / fps,
            shown_ns: preallocated(order.capacity(fps), u64::MAX),
            released_ns: preallocated(order.capacity(fps), u64::MAX),
            late: 0,
        }
    }

    /// The frame released at `released_ns` was shown at `at_ns`.
    pub fn note(&mut self, released_ns: u64, at_ns: u64) {
        if self.order.measures(released_ns) {
            let begin_ns = self.order.begin_ns;
            record(&mut self.shown_ns, at_ns - begin_ns);
            record(&mut self.released_ns, released_ns - begin_ns);
            self.late += u64::from((at_ns - released_ns) as f64 > self.period_ns);
        }
    }

    /// What they were.
    pub fn samples(self) -> Samples {
        Samples {
            late: Some(self.late),
            shown_ns: self.shown_ns,
            released_ns: self.released_ns,
            ..Samples::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::frames_due;

    #[test]
    fn frames_are_due_that_end_within_the_measurement() {
        let s = 1_000_000_000;
        assert_eq!(frames_due(-30, 30.0, 9 * s), 270);
        assert_eq!(frames_due(2, 30.0, 9 * s), 268);
        assert_eq!(frames_due(0, 30.0, 9 * s - 1000), 269);
        assert_eq!(frames_due(20, 30.0, s / 2), 0);
    }
}
