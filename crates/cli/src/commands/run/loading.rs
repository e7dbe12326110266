//! While the scheduler is loaded: precedence for the thread that does it, and progress for who waits.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use andante_sched::{Urgent, Verifying, verifying};
use andante_terminal::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sd_notify::NotifyState;

/// Loading that is done by then needs no progress: people take it for an answer.
const SILENT: Duration = Duration::from_secs(2);
/// How often a terminal shows something new.
const STEP: Duration = Duration::from_millis(500);

/// Loading is under way, with precedence, until this is ended or dropped.
pub struct Loading {
    urgent: Urgent,
    begun: Instant,
    progress: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Loading {
    /// Raises the calling thread's priority; if `tell`, tells how far loading is once it takes long.
    pub fn begin(tell: bool) -> Self {
        let begun = Instant::now();
        // Before this thread has precedence, or the other one would not get a CPU to begin on.
        let progress = tell.then(|| start_telling(begun));
        Self {
            urgent: Urgent::to_load(),
            begun,
            progress,
        }
    }

    /// Ends it, and tells how it was.
    pub fn end(self) -> String {
        format!(
            "Loaded in {:.1} s, {}.",
            self.begun.elapsed().as_secs_f64(),
            self.urgent.outcome()
        )
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.progress.take() {
            drop(ended);
            // A thread that failed has told nothing, and loading is over in any case.
            let _ = thread.join();
        }
    }
}

/// Starts the thread that tells; it has precedence when this returns, unless it got no CPU for as long as
/// loading takes.
fn start_telling(begun: Instant) -> (Sender<()>, JoinHandle<()>) {
    let (ended, end) = channel();
    let (begins, has_begun) = channel();
    let thread = std::thread::spawn(move || {
        let _urgent = Urgent::to_tell();
        let _ = begins.send(());
        tell_until(&end, begun);
    });
    let _ = has_begun.recv_timeout(SILENT);
    (ended, thread)
}

/// On a terminal a line that is replaced, and gone at the end; elsewhere one line.
fn tell_until(end: &Receiver<()>, begun: Instant) {
    if end.recv_timeout(SILENT) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let now = || line(verifying().as_ref(), begun.elapsed());
    // Without systemd there is nobody to notify, and that is fine.
    let _ = sd_notify::notify(&[NotifyState::Status(&now())]);
    if !stderr().is_terminal() {
        output::note("loading: the kernel verifies the scheduler, which takes seconds");
        return;
    }
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a valid template");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
    loop {
        bar.set_message(now());
        bar.tick();
        if end.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
            break bar.finish_and_clear();
        }
    }
}

fn line(at: Option<&Verifying>, elapsed: Duration) -> String {
    let s = elapsed.as_secs();
    match at {
        Some(Verifying { name, number, of }) => {
            format!("loading: the kernel verifies program {number} of {of}, {name}; {s} s so far")
        }
        None => format!("loading; {s} s so far"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_program_and_the_time() {
        let at = Verifying {
            name: "andante_dispatch".into(),
            number: 5,
            of: 17,
        };
        assert_eq!(
            line(Some(&at), Duration::from_millis(4900)),
            "loading: the kernel verifies program 5 of 17, andante_dispatch; 4 s so far"
        );
        assert_eq!(line(None, SILENT), "loading; 2 s so far");
    }

    #[test]
    fn ending_early_waits_for_nobody() {
        let begun = Instant::now();
        let how = Loading::begin(true).end();
        assert!(begun.elapsed() < SILENT, "{how}");
        assert!(how.starts_with("Loaded in 0."), "{how}");
    }
}
