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
//! part and answered: as with a real one, the player's smoothness then needs both to run.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::{Order, Samples, preallocated, record, work};
use crate::clock::{NS_PER_S, now_ns, sleep_until};
use crate::stop;

pub(super) fn run(
    order: &Order,
    fps: f64,
    work_ms: &[f64],
    display_ms: f64,
    drops: bool,
) -> io::Result<Samples> {
    let mut display = if display_ms > 0.0 {
        Some(Display::start(order.steps(display_ms))?)
    } else {
        None
    };
    let samples = play(order, (fps, drops), work_ms, &mut display);
    match display {
        None => Ok(samples),
        Some(display) => display.stop().map(|()| samples),
    }
}

fn play(
    order: &Order,
    (fps, drops): (f64, bool),
    work_ms: &[f64],
    display: &mut Option<Display>,
) -> Samples {
    let period_ns = NS_PER_S / fps;
    let steps: Vec<u64> = work_ms.iter().map(|ms| order.steps(*ms)).collect();
    let mut shown_ns = preallocated(order.capacity(fps), u64::MAX);
    let mut released_ns = preallocated(order.capacity(fps), u64::MAX);
    let mut dropped_ns = preallocated(order.capacity(fps), u64::MAX);
    let mut late = 0;
    // Frames are numbered from the beginning of the measurement, negative in the warm-up, so that
    // frame 0 is always the same one.
    let release_ns =
        |frame: i64| (order.begin_ns as i64 + (frame as f64 * period_ns) as i64) as u64;
    let started_ns = now_ns() as i64 - order.begin_ns as i64;
    let mut frame = (started_ns as f64 / period_ns).ceil() as i64;
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
        if stop::requested() {
            break;
        }
        work::compute(steps[frame.rem_euclid(steps.len() as i64) as usize]);
        if let Some(display) = display
            && display.show().is_err()
        {
            break;
        }
        let at_ns = now_ns();
        if order.measures(release_ns(frame)) {
            record(&mut shown_ns, at_ns - order.begin_ns);
            record(&mut released_ns, release_ns(frame) - order.begin_ns);
            late += u64::from(at_ns > release_ns(frame + 1));
        }
        frame += 1;
    }
    Samples {
        late: Some(late),
        shown_ns,
        released_ns,
        dropped_ns,
        ..Samples::default()
    }
}

/// The display server, reached through a socket.
struct Display {
    socket: UnixStream,
    pid: Pid,
}

impl Display {
    fn start(steps: u64) -> io::Result<Self> {
        let (socket, mut served) = UnixStream::pair()?;
        // SAFETY: the child only computes, uses its socket and leaves by `_exit`.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Self { socket, pid: child }),
            ForkResult::Child => {
                drop(socket);
                // The player decides when to end; its closing the socket is the sign.
                while served.read_exact(&mut [0]).is_ok() {
                    work::compute(steps);
                    if served.write_all(&[0]).is_err() {
                        break;
                    }
                }
                // SAFETY: always sound; skips the player's buffered output and destructors.
                unsafe { libc::_exit(0) }
            }
        }
    }

    /// Hands a frame over and waits until it is shown.
    fn show(&mut self) -> io::Result<()> {
        self.socket.write_all(&[0])?;
        self.socket.read_exact(&mut [0])
    }

    fn stop(self) -> io::Result<()> {
        drop(self.socket);
        waitpid(self.pid, None)?;
        Ok(())
    }
}
