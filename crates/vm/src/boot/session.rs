//! One QEMU after the other: those that save a machine, and the one that runs the command.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde_json::json;

use super::machine::{Files, Monitored, POINTS, Running};
use super::monitor::{Monitor, Refusal};
use super::saved::{Place, Point, Store};
use super::tail::Tail;
use super::{Boot, BootError, Event, Outcome, io_error, last_lines, parse_status};
use crate::cache::Cache;

/// How often the host looks at what the guest wrote.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often it looks while it waits for the time to save: a fraction of the 0.4 s that there are for it.
const LOOK_TO_SAVE_EVERY: Duration = Duration::from_millis(20);
/// How often a machine is begun anew that was not halted in time, since the host was too busy.
const TRIES: u32 = 3;

/// The things that all QEMUs of one run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session<'a> {
    pub boot: &'a Boot<'a>,
    pub files: &'a Files,
    pub deadline: Instant,
}

/// Why there is no saved machine to go on from.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The run itself has failed.
    Boot(BootError),
    /// This is in the way; the run may boot.
    Save(Refusal),
    /// A saved machine was refused, and is deleted.
    Refused(Refusal),
}

impl From<BootError> for Trouble {
    fn from(error: BootError) -> Self {
        Self::Boot(error)
    }
}

impl From<Refusal> for Trouble {
    fn from(reason: Refusal) -> Self {
        Self::Save(reason)
    }
}

/// The end of going on from a saved machine.
pub(super) enum Begun<'a> {
    /// It goes on.
    Running(OneRun<'a>),
    /// The command has ended before it came to the point at which it would have been saved.
    Ended(Outcome),
}

/// The end of an attempt to save.
enum Saved {
    Done,
    Late,
    Ended(Outcome),
}

impl<'a> Session<'a> {
    /// Begins with the machine saved at the last of the points, which is made if there is none.
    pub(super) fn go_on(
        self,
        cache: &Cache,
        points: &[Point],
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Begun<'a>, Trouble> {
        let store = Store::open(cache).map_err(|error| Trouble::Save(error.to_string()))?;
        // Each of them may be refused once; those made anew should not be.
        for _ in points {
            match self.go_on_once(&store, points, on_event) {
                Err(Trouble::Refused(reason)) => {
                    let note = format!("{reason}; it is made anew");
                    on_event(Event::Note(&note));
                }
                begun => return begun,
            }
        }
        self.go_on_once(&store, points, on_event)
    }

    fn go_on_once(
        self,
        store: &Store,
        points: &[Point],
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Begun<'a>, Trouble> {
        Ok(match self.place(store, points, on_event)? {
            Ok(place) => Begun::Running(self.resumed(&place)?),
            Err(outcome) => Begun::Ended(outcome),
        })
    }

    /// The place of the machine of the last point, filled; or the outcome, if it came to that.
    fn place(
        self,
        store: &Store,
        points: &[Point],
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Result<Place, Outcome>, Trouble> {
        let (point, before) = points.split_last().expect("there is a first point");
        let cannot = |error: std::io::Error| Trouble::Save(error.to_string());
        let place = store.hold(point).map_err(cannot)?;
        if place.is_taken() {
            return Ok(Ok(place));
        }
        let from = match before {
            [] => None,
            _ => match self.place(store, before, on_event)? {
                Ok(from) => Some(from),
                Err(outcome) => return Ok(Err(outcome)),
            },
        };
        for _ in 0..TRIES {
            let staged = place.staging().map_err(cannot)?;
            match self.save(point, from.as_ref(), &staged, on_event)? {
                Saved::Done => {
                    place.fill(staged).map_err(cannot)?;
                    return Ok(Ok(place));
                }
                Saved::Ended(outcome) => return Ok(Err(outcome)),
                Saved::Late => {}
            }
        }
        Err(Trouble::Save(format!(
            "this machine is so busy that it came too late to halt it, {TRIES} times"
        )))
    }

    /// Runs up to the point, and saves the machine there.
    fn save(
        self,
        point: &Point,
        from: Option<&Place>,
        to: &Path,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Saved, Trouble> {
        let mut run = match from {
            Some(place) => self.resumed(place)?,
            None => self.monitored(None)?,
        };
        let index = POINTS.iter().position(|name| *name == point.name);
        let port = &self.files.points[index.expect("a point's name")];
        let said = |word: &str| {
            let text = fs::read_to_string(port).map_err(io_error(port))?;
            Ok::<_, BootError>(text.lines().any(|line| line == word))
        };
        while !said("ready")? {
            if let Some(outcome) = run.step(on_event)? {
                return Ok(Saved::Ended(outcome));
            }
            std::thread::sleep(LOOK_TO_SAVE_EVERY);
        }
        run.monitor()?.execute("stop", json!({}))?;
        if said("late")? {
            return Ok(Saved::Late);
        }
        Running::save(run.monitor()?, to, self.deadline)?;
        // Whether it is told or killed: the machine is written.
        let _ = run.monitor()?.execute("quit", json!({}));
        Ok(Saved::Done)
    }

    /// Starts QEMU with a machine that was saved, and has it go on.
    fn resumed(self, place: &Place) -> Result<OneRun<'a>, Trouble> {
        let begun = self.monitored(Some(&place.file)).and_then(|mut run| {
            Running::go_on(run.monitor()?, &place.file, self.boot.cpus, self.deadline)?;
            Ok(run)
        });
        begun.map_err(|trouble| match trouble {
            Trouble::Save(reason) => {
                place.clear();
                let said = fs::read_to_string(&self.files.stderr).unwrap_or_default();
                let said = said.lines().last().unwrap_or_default().to_owned();
                let file = place.file.display();
                Trouble::Refused(format!(
                    "QEMU refuses {file}, which is deleted ({reason}; {said})"
                ))
            }
            trouble => trouble,
        })
    }

    fn monitored(self, from: Option<&Path>) -> Result<OneRun<'a>, Trouble> {
        let mut run = self.start(Some(Monitored { from }))?;
        run.monitor = Some(run.running.monitor()?);
        Ok(run)
    }

