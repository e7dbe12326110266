// SPDX-License-Identifier: GPL-2.0
//! One client: lines in, lines out, without ever waiting for it.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::poll::PollFlags;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::Serialize;

use super::peer::Peer;
use crate::protocol::{Fault, FaultKind, Reply};
use crate::sessions::Session;

/// Descriptors that are kept of those that come along: a request has one.
const MAX_PASSED: usize = 2;
/// Longest request [bytes].
const MAX_LINE: usize = 16 << 10;
/// Replies that may wait for a client to read them [bytes]; with more it is let go.
const MAX_UNSENT: usize = 4 << 20;

/// A client.
pub struct Connection {
    stream: UnixStream,
    /// Who it is.
    pub peer: Peer,
    /// Whether its request was found to have to wait for its user's turn.
    pub delayed: bool,
    /// The session that it has opened, if any.
    pub session: Option<Session>,
    /// Those of processes that it speaks for.
    pub spoken: Vec<Session>,
    received: Vec<u8>,
    unsent: Vec<u8>,
    /// To be passed with the first byte of what is unsent.
    passing: Option<OwnedFd>,
    heard: Instant,
    /// Descriptors that have come along with requests that were not answered yet.
    passed: VecDeque<OwnedFd>,
    /// It sends nothing more, and may still read.
    ended: bool,
    over: bool,
}

