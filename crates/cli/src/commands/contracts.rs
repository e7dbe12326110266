// SPDX-License-Identifier: GPL-2.0
//! What the commands about contracts share: terms on the command line, asking the daemon, and its
//! answers in words.

mod render;
mod table;

use andante_admission::{Duration, Tolerance};
use andante_daemon::{Client, Reply, Request, Terms, socket_path};
use andante_terminal::exit::{Refusal, Status};
use anyhow::Result;
use clap::Args;

pub use render::{refused, reserved, warnings};
#[cfg(test)]
pub use table::tests;
pub use table::{
    LearntRow, Line, Row, between, learnt_between, lines, network_alone, network_lines, plain,
    plain_titles, table,
};

/// What a contract may be asked to promise, beside its budget and period.
#[derive(Args, Clone, Debug)]
pub struct Extras {
    /// When the budget is to be had, after the period's begin; without it by the period's end.
    #[arg(long, value_name = "TIME")]
    deadline: Option<Duration>,
    /// Of every Y periods X may be lost: 1/5.
    #[arg(long, value_name = "X/Y", conflicts_with_all = ["deadline", "flexible"])]
    tolerate: Option<Tolerance>,
    /// Also use what other contracts leave of their budgets.
    #[arg(long)]
    flexible: bool,
    /// Beyond the budget go on before everybody without a contract, as far as they keep their part.
    #[arg(long)]
    soft: bool,
    /// What to call the contract; without it it is named after its holder.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// `9ms/33ms`: so much CPU time in every period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    budget_ns: u64,
    period_ns: u64,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((budget, period)) = text.split_once('/') else {
            return Err("give CPU time and period, e.g. 9ms/33ms".into());
        };
        let time = |text: &str| text.parse().map(|Duration(ns)| ns);
        let read = |text| time(text).map_err(|error| error.to_string());
        Ok(Self {
            budget_ns: read(budget)?,
            period_ns: read(period)?,
        })
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}ns/{}ns", self.budget_ns, self.period_ns)
    }
}

impl Extras {
    /// The same, as options have them.
    pub fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        option(
            "--deadline",
            self.deadline.map(|Duration(ns)| format!("{ns}ns")),
        );
        option(
            "--tolerate",
            self.tolerate.map(|tolerate| tolerate.to_string()),
        );
        option("--name", self.name.clone());
        let flags = [(self.flexible, "--flexible"), (self.soft, "--soft")];
        words.extend(
            flags
                .into_iter()
                .filter(|(given, _)| *given)
                .map(|(_, name)| name.to_owned()),
        );
        words
    }

    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        self.deadline.is_some()
            || self.tolerate.is_some()
            || self.flexible
            || self.soft
            || self.name.is_some()
    }

    /// The terms as a whole.
    ///
    /// # Errors
    /// They make no sense; nobody need be asked.
    pub fn terms(&self, rate: Rate) -> Result<Terms> {
        let terms = Terms {
            deadline_ns: self.deadline.map(|deadline| deadline.0),
            tolerance: self.tolerate.unwrap_or(Tolerance::NONE),
            flexible: self.flexible,
            soft: self.soft,
            ..Terms::new(rate.budget_ns, rate.period_ns)
        };
        terms
            .check()
            .map_err(|error| Refusal::new(Status::BadContracts, error.to_string()))?;
        Ok(terms)
    }
}

/// Asks the daemon one thing.
///
/// # Errors
/// [`ClientError`](andante_daemon::ClientError), whose kinds have exit statuses of their own.
pub fn ask(request: &Request) -> Result<Reply> {
    Ok(Client::connect(&socket_path())?.request(request)?)
}

/// The contracts there are; none if nobody can be asked, which is no error to those who show more.
pub fn list() -> Option<andante_daemon::List> {
    match ask(&Request::List {}) {
        Ok(Reply::Contracts(list)) => Some(*list),
        _ => None,
    }
}

#[cfg(test)]
mod rates {
    use super::*;

    #[test]
    fn rates_are_read_with_their_units() {
        let rate: Rate = "9ms/33.3ms".parse().unwrap();
        assert_eq!((rate.budget_ns, rate.period_ns), (9_000_000, 33_300_000));
        assert_eq!(rate.to_string().parse(), Ok(rate));
        let error = |text: &str| text.parse::<Rate>().unwrap_err();
        assert!(error("9ms").contains("9ms/33ms"));
        assert!(error("9/33ms").contains("`9` is not understood"));
    }
}
