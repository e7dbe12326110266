//! What a program says of itself through Andante's library. Where Andante does not run, all of it does nothing.

use andante::{Cycle, Role, Session, Terms, Thread, Wish};
use andante_scenario::Kind;
use serde::{Deserialize, Serialize};

use super::Order;

/// How often it is asked for a session: where more is promised than there is, it answers late.
const TRIES: usize = 10;

/// A session that a program is to open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// What its threads do.
    pub cycle: Cycle,
    /// What it asks for: budget and period [ns].
    pub promise: Option<(u64, u64)>,
}

/// A thread that takes part, if there is a session.
#[derive(Default)]
pub(super) struct Speaks {
    session: Option<Session>,
    thread: Option<Thread>,
}

impl Speaks {
    /// Opens the session that the order asks for, in which the calling thread takes part, and asks for the
    /// promise.
    pub fn open(order: &Order) -> Result<Self, String> {
        let Some(asked) = &order.session else {
            return Ok(Self::default());
        };
        let wish = Wish {
            name: Some(order.name.clone()),
            ..Wish::new(role(&order.kind), asked.cycle)
        };
        let joined = || {
            let session = Session::open(wish.clone())?;
            let thread = session.join(None)?;
            Ok((session, thread))
        };
        let mut tries = std::iter::repeat_with(joined).take(TRIES);
        let answered = tries.find(|joined| !matches!(joined, Err(andante::Error::Late(_))));
        let (session, thread) = match answered {
            Some(Err(andante::Error::NoDaemon(_))) => return Ok(Self::default()),
            Some(joined) => joined.map_err(|error| error.to_string())?,
            None => return Err("Andante does not answer".to_owned()),
        };
        if let Some((budget_ns, period_ns)) = asked.promise {
            let terms = Terms {
                budget_ns,
                period_ns,
                deadline_ns: None,
                losses: 0,
                window: 0,
            };
            match session.promise(terms).map_err(|error| error.to_string())? {
                andante::Promised::Granted(_) => {}
                andante::Promised::Offer(offer) => {
                    return Err(format!("has got no promise: {}", offer.reason));
                }
            }
        }
        Ok(Self {
            session: Some(session),
            thread: Some(thread),
        })
    }

    /// Another thread, the calling one, which answers events at no pace of its own.
    pub fn join(&self) -> Result<Self, String> {
        let Some(session) = &self.session else {
            return Ok(Self::default());
        };
        let joined = session.join(Some(Cycle::default()));
        Ok(Self {
            session: Some(session.clone()),
            thread: Some(joined.map_err(|error| error.to_string())?),
        })
    }

    /// A piece of work begins that is due then.
    pub fn begin(&self, deadline_ns: u64) {
        if let Some(thread) = &self.thread {
            // It may be late already; then nothing is said.
            let _ = thread.begin_until(deadline_ns);
        }
    }

    /// It is done.
    pub fn end(&self) {
        if let Some(thread) = &self.thread {
            let _ = thread.end();
        }
    }

    /// The thread, which is about to sleep until then, has an event at that instant.
    pub fn awaits(&self, at_ns: u64) {
        if let Some(thread) = &self.thread {
            let _ = thread.sink().raise(0, at_ns);
        }
    }
}

fn role(kind: &Kind) -> Role {
    match kind {
        Kind::Game { .. } => Role::Game,
        Kind::Audio { .. } => Role::Audio,
        Kind::Player { .. } => Role::Video,
        _ => Role::Interactive,
    }
}
