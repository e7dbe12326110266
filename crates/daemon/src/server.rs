// SPDX-License-Identifier: GPL-2.0
//! The socket and who is at its other end. One thread, nothing blocks: a client that is slow, or
//! says nothing, keeps nobody waiting.

mod connection;
mod peer;
mod socket;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use self::connection::Connection;
use self::peer::Peer;
pub use self::socket::{Socket, socket_path};
use crate::books::{Books, Event, Settings};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, Reply, Request};

/// Clients that may be connected at a time; with one more the one that was silent longest goes.
const MAX_CONNECTIONS: usize = 64;
/// How often the books are compared with the kernel and the machine.
const LOOK: Duration = Duration::from_secs(1);

/// Answers requests while the scheduler is loaded.
pub struct Daemon<H> {
    socket: Socket,
    host: H,
    books: Books,
    connections: Vec<Connection>,
    looked: Instant,
}

impl<H: Host> Daemon<H> {
    /// Nobody is answered before [`Daemon::turn`] is called, but may connect from now on.
    ///
    /// # Errors
    /// The settings leave nothing to contracts.
    pub fn new(socket: Socket, settings: Settings, host: H) -> Result<Self, Fault> {
        Ok(Self {
            books: Books::new(settings, &host)?,
            socket,
            host,
            connections: Vec::new(),
            looked: Instant::now(),
        })
    }

    /// Waits for clients, `patience` at most and less if a signal comes, and answers those that ask.
    /// Returns what happened to contracts meanwhile.
    pub fn turn(&mut self, kernel: &mut dyn Kernel, patience: Duration) -> Vec<Event> {
        let ready = self.wait(patience);
        for (at, connection) in self.connections.iter_mut().enumerate() {
            if !ready.contains(&(at + 1)) {
                continue;
            }
            while let Some(line) = connection.next_line() {
                let reply = answer(&mut self.books, &self.host, kernel, &connection.peer, &line);
                connection.send(&reply);
            }
        }
        self.connections.retain(|connection| !connection.is_over());
        if ready.contains(&0) {
            self.accept();
        }
        if self.books.is_busy() && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.books.refresh(kernel, &self.host);
        }
        self.books.take_events()
    }

    /// Which are ready: 0 is the socket, the connections follow.
    fn wait(&self, patience: Duration) -> Vec<usize> {
        let mut watched = vec![PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        for connection in &self.connections {
            let mut wanted = PollFlags::POLLIN;
            wanted.set(PollFlags::POLLOUT, connection.has_more_to_send());
            watched.push(PollFd::new(connection.as_fd(), wanted));
        }
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        if poll(&mut watched, timeout).is_err() {
            return Vec::new(); // a signal: the caller's to deal with
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        (0..watched.len())
            .filter(|&at| is_ready(&watched[at]))
            .collect()
    }

    fn accept(&mut self) {
        while let Some(connection) = self.socket.accept().and_then(Connection::new) {
            if self.connections.len() == MAX_CONNECTIONS {
                let quietest = (0..MAX_CONNECTIONS).min_by_key(|at| self.connections[*at].heard());
                self.connections.remove(quietest.unwrap_or(0));
            }
            self.connections.push(connection);
        }
    }
}

fn answer(
    books: &mut Books,
    host: &dyn Host,
    kernel: &mut dyn Kernel,
    peer: &Peer,
    line: &[u8],
) -> Reply {
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the request is not understood: {error}");
            return Reply::Error(Fault::new(FaultKind::BadRequest, message));
        }
    };
    if peer.in_container && request != Request::List {
        let message = "processes have other numbers where you are (a pid namespace of its own): \
                       ask from outside the container";
        return Reply::Error(Fault::new(FaultKind::NotPermitted, message));
    }
    books.answer(kernel, host, peer.caller, &request, monotonic_ns())
}

fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(Duration::from)
        .map_or(0, |now| now.as_nanos() as u64)
}