impl Connection {
    /// A client that has just connected; none if it could keep us waiting.
    pub fn new(stream: UnixStream, peer: Peer) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            peer,
            stream,
            delayed: false,
            session: None,
            spoken: Vec::new(),
            received: Vec::new(),
            unsent: Vec::new(),
            passing: None,
            heard: Instant::now(),
            passed: VecDeque::new(),
            ended: false,
            over: false,
        })
    }

    /// Whether it holds a session: such a one is silent for hours.
    pub fn holds_a_session(&self) -> bool {
        self.session.is_some() || !self.spoken.is_empty()
    }

    /// All sessions that end with it.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.session.iter().chain(&self.spoken)
    }

    /// When it was last heard, or has taken something of what waits for it.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether the connection is to be closed.
    pub fn is_over(&self) -> bool {
        self.over || (self.ended && self.unsent.is_empty() && !self.has_line())
    }

    /// Whether a request has come that was not yet looked at.
    pub fn has_line(&self) -> bool {
        !self.over && self.received.contains(&b'\n')
    }

    /// Whether a reply waits to be read.
    pub fn has_more_to_send(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// What is to be waited for: room for the rest of a reply, or else a request. A client that does not
    /// read its replies is not heard either, or they would pile up here.
    pub fn wanted(&self) -> PollFlags {
        match (self.has_more_to_send(), self.ended || self.has_line()) {
            (true, _) => PollFlags::POLLOUT,
            (false, false) => PollFlags::POLLIN,
            (false, true) => PollFlags::empty(),
        }
    }

    /// Sends what can be sent and reads what has come, one portion at most. `found` is what was waited for.
    pub fn exchange(&mut self, found: PollFlags) {
        if found.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            // Nobody is there to read an answer.
            self.over = true;
            return;
        }
        self.flush();
        if self.wanted() != PollFlags::POLLIN || self.over {
            return;
        }
        let mut buffer = [0; 4096];
        match self.receive(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(read) => {
                self.heard = Instant::now();
                self.received.extend_from_slice(&buffer[..read]);
                let too_long = |start: &[u8]| !start.contains(&b'\n');
                if self.received.get(..=MAX_LINE).is_some_and(too_long) {
                    let message =
                        format!("a request is longer than {MAX_LINE} bytes: end it with a line");
                    self.dismiss(Fault::new(FaultKind::BadRequest, message));
                }
            }
            Err(error) => self.judge(&error),
        }
    }

    /// Reads what has come, with descriptors that come along; of those that nobody has asked for no more are kept
    /// than one needs.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut room = nix::cmsg_space!([RawFd; MAX_PASSED]);
        let mut bytes = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let got = recvmsg::<()>(self.stream.as_raw_fd(), &mut bytes, Some(&mut room), flags)?;
        for message in got.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(fds) = message {
                // SAFETY: they were just received, and nobody else has them.
                let owned = fds
                    .into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
                self.passed.extend(owned);
            }
        }
        self.passed.truncate(MAX_PASSED);
        Ok(got.bytes)
    }

    /// The descriptor that has come along with the request that is being answered, if one has.
    pub fn take_passed(&mut self) -> Option<OwnedFd> {
        let first = self.passed.pop_front();
        if !self.has_line() {
            self.passed.clear();
        }
        first
    }

    /// The next request, if it has come as a whole.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        let rest = self.received.split_off(end + 1);
        self.delayed = false;
        Some(std::mem::replace(&mut self.received, rest))
    }

    /// Sends a reply, or as much of it as the client takes now.
    pub fn send(&mut self, reply: &Reply) {
        self.say(reply, None);
    }

    /// The same of a line of a session, with a descriptor that goes along. Nothing may be unsent then.
    pub fn say(&mut self, line: &impl Serialize, fd: Option<OwnedFd>) {
        debug_assert!(fd.is_none() || self.unsent.is_empty());
        self.passing = fd;
        // Nothing in a reply can fail to be written as JSON.
        let _ = serde_json::to_writer(&mut self.unsent, line);
        self.unsent.push(b'\n');
        self.flush();
        self.over |= self.unsent.len() > MAX_UNSENT;
    }

    /// Says why, if there is room for that, and is over.
    pub fn dismiss(&mut self, fault: Fault) {
        self.send(&Reply::Error(fault));
        self.over = true;
    }

    /// It reads nothing, and is over.
    pub fn let_go(&mut self) {
        self.over = true;
    }

    /// Sends some of it, with the descriptor if there is one.
    fn write(&mut self) -> io::Result<usize> {
        let Some(fd) = &self.passing else {
            return self.stream.write(&self.unsent);
        };
        let fds = [fd.as_raw_fd()];
        let along = [ControlMessage::ScmRights(&fds)];
        let bytes = [IoSlice::new(&self.unsent)];
        let to = self.stream.as_raw_fd();
        Ok(sendmsg::<()>(
            to,
            &bytes,
            &along,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?)
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.write() {
                Ok(0) => break,
                Ok(sent) => {
                    self.passing = None;
                    self.heard = Instant::now();
                    drop(self.unsent.drain(..sent));
                }
                Err(error) => return self.judge(&error),
            }
        }
    }

    fn judge(&mut self, error: &io::Error) {
        let kind = error.kind();
        self.over |= kind != io::ErrorKind::WouldBlock && kind != io::ErrorKind::Interrupted;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::accounts::Accounts;

    fn pair() -> (UnixStream, Connection) {
        let (client, server) = UnixStream::pair().unwrap();
        let peer = Peer::of(&server, &Accounts::default()).unwrap();
        (client, Connection::new(server, peer).unwrap())
    }

    fn read(connection: &mut Connection) -> Option<Vec<u8>> {
        connection.exchange(PollFlags::POLLIN);
        connection.next_line()
    }

    #[test]
    fn requests_may_come_in_any_portions() {
        let (mut client, mut connection) = pair();
        assert_eq!(read(&mut connection), None);
        client.write_all(b"{\"op\"").unwrap();
        assert_eq!(read(&mut connection), None);
        client.write_all(b":\"list\"}\nnext\nunfin").unwrap();
        assert_eq!(read(&mut connection).unwrap(), b"{\"op\":\"list\"}\n");
        assert!(connection.has_line());
        assert_eq!(read(&mut connection).unwrap(), b"next\n");
        assert_eq!(read(&mut connection), None);
        assert!(!connection.is_over());
        drop(client);
        assert_eq!(read(&mut connection), None);
        assert!(connection.is_over());
    }

    #[test]
    fn who_sends_nothing_more_is_still_answered() {
        let (mut client, mut connection) = pair();
        client.write_all(b"{}\n").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read(&mut connection).unwrap(), b"{}\n");
        connection.send(&Reply::Error(Fault::new(FaultKind::Failed, "no")));
        assert_eq!(read(&mut connection), None);
        assert!(connection.is_over());
        let mut answer = String::new();
        drop(connection);
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\"no\""), "{answer}");
    }

    #[test]
    fn a_line_without_end_ends_the_connection() {
        let (mut client, mut connection) = pair();
        client.write_all(&vec![b'x'; MAX_LINE + 1]).unwrap();
        for _ in 0..=MAX_LINE / 4096 {
            assert!(!connection.is_over());
            assert_eq!(read(&mut connection), None);
        }
        assert!(connection.is_over());
        drop(connection);
        let mut answer = Vec::new();
        // The rest of what it has sent was not read, which the kernel tells it behind the answer.
        let _ = client.read_to_end(&mut answer);
        assert!(String::from_utf8_lossy(&answer).contains("longer than"));
    }

    #[test]
    fn who_reads_nothing_is_not_waited_for_and_let_go() {
        let (_client, mut connection) = pair();
        let reply = Reply::Error(Fault::new(FaultKind::Failed, "x".repeat(100_000)));
        for _ in 0..MAX_UNSENT / 100_000 + 10 {
            connection.send(&reply);
        }
        assert!(connection.has_more_to_send());
        assert!(connection.is_over());
    }

    #[test]
    fn who_reads_nothing_is_not_heard() {
        let (mut client, mut connection) = pair();
        connection.send(&Reply::Error(Fault::new(
            FaultKind::Failed,
            "x".repeat(1_000_000),
        )));
        assert!(connection.has_more_to_send() && !connection.is_over());
        client.write_all(b"{}\n").unwrap();
        assert_eq!(read(&mut connection), None);
        assert_eq!(connection.wanted(), PollFlags::POLLOUT);
    }

    #[test]
    fn a_peer_is_known_by_the_kernels_word() {
        let (_client, connection) = pair();
        let uid = nix::unistd::geteuid().as_raw();
        assert_eq!(connection.peer.caller.uid, uid);
        assert_eq!(connection.peer.caller.privileged, uid == 0);
    }
}
