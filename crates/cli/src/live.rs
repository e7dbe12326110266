//! The scheduler of this machine, as this user may see it: asked at the socket, so that root is not needed.

use std::time::Duration;

use andante_daemon::{Reply, Request, StatusSeen};
use andante_sched::explained::{self, Explained};
use andante_sched::{Seen, StateError};
use anyhow::Result;

use crate::commands::contracts;

/// Classes, counters, and the learnt contracts that this user may see.
///
/// # Errors
/// Nobody can be asked, and the kernel's state cannot be read either.
pub fn status() -> Result<StatusSeen> {
    match contracts::ask(&Request::Status {}) {
        Ok(Reply::Status(seen)) => Ok(*seen),
        answer => directly(answer, || {
            Ok(StatusSeen {
                seen: Seen::now()?,
                learnt: Vec::new(),
                stands_ns: 0,
            })
        }),
    }
}

/// How long to wait for the next look, so that it is another one, given what the user asked for.
pub fn until_next(looked: &StatusSeen, asked: Duration) -> Duration {
    asked.max(Duration::from_nanos(looked.stands_ns))
}

/// What was learnt of a process, or of one thread; none: there is no such process.
///
/// # Errors
/// As above, or it is another user's.
pub fn explained(pid: i32) -> Result<Option<Vec<Explained>>> {
    match contracts::ask(&Request::Why { pid }) {
        Ok(Reply::Why { threads }) => Ok(Some(threads)),
        answer => directly(answer, || explained::explained(pid)),
    }
}

/// Root can do without: the daemon may be one of another version, or listen elsewhere. A user who may not read
/// the kernel's state is told why the daemon was of no use.
fn directly<T>(answer: Result<Reply>, read: impl FnOnce() -> Result<T, StateError>) -> Result<T> {
    match (read(), answer) {
        (Ok(read), _) => Ok(read),
        (Err(StateError::NotPermitted), Err(error)) => Err(error),
        (Err(error), _) => Err(error.into()),
    }
}
