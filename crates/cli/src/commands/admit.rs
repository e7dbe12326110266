// SPDX-License-Identifier: GPL-2.0
//! `andante admit`: whether contracts can be promised, where they would run, and what would do
//! instead.

use std::fs;
use std::path::PathBuf;

use andante_admission::file::{self, Request};
use andante_admission::{Answer, Contract, Machine, Policy, Promise, System};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;

pub(super) mod render;

/// A file as it might be; the help shows it.
const EXAMPLE: &str = "\
cpus = 2
left_for_others = 0.2       # of every CPU, for everybody without a contract

[[contract]]
name = \"film\"
budget = \"12ms\"             # CPU time that one frame takes
period = \"33ms\"             # a frame every 33 ms

[[contract]]
name = \"mixer\"
budget = \"2ms\"
period = \"10ms\"
deadline = \"5ms\"            # after the period's begin; without it the period's end
cpu = 0                     # only there; without it anywhere

[[contract]]
name = \"preview\"
budget = \"20ms\"
period = \"40ms\"
tolerate = \"1/5\"            # 1 frame of 5 may be lost
";

/// Say whether contracts can be promised, on which CPUs, and what would do instead.
///
/// A contract is a promise in time: so much CPU time in every period, by a deadline, losing nothing
/// or at most x of y periods. It is made only if it can be kept, and where nothing can be promised
/// the answer says so. This command asks for a file of them; it needs no root, touches nothing, and
/// can plan for another machine.
#[derive(Args)]
#[command(after_long_help = HELP.as_str())]
pub struct Admit {
    /// TOML file with the machine and the contracts.
    file: PathBuf,
    /// Print the answers as JSON, with every test, holder and offer.
    #[arg(long)]
    json: bool,
}

static HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let example: String = EXAMPLE.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "A file:\n\n{example}
Contracts are asked in the order of the file, and those admitted never move. Each goes whole to a \
CPU where every deadline is met (an exact test of demand in every interval); if there is none, it is \
split into pieces that follow one another on several CPUs (EDF-WM). Contracts that tolerate losses \
may share a CPU that could not serve all of them: with equal periods and budgets their windows are \
promised, otherwise they are admitted with a warning.

A refusal names the test that failed, the shortest time within which too much is due, who holds the \
CPU, and the nearest contracts that would be admitted: the largest budget in this period, and the \
shortest period for this budget.

More keys, with their defaults first:
  heuristic = \"first-fit\", \"best-fit\", \"worst-fit\"   which CPU is tried first
  order = \"given\", \"decreasing\"                      which contract, by utilisation
  split = \"windows\", \"fair-windows\", \"zero-laxity\", \"none\"
  unproved = \"warn\", \"refuse\"                        where losses are tolerated, but not promised
  least_piece = \"50us\"                               pieces of less are not worth a migration

The exit status is 0 if all are admitted, 23 if one is refused, 24 if the file is wrong.

Examples:
  andante admit contracts.toml
  andante admit contracts.toml --json | jq '.contracts[].answer.refused.nearest'"
    )
});

/// What was asked and answered, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    machine: Machine,
    policy: Policy,
    contracts: Vec<Answered>,
}

/// One contract and its answer.
#[derive(Serialize)]
struct Answered {
    contract: Contract,
    answer: Answer,
    /// What it may rely on once all are in force; later contracts may have weakened it.
    promise: Option<Promise>,
}

impl Admit {
    /// Asks and tells.
    pub fn run(self) -> Result<Status> {
        let name = self.file.display().to_string();
        let text =
            fs::read_to_string(&self.file).map_err(|error| bad(format!("{name}: {error}")))?;
        let request = file::parse(&name, &text).map_err(|error| bad(error.to_string()))?;
        let report = answer(request)?;
        if self.json {
            output::print_json(&report)?;
        } else {
            output::print(&render::render(&report))?;
        }
        let refused = |answered: &Answered| answered.answer.refusal().is_some();
        Ok(if report.contracts.iter().any(refused) {
            Status::ContractRefused
        } else {
            Status::Ok
        })
    }
}

fn bad(message: String) -> anyhow::Error {
    Refusal::new(Status::BadContracts, message).into()
}

fn answer(request: Request) -> Result<Report> {
    let Request {
        machine,
        policy,
        contracts,
    } = request;
    let mut system = System::new(machine, policy)?;
    let answers = system
        .admit_all(&contracts)
        .map_err(|(at, error)| anyhow!("{}: {error}", contracts[at].name))?;
    let answered = |(contract, answer): (Contract, Answer)| Answered {
        promise: system.promise(&contract.name),
        contract,
        answer,
    };
    let contracts = contracts.into_iter().zip(answers).map(answered).collect();
    Ok(Report {
        machine,
        policy,
        contracts,
    })
}

#[cfg(test)]
mod tests;
