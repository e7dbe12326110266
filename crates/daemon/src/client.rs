// SPDX-License-Identifier: GPL-2.0
//! Asking the process that has loaded the scheduler.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_sched::doctor::Loaded;

use crate::protocol::{Fault, Reply, Request};

/// How long an answer may take: a refusal on a machine with many CPUs and contracts is a search.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error(
        "there is nobody to ask for contracts at {}: start Andante with `sudo andante run`",
        .0.display()
    )]
    NoDaemon(PathBuf),
    /// Andante schedules by a historical policy, of this name.
    #[error(
        "the historical policy {0} is in charge, which knows no contracts: end it, then `sudo andante run`"
    )]
    Historical(&'static str),
    /// The socket may not be opened.
    #[error("not permitted to open {}: its mode should be 666", .0.display())]
    NotPermitted(PathBuf),
    /// The connection broke, or what came is not understood.
    #[error(
        "no answer from Andante ({0}): is the one that runs of another version, or has it just ended?"
    )]
    Broken(io::Error),
    /// The request cannot be answered.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A connection to the daemon. One request at a time.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon that listens at `socket`; see [`socket_path`](crate::socket_path).
    ///
    /// # Errors
    /// [`ClientError::NoDaemon`], [`ClientError::Historical`], [`ClientError::NotPermitted`].
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => ClientError::NotPermitted(socket.to_owned()),
            _ => match Loaded::find().and_then(|loaded| loaded.policy()) {
                Some(policy) => ClientError::Historical(policy.name()),
                None => ClientError::NoDaemon(socket.to_owned()),
            },
        })?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(ClientError::Broken)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Asks. The reply is never [`Reply::Error`].
    ///
    /// # Errors
    /// [`ClientError::Fault`] for what cannot be answered, [`ClientError::Broken`].
    pub fn request(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let broken = |error: serde_json::Error| ClientError::Broken(error.into());
        let mut line = serde_json::to_string(request).map_err(broken)?;
        line.push('\n');
        let mut stream = self.stream.get_ref();
        // Who is turned away is told so before it has asked, and cannot write then, but read.
        let sent = stream.write_all(line.as_bytes());
        let mut answer = String::new();
        let read = self.stream.read_line(&mut answer);
        if read.map_err(ClientError::Broken)? == 0 {
            sent.map_err(ClientError::Broken)?;
            let end = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(ClientError::Broken(end));
        }
        match serde_json::from_str(&answer).map_err(broken)? {
            Reply::Error(fault) => Err(fault.into()),
            reply => Ok(reply),
        }
    }
}
