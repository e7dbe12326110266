//! The synthetic programs of scenarios. Each does what the laboratory's real process of the same
//! name does on a kernel (`crates/lab/src/programs/`), system calls taking no time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::channel::ChannelId;
use crate::program::{Program, Step, World};
use crate::random::Random;
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
    /// Whether frames that are a period late are given up.
    drops: bool,
    frame: Option<i64>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Waits,
    Decodes,
    Asks,
    Receives,
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
            drops: true,
            frame: None,
            phase: Phase::Waits,
        }
    }

    /// The same player, which shows every frame, however late.
    pub fn never_dropping(self) -> Self {
        Self {
            drops: false,
            ..self
        }
    }

    fn display(&self) -> &Client {
        self.display.as_ref().expect("it has one in these phases")
    }

    fn release_ns(&self, frame: i64) -> Ns {
        (self.begin_ns as i64 + (frame as f64 * self.period_ns) as i64) as Ns
    }
}

impl Program for Player {
    /// A frame is dropped if its deadline, the release of the next one, has passed before work on
    /// it could begin. It is shown when it is decoded or, with a display server, when that has
    /// done its part and answered.
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let now_ns = world.now_ns;
        let first = || ((now_ns as f64 - self.begin_ns as f64) / self.period_ns).ceil() as i64;
        let mut frame = self.frame.unwrap_or_else(first);
        let (step, phase) = match self.phase {
            Phase::Waits => (Step::SleepUntil(self.release_ns(frame)), Phase::Decodes),
            Phase::Decodes => {
                while self.drops && now_ns >= self.release_ns(frame + 1) {
                    world.record.dropped_ns.push(self.release_ns(frame));
                    frame += 1;
                }
                let work_ns = self.work_ns[frame.rem_euclid(self.work_ns.len() as i64) as usize];
                let next = if self.display.is_some() {
                    Phase::Asks
                } else {
                    Phase::Shows
                };
                (Step::Compute(work_ns), next)
            }
            Phase::Asks => (self.display().ask(), Phase::Receives),
            Phase::Receives => (self.display().hear(), Phase::Shows),
            Phase::Shows => {
                world.record.shown_ns.push(now_ns);
                world.record.released_ns.push(self.release_ns(frame));
                frame += 1;
                (Step::SleepUntil(self.release_ns(frame)), Phase::Decodes)
            }
        };
        self.frame = Some(frame);
        self.phase = phase;
        step
    }
}

/// Where a server finds what it is asked for, in order of arrival.
#[derive(Debug, Clone)]
pub struct Desk {
    /// One byte per request: what the server waits for.
    bell: ChannelId,
    requests: Arc<Mutex<VecDeque<Request>>>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    work_ns: Ns,
    answer: ChannelId,
}

impl Desk {
    /// `bell` is a channel of its own.
    pub fn new(bell: ChannelId) -> Self {
        Self {
            bell,
            requests: Arc::default(),
        }
    }

    /// A client's way to ask for `work_ns` of the server's work, answered over `answer`.
    pub fn client(&self, answer: ChannelId, work_ns: Ns) -> Client {
        Client {
            desk: self.clone(),
            request: Request { work_ns, answer },
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Request>> {
        self.requests.lock().expect("nobody panics holding it")
    }
}

/// One client of a server.
#[derive(Debug, Clone)]
pub struct Client {
    desk: Desk,
    request: Request,
}

impl Client {
    fn ask(&self) -> Step {
        self.desk.queue().push_back(self.request);
        Step::Send(self.desk.bell, 1)
    }

    fn hear(&self) -> Step {
        Step::Receive(self.request.answer, 1)
    }
}

/// Does for its clients what they ask for, one request after the other.
#[derive(Debug)]
pub struct Server {
    desk: Desk,
    serving: Option<Request>,
    worked: bool,
}

impl Server {
    /// The server of this desk.
    pub fn new(desk: Desk) -> Self {
        Self {
            desk,
            serving: None,
            worked: true,
        }
    }
}

impl Program for Server {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let Some(request) = self.serving.take() {
            world.record.finished_ns.push(world.now_ns);
            return Step::Send(request.answer, 1);
        }
        if self.worked {
            self.worked = false;
            return Step::Receive(self.desk.bell, 1);
        }
        self.worked = true;
        let request = self.desk.queue().pop_front().expect("the bell rang for it");
        self.serving = Some(request);
        Step::Compute(request.work_ns)
    }
}

/// Asks a server, waits for the answer, thinks, asks again: a client of a closed loop, whose next
/// request waits for the reply to the one before.
#[derive(Debug)]
pub struct ClosedLoop {
    server: Client,
    think_ns: Ns,
    asked_ns: Ns,
    phase: u8,
}

impl ClosedLoop {
    /// A client that lets `think_ns` pass between a reply and the next request.
    pub fn new(server: Client, think_ns: Ns) -> Self {
        Self {
            server,
            think_ns,
            asked_ns: 0,
            phase: 0,
        }
    }
}

impl Program for ClosedLoop {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let phase = self.phase;
        self.phase = (phase + 1) % 3;
        match phase {
            0 => {
                self.asked_ns = world.now_ns;
                self.server.ask()
            }
            1 => self.server.hear(),
            _ => {
                let latency_ns = world.now_ns - self.asked_ns;
                world.record.latency_ns.push((self.asked_ns, latency_ns));
                world.record.finished_ns.push(world.now_ns);
                Step::SleepUntil(world.now_ns + self.think_ns)
            }
        }
    }
}

