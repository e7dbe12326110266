// SPDX-License-Identifier: GPL-2.0
//! Contracts from a TOML file, for people: every mistake is answered with its line, key and mend.
//!
//! ```toml
//! cpus = 4
//! left_for_others = 0.2       # of every CPU; the default
//! heuristic = "first-fit"     # the default; "best-fit", "worst-fit"
//! order = "given"             # the default; "decreasing" utilisation
//! split = "windows"           # the default: EDF-WM; "fair-windows", "zero-laxity", "none"
//! least_piece = "50us"        # the default: pieces of less are not worth a migration
//! unproved = "warn"           # the default; "refuse" what DWCS's condition does not promise
//!
//! [[contract]]
//! name = "film"
//! budget = "9ms"              # CPU time in every period
//! period = "33ms"
//! deadline = "20ms"           # after the period's begin; without it the period's end
//! tolerate = "1/5"            # at most 1 of 5 periods may be lost; without it none
//! cpu = 2                     # only there; without it anywhere
//! ```

mod section;

use std::fmt;

use section::Section;

use crate::contract::{Contract, ContractError, MAX_CONTRACTS, MAX_CPUS, Tolerance};
use crate::duration::{self, Duration, Unreadable};
use crate::policy::{DEFAULT_LEAST_PIECE_NS, Excess, Fit, Order, Policy, Splitting};
use crate::system::Machine;

/// What a file that does not say leaves to everybody else [1/1000].
pub const DEFAULT_LEFT_FOR_OTHERS_PER_MILLE: u32 = 200;

/// What a file asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The machine.
    pub machine: Machine,
    /// How places are sought.
    pub policy: Policy,
    /// The contracts, in the order of the file; each makes sense by itself, names are unique.
    pub contracts: Vec<Contract>,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// File as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Dotted path of the key, e.g. `contract.film.budget`; empty for errors of syntax.
    pub key: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for FileError {}

/// Reads the text of `file`.
///
/// # Errors
/// The first thing wrong, be it syntax, an unknown key or a contract that makes no sense.
pub fn parse(file: &str, text: &str) -> Result<Request, FileError> {
    let document = section::document(file, text)?;
    let mut top = Section::top(file, text, document.get_ref());
    let cpus: u32 = top.need("cpus", "a whole number of CPUs", |value| value.integer())?;
    if !(1..=MAX_CPUS).contains(&cpus) {
        return Err(top.error(
            "cpus",
            format!("{cpus} is out of range: give 1 to {MAX_CPUS}"),
        ));
    }
    let machine = Machine {
        cpus,
        left_for_others_per_mille: left_for_others(&mut top)?,
    };
    let policy = policy(&mut top)?;
    let sections = top.tables("contract")?;
    top.finish()?;
    if sections.is_empty() {
        let message = "no contract is asked: write [[contract]] with name, budget and period";
        return Err(top.error("", message));
    }
    let mut contracts: Vec<Contract> = Vec::new();
    for mut section in sections {
        let contract = contract(&mut section, cpus)?;
        if contracts.iter().any(|known| known.name == contract.name) {
            return Err(section.error("name", "another contract has this name already"));
        }
        if contracts.len() == MAX_CONTRACTS {
            let message = format!("more than {MAX_CONTRACTS} contracts");
            return Err(section.error("", message));
        }
        contracts.push(contract);
    }
    Ok(Request {
        machine,
        policy,
        contracts,
    })
}

fn left_for_others(top: &mut Section<'_>) -> Result<u32, FileError> {
    const KEY: &str = "left_for_others";
    let expected = "a part of every CPU from 0 to 0.999";
    let Some(text) = top.get(KEY, expected, |value| value.number())? else {
        return Ok(DEFAULT_LEFT_FOR_OTHERS_PER_MILLE);
    };
    match duration::decimal(&text, 1000) {
        Ok(per_mille @ 0..1000) => Ok(per_mille as u32),
        Err(Unreadable::TooFine) => {
            let message = format!("{text} is too fine: give whole thousandths");
            Err(top.error(KEY, message))
        }
        _ => Err(top.error(KEY, format!("{text} is out of range: give {expected}"))),
    }
}

