// SPDX-License-Identifier: GPL-2.0
//! The socket and who is at its other end. One thread, nothing blocks: a client that is slow, or
//! says nothing, keeps nobody waiting. Nor do many: one is let in and one is answered a turn ([`door`],
//! [`turns`]), so that a turn takes no longer the more there are, and whoever runs this daemon sees its
//! signals between two turns.

mod connection;
mod door;
mod in_session;
mod peer;
mod socket;
#[cfg(test)]
mod tests;
mod turns;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use andante_session::Said;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};

use self::connection::Connection;
pub use self::door::DoorSeen;
use self::door::{Door, Verdict};
pub(crate) use self::peer::Peer;
pub use self::socket::{Socket, socket_path};
pub(crate) use self::turns::PART;
use self::turns::Turns;
use crate::accounts::{AccountFiles, Accounts};
use crate::books::policies;
use crate::books::{Books, Event, Settings};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::memory::{MemoryEvent, Reservations};
use crate::protocol::{Fault, FaultKind, Reply, Request};
use crate::sessions::{self, Session, Sinks};

/// How often the books are compared with the kernel and the machine.
const LOOK: Duration = Duration::from_secs(1);
/// How long a client may leave a reply unread.
const UNREAD: Duration = Duration::from_secs(10);
/// Clients that are refused in a turn at most, some 10 µs each: together as long as one answer.
const REFUSALS: usize = 32;
/// How long nobody is accepted after the kernel could give us no file for that: otherwise whoever waits
/// would wake us all the time.
const DEAF: Duration = Duration::from_millis(100);

/// How old what is known of users and groups may be when one is let in: whoever was just made a member is one.
/// To see that nothing has changed takes some 5 µs.
const ACCOUNTS: Duration = Duration::from_millis(20);
/// Threads of processes that somebody speaks for, and that are looked after in a second at most, some 10 µs each.
/// All have their turn.
const THREADS_A_LOOK: usize = 1024;
/// Cgroups that get a class of their own in a second at most, some 20 µs each.
const CLASSES_A_LOOK: usize = 256;

/// How the one at the other end is known.
type Who = fn(&UnixStream, &Accounts) -> Option<Peer>;

/// Answers requests while the scheduler is loaded.
pub struct Daemon<H> {
    socket: Socket,
    host: H,
    books: Books,
    memory: Reservations,
    files: AccountFiles,
    accounts: Accounts,
    who: Who,
    connections: Vec<Connection>,
    door: Door,
    turns: Turns,
    deaf_since: Option<Instant>,
    looked: Instant,
    accounts_looked: Instant,
    /// Of the session that was opened last.
    session: u32,
    sinks: Sinks,
    /// Sessions that were looked after, of those that somebody speaks for.
    looked_after: usize,
    /// Whether the scheduler knows what policies classes were given before it was loaded.
    policies_told: bool,
}

impl<H: Host> Daemon<H> {
    /// Nobody is answered before [`Daemon::turn`] is called, but may connect from now on. Users and groups
    /// are looked up here, which may take a while where a directory service is asked.
    ///
    /// # Errors
    /// The settings leave nothing to contracts.
    pub fn new(socket: Socket, settings: Settings, host: H) -> Result<Self, Fault> {
        let (files, accounts) = AccountFiles::open();
        as_many_files_as_there_may_be();
        Ok(Self {
            books: Books::new(settings, &host)?,
            memory: Reservations::none("memory cannot be reserved from this daemon"),
            socket,
            host,
            files,
            accounts,
            who: Peer::of,
            connections: Vec::new(),
            door: Door::default(),
            turns: Turns::default(),
            deaf_since: None,
            looked: Instant::now(),
            accounts_looked: Instant::now(),
            session: 0,
            sinks: Sinks::default(),
            looked_after: 0,
            policies_told: false,
        })
    }

    /// Memory can be reserved of this.
    #[must_use]
    pub fn with_memory(mut self, memory: Reservations) -> Self {
        self.memory = memory;
        self
    }

    /// All that happened to reserved memory since this was last called.
    pub fn take_memory_events(&mut self) -> Vec<MemoryEvent> {
        self.memory.take_events()
    }

    /// Waits for clients, `patience` at most and less if a signal comes; lets one of them in, and answers one
    /// that asks. Returns what happened to contracts meanwhile.
    pub fn turn(&mut self, kernel: &mut dyn Kernel, patience: Duration) -> Vec<Event> {
        if !self.policies_told {
            self.policies_told = true;
            policies::look_at_all(kernel, &self.host);
        }
        let knocked = self.wait(kernel, patience);
        kernel.tell_late();
        self.answer_one(kernel);
        self.close_those_over(kernel);
        if knocked {
            self.accept(kernel);
        }
        if self.looked.elapsed() >= LOOK {
            self.look(kernel);
        }
        self.books.take_events()
    }

    /// Connections that are over go, and their sessions with them.
    fn close_those_over(&mut self, kernel: &mut dyn Kernel) {
        let mut at = 0;
        while at < self.connections.len() {
            if !self.connections[at].is_over() {
                at += 1;
                continue;
            }
            // In their order: turns go by it.
            let connection = self.connections.remove(at);
            self.end_session(kernel, connection);
        }
    }

