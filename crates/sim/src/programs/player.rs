//! The player of a film.

use crate::program::{Program, Step, World};
use crate::programs::display::{Client, Note};
use crate::{NS_PER_S, Ns};

/// Shows a frame each period; see [`Player::step`].
#[derive(Debug)]
pub struct Player {
    begin_ns: Ns,
    period_ns: f64,
    /// Repeated like a group of pictures.
    work_ns: Vec<Ns>,
    /// A display server that has to draw each frame.
    display: Option<Client>,
    exchanges: u32,
    /// Whether frames that are a period late are given up.
    drops: bool,
    /// Whether work is CPU time by its clock.
    by_clock: bool,
    frame: Option<i64>,
    /// Exchanges with the display server for this frame.
    exchanged: u32,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Waits,
    Begins,
    Works,
    Turns,
    Asks,
    Hears,
    Shows,
}

impl Player {
    /// Frame 0 is released at `begin_ns`; frames before it, with negative numbers, are played too.
    pub fn new(begin_ns: Ns, fps: f64, work_ns: Vec<Ns>, display: Option<Client>) -> Self {
        Self {
            begin_ns,
            period_ns: NS_PER_S as f64 / fps,
            work_ns,
            display,
            exchanges: 1,
            drops: true,
            by_clock: false,
            frame: None,
            exchanged: 0,
            phase: Phase::Waits,
        }
    }

    /// It waits for the display server so often for each frame: the first time for the picture to be
    /// drawn, then for answers that take no work.
    pub fn exchanges(self, exchanges: u32) -> Self {
        assert!(exchanges > 0, "a frame is shown in one exchange at least");
        Self { exchanges, ..self }
    }

    /// The same player, which shows every frame, however late.
    pub fn never_dropping(self) -> Self {
        Self {
            drops: false,
            ..self
        }
    }

    /// The same player, whose work is CPU time by its thread's clock, however fast its CPU is.
    pub fn by_clock(self) -> Self {
        Self {
            by_clock: true,
            ..self
        }
    }

    fn release_ns(&self, frame: i64) -> Ns {
        (self.begin_ns as i64 + (frame as f64 * self.period_ns) as i64) as Ns
    }

    /// The first frame that is released at `from_ns` or later.
    fn first_frame(&self, from_ns: Ns) -> i64 {
        ((from_ns as f64 - self.begin_ns as f64) / self.period_ns).ceil() as i64
    }

    /// The frame to work on, `frame` or one after it.
    fn begin(&self, mut frame: i64, world: &mut World<'_>) -> i64 {
        while self.drops && world.now_ns >= self.release_ns(frame + 1) {
            world.record().dropped_ns.push(self.release_ns(frame));
            frame += 1;
        }
        frame
    }

    fn work_ns(&self, frame: i64) -> Ns {
        self.work_ns[frame.rem_euclid(self.work_ns.len() as i64) as usize]
    }

    /// One exchange with the display server begins, goes on, ends.
    fn with_display(&self, step: impl Fn(&Client) -> Step) -> Step {
        self.display.as_ref().map_or(Step::Compute(0), step)
    }

    fn shows(&self, frame: i64, world: &mut World<'_>) {
        let released_ns = self.release_ns(frame);
        let note = Note::Frame { released_ns };
        if self.display.as_ref().is_none_or(|d| d.note(note).is_none()) {
            let now_ns = world.now_ns;
            world.record().shown_ns.push(now_ns);
            world.record().released_ns.push(released_ns);
        }
    }
}

impl Program for Player {
    /// A frame is dropped if its deadline, the release of the next one, has passed before work on
    /// it could begin. It is shown when it is decoded or, with a display server, when that has
    /// done its part and answered; with one that it does not wait for, when that has done its part.
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let mut frame = self.frame.unwrap_or_else(|| self.first_frame(world.now_ns));
        let (step, phase) = match self.phase {
            Phase::Waits => (Step::SleepUntil(self.release_ns(frame)), Phase::Begins),
            Phase::Begins => {
                frame = self.begin(frame, world);
                self.exchanged = 0;
                (Step::Begin(self.release_ns(frame + 1)), Phase::Works)
            }
            Phase::Works => {
                let work = match self.by_clock {
                    true => Step::ComputeByClock,
                    false => Step::Compute,
                };
                (work(self.work_ns(frame)), Phase::Turns)
            }
            Phase::Turns => (self.with_display(Client::begin), Phase::Asks),
            Phase::Asks => {
                self.exchanged += 1;
                let released_ns = self.release_ns(frame);
                let ask = |display: &Client| match self.exchanged {
                    1 => display.ask(world, display.note(Note::Frame { released_ns })),
                    _ => display.ask_for_nothing(),
                };
                (self.with_display(ask), Phase::Hears)
            }
            Phase::Hears => {
                let again = self.exchanged < self.exchanges;
                let next = if again { Phase::Turns } else { Phase::Shows };
                (self.with_display(Client::hear), next)
            }
            Phase::Shows => {
                self.shows(frame, world);
                frame += 1;
                (Step::SleepUntil(self.release_ns(frame)), Phase::Begins)
            }
        };
        self.frame = Some(frame);
        self.phase = phase;
        step
    }
}
