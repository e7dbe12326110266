//! Display servers: programs of kind `server`, which several clients share, and the private ones of
//! clients that name none; and how clients reach them.
//!
//! A request is 8 bytes, the steps of work that it asks for; the answer is 8 bytes, the instant at
//! which the work was done. As with a real display server both go through a UNIX stream socket, and
//! the server learns from epoll who asks: whoever asked first is served first, a client with several
//! requests undone takes turns with the others.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use andante_job::stop;
use andante_scenario as scenario;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::{Order, Samples, work};
use crate::clock::{now_ns, sleep_until};

/// Bytes of a request, and of an answer.
const MESSAGE_LEN: usize = 8;
/// Most clients of one server; a scenario may have a thousand instances of a program.
const CLIENTS_MAX: usize = 4096;
/// Between two attempts of a client to find its server [ns].
const RETRY_NS: u64 = 1_000_000;
/// An idle server looks so often whether it is to end [ms].
const IDLE_MS: u16 = 1000;
/// What the socket for new clients is called among the clients' numbers.
const NEW_CLIENT: u64 = u64::MAX;

/// The program of kind `server`, reached at `order.server`.
pub(super) fn serve(order: &Order) -> io::Result<Samples> {
    let mut server = Server::open(server_path(order)?)?;
    let mut iterations = 0;
    while !stop::requested() {
        if let Some(done_ns) = server.turn()? {
            iterations += u64::from(order.measures(done_ns));
        }
    }
    Ok(Samples {
        iterations: Some(iterations),
        ..Samples::default()
    })
}

fn server_path(order: &Order) -> io::Result<&Path> {
    let path = order.server.as_deref();
    path.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the order names no server"))
}

struct Server {
    listener: UnixListener,
    epoll: Epoll,
    /// By number; those that have left are none. Never grows beyond its first memory.
    clients: Vec<Option<UnixStream>>,
}