/// Sleeps to given instants, does some work, notes how long after the instant it was done.
pub struct Answerer {
    next: Box<dyn FnMut(Ns) -> Ns + Send>,
    work_ns: Ns,
    /// A display server that has to draw each answer.
    display: Option<Client>,
    at_ns: Ns,
    phase: u8,
}

impl Answerer {
    /// Key presses at random instants (a Poisson process), the same for the same seed.
    pub fn typist(
        begin_ns: Ns,
        keys_per_s: f64,
        work_ns: Ns,
        seed: u32,
        display: Option<Client>,
    ) -> Self {
        let mut instants = key_presses(begin_ns, keys_per_s, seed);
        let next = move |_| instants.next().expect("it never ends");
        Self {
            display,
            ..Self::new(begin_ns, work_ns, next)
        }
    }

    /// Timer expiries `interval_ns` apart; with a phase that comes near no simple fraction.
    pub fn waker(begin_ns: Ns, interval_ns: Ns) -> Self {
        let first_ns = begin_ns + (interval_ns as f64 * OFF_THE_GRID) as Ns;
        let mut number = 0;
        Self::new(begin_ns, 0, move |_| {
            number += 1;
            first_ns + (number - 1) * interval_ns
        })
    }

    fn new(begin_ns: Ns, work_ns: Ns, next: impl FnMut(Ns) -> Ns + Send + 'static) -> Self {
        Self {
            next: Box::new(next),
            work_ns,
            display: None,
            at_ns: begin_ns,
            phase: 0,
        }
    }
}

/// A part of an interval that comes near no simple fraction of it: the golden section.
pub const OFF_THE_GRID: f64 = 0.618;

/// Instants of key presses [ns], at random (a Poisson process) after `begin_ns`, the same for the
/// same seed everywhere.
pub fn key_presses(begin_ns: Ns, keys_per_s: f64, seed: u32) -> impl Iterator<Item = Ns> + Send {
    let mut random = Random::new(u64::from(seed));
    let mut at_ns = begin_ns;
    std::iter::repeat_with(move || {
        at_ns += random.exponential(NS_PER_S as f64 / keys_per_s) as Ns;
        at_ns
    })
}

impl Program for Answerer {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        loop {
            let phase = self.phase;
            self.phase = (phase + 1) % 5;
            match (phase, &self.display) {
                (0, _) => {
                    self.at_ns = (self.next)(self.at_ns);
                    return Step::SleepUntil(self.at_ns);
                }
                (1, _) => return Step::Compute(self.work_ns),
                (2, Some(display)) => return display.ask(),
                (3, Some(display)) => return display.hear(),
                (4, _) => {
                    let latency_ns = world.now_ns - self.at_ns;
                    world.record.latency_ns.push((self.at_ns, latency_ns));
                }
                _ => {}
            }
        }
    }
}

/// The instants at which a [`Sink`] has its events [ns].
#[derive(Debug, Clone)]
pub struct Beats {
    /// Before this there are none.
    pub begin_ns: Ns,
    /// Events per second.
    pub rate: f64,
    /// Each event comes up to so much later than its beat, at random [ns].
    pub jitter_ns: Ns,
    /// Of the phase and the jitter.
    pub seed: u64,
    /// Instants are multiples of this; 0 and 1: to the nanosecond.
    pub resolution_ns: Ns,
}

impl Beats {
    /// The instants, one after the other; the phase of the beats is random.
    pub fn instants(&self) -> impl Iterator<Item = Ns> + Send + use<> {
        let beats = self.clone();
        let mut random = Random::new(beats.seed);
        let period_ns = NS_PER_S as f64 / beats.rate;
        let phase_ns = random.below(period_ns as u64) as f64;
        let (mut beat, mut last_ns) = (0.0, 0);
        std::iter::repeat_with(move || {
            let late_ns = random.below(beats.jitter_ns + 1);
            let at_ns = beats.begin_ns + (phase_ns + beat * period_ns) as Ns + late_ns;
            beat += 1.0;
            last_ns = at_ns
                .next_multiple_of(beats.resolution_ns.max(1))
                .max(last_ns);
            last_ns
        })
    }
}

