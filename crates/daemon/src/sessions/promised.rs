// SPDX-License-Identifier: GPL-2.0
//! What a session is promised, and how it is told what becomes of that.

use andante_sched::contracts::Contract;
use andante_session::{Answer, Fault, FaultKind, Notice, Terms};

use super::{Answering, Session, fault, terms};
use crate::books::{Books, Firmness, Standing};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::Reply;
use crate::server::Peer;

/// What a session holds.
#[derive(Debug)]
pub(super) struct Holds {
    /// The contract's name.
    pub name: String,
    /// How often it was exhausted when that was last told.
    exhausted: u64,
    /// How firmly it was promised when that was last looked at.
    firm: Firmness,
    /// What was asked for.
    terms: Terms,
}

impl Session {
    /// Whether the program has its user's attention. It keeps what it is promised until one that has needs it.
    pub(super) fn set_foreground(&mut self, on: bool, with: &mut Answering<'_>) {
        self.foreground = Some(on);
        if let Some(held) = &self.promised {
            with.books.set_behind(with.peer.caller, &held.name, !on);
        }
    }

    /// A promise in the place of what it holds, which it has again if it does not get the other.
    pub(super) fn promise_instead(
        &mut self,
        asked: &Terms,
        with: &mut Answering<'_>,
    ) -> Result<Answer, Fault> {
        let held = self.promised.as_ref().map(|held| held.terms);
        self.withdraw(with.books, with.host, with.kernel, with.peer);
        let behind = self.foreground == Some(false);
        let answer = self.promise(asked, behind, with);
        if let (None, Some(terms)) = (&self.promised, held) {
            // There was room for it before, and nobody has asked since. It may be from when it was in front.
            let _ = self.promise(&terms, false, with);
            if let Some(held) = &self.promised {
                with.books.set_behind(with.peer.caller, &held.name, behind);
            }
        }
        answer
    }

    fn promise(
        &mut self,
        asked: &Terms,
        behind: bool,
        with: &mut Answering<'_>,
    ) -> Result<Answer, Fault> {
        self.forget_ended(with);
        if self.members.is_empty() {
            let message = "no thread takes part in this session that could hold a promise: let one join first";
            return Err(fault(FaultKind::NoThread, message));
        }
        let ask = terms::ask(asked, &self.wish, with.peer.pid);
        let tids = self.members.iter().map(|member| member.tid).collect();
        let by = (tids, behind);
        let reply = with
            .books
            .promise(with.kernel, with.host, with.peer.caller, &ask, by);
        let reply = reply.unwrap_or_else(Reply::Error);
        if let Reply::Reserved(reserved) = &reply {
            self.promised = Some(Holds {
                name: reserved.name.clone(),
                exhausted: 0,
                firm: reserved.promise.into(),
                terms: *asked,
            });
        }
        Ok(terms::answer(asked, reply))
    }

    pub(super) fn withdraw(
        &mut self,
        books: &mut Books,
        host: &dyn Host,
        kernel: &mut dyn Kernel,
        peer: Peer,
    ) {
        if let Some(held) = self.promised.take() {
            books.withdraw(kernel, host, peer.caller, &held.name);
        }
    }

    /// What has become of its promise since it was last told, by the accounts of contracts. One thing at a time:
    /// what is told later is counted until then.
    pub fn notice(&mut self, books: &mut Books, live: &[Contract], peer: Peer) -> Option<Notice> {
        let held = self.promised.as_mut()?;
        let (firm, kept) = match books.standing(live, peer.caller, &held.name) {
            Standing::Kept(firm, kept) => (firm, kept),
            ended => {
                self.promised = None;
                let reason = match ended {
                    Standing::Yielded => {
                        "another program of yours, which is in front, has been promised what this one was: ask \
                         again when this one is"
                    }
                    _ => "its threads have ended, or somebody has released it",
                };
                let reason = reason.to_owned();
                return Some(Notice::Ended { reason });
            }
        };
        if firm < std::mem::replace(&mut held.firm, firm) {
            let reason = weakened(firm).to_owned();
            return Some(Notice::Weakened { reason });
        }
        let times = kept.exhaustions.saturating_sub(held.exhausted);
        held.exhausted = kept.exhaustions;
        (times > 0).then_some(Notice::Exhausted { times })
    }
}

/// Why what is promised so is less than it was.
fn weakened(firm: Firmness) -> &'static str {
    match firm {
        Firmness::Homeless => {
            "none of the CPUs that are left has room for it: until one has, the threads run on the share of their \
             class"
        }
        Firmness::Unproved => {
            "contracts that tolerate losses have come to its CPU, and that no deadline is missed cannot be proved \
             any more"
        }
        Firmness::Windows | Firmness::EveryDeadline => {
            "contracts that tolerate losses have come to its CPU: no more is lost than it tolerates, but that \
             may be"
        }
    }
}

#[cfg(test)]
mod tests;
