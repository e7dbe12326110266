//! `andante top`: a live view of the class tree.
//!
//! [`source`] is where snapshots come from, [`state`] is what the keys change, [`draw`] turns it
//! into a picture. Only this file knows the terminal.

mod draw;
mod source;
mod state;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::{Context, Result};
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::{DefaultTerminal, Terminal};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;

use self::source::{Live, Recorder, Replay, Source};
use self::state::{Action, State};
use super::status::{in_charge, interval};

/// Watch the class tree live.
///
/// The bar shows the share a class received and its mark the share it asked for; what lies beyond the
/// mark was left over by others. The line beside it shows how the share went. Below are the contracts
/// (`andante reserve`): what was promised, and what came of it.
///
/// Where a network device is attached (`andante net attach`), root also sees what each class, with those below it, has
/// SENT by it in a second, and the contracts of the network among the others.
#[derive(Args)]
#[command(after_long_help = "\
Keys:
  up, down, j, k   select a class        +, -    change its weight by a tenth
  s                sort siblings         a       show idle classes
  space            pause                 q       quit

Examples:
  andante top
  andante top --record evening.jsonl     watch, and keep what was seen
  andante top --replay evening.jsonl     watch it again, anywhere
  andante top --once                     one picture as text")]
pub struct Top {
    /// Time between two looks [s].
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Print one picture as text and end.
    #[arg(long)]
    once: bool,
    /// Append every snapshot to this file, one JSON object per line.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Show the snapshots of a recording instead of this machine's.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

impl Top {
    /// Watches until the user has seen enough.
    pub fn run(self) -> Result<Status> {
        let mut source = self.source()?;
        let mut state = State::new(source.title());
        let interval = Duration::from_secs_f64(self.interval);
        if self.once {
            state.advance(source.next()?);
            thread::sleep(source.pace(interval));
            state.advance(source.next()?);
            output::print(&picture(&mut state)?)?;
            return Ok(Status::Ok);
        }
        state.advance(source.next()?);
        // ^C is a key in raw mode; this would leave the terminal in it.
        let stop = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGTERM, Arc::clone(&stop))?;
        end_with_the_terminal()?;
        let mut terminal =
            ratatui::try_init().context("top needs a terminal; use --once without one")?;
        let outcome = watch(&mut terminal, source.as_mut(), &mut state, interval, &stop);
        // It may be gone, which is no failure, and nobody could be told.
        let _ = ratatui::try_restore();
        outcome.map(|()| Status::Ok)
    }

    fn source(&self) -> Result<Box<dyn Source>> {
        if let Some(file) = &self.replay {
            return Ok(Box::new(Replay::open(file)?));
        }
        in_charge()?;
        Ok(match &self.record {
            Some(file) => Box::new(Recorder::new(Live::open()?, file)?),
            None => Box::new(Live::open()?),
        })
    }
}

/// Draws, and answers keys, until told to stop.
fn watch(
    terminal: &mut DefaultTerminal,
    source: &mut dyn Source,
    state: &mut State,
    interval: Duration,
    stop: &AtomicBool,
) -> Result<()> {
    let mut due = Instant::now() + source.pace(interval);
    while !stop.load(Ordering::Relaxed) && !terminal_is_gone() {
        match terminal.draw(|frame| draw::draw(frame, state)) {
            Err(_) if terminal_is_gone() => return Ok(()),
            drawn => drawn?,
        };
        // Short enough that a signal is answered at once.
        let patience = due.saturating_duration_since(Instant::now());
        if event::poll(patience.min(Duration::from_millis(200)))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match state.press(key) {
                    Action::Quit => return Ok(()),
                    Action::SetWeight { path, weight } => {
                        state.tell(match source.set_weight(&path, weight) {
                            Ok(()) => format!("{path}: weight {weight}"),
                            Err(error) => format!("{error:#}"),
                        });
                    }
                    Action::None => {}
                },
                _ => {}
            }
        }
        if Instant::now() >= due {
            due = Instant::now() + source.pace(interval);
            if !state.paused() {
                state.advance(source.next()?);
            }
        }
    }
    Ok(())
}

/// Ends when the terminal is closed, whatever goes on: whoever waits for a key meanwhile reads from it for ever.
fn end_with_the_terminal() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // If there still is one.
            let _ = ratatui::try_restore();
            std::process::exit(i32::from(Status::Ok.code()));
        }
    });
    Ok(())
}

/// Has the terminal been closed under us? Reading keys from it would then never end.
fn terminal_is_gone() -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    poll(&mut watched, PollTimeout::ZERO).is_ok()
        && watched[0]
            .revents()
            .is_some_and(|events| events.intersects(gone))
}

/// One picture as text, as wide as the terminal (100 columns without one) and as tall as needed.
fn picture(state: &mut State) -> Result<String> {
    let width = ratatui::crossterm::terminal::size().map_or(100, |(columns, _)| columns.max(80));
    let height = u16::try_from(state.rows().len())
        .unwrap_or(u16::MAX)
        .saturating_add(4)
        .saturating_add(draw::contract_lines(state, width));
    let mut terminal = Terminal::new(TestBackend::new(width, height))?;
    terminal.draw(|frame| draw::draw(frame, state))?;
    let cells = terminal.backend().buffer().content();
    Ok(cells
        .chunks(usize::from(width))
        .map(|line| {
            let line: String = line.iter().map(|cell| cell.symbol()).collect();
            format!("{}\n", line.trim_end())
        })
        .collect())
}
