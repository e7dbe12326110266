// SPDX-License-Identifier: GPL-2.0
//! One connection to the daemon: a line out, a line in.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use andante_session::{Answer, Request};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long an answer may take. The daemon gives one within milliseconds; a user who asks too much waits for his
/// turn. Who asks over D-Bus waits for 25 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer [bytes]; those that are asked for here have one sentence.
const MAX_ANSWER: usize = 64 << 10;

/// A daemon that was there.
#[derive(Debug, Clone)]
pub struct Wire {
    stream: Arc<UnixStream>,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let stream = timeout(PATIENCE, UnixStream::connect(path)).await??;
        Ok(Self {
            stream: Arc::new(stream),
        })
    }

    /// Asks.
    ///
    /// # Errors
    /// It is gone, takes too long, or says what cannot be understood: then nothing more can be asked here.
    pub async fn ask(&self, request: &Request) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let answer = timeout(PATIENCE, async {
            self.write(&line).await?;
            self.read().await
        });
        Ok(serde_json::from_slice(&answer.await??)?)
    }

    async fn write(&self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn read(&self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            self.stream.readable().await?;
            match self.stream.try_read_buf(&mut line) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) if line.len() > MAX_ANSWER => return Err(io::ErrorKind::InvalidData.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(line)
    }

    /// Waits until something comes, which may be the end.
    pub async fn stirs(&self) {
        let _ = self.stream.readable().await;
    }

    /// Whether nothing more can be asked here. To be looked at while no answer is waited for: then nothing comes
    /// but the end, and the sentence that says why.
    pub fn is_over(&self) -> bool {
        let unasked = self.stream.try_read(&mut [0]);
        !matches!(unasked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether both are one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream)
    }
}
