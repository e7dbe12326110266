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

use andante_document::{DocumentError, FromNode, Node, Section, Value};

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

/// A value as its text, with what it should have been if it is something else.
macro_rules! text {
    ($name:ident, $expected:expr, $read:expr) => {
        struct $name(String);

        impl FromNode for $name {
            const EXPECTED: &'static str = $expected;
            fn from_node(node: &Node) -> Option<Self> {
                let read: fn(&Value) -> Option<String> = $read;
                read(&node.value).map(Self)
            }
        }
    };
}

text!(Time, duration::EXPECTED, string);
text!(Losses, Tolerance::EXPECTED, string);
// A decimal as it was written: the shortest that is the same number.
text!(
    Part,
    "a part of every CPU from 0 to 0.999",
    |value| match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
);

fn string(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// How many CPUs.
struct CpuCount(u32);

impl FromNode for CpuCount {
    const EXPECTED: &'static str = "a whole number of CPUs";
    fn from_node(node: &Node) -> Option<Self> {
        u32::from_node(node).map(Self)
    }
}

/// Which CPU.
struct CpuNumber(u32);

impl FromNode for CpuNumber {
    const EXPECTED: &'static str = "the number of a CPU, from 0";
    fn from_node(node: &Node) -> Option<Self> {
        u32::from_node(node).map(Self)
    }
}

/// Reads the text of `file`.
///
/// # Errors
/// The first thing wrong, be it syntax, an unknown key or a contract that makes no sense.
pub fn parse(file: &str, text: &str) -> Result<Request, DocumentError> {
    let document = Node::parse(file, text)?;
    let mut top = Section::new(&document, "")?;
    let CpuCount(cpus) = top.need("cpus")?;
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

fn left_for_others(top: &mut Section<'_>) -> Result<u32, DocumentError> {
    const KEY: &str = "left_for_others";
    let Some(Part(text)) = top.get(KEY)? else {
        return Ok(DEFAULT_LEFT_FOR_OTHERS_PER_MILLE);
    };
    match duration::decimal(&text, 1000) {
        Ok(per_mille @ 0..1000) => Ok(per_mille as u32),
        Err(Unreadable::TooFine) => {
            let message = format!("{text} is too fine: give whole thousandths");
            Err(top.error(KEY, message))
        }
        _ => {
            let message = format!("{text} is out of range: give {}", Part::EXPECTED);
            Err(top.error(KEY, message))
        }
    }
}

fn policy(top: &mut Section<'_>) -> Result<Policy, DocumentError> {
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

fn least_piece_ns(top: &mut Section<'_>) -> Result<u64, DocumentError> {
    const KEY: &str = "least_piece";
    let Some(Time(text)) = top.get(KEY)? else {
        return Ok(DEFAULT_LEAST_PIECE_NS);
    };
    // Nothing at all is no piece.
    Ok(time_ns(top, KEY, &text)?.max(1))
}

fn contract(section: &mut Section<'_>, cpus: u32) -> Result<Contract, DocumentError> {
    let name: String = section.need("name")?;
    section.call(&name);
    let Time(budget) = section.need("budget")?;
    let Time(period) = section.need("period")?;
    let deadline: Option<Time> = section.get("deadline")?;
    let tolerate: Option<Losses> = section.get("tolerate")?;
    let cpu: Option<CpuNumber> = section.get("cpu")?;
    section.finish()?;

    let mut contract = Contract::new(
        name,
        time_ns(section, "budget", &budget)?,
        time_ns(section, "period", &period)?,
    );
    contract.cpu = cpu.map(|cpu| cpu.0);
    if let Some(Time(deadline)) = deadline {
        contract.deadline_ns = time_ns(section, "deadline", &deadline)?;
    }
    if let Some(Losses(tolerate)) = tolerate {
        let tolerance: Result<Tolerance, _> = tolerate.parse();
        contract.tolerance =
            tolerance.map_err(|error| section.error("tolerate", error.to_string()))?;
    }
    match contract.check(cpus) {
        Ok(()) => Ok(contract),
        Err(error) => Err(section.error(key_of(&error), error.to_string())),
    }
}

fn time_ns(section: &Section<'_>, key: &'static str, text: &str) -> Result<u64, DocumentError> {
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
