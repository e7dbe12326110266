//! Display servers: who asks them, and how.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::Ns;
use crate::channel::ChannelId;
use crate::program::{Program, Step, World};
use crate::spec::InstanceId;

/// Where a server finds what it is asked for, in order of arrival.
#[derive(Debug, Clone)]
pub struct Desk {
    /// One byte per request: what the server waits for.
    bell: ChannelId,
    requests: Arc<Mutex<VecDeque<Request>>>,
    /// Its server has begun to listen.
    open: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    work_ns: Ns,
    answer: ChannelId,
    note: Option<(InstanceId, Note)>,
    /// It came over a connection that the server has accepted.
    connected: bool,
}

/// What a server notes in its client's record when it has done what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// It shows the frame that was released then [ns].
    Frame { released_ns: Ns },
    /// It shows the response to what happened then [ns].
    Response { to_ns: Ns },
}

impl Note {
    fn write(self, world: &mut World<'_>, instance: InstanceId) {
        let now_ns = world.now_ns;
        let record = world.record_of(instance);
        match self {
            Self::Frame { released_ns } => {
                record.shown_ns.push(now_ns);
                record.released_ns.push(released_ns);
            }
            Self::Response { to_ns } => record.latency_ns.push((to_ns, now_ns - to_ns)),
        }
    }
}

impl Desk {
    /// `bell` is a channel of its own.
    pub fn new(bell: ChannelId) -> Self {
        Self {
            bell,
            requests: Arc::default(),
            open: Arc::default(),
        }
    }

    /// Does its server listen?
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// A client's way to ask for `work_ns` of the server's work, answered over `answer`. It waits
    /// for each answer.
    pub fn client(&self, answer: ChannelId, work_ns: Ns) -> Client {
        Client {
            desk: self.clone(),
            answer,
            work_ns,
            ahead: false,
            connected: true,
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
    answer: ChannelId,
    work_ns: Ns,
    /// It waits before it asks instead of after: until less than so many requests are unanswered as
    /// the channel of the answers held bytes at first.
    ahead: bool,
    /// It has connected to the server, which others may do too.
    connected: bool,
}

impl Client {
    /// The server is its own: they share a pair of sockets that nobody has accepted.
    pub fn of_its_own(self) -> Self {
        Self {
            connected: false,
            ..self
        }
    }

    /// Does not wait for answers, but may have no more requests unanswered than the channel of the
    /// answers holds bytes now.
    pub fn ahead(self) -> Self {
        Self {
            ahead: true,
            ..self
        }
    }

    /// What one that does not wait is to have noted by the server; others note it themselves.
    pub(super) fn note(&self, note: Note) -> Option<Note> {
        self.ahead.then_some(note)
    }

    /// First: waits, if too many requests are unanswered.
    pub(super) fn begin(&self) -> Step {
        match self.ahead {
            true => Step::Receive(self.answer, 1),
            false => Step::Compute(0),
        }
    }

    /// Then: asks for the work.
    pub(super) fn ask(&self, world: &World<'_>, note: Option<Note>) -> Step {
        self.send(self.work_ns, note.map(|note| (world.instance, note)))
    }

    /// Or for an answer that takes no work.
    pub(super) fn ask_for_nothing(&self) -> Step {
        self.send(0, None)
    }

    fn send(&self, work_ns: Ns, note: Option<(InstanceId, Note)>) -> Step {
        let answer = self.answer;
        let connected = self.connected;
        self.desk.queue().push_back(Request {
            work_ns,
            answer,
            note,
            connected,
        });
        match connected {
            true => Step::Ask {
                bell: self.desk.bell,
                answers: answer,
            },
            false => Step::Send(self.desk.bell, 1),
        }
    }

    /// At last: waits for the answer.
    pub(super) fn hear(&self) -> Step {
        match self.ahead {
            true => Step::Compute(0),
            false => Step::Receive(self.answer, 1),
        }
    }
}

/// Does for its clients what they ask for, one request after the other.
#[derive(Debug)]
pub struct Server {
    desk: Desk,
    serving: Option<Request>,
    turn: Turn,
}

/// What a server does next, if it serves nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Listens,
    Takes,
}

impl Server {
    /// The server of this desk.
    pub fn new(desk: Desk) -> Self {
        Self {
            desk,
            serving: None,
            turn: Turn::Listens,
        }
    }
}

impl Program for Server {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        if let Some(request) = self.serving.take() {
            let now_ns = world.now_ns;
            world.record().finished_ns.push(now_ns);
            if let Some((instance, note)) = request.note {
                note.write(world, instance);
            }
            return Step::Send(request.answer, 1);
        }
        if self.turn == Turn::Listens {
            self.desk.open.store(true, Ordering::Relaxed);
            self.turn = Turn::Takes;
            return Step::Receive(self.desk.bell, 1);
        }
        let mut queue = self.desk.queue();
        let request = queue.front_mut().expect("the bell rang for it");
        if std::mem::take(&mut request.connected) {
            return Step::Take {
                answers: request.answer,
            };
        }
        let request = queue.pop_front().expect("it was looked at");
        self.turn = Turn::Listens;
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
                self.server.ask(world, None)
            }
            1 => self.server.hear(),
            _ => {
                let latency_ns = world.now_ns - self.asked_ns;
                let now_ns = world.now_ns;
                let record = world.record();
                record.latency_ns.push((self.asked_ns, latency_ns));
                record.finished_ns.push(now_ns);
                Step::SleepUntil(now_ns + self.think_ns)
            }
        }
    }
}
