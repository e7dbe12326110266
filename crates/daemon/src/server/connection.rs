// SPDX-License-Identifier: GPL-2.0
//! One client: lines in, lines out, without ever waiting for it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::peer::Peer;
use crate::protocol::Reply;

/// Longest request [bytes].
const MAX_LINE: usize = 16 << 10;
/// Replies that may wait for a client to read them [bytes]; with more it is let go.
const MAX_UNSENT: usize = 4 << 20;

/// A client.
pub struct Connection {
    stream: UnixStream,
    /// Who it is.
    pub peer: Peer,
    received: Vec<u8>,
    unsent: Vec<u8>,
    heard: Instant,
    over: bool,
}

impl Connection {
    /// A client that has just connected; none if it cannot be told who it is.
    pub fn new(stream: UnixStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            peer: Peer::of(&stream)?,
            stream,
            received: Vec::new(),
            unsent: Vec::new(),
            heard: Instant::now(),
            over: false,
        })
    }

    /// When it was last heard.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether the connection is to be closed.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether a request has come that was not yet looked at.
    pub fn has_line(&self) -> bool {
        !self.over && self.received.contains(&b'\n')
    }

    /// Whether a reply waits to be read.
    pub fn has_more_to_send(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The next request, if it has come as a whole. Also sends what can be sent.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        self.flush();
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                return Some(std::mem::replace(&mut self.received, rest));
            }
            if self.received.len() > MAX_LINE {
                self.over = true;
                return None;
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => self.over = true,
                Ok(read) => {
                    self.heard = Instant::now();
                    self.received.extend_from_slice(&buffer[..read]);
                    continue;
                }
                Err(error) => self.judge(&error),
            }
            return None;
        }
    }

    /// Sends a reply, or as much of it as the client takes now.
    pub fn send(&mut self, reply: &Reply) {
        // Nothing in a reply can fail to be written as JSON.
        let _ = serde_json::to_writer(&mut self.unsent, reply);
        self.unsent.push(b'\n');
        self.flush();
        self.over |= self.unsent.len() > MAX_UNSENT;
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => break,
                Ok(sent) => drop(self.unsent.drain(..sent)),
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
    use super::*;
    use crate::protocol::{Fault, FaultKind};

    fn pair() -> (UnixStream, Connection) {
        let (client, server) = UnixStream::pair().unwrap();
        (client, Connection::new(server).unwrap())
    }

    #[test]
    fn requests_may_come_in_any_portions() {
        let (mut client, mut connection) = pair();
        assert_eq!(connection.next_line(), None);
        client.write_all(b"{\"op\"").unwrap();
        assert_eq!(connection.next_line(), None);
        client.write_all(b":\"list\"}\nnext\nunfin").unwrap();
        assert_eq!(connection.next_line().unwrap(), b"{\"op\":\"list\"}\n");
        assert!(connection.has_line());
        assert_eq!(connection.next_line().unwrap(), b"next\n");
        assert_eq!(connection.next_line(), None);
        assert!(!connection.is_over());
        drop(client);
        assert_eq!(connection.next_line(), None);
        assert!(connection.is_over());
    }

    #[test]
    fn a_line_without_end_ends_the_connection() {
        let (mut client, mut connection) = pair();
        client.write_all(&vec![b'x'; MAX_LINE + 1]).unwrap();
        assert_eq!(connection.next_line(), None);
        assert!(connection.is_over());
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
    fn a_peer_is_known_by_the_kernels_word() {
        let (_client, connection) = pair();
        let uid = nix::unistd::geteuid().as_raw();
        assert_eq!(connection.peer.caller.uid, uid);
        assert_eq!(connection.peer.caller.privileged, uid == 0);
    }
}
