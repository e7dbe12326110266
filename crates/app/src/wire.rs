// SPDX-License-Identifier: GPL-2.0
//! Lines over the socket, with a descriptor now and then. One request at a time; notices that come
//! meanwhile are kept.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use andante_session::{Answer, Notice, Request, Said};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    connect, recvmsg, sendmsg, socket,
};

use crate::error::Error;

/// How long an answer may take: a daemon that is stuck must not hang a game.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long after which it is tried again to be let in: some tens of those before us have been answered by then.
const AGAIN: Duration = Duration::from_millis(1);
/// Longest line from the daemon [bytes].
const MAX_LINE: usize = 1 << 20;
/// Notices that are kept for a program that does not ask for them: the last ones.
const MAX_NOTICES: usize = 64;
/// Descriptors in one message: as many as the kernel lets anybody pass, so that none is cut off, which would leave
/// those before it open and unknown.
const MAX_PASSED: usize = 253;
/// Descriptors that have come and belong to no answer yet: one does, and a daemon that goes on is none of ours.
const MAX_FDS: usize = 4;

/// An answer, and the descriptor that came along, or why none did.
pub type Answered = (Answer, Result<OwnedFd, Error>);

/// The connection of a session.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
    received: Vec<u8>,
    fds: VecDeque<OwnedFd>,
    /// One that was passed could not be taken.
    refused_fd: bool,
    notices: VecDeque<Notice>,
    /// Nothing can be said any more: an answer that is still to come would be taken for another's.
    lost: bool,
}

