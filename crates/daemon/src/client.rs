// SPDX-License-Identifier: GPL-2.0
//! Asking the process that has loaded the scheduler.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_sched::doctor::Loaded;
use andante_session::{VERSION, greeted};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
        "no answer from Andante ({0}): it has just ended, or `sudo systemctl restart andante` mends it"
    )]
    Broken(io::Error),
    /// The one that runs speaks another version, and what to do.
    #[error("{0}")]
    Version(String),
    /// The request cannot be answered.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A connection to the daemon. One request at a time.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// Both are known to speak the same version.
    greeted: bool,
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
            greeted: false,
        })
    }

    /// Asks. The reply is never [`Reply::Error`].
    ///
    /// # Errors
    /// [`ClientError::Fault`] for what cannot be answered, [`ClientError::Version`], [`ClientError::Broken`].
    pub fn request(&mut self, request: &Request) -> Result<Reply, ClientError> {
        if !self.greeted {
            self.greet()?;
        }
        match parsed(&self.exchange(request)?)? {
            Reply::Error(fault) => Err(fault.into()),
            reply => Ok(reply),
        }
    }

    /// Asks for nothing of one who would understand something else.
    fn greet(&mut self) -> Result<(), ClientError> {
        let hello = andante_session::Request::Hello { version: VERSION };
        let line = self.exchange(&hello)?;
        if let Err(fault) = greeted(parsed(&line)?) {
            if fault.kind == andante_session::FaultKind::Version {
                return Err(ClientError::Version(fault.message));
            }
            // It says why it answers nothing now.
            let said: Reply = parsed(&line)?;
            return Err(match said {
                Reply::Error(fault) => fault.into(),
                _ => ClientError::Broken(io::ErrorKind::InvalidData.into()),
            });
        }
        self.greeted = true;
        Ok(())
    }

    /// A line out, a line in.
    fn exchange(&mut self, request: &impl Serialize) -> Result<String, ClientError> {
        let mut line = serde_json::to_string(request).map_err(not_understood)?;
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
        Ok(answer)
    }
}

fn parsed<T: DeserializeOwned>(line: &str) -> Result<T, ClientError> {
    serde_json::from_str(line).map_err(not_understood)
}

fn not_understood(error: serde_json::Error) -> ClientError {
    ClientError::Broken(error.into())
}