    /// Starts QEMU.
    pub(super) fn start(self, monitored: Option<Monitored>) -> Result<OneRun<'a>, BootError> {
        for file in [&self.files.console, &self.files.progress] {
            fs::write(file, "").map_err(io_error(file))?;
        }
        Ok(OneRun {
            session: self,
            console: Tail::open(&self.files.console)?,
            progress: Tail::open(&self.files.progress)?,
            monitor: None,
            running: Running::start(self.boot, self.files, monitored)?,
        })
    }
}

/// One QEMU; dropping it kills it.
pub(super) struct OneRun<'a> {
    session: Session<'a>,
    console: Tail,
    progress: Tail,
    monitor: Option<Monitor>,
    running: Running,
}

impl OneRun<'_> {
    fn monitor(&mut self) -> Result<&mut Monitor, Refusal> {
        self.monitor
            .as_mut()
            .ok_or_else(|| "QEMU is not monitored".to_owned())
    }

    /// Waits for the end of the command.
    pub(super) fn wait_for_end(
        &mut self,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Outcome, BootError> {
        loop {
            if let Some(outcome) = self.step(on_event)? {
                return Ok(outcome);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Passes on what was written, and returns the outcome if there is one.
    fn step(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<Option<Outcome>, BootError> {
        let ended = self.running.ended()?;
        self.console
            .lines(&mut |line| on_event(Event::Console(line)))?;
        self.progress
            .lines(&mut |line| on_event(Event::Progress(line)))?;
        if let Some(status) = ended {
            return self.outcome(status).map(Some);
        }
        if Instant::now() >= self.session.deadline {
            return Err(BootError::Timeout {
                timeout: self.session.boot.timeout,
                log: self.session.boot.console_log.clone(),
                tail: last_lines(&self.session.files.console),
            });
        }
        Ok(None)
    }

    fn outcome(&self, status: ExitStatus) -> Result<Outcome, BootError> {
        let Session { boot, files, .. } = self.session;
        if !status.success() {
            let said = fs::read_to_string(&files.stderr).unwrap_or_default();
            return Err(BootError::Qemu {
                status: status.to_string(),
                message: said.lines().last().unwrap_or("no message").to_owned(),
            });
        }
        let (log, tail) = (boot.console_log.clone(), last_lines(&files.console));
        let report = fs::read_to_string(&files.status).map_err(io_error(&files.status))?;
        if let Some((exit_status, virtual_s)) = parse_status(&report) {
            let output = fs::read(&files.output).map_err(io_error(&files.output))?;
            return Ok(Outcome {
                exit_status,
                output,
                virtual_s,
            });
        }
        let console = fs::read(&files.console).map_err(io_error(&files.console))?;
        let console = String::from_utf8_lossy(&console);
        Err(match console.split("Kernel panic - ").nth(1) {
            Some(rest) => BootError::Panic {
                message: rest.lines().next().unwrap_or_default().trim().to_owned(),
                log,
                tail,
            },
            None => BootError::NoStatus { log, tail },
        })
    }
}
