// SPDX-License-Identifier: GPL-2.0
//! Lines over the socket, with a descriptor now and then. One request at a time; notices that come
//! meanwhile are kept.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use andante_session::{Answer, Notice, Request, Said};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, connect, recvmsg,
    send, socket,
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

/// The connection of a session.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
    received: Vec<u8>,
    fds: VecDeque<OwnedFd>,
    notices: VecDeque<Notice>,
    /// Nothing can be said any more: an answer that is still to come would be taken for another's.
    lost: bool,
}

impl Wire {
    /// Connects. Where so many wait to be let in that the daemon seems stuck, this waits for [`PATIENCE`].
    pub fn connect(path: &Path) -> Result<Self, Error> {
        let failed = |errno: nix::Error| match errno {
            nix::Error::ENOENT | nix::Error::ECONNREFUSED => Error::NoDaemon(path.to_owned()),
            errno => Error::system("connect to Andante")(errno.into()),
        };
        let address = UnixAddr::new(path).map_err(failed)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(failed)?;
        let until = Instant::now() + PATIENCE;
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
            notices: VecDeque::new(),
            lost: false,
        })
    }

    /// Asks, and waits for the answer; with what came along.
    pub fn ask(&mut self, request: &Request) -> Result<(Answer, Option<OwnedFd>), Error> {
        if self.lost {
            return Err(Error::Lost);
        }
        let outcome = self.exchange(request);
        if matches!(outcome, Err(Error::Lost | Error::Late(_))) {
            self.lost = true;
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
        }
        match outcome? {
            (Answer::Error(fault), _) => Err(Error::Refused(fault)),
            answer => Ok(answer),
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<(Answer, Option<OwnedFd>), Error> {
        let until = Instant::now() + PATIENCE;
        self.fds.clear();
        let mut line = serde_json::to_vec(request).map_err(|_| Error::Lost)?;
        line.push(b'\n');
        match self.send(&line, until) {
            // Whoever is turned away at the door is told why, and that is still to be read.
            Ok(()) | Err(Error::Lost) => {}
            Err(error) => return Err(error),
        }
        loop {
            match self.next_line()? {
                Some(Said::Answer(answer)) => return Ok((answer, self.fds.pop_front())),
                Some(Said::Notice { notice }) => self.keep(notice),
                None => {
                    self.wait(PollFlags::POLLIN, until)?;
                    self.receive()?;
                }
            }
        }
    }

    fn send(&mut self, mut line: &[u8], until: Instant) -> Result<(), Error> {
        while !line.is_empty() {
            match send(self.stream.as_raw_fd(), line, MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) => line = &line[sent..],
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
        let mut room = nix::cmsg_space!([RawFd; 4]);
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
        if length == 0 || self.received.len() + length > MAX_LINE {
            return Err(Error::Lost);
        }
        self.received.extend_from_slice(&bytes[..length]);
        Ok(true)
    }

    fn next_line(&mut self) -> Result<Option<Said>, Error> {
        let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let rest = self.received.split_off(end + 1);
        let line = std::mem::replace(&mut self.received, rest);
        let said = serde_json::from_slice(&line);
        said.map(Some).map_err(|_| Error::Lost)
    }

    fn keep(&mut self, notice: Notice) {
        if self.notices.len() >= MAX_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// What has come without having been asked for, if anything; never waits.
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

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
