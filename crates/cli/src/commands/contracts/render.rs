// SPDX-License-Identifier: GPL-2.0
//! The daemon's answers in words.

use andante_admission::Contract;
use andante_daemon::{Limit, Refused, Reserved};
use andante_sched::text::shown;
use andante_terminal::output::{BAD, BOLD, DIM, GOOD, MEND, paint};

use super::super::admit::render::{offers, percent, place, terms, unpromised, why_not};

/// A contract that was made, or would be.
pub fn reserved(answer: &Reserved) -> String {
    let contract = answer.terms.contract(&answer.name);
    let mut text = format!(
        "{} {}  {}  {}\n",
        paint(GOOD, "✓"),
        paint(BOLD, shown(&answer.name)),
        what(answer, &contract),
        place(&answer.placement),
    );
    for warning in warnings(answer) {
        text += &format!("    {}\n", paint(MEND, warning));
    }
    text
}

/// What the holder of a contract should know, in whole sentences.
pub fn warnings(answer: &Reserved) -> Vec<String> {
    let contract = answer.terms.contract(&answer.name);
    let mut warnings = answer.notes.clone();
    warnings.extend(unpromised(&contract, Some(answer.promise)));
    if !answer.weakened.is_empty() {
        warnings.push(format!(
            "less is promised to these from now on: {}",
            answer.weakened.join(", ")
        ));
    }
    warnings
}

/// A contract that cannot be made, and what could.
pub fn refused(answer: &Refused, asked: &Contract) -> String {
    let mut text = format!("{} {}  no\n", paint(BAD, "✗"), terms(asked));
    for limit in &answer.limits {
        text += &format!("    {}\n", self::limit(limit));
    }
    text += &if answer.limits.is_empty() {
        why_not(&answer.refusal)
    } else {
        offers(&answer.refusal)
    };
    text
}

fn what(answer: &Reserved, contract: &Contract) -> String {
    let kind = match (answer.terms.soft, answer.terms.flexible) {
        (false, false) => "",
        (false, true) => ", flexible",
        (true, false) => ", soft",
        (true, true) => ", soft, flexible",
    };
    let holder = answer.holder.to_string();
    let holder = paint(DIM, format!("for {holder}"));
    format!("{}{kind}  {holder}", terms(contract))
}

fn limit(limit: &Limit) -> String {
    match limit {
        Limit::UserQuota {
            held_ppm,
            asked_ppm,
            limit_ppm,
        } => format!(
            "{} of a CPU asked and {} held: a user may hold {}, more than that root and members of \
             the group andante",
            percent(*asked_ppm),
            percent(*held_ppm),
            percent(*limit_ppm)
        ),
        Limit::UsersQuota {
            held_ppm,
            asked_ppm,
            limit_ppm,
        } => format!(
            "{} of a CPU asked, and {} held by all users: together they may hold {}; root and members of \
             the group andante are not bound by that",
            percent(*asked_ppm),
            percent(*held_ppm),
            percent(*limit_ppm)
        ),
        Limit::SessionQuota {
            held_ppm,
            asked_ppm,
            limit_ppm,
            ..
        } => format!(
            "{} of a CPU asked and {} held: the sessions of a user may hold {}",
            percent(*asked_ppm),
            percent(*held_ppm),
            percent(*limit_ppm)
        ),
        Limit::Parent {
            name,
            limit_ppm,
            held_ppm,
            asked_ppm,
        } => format!(
            "{} asked, nested in the contract {} of {}, of which {} is held already",
            percent(*asked_ppm),
            shown(name),
            percent(*limit_ppm),
            percent(*held_ppm)
        ),
        Limit::Children {
            names,
            held_ppm,
            asked_ppm,
        } => format!(
            "{} asked, but {} hold {} below this class",
            percent(*asked_ppm),
            shown(&names.join(", ")),
            percent(*held_ppm)
        ),
    }
}