    fn end_session(&mut self, kernel: &mut dyn Kernel, mut connection: Connection) {
        let own = connection.session.take();
        for session in own.into_iter().chain(connection.spoken) {
            session.end(&mut self.books, &self.host, kernel, &mut self.sinks);
        }
    }

    /// Sessions are told what has become of what they were promised.
    fn notify(&mut self, kernel: &dyn Kernel) {
        let live = kernel.contracts();
        for connection in &mut self.connections {
            if connection.has_more_to_send() {
                continue; // it is told later, of all that has happened until then
            }
            let Some(session) = &mut connection.session else {
                continue;
            };
            if let Some(notice) = session.notice(&mut self.books, &live, connection.peer) {
                let said = Said::Notice { notice };
                #[cfg(test)]
                tests::schema::reply_is_as_described(&said);
                connection.say(&said, None);
            }
        }
    }

    /// What is due every second.
    fn look(&mut self, kernel: &mut dyn Kernel) {
        let now = Instant::now();
        self.looked = now;
        self.books.refresh(kernel, &self.host);
        self.memory.look(kernel, &self.host);
        let given = kernel.own_classes(CLASSES_A_LOOK);
        if given > 0 {
            self.books.note(Event::OwnClasses { count: given });
            policies::look_at_all(kernel, &self.host);
        }
        self.door.forget(now);
        self.turns.forget(now);
        let stuck = |connection: &Connection| {
            let silent_for = now.saturating_duration_since(connection.heard());
            connection.has_more_to_send() && silent_for > UNREAD
        };
        for connection in self.connections.iter_mut().filter(|one| stuck(one)) {
            connection.let_go();
            self.door.seen.let_go += 1;
        }
        self.close_those_over(kernel);
        self.look_after_spoken(kernel);
        if self.connections.iter().any(|one| one.session.is_some()) {
            self.notify(kernel);
        } else {
            // Not as soon as the last one has ended: to begin and stop hearing takes a while.
            kernel.hear_calls(false);
        }
        let subscribed =
            |one: &Connection| one.session.as_ref().is_some_and(Session::is_subscribed);
        if !self.connections.iter().any(subscribed) {
            kernel.hear_no_sources();
        }
    }

