// SPDX-License-Identifier: GPL-2.0
//! The keeper as the daemon sees it: started, told, listened to, and started again if it has ended. Nobody waits for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, OFlag, fcntl};

use crate::error::{MemoryError, file};
use crate::words::{Order, Report};

/// It is started again no more often than this: what ends it at once would end the next as well.
const AGAIN: Duration = Duration::from_secs(1);
/// Orders that it has not read are as many as fit into its pipe; what comes then is told later.
const UNREAD: usize = 64 << 10;

/// A process that looks after reserved memory.
#[derive(Debug)]
pub struct Handle {
    start: Vec<std::ffi::OsString>,
    running: Option<Running>,
    started: Option<Instant>,
    /// How often it had to be started again.
    pub restarts: u32,
    report: Report,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stdout: ChildStdout,
    unread: Vec<u8>,
    unsent: Vec<u8>,
}

impl Handle {
    /// By this command, whose first word is the program; nothing is started before there is an order.
    pub fn new(start: Vec<std::ffi::OsString>) -> Self {
        Self {
            start,
            running: None,
            started: None,
            restarts: 0,
            report: Report::default(),
        }
    }

    /// Its last report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.running.is_some()
    }

    /// Tells it, and starts it if it does not run.
    ///
    /// # Errors
    /// [`MemoryError::Keeper`]: it cannot be started.
    pub fn tell(&mut self, order: &Order) -> Result<(), MemoryError> {
        if self.running.is_none() {
            self.running = Some(self.begin().map_err(MemoryError::Keeper)?);
        }
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if running.unsent.len() < UNREAD {
            serde_json::to_writer(&mut running.unsent, order)
                .map_err(|error| MemoryError::Keeper(error.into()))?;
            running.unsent.push(b'\n');
        }
        running.send();
        Ok(())
    }

    fn begin(&mut self) -> io::Result<Running> {
        self.started = Some(Instant::now());
        let (program, arguments) = self.start.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        for fd in [stdout.as_fd()]
            .into_iter()
            .chain(child.stdin.as_ref().map(AsFd::as_fd))
        {
            never_waits(fd)?;
        }
        Ok(Running {
            child,
            stdout,
            unread: Vec::new(),
            unsent: Vec::new(),
        })
    }

    /// Reads what it has said. Whether it has ended, and has to be told everything again.
    pub fn look(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return self
                .started
                .is_some_and(|started| started.elapsed() >= AGAIN);
        };
        running.send();
        if let Some(report) = running.read() {
            self.report = report;
        }
        let ended = running.child.try_wait().is_ok_and(|ended| ended.is_some());
        if ended {
            self.running = None;
            self.restarts += 1;
        }
        ended
            && self
                .started
                .is_some_and(|started| started.elapsed() >= AGAIN)
    }

    /// Ends it, as there is nothing to look after.
    pub fn end(&mut self) {
        self.report = Report::default();
        self.started = None;
        let Some(mut running) = self.running.take() else {
            return;
        };
        drop(running.child.stdin.take());
        // It ends with its input, or waits for a disk now and would do so for long.
        if !ends_within(&mut running.child, Duration::from_millis(100)) {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

fn ends_within(child: &mut Child, patience: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if child.try_wait().map_or(true, |ended| ended.is_some()) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

impl Running {
    fn send(&mut self) {
        let Some(stdin) = &mut self.child.stdin else {
            return;
        };
        while !self.unsent.is_empty() {
            match stdin.write(&self.unsent) {
                Ok(sent) if sent > 0 => drop(self.unsent.drain(..sent)),
                // Full: later. Broken: it has ended, which is seen when it is waited for.
                _ => return,
            }
        }
    }

    /// The last of what it has said.
    fn read(&mut self) -> Option<Report> {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = self.stdout.read(&mut buffer) {
            self.unread.extend_from_slice(&buffer[..read]);
        }
        let mut last = None;
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            last = serde_json::from_slice(&line).ok().or(last);
        }
        last
    }
}

fn never_waits(fd: BorrowedFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// The right to change what is protected: of one daemon, and of its keeper until that has put everything back.
#[derive(Debug)]
pub struct Right(#[allow(dead_code)] Flock<File>);

impl Right {
    /// Takes it; a keeper whose daemon was killed needs a moment to put everything back.
    ///
    /// # Errors
    /// Another has it (`WouldBlock`), or the file cannot be made.
    pub fn take(path: &Path, patience: Duration) -> Result<Self, MemoryError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(file(path))?;
        }
        let begun = Instant::now();
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        let mut opened = opened.map_err(file(path))?;
        // The keeper is to have it too.
        fcntl(opened.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))
            .map_err(|error| file(path)(error.into()))?;
        loop {
            match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((again, _)) if begun.elapsed() < patience => {
                    opened = again;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err((_, error)) => return Err(file(path)(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(script: &str) -> Handle {
        Handle::new(["sh", "-c", script].map(Into::into).to_vec())
    }

    fn until(mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never was");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_it_says_is_heard_and_the_last_counts() {
        let said = serde_json::to_string(&Report {
            free: 7,
            ..Report::default()
        });
        let script = format!(
            "read line; echo nonsense; echo '{}'; cat >/dev/null",
            said.unwrap()
        );
        let mut handle = handle(&script);
        handle.tell(&Order::Wake { pid: 1 }).unwrap();
        until(|| {
            handle.look();
            handle.report().free == 7
        });
        assert!(handle.runs());
        handle.end();
        assert!(!handle.runs());
    }

    #[test]
    fn one_that_ends_is_told_everything_again_but_not_at_once() {
        let mut handle = handle("exit 1");
        let begun = Instant::now();
        handle.tell(&Order::Wake { pid: 1 }).unwrap();
        until(|| handle.look());
        assert!(begun.elapsed() >= AGAIN, "not at once");
        assert_eq!((handle.restarts, handle.runs()), (1, false));
    }

    #[test]
    fn one_that_reads_nothing_makes_nobody_wait() {
        let mut handle = handle("sleep 60");
        for pid in 0..100_000 {
            handle.tell(&Order::Wake { pid }).unwrap();
        }
        let begun = Instant::now();
        handle.end();
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn the_right_is_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.lock");
        let first = Right::take(&path, Duration::ZERO).unwrap();
        assert!(Right::take(&path, Duration::ZERO).is_err());
        drop(first);
        Right::take(&path, Duration::ZERO).unwrap();
    }
}