impl Server {
    fn open(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, NEW_CLIENT))?;
        Ok(Self {
            listener,
            epoll,
            clients: Vec::with_capacity(CLIENTS_MAX),
        })
    }

    /// Waits for one thing to happen and does what it asks for; returns when a request was done.
    fn turn(&mut self) -> io::Result<Option<u64>> {
        // One at a time: the kernel keeps who is ready in the order in which they became so.
        let mut events = [EpollEvent::empty()];
        match self.epoll.wait(&mut events, IDLE_MS) {
            Ok(0) | Err(nix::Error::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if events[0].data() == NEW_CLIENT {
            return self.admit().map(|()| None);
        }
        let place = &mut self.clients[events[0].data() as usize];
        let answered = place.as_mut().map(answer);
        match answered {
            Some(Ok(done_ns)) => Ok(Some(done_ns)),
            // Gone; closing its socket takes it out of the epoll as well.
            _ => {
                *place = None;
                Ok(None)
            }
        }
    }

    fn admit(&mut self) -> io::Result<()> {
        let (client, _) = self.listener.accept()?;
        if self.clients.len() == CLIENTS_MAX {
            let message = format!("more than {CLIENTS_MAX} clients");
            return Err(io::Error::other(message));
        }
        let number = self.clients.len() as u64;
        self.epoll
            .add(&client, EpollEvent::new(EpollFlags::EPOLLIN, number))?;
        self.clients.push(Some(client));
        Ok(())
    }
}

/// Reads one request, does it, and answers; returns when it was done.
fn answer(client: &mut UnixStream) -> io::Result<u64> {
    let mut request = [0; MESSAGE_LEN];
    client.read_exact(&mut request)?;
    work::compute(u64::from_le_bytes(request));
    let done_ns = now_ns();
    client.write_all(&done_ns.to_le_bytes())?;
    Ok(done_ns)
}

/// A client's way to its display server.
pub(super) struct Display {
    socket: UnixStream,
    /// The server, if it is the client's own.
    own: Option<Pid>,
    steps: u64,
    exchanges: u32,
    /// So many requests may be undone while the client goes on; 0: it waits for every answer.
    ahead: usize,
    /// What the requests not yet answered are to show [ns], oldest first.
    undone: VecDeque<Option<u64>>,
}

impl Display {
    /// What `display` asks for; none if nobody is to draw anything. Waits until a shared server is
    /// there.
    pub fn open(order: &Order, display: &scenario::Display) -> io::Result<Option<Self>> {
        if display.work_ms == 0.0 {
            return Ok(None);
        }
        let (socket, own) = match display.server {
            Some(_) => (connect(server_path(order)?)?, None),
            None => start_own()?,
        };
        Ok(Some(Self {
            socket,
            own,
            steps: order.steps(display.work_ms),
            exchanges: display.exchanges,
            ahead: display.ahead as usize,
            undone: VecDeque::with_capacity(display.ahead.max(1) as usize),
        }))
    }

    /// A client that asks for `steps` of work at a time and waits for the answers.
    pub fn to_server(order: &Order, steps: u64) -> io::Result<Self> {
        Ok(Self {
            socket: connect(server_path(order)?)?,
            own: None,
            steps,
            exchanges: 1,
            ahead: 0,
            undone: VecDeque::with_capacity(1),
        })
    }

    /// Has something shown that is known by the instant `of_ns`. Calls `shown(of_ns, at_ns)` for
    /// everything that is found to have been shown meanwhile, in its order: this, when the client
    /// has heard so; or, by a client that does not wait, earlier things, when the server was done.
    ///
    /// # Errors
    /// If the server is gone, or this program is to end.
    pub fn show(&mut self, of_ns: u64, shown: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
        for exchange in 0..self.exchanges {
            if self.ahead > 0 {
                self.hear_arrived(shown)?;
                while self.undone.len() >= self.ahead {
                    self.hear(MsgFlags::MSG_WAITALL, shown)?;
                }
            }
            // The picture is drawn in the first exchange.
            let (steps, of) = match exchange {
                0 => (self.steps, Some(of_ns).filter(|_| self.ahead > 0)),
                _ => (0, None),
            };
            self.socket.write_all(&steps.to_le_bytes())?;
            self.undone.push_back(of);
            if self.ahead == 0 {
                self.hear(MsgFlags::MSG_WAITALL, shown)?;
            }
        }
        if self.ahead == 0 {
            shown(of_ns, now_ns());
        }
        Ok(())
    }

    /// Hears what has been answered so far, and is done with the server.
    pub fn close(mut self, shown: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
        // A server that has ended has answered what it did.
        let _ = self.hear_arrived(shown);
        drop(self.socket);
        if let Some(server) = self.own {
            while waitpid(server, None) == Err(nix::Error::EINTR) {}
        }
        Ok(())
    }

    fn hear_arrived(&mut self, shown: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
        while !self.undone.is_empty() {
            match self.hear(MsgFlags::MSG_DONTWAIT, shown) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                other => other?,
            }
        }
        Ok(())
    }

    /// Takes one answer.
    fn hear(&mut self, flags: MsgFlags, shown: &mut dyn FnMut(u64, u64)) -> io::Result<()> {
        let mut answer = [0; MESSAGE_LEN];
        let len = loop {
            match recv(self.socket.as_raw_fd(), &mut answer, flags) {
                Err(nix::Error::EINTR) if !stop::requested() => {}
                other => break other?,
            }
        };
        if len != MESSAGE_LEN {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(of_ns) = self.undone.pop_front().flatten() {
            shown(of_ns, u64::from_le_bytes(answer));
        }
        Ok(())
    }
}

/// Connects to the server at `path` as soon as it is there.
fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                use io::ErrorKind::{ConnectionRefused, Interrupted, NotFound};
                let not_yet = matches!(error.kind(), NotFound | ConnectionRefused | Interrupted);
                if !not_yet || stop::requested() {
                    let message = format!("no server at {}: {error}", path.display());
                    return Err(io::Error::new(error.kind(), message));
                }
            }
        }
        sleep_until(now_ns() + RETRY_NS);
    }
}

/// Forks a server for the caller alone.
fn start_own() -> io::Result<(UnixStream, Option<Pid>)> {
    let (socket, mut client) = UnixStream::pair()?;
    // SAFETY: the child only computes, uses its socket and leaves by `_exit`.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok((socket, Some(child))),
        ForkResult::Child => {
            drop(socket);
            // The client decides when to end; its closing the socket is the sign.
            while answer(&mut client).is_ok() {}
            // SAFETY: always sound; skips the client's buffered output and destructors.
            unsafe { libc::_exit(0) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(client: &mut UnixStream) -> bool {
        client.set_nonblocking(true).unwrap();
        client.read_exact(&mut [0; MESSAGE_LEN]).is_ok()
    }

    #[test]
    fn clients_are_served_in_the_order_of_their_requests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut server = Server::open(&path).unwrap();
        let mut connect = || {
            let client = UnixStream::connect(&path).unwrap();
            assert_eq!(server.turn().unwrap(), None);
            client
        };
        let [mut first, mut second, leaves] = [connect(), connect(), connect()];
        let ask = |mut client: &UnixStream| client.write_all(&[0; MESSAGE_LEN]).unwrap();
        drop(leaves);
        ask(&second);
        ask(&second);
        ask(&first);
        assert_eq!(server.turn().unwrap(), None, "one has left");
        // The one that asked twice takes turns with the other.
        for expected in [(false, true), (true, false), (false, true)] {
            assert!(server.turn().unwrap().is_some());
            assert_eq!((arrived(&mut first), arrived(&mut second)), expected);
        }
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_no_reason_to_wait() {
        let path = Path::new("/tmp").join("x".repeat(200));
        let error = connect(&path).unwrap_err();
        assert!(error.to_string().contains("no server at"), "{error}");
    }
}
