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
            // One at a time: an answer may take a while, and others wait.
            if let Some(line) = connection.next_line() {
                let reply = answer(&mut self.books, &self.host, kernel, &connection.peer, &line);
                connection.send(&reply);
            }
        }
        self.connections.retain(|connection| !connection.is_over());
        if ready.contains(&0) {
            self.accept();
        }
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.books.refresh(kernel, &self.host);
        }
        self.books.take_events()
    }

    /// Which are ready: 0 is the socket, the connections follow.
    fn wait(&self, patience: Duration) -> Vec<usize> {
        let asks = |at: &usize| *at > 0 && self.connections[at - 1].has_line();
        let mut ready: Vec<usize> = (0..=self.connections.len()).filter(asks).collect();
        let patience = match ready.is_empty() {
            true => patience,
            false => Duration::ZERO,
        };
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
        ready.extend((0..watched.len()).filter(|&at| is_ready(&watched[at])));
        ready
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::books::fakes::{FakeKernel, World};
    use crate::client::{Client, ClientError};
    use crate::protocol::Holder;

    /// Serves until the client is done.
    fn with_daemon<T: Send + 'static>(
        client: impl FnOnce(&std::path::Path) -> T + Send + 'static,
    ) -> T {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut host = World::new(2).host;
        host.process(100, "mpv", &[]);
        let uid = nix::unistd::geteuid().as_raw();
        host.change(100).uids = [uid; 3];
        let socket = Socket::bind(&path).unwrap();
        let mut daemon = Daemon::new(socket, Settings::default(), host).unwrap();
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || done.send(client(&path)));
        let mut kernel = FakeKernel::default();
        loop {
            daemon.turn(&mut kernel, Duration::from_millis(20));
            match is_done.try_recv() {
                Ok(outcome) => return outcome,
                Err(mpsc::TryRecvError::Empty) => {}
                Err(gone) => panic!("the client failed: {gone}"),
            }
        }
    }

    #[test]
    fn clients_are_answered_whatever_others_do() {
        let (reserved, again, list) = with_daemon(|path| {
            // These say nothing, something else, and half a request.
            let _silent = UnixStream::connect(path).unwrap();
            let mut strange = UnixStream::connect(path).unwrap();
            strange.write_all(b"{\"op\":\"fly\"}\n{\"op\"").unwrap();
            let mut client = Client::connect(path).unwrap();
            let ask = Request::Reserve(World::ask_for(Holder::Process(100), 1, 20));
            let reserved = client.request(&ask);
            let again = client.request(&ask);
            (reserved, again, client.request(&Request::List))
        });
        assert!(matches!(reserved, Ok(Reply::Reserved(_))), "{reserved:?}");
        let Err(ClientError::Fault(fault)) = again else {
            panic!("{again:?}");
        };
        assert_eq!(fault.kind, FaultKind::Taken);
        assert!(matches!(list, Ok(Reply::Contracts(list)) if list.contracts.len() == 1));
    }

    #[test]
    fn there_is_room_for_the_next_client_always() {
        let replies = with_daemon(|path| {
            let mut silent = Vec::new();
            for _ in 0..2 * MAX_CONNECTIONS {
                silent.push(UnixStream::connect(path).unwrap());
            }
            Client::connect(path).unwrap().request(&Request::List)
        });
        assert!(matches!(replies, Ok(Reply::Contracts(_))), "{replies:?}");
    }

    #[test]
    fn nobody_to_ask_is_told_with_its_mend() {
        let error = Client::connect(std::path::Path::new("/no/such/socket")).unwrap_err();
        assert!(error.to_string().contains("sudo andante run"), "{error}");
    }
}