/// The sink of events: for each it does some work, one after the other, and notes how long after
/// the event it began, or ended.
pub struct Sink {
    instants: Box<dyn Iterator<Item = Ns> + Send>,
    /// Repeated like a group of pictures.
    work_ns: Vec<Ns>,
    /// Whether the latency is to the end of the work, not to its beginning.
    to_end: bool,
    events: usize,
    at_ns: Ns,
    phase: SinkPhase,
}

#[derive(Debug, Clone, Copy)]
enum SinkPhase {
    Waits,
    Begins,
    Ends,
}

impl Sink {
    /// Its events come at `instants`. Latencies are to the end of the work if `to_end`, else to its
    /// beginning.
    pub fn new(
        instants: impl Iterator<Item = Ns> + Send + 'static,
        work_ns: Vec<Ns>,
        to_end: bool,
    ) -> Self {
        Self {
            instants: Box::new(instants),
            work_ns,
            to_end,
            events: 0,
            at_ns: 0,
            phase: SinkPhase::Waits,
        }
    }

    fn note(&self, world: &mut World<'_>) {
        let latency_ns = world.now_ns - self.at_ns;
        world.record.latency_ns.push((self.at_ns, latency_ns));
    }
}

impl Program for Sink {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let SinkPhase::Begins = self.phase {
            if !self.to_end {
                self.note(world);
            }
            let work_ns = self.work_ns[self.events % self.work_ns.len()];
            self.events += 1;
            self.phase = SinkPhase::Ends;
            return Step::Compute(work_ns);
        }
        if let SinkPhase::Ends = self.phase
            && self.to_end
        {
            self.note(world);
        }
        let Some(at_ns) = self.instants.next() else {
            return Step::Exit;
        };
        self.at_ns = at_ns;
        self.phase = SinkPhase::Begins;
        Step::SleepUntil(at_ns)
    }
}

/// Forks a child that computes and exits, waits for it, forks the next.
#[derive(Debug)]
pub struct Batch {
    work_ns: Ns,
    waits: bool,
    started: bool,
}

impl Batch {
    /// Each child works for `work_ns`.
    pub fn new(work_ns: Ns) -> Self {
        Self {
            work_ns,
            waits: false,
            started: false,
        }
    }
}

impl Program for Batch {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if self.waits {
            self.waits = false;
            return Step::WaitForChild;
        }
        if self.started {
            world.record.finished_ns.push(world.now_ns);
        }
        self.started = true;
        self.waits = true;
        let work_ns = self.work_ns;
        let mut worked = false;
        world.fork(move |_: &mut World<'_>| {
            if std::mem::replace(&mut worked, true) {
                Step::Exit
            } else {
                Step::Compute(work_ns)
            }
        });
        // Forking itself takes a moment; a parent that took none would never be seen to run.
        Step::Compute(FORK_NS)
    }
}

/// What fork and wait cost the parent together, on a CPU of one instruction per ns [ns].
pub const FORK_NS: Ns = 100_000;

/// Computes for ever.
#[derive(Debug)]
pub struct Loop;

impl Program for Loop {
    fn step(&mut self, _world: &mut World<'_>) -> Step {
        Step::ComputeForever
    }
}

/// One of two processes that pass a byte to and fro.
#[derive(Debug)]
pub struct Pingpong {
    from: ChannelId,
    to: ChannelId,
    /// The one that begins, and measures.
    serves: bool,
    window: u32,
    rounds: u32,
    since_ns: Ns,
    phase: u8,
}

impl Pingpong {
    /// `serves`: begins, and measures `window` round trips at a time.
    pub fn new(from: ChannelId, to: ChannelId, serves: bool, window: u32) -> Self {
        Self {
            from,
            to,
            serves,
            window,
            rounds: 0,
            since_ns: 0,
            phase: u8::from(!serves),
        }
    }
}

/// What a read and a write of a pipe cost, on a CPU of one instruction per ns [ns].
pub const PIPE_NS: Ns = 3_000;

impl Program for Pingpong {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let phase = self.phase;
        self.phase = (phase + 1) % 3;
        match phase {
            0 => {
                if self.serves {
                    if self.rounds == self.window {
                        let each_ns = (world.now_ns - self.since_ns) / Ns::from(self.window);
                        world.record.latency_ns.push((self.since_ns, each_ns));
                        self.rounds = 0;
                    }
                    if self.rounds == 0 {
                        self.since_ns = world.now_ns;
                    }
                    self.rounds += 1;
                    world.record.finished_ns.push(world.now_ns);
                }
                Step::Send(self.to, 1)
            }
            1 => Step::Receive(self.from, 1),
            _ => Step::Compute(PIPE_NS),
        }
    }
}