fn policy(top: &mut Section<'_>) -> Result<Policy, FileError> {
    let fits = [
        ("first-fit", Fit::First),
        ("best-fit", Fit::Best),
        ("worst-fit", Fit::Worst),
    ];
    let orders = [("given", Order::Given), ("decreasing", Order::Decreasing)];
    let splittings = [
        ("windows", Splitting::EqualWindows(Excess::Last)),
        ("fair-windows", Splitting::EqualWindows(Excess::Fair)),
        ("zero-laxity", Splitting::ZeroLaxity),
        ("none", Splitting::None),
    ];
    Ok(Policy {
        fit: top.one_of("heuristic", &fits)?,
        order: top.one_of("order", &orders)?,
        splitting: top.one_of("split", &splittings)?,
        least_piece_ns: least_piece_ns(top)?,
        only_proved: top.one_of("unproved", &[("warn", false), ("refuse", true)])?,
    })
}

fn least_piece_ns(top: &mut Section<'_>) -> Result<u64, FileError> {
    const KEY: &str = "least_piece";
    let Some(text) = top.get(KEY, duration::EXPECTED, |value| value.text())? else {
        return Ok(DEFAULT_LEAST_PIECE_NS);
    };
    // Nothing at all is no piece.
    Ok(time_ns(top, KEY, &text)?.max(1))
}

fn contract(section: &mut Section<'_>, cpus: u32) -> Result<Contract, FileError> {
    let name = section.need("name", "a string", |value| value.text())?;
    section.call(&name);
    let budget = section.need("budget", duration::EXPECTED, |value| value.text())?;
    let period = section.need("period", duration::EXPECTED, |value| value.text())?;
    let deadline = section.get("deadline", duration::EXPECTED, |value| value.text())?;
    let tolerate = section.get("tolerate", Tolerance::EXPECTED, |value| value.text())?;
    let cpu = section.get("cpu", "the number of a CPU, from 0", |value| {
        value.integer()
    })?;
    section.finish()?;

    let mut contract = Contract::new(
        name,
        time_ns(section, "budget", &budget)?,
        time_ns(section, "period", &period)?,
    );
    contract.cpu = cpu;
    if let Some(deadline) = deadline {
        contract.deadline_ns = time_ns(section, "deadline", &deadline)?;
    }
    if let Some(tolerate) = tolerate {
        let tolerance: Result<Tolerance, _> = tolerate.parse();
        contract.tolerance =
            tolerance.map_err(|error| section.error("tolerate", error.to_string()))?;
    }
    match contract.check(cpus) {
        Ok(()) => Ok(contract),
        Err(error) => Err(section.error(key_of(&error), error.to_string())),
    }
}

fn time_ns(section: &Section<'_>, key: &'static str, text: &str) -> Result<u64, FileError> {
    let time: Result<Duration, _> = text.parse();
    time.map(|time| time.0)
        .map_err(|error| section.error(key, error.to_string()))
}

/// The key to blame.
fn key_of(error: &ContractError) -> &'static str {
    match error {
        ContractError::NoName => "name",
        ContractError::NoBudget => "budget",
        ContractError::BudgetAfterDeadline { .. } => "budget",
        ContractError::NoPeriod | ContractError::PeriodTooLong => "period",
        // Without a deadline of its own it is the period's, and never after it.
        ContractError::DeadlineAfterPeriod { .. } => "deadline",
        ContractError::MoreLossesThanPeriods(_) | ContractError::WindowTooLong(_) => "tolerate",
        ContractError::NoSuchCpu { .. } => "cpu",
    }
}

#[cfg(test)]
mod tests;
