// SPDX-License-Identifier: GPL-2.0
//! From the words of a session to those of the scheduler and of contracts, and back.

use andante_admission::{Duration, Tolerance};
use andante_sched::contracts::MAX_PERIOD_NS;
use andante_sched::session::Declared;
use andante_session::{Answer, Cycle, Fault, FaultKind, Granted, Offer, Terms as Asked, Wish};

use super::fault;
use crate::protocol::{Ask, Holder, Limit, Refused, Reply};
use crate::terms::Terms;

/// Whether these numbers make sense.
///
/// # Errors
/// With the sentence to tell.
pub fn check(cycle: &Cycle) -> Result<(), Fault> {
    let given = [
        ("period", cycle.period_ns),
        ("deadline", cycle.deadline_ns),
        ("budget", cycle.budget_ns),
    ];
    let bad = |message: String| Err(fault(FaultKind::BadTerms, message));
    for (what, ns) in given {
        if ns.is_some_and(|ns| !(1..=MAX_PERIOD_NS).contains(&ns)) {
            return bad(format!(
                "a {what} of {} ns is out of range: give 1 to {MAX_PERIOD_NS}, or leave it out",
                ns.unwrap_or(0)
            ));
        }
    }
    let within = |(what, short): (&str, Option<u64>), (other, long): (&str, Option<u64>)| {
        let (Some(short), Some(long)) = (short, long) else {
            return Ok(());
        };
        match short <= long {
            true => Ok(()),
            false => bad(format!(
                "a {what} of {} does not fit in a {other} of {}",
                Duration(short),
                Duration(long)
            )),
        }
    };
    let [period, deadline, budget] = given;
    within(deadline, period)?;
    within(budget, deadline)?;
    within(budget, period)
}

/// What the scheduler is told of a thread. The numbers have been checked.
pub fn declared(session: u32, cycle: &Cycle, sink: u32) -> Declared {
    let ns = |ns: Option<u64>| ns.and_then(|ns| u32::try_from(ns).ok()).unwrap_or(0);
    Declared {
        session,
        period_ns: ns(cycle.period_ns),
        deadline_ns: ns(cycle.deadline_ns.or(cycle.period_ns)),
        budget_ns: ns(cycle.budget_ns),
        sink,
    }
}

/// The contract that is asked for. It is not flexible: such a one leaves to others what it has not used when
/// its threads sleep, and one that wakes again in the same period would wait for the next (a game's thread for
/// updates did, once its frame was made).
pub fn ask(asked: &Asked, wish: &Wish, pid: i32) -> Ask {
    let tolerance = Tolerance {
        losses: asked.losses,
        window: asked.window,
    };
    Ask {
        holder: Holder::Session(pid),
        terms: Terms {
            deadline_ns: asked.deadline_ns,
            tolerance,
            spills: tolerance == Tolerance::NONE,
            ..Terms::new(asked.budget_ns, asked.period_ns)
        },
        name: wish.name.clone(),
    }
}

/// What the program is told.
pub fn answer(asked: &Asked, reply: Reply) -> Answer {
    match reply {
        Reply::Reserved(reserved) => Answer::Granted(Granted {
            name: reserved.name,
            terms: *asked,
            notes: reserved.notes,
        }),
        Reply::Refused(refused) => Answer::Offer(offer(asked, &refused)),
        Reply::Error(cause) => Answer::Error(fault(kind(cause.kind), cause.message)),
        _ => Answer::Error(fault(FaultKind::Failed, "the books have lost their way")),
    }
}

fn offer(asked: &Asked, refused: &Refused) -> Offer {
    let nearest = &refused.refusal.nearest;
    let terms = nearest.largest_budget.as_ref().map(|offer| Asked {
        budget_ns: offer.contract.budget_ns,
        ..*asked
    });
    let wanted = format!(
        "{} of every {}",
        Duration(asked.budget_ns),
        Duration(asked.period_ns)
    );
    let reason = match refused.limits.first() {
        None => format!("no CPU has room for {wanted}"),
        Some(Limit::SessionQuota {
            behind,
            held_ppm,
            limit_ppm,
            ..
        }) => beyond_sessions(&wanted, *behind, *held_ppm, *limit_ppm),
        Some(
            Limit::UserQuota {
                held_ppm,
                limit_ppm,
                ..
            }
            | Limit::UsersQuota {
                held_ppm,
                limit_ppm,
                ..
            },
        ) => format!(
            "{wanted} is more than is left: all users without privilege may be promised {} of a CPU together, and \
             hold {} (`andante run --users-quota` changes that)",
            percent(*limit_ppm),
            percent(*held_ppm)
        ),
        Some(Limit::Parent { name, .. }) => {
            format!("{wanted} does not fit in the contract {name} of its class")
        }
        Some(Limit::Children { .. }) => format!("{wanted} is less than is nested in it already"),
    };
    Offer { terms, reason }
}

/// What the sessions of a user may be promised is no more; with the way out.
fn beyond_sessions(wanted: &str, behind: bool, held_ppm: u64, limit_ppm: u64) -> String {
    let (limit, held) = (percent(limit_ppm), percent(held_ppm));
    match behind {
        true => format!(
            "{wanted} is more than is left to one that is not in front: your sessions are promised {held} of a CPU, \
             and up to {limit} such a one may have something too; ask again when it is in front"
        ),
        false => format!(
            "{wanted} is more than is left: your sessions may be promised {limit} of a CPU together, and are promised \
             {held} (`andante run --session-quota` changes that; one that says that it is not in front gives \
             up its part)"
        ),
    }
}

/// Of a CPU.
fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm / 1000 % 10)
}

fn kind(kind: crate::protocol::FaultKind) -> FaultKind {
    use crate::protocol::FaultKind as Kind;
    match kind {
        Kind::BadRequest => FaultKind::BadRequest,
        Kind::BadTerms => FaultKind::BadTerms,
        Kind::NotPermitted => FaultKind::NotPermitted,
        Kind::NoProcess => FaultKind::NoThread,
        Kind::KernelThread | Kind::Unschedulable => FaultKind::Unschedulable,
        Kind::Taken => FaultKind::Taken,
        Kind::Full => FaultKind::Full,
        Kind::Busy => FaultKind::Busy,
        Kind::UnknownClass | Kind::NoContract | Kind::Failed => FaultKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_the_mend() {
        let cycle = |period_ns, deadline_ns, budget_ns| Cycle {
            period_ns,
            deadline_ns,
            budget_ns,
        };
        assert!(check(&cycle(None, None, None)).is_ok());
        assert!(check(&cycle(Some(16_666_667), None, Some(9_000_000))).is_ok());
        for (bad, word) in [
            (cycle(Some(0), None, None), "out of range"),
            (cycle(Some(1 << 33), None, None), "out of range"),
            (cycle(Some(10), Some(11), None), "does not fit"),
            (cycle(Some(10), None, Some(11)), "does not fit"),
            (cycle(None, Some(10), Some(11)), "does not fit"),
        ] {
            let fault = check(&bad).unwrap_err();
            assert_eq!(fault.kind, FaultKind::BadTerms);
            assert!(fault.message.contains(word), "{}", fault.message);
        }
    }

    #[test]
    fn a_deadline_that_is_left_out_is_the_period() {
        let cycle = Cycle {
            period_ns: Some(20),
            ..Cycle::default()
        };
        assert_eq!(declared(1, &cycle, 0).deadline_ns, 20);
    }
}