    /// Waits until there is something to do, and exchanges with clients what can be. Whether somebody wants
    /// to be let in.
    fn wait(&mut self, kernel: &dyn Kernel, patience: Duration) -> bool {
        let patience = patience.min(self.until_next());
        let now = Instant::now();
        let deaf = |since: Instant| now.saturating_duration_since(since) < DEAF;
        let mut wanted = PollFlags::POLLIN;
        wanted.set(PollFlags::POLLIN, !self.deaf_since.is_some_and(deaf));
        let mut watched = vec![PollFd::new(self.socket.as_fd(), wanted)];
        let connections = self.connections.iter();
        watched.extend(connections.map(|one| PollFd::new(one.as_fd(), one.wanted())));
        let late = kernel.late_fd();
        watched.extend(late.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        if poll(&mut watched, timeout).is_err() {
            return false; // a signal: the caller's to deal with
        }
        let found = watched
            .iter()
            .map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let found: Vec<_> = found.collect();
        for (connection, found) in self.connections.iter_mut().zip(&found[1..]) {
            if !found.is_empty() {
                connection.exchange(*found);
            }
        }
        !found[0].is_empty()
    }

    /// How long no request that has come is to be answered: none is there, or their users' turns are later.
    fn until_next(&mut self) -> Duration {
        let now = Instant::now();
        let asks = |one: &&mut Connection| one.has_line() && !one.has_more_to_send();
        let asking = self.connections.iter_mut().filter(asks);
        let mut least = Duration::MAX;
        for connection in asking {
            let caller = connection.peer.caller;
            if caller.privileged {
                return Duration::ZERO;
            }
            let wait = self.turns.wait_of(caller.account, now);
            if wait > Duration::ZERO && !connection.delayed {
                connection.delayed = true;
                self.door.seen.delayed += 1;
            }
            least = least.min(wait);
        }
        least
    }

    /// One at a time: an answer may take a while, and others wait.
    fn answer_one(&mut self, kernel: &mut dyn Kernel) {
        let (began, used) = (Instant::now(), used_so_far());
        let connections = self.connections.iter().enumerate();
        let asking = connections
            .filter(|(_, one)| one.has_line() && !one.has_more_to_send())
            .map(|(at, one)| {
                let caller = one.peer.caller;
                (at, (!caller.privileged).then_some(caller.account))
            });
        let Some(at) = self.turns.next(asking, began) else {
            return;
        };
        let connection = &mut self.connections[at];
        let peer = connection.peer;
        let Some(line) = connection.next_line() else {
            return;
        };
        if let Some(request) = sessions::parse(&line) {
            let (answer, fd) = self.answer_session(at, request, kernel);
            let said = Said::Answer(answer);
            #[cfg(test)]
            tests::schema::is_as_described(&line, &said);
            self.connections[at].say(&said, fd);
            return self.answered(at, used);
        }
        let mut asked = Asked {
            books: &mut self.books,
            memory: &mut self.memory,
            host: &self.host,
            kernel,
        };
        let mut reply = asked.answer(&peer, &line);
        if let Reply::Contracts(list) = &mut reply {
            list.door = DoorSeen {
                connected: self.connections.len() as u32,
                ..self.door.seen
            };
            let opened = self.connections.iter().flat_map(Connection::sessions);
            list.sessions = opened.map(Session::seen).collect();
            list.memory = self.memory.seen();
        }
        #[cfg(test)]
        tests::schema::is_as_described(&line, &reply);
        self.connections[at].send(&reply);
        self.answered(at, used);
    }

    /// Sessions that the account has, and that all have.
    fn sessions_of(&self, account: u32) -> [usize; 2] {
        let opened = || self.connections.iter().flat_map(Connection::sessions);
        let own = opened().filter(|one| one.account() == account);
        [own.count(), opened().count()]
    }

    /// One has been answered: the next of the same rank comes first then.
    fn answered(&mut self, at: usize, used: Duration) {
        let peer = self.connections[at].peer;
        self.connections[at..].rotate_left(1);
        if !peer.caller.privileged {
            // What it took of the CPU: that others had this meanwhile is not the user's doing.
            let took = used_so_far().saturating_sub(used);
            self.turns.charge(peer.caller.account, took, Instant::now());
        }
    }

    /// Lets one in, and turns away as many as come before.
    fn accept(&mut self, kernel: &mut dyn Kernel) {
        self.deaf_since = None;
        for _ in 0..REFUSALS {
            match self.socket.accept() {
                Ok(Some(stream)) => {
                    if self.let_in(stream, kernel) {
                        return;
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    self.deaf_since = Some(Instant::now());
                    return;
                }
            }
        }
    }

    fn let_in(&mut self, stream: UnixStream, kernel: &mut dyn Kernel) -> bool {
        if self.accounts_looked.elapsed() >= ACCOUNTS {
            self.accounts_looked = Instant::now();
            if let Some(accounts) = self.files.changed() {
                self.accounts = accounts;
            }
        }
        let Some(peer) = (self.who)(&stream, &self.accounts) else {
            return false;
        };
        let Some(mut connection) = Connection::new(stream, peer) else {
            return false;
        };
        match self.door.judge(&peer, &self.connections, Instant::now()) {
            Ok(Verdict::Enter) => self.connections.push(connection),
            Ok(Verdict::Instead(at)) => {
                let message = "this connection was silent, and its place was needed: connect again";
                self.connections[at].dismiss(Fault::new(FaultKind::Busy, message));
                let old = std::mem::replace(&mut self.connections[at], connection);
                self.end_session(kernel, old);
            }
            Err(fault) => {
                connection.dismiss(fault);
                return false;
            }
        }
        true
    }
}

/// All that is asked for an answer.
struct Asked<'a> {
    books: &'a mut Books,
    memory: &'a mut Reservations,
    host: &'a dyn Host,
    kernel: &'a mut dyn Kernel,
}

impl Asked<'_> {
    fn answer(&mut self, peer: &Peer, line: &[u8]) -> Reply {
        let request: Request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => {
                let message = format!(
                    "the request is not understood ({error}): send one JSON object a line, as the page socket.md of \
                     the documentation has them"
                );
                return Reply::Error(Fault::new(FaultKind::BadRequest, message));
            }
        };
        let of_no_process = matches!(request, Request::List {} | Request::Status {});
        if !of_no_process && peer.is_in_container() {
            let message = "processes have other numbers where you are (a pid namespace of its own): \
                           ask from outside the container";
            return Reply::Error(Fault::new(FaultKind::NotPermitted, message));
        }
        match &request {
            Request::ReserveMemory(_) | Request::AskMemory(_) | Request::Wake { .. } => {
                self.memory.answer(self.host, peer.caller, &request)
            }
            Request::Release { which } => {
                let memory = self.memory.release(peer.caller, which);
                released(self.of_books(peer, &request), memory)
            }
            _ => self.of_books(peer, &request),
        }
    }

    fn of_books(&mut self, peer: &Peer, request: &Request) -> Reply {
        let now_ns = monotonic_ns();
        self.books
            .answer(self.kernel, self.host, peer.caller, request, now_ns)
    }
}

/// A class may hold a contract and memory: both end. One that has only memory has no contract to be missed.
fn released(contract: Reply, memory: Option<Result<String, Fault>>) -> Reply {
    match (contract, memory) {
        (Reply::Error(fault), Some(Ok(name))) if fault.kind == FaultKind::NoContract => {
            Reply::Released { name }
        }
        (Reply::Error(fault), Some(Err(other))) if fault.kind == FaultKind::NoContract => {
            Reply::Error(other)
        }
        (reply, _) => reply,
    }
}

/// Every session is a connection that stays. Where that is refused there are fewer.
fn as_many_files_as_there_may_be() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// CPU time of this thread.
fn used_so_far() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// CLOCK_MONOTONIC.
pub(crate) fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(Duration::from)
        .map_or(0, |now| now.as_nanos() as u64)
}