impl Wire {
    /// Connects. Where so many wait to be let in that the daemon seems stuck, this waits until then.
    pub fn connect(path: &Path, until: Instant) -> Result<Self, Error> {
        let failed = |errno: nix::Error| match errno {
            nix::Error::ENOENT | nix::Error::ECONNREFUSED => Error::NoDaemon(path.to_owned()),
            errno => Error::system("connect to Andante")(errno.into()),
        };
        let address = UnixAddr::new(path).map_err(failed)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(failed)?;
        loop {
            match connect(fd.as_raw_fd(), &address) {
                Ok(()) => break,
                Err(nix::Error::EINTR) => {}
                // There is nothing that could be waited for: the row of those before us is full.
                Err(nix::Error::EAGAIN) if Instant::now() < until => std::thread::sleep(AGAIN),
                Err(nix::Error::EAGAIN) => return Err(Error::Late(PATIENCE)),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(Self {
            stream: fd.into(),
            received: Vec::new(),
            fds: VecDeque::new(),
            refused_fd: false,
            notices: VecDeque::new(),
            lost: false,
        })
    }

    /// Asks, and waits for the answer; with what came along.
    pub fn ask(&mut self, request: &Request) -> Result<Answered, Error> {
        self.ask_until(request, None, Instant::now() + PATIENCE)
    }

    /// The same, with a descriptor that goes along.
    pub fn ask_with(&mut self, request: &Request, fd: BorrowedFd<'_>) -> Result<Answered, Error> {
        self.ask_until(request, Some(fd), Instant::now() + PATIENCE)
    }

    /// The same, which waits until then.
    pub fn ask_until(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
        until: Instant,
    ) -> Result<Answered, Error> {
        if self.lost {
            return Err(Error::Lost);
        }
        let outcome = self.exchange(request, fd, until);
        if matches!(outcome, Err(Error::Lost | Error::Late(_))) {
            self.close();
        }
        match outcome? {
            (Answer::Error(fault), _) => Err(Error::Refused(fault)),
            answer => Ok(answer),
        }
    }

    /// Ends the connection, also for children of the process, which may have it open still.
    pub fn close(&mut self) {
        self.lost = true;
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// The descriptor that has come along with the answer.
    fn passed(&mut self) -> Result<OwnedFd, Error> {
        let refused = "too many files are open, or a security module forbids it";
        self.fds.pop_front().ok_or_else(|| match self.refused_fd {
            true => Error::system("take the page from Andante")(io::Error::other(refused)),
            false => Error::BadPage,
        })
    }

    fn exchange(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
        until: Instant,
    ) -> Result<Answered, Error> {
        self.fds.clear();
        self.refused_fd = false;
        let mut line = serde_json::to_vec(request).map_err(|_| Error::Lost)?;
        line.push(b'\n');
        match self.send(&line, fd, until) {
            // Whoever is turned away at the door is told why, and that is still to be read.
            Ok(()) | Err(Error::Lost) => {}
            Err(error) => return Err(error),
        }
        loop {
            match self.next_line()? {
                Some(Said::Answer(answer)) => return Ok((answer, self.passed())),
                Some(Said::Notice { notice }) => self.keep(notice),
                None => {
                    self.wait(PollFlags::POLLIN, until)?;
                    self.receive()?;
                }
            }
        }
    }

    /// The descriptor goes along with the first byte.
    fn send(
        &mut self,
        mut line: &[u8],
        mut fd: Option<BorrowedFd<'_>>,
        until: Instant,
    ) -> Result<(), Error> {
        while !line.is_empty() {
            let fds = fd.map(|fd| [fd.as_raw_fd()]);
            let along = fds.as_ref().map(|fds| ControlMessage::ScmRights(fds));
            let sent = sendmsg::<()>(
                self.stream.as_raw_fd(),
                &[IoSlice::new(line)],
                along.as_slice(),
                MsgFlags::MSG_NOSIGNAL,
                None,
            );
            match sent {
                Ok(sent) => {
                    line = &line[sent..];
                    fd = None;
                }
                // Of the descriptor, not of the connection.
                Err(errno @ (nix::Error::EBADF | nix::Error::EPERM | nix::Error::EACCES))
                    if fd.is_some() =>
                {
                    return Err(Error::system("pass the socket to Andante")(errno.into()));
                }
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN) => self.wait(PollFlags::POLLOUT, until)?,
                Err(_) => return Err(Error::Lost),
            }
        }
        Ok(())
    }

    fn wait(&self, what: PollFlags, until: Instant) -> Result<(), Error> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Late(PATIENCE));
        }
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut watched = [PollFd::new(self.stream.as_fd(), what)];
        match poll(&mut watched, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(_) => Err(Error::Lost),
        }
    }

    /// Takes what has come, if anything.
    fn receive(&mut self) -> Result<bool, Error> {
        let mut bytes = [0; 4096];
        let mut room = nix::cmsg_space!([RawFd; MAX_PASSED]);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg::<()>(
            self.stream.as_raw_fd(),
            &mut slices,
            Some(&mut room),
            MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT,
        );
        let got = match got {
            Ok(got) => got,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(false),
            Err(_) => return Err(Error::Lost),
        };
        // They are none where the kernel has left some out.
        self.refused_fd |= got.flags.contains(MsgFlags::MSG_CTRUNC);
        for message in got.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(fds) = message {
                // SAFETY: they were just received, and nobody else has them.
                let owned = fds
                    .into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
                self.fds.extend(owned);
            }
        }
        let length = got.bytes;
        let too_much = self.received.len() + length > MAX_LINE || self.fds.len() > MAX_FDS;
        if length == 0 || too_much {
            return Err(Error::Lost);
        }
        self.received.extend_from_slice(&bytes[..length]);
        Ok(true)
    }

    /// The next that has been said; passes over news of a sort that this version does not know.
    fn next_line(&mut self) -> Result<Option<Said>, Error> {
        while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
            let rest = self.received.split_off(end + 1);
            let line = std::mem::replace(&mut self.received, rest);
            match serde_json::from_slice(&line) {
                Ok(said) => return Ok(Some(said)),
                Err(_) if is_notice(&line) => {}
                Err(_) => return Err(Error::Lost),
            }
        }
        Ok(None)
    }

    fn keep(&mut self, notice: Notice) {
        if self.notices.len() >= MAX_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// A notice that has come without having been asked for, if anything; never waits.
    pub fn notice(&mut self) -> Result<Option<Notice>, Error> {
        if self.lost {
            return self.notices.pop_front().map(Some).ok_or(Error::Lost);
        }
        loop {
            match self.next_line() {
                Ok(Some(Said::Notice { notice })) => self.keep(notice),
                Ok(None) => match self.receive() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        self.lost = true;
                        return self.notice();
                    }
                },
                // An answer to nothing.
                Ok(Some(Said::Answer(_))) | Err(_) => {
                    self.lost = true;
                    return self.notice();
                }
            }
        }
        Ok(self.notices.pop_front())
    }
}

fn is_notice(line: &[u8]) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    value.is_some_and(|value| value["notice"].is_object())
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
