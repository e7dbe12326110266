// SPDX-License-Identifier: GPL-2.0
//! The answers as text.

use andante_admission::{
    Contract, Duration, Failure, Holder, Obstacle, Offer, Piece, Placement, Promise, Refusal,
    WindowFailure,
};
use andante_terminal::output::{BAD, BOLD, DIM, GOOD, MEND, paint};
use unicode_width::UnicodeWidthStr;

use super::{Answered, Report};

/// Reasons shown of a refusal, each with the CPUs it holds for; `--json` has all.
const MAX_REASONS_SHOWN: usize = 4;
/// CPUs named with a reason.
const MAX_CPUS_NAMED: usize = 8;
/// Pieces shown of a split.
const MAX_PIECES_SHOWN: usize = 4;
/// Holders shown of a CPU.
const MAX_HOLDERS_SHOWN: usize = 4;

pub(super) fn render(report: &Report) -> String {
    let machine = report.machine;
    let plural = if machine.cpus == 1 { "CPU" } else { "CPUs" };
    let left = percent(u64::from(machine.left_for_others_per_mille) * 1000);
    let mut text = format!(
        "{} {}\n\n",
        paint(BOLD, format!("{} {plural}", machine.cpus)),
        paint(DIM, format!("({left} of each left for others)"))
    );
    let widths = Widths::of(report);
    for answered in &report.contracts {
        text += &contract(answered, &widths);
    }
    let refused = report
        .contracts
        .iter()
        .filter(|c| c.answer.refusal().is_some())
        .count();
    let total = report.contracts.len();
    text += "\n";
    text += &if refused == 0 {
        paint(GOOD, format!("all {total} admitted"))
    } else {
        paint(BAD, format!("{refused} of {total} refused"))
    };
    text + "\n"
}

/// Widths of the first columns.
struct Widths {
    name: usize,
    terms: usize,
}

impl Widths {
    fn of(report: &Report) -> Self {
        let contracts = || report.contracts.iter().map(|answered| &answered.contract);
        Self {
            name: contracts().map(|c| c.name.width()).max().unwrap_or(0),
            terms: contracts().map(|c| terms(c).width()).max().unwrap_or(0),
        }
    }
}

fn contract(answered: &Answered, widths: &Widths) -> String {
    let Answered {
        contract,
        answer,
        promise,
    } = answered;
    let (mark, outcome) = match (answer.admission(), promise) {
        (Some(_), Some(Promise::Nothing(_))) => (paint(MEND, "!"), "yes"),
        (Some(_), _) => (paint(GOOD, "✓"), "yes"),
        (None, _) => (paint(BAD, "✗"), "no"),
    };
    let terms = terms(contract);
    let mut text = format!(
        "{mark} {}{}  {terms}{}  {outcome:<3}",
        paint(BOLD, &contract.name),
        " ".repeat(widths.name - contract.name.width()),
        " ".repeat(widths.terms - terms.width()),
    );
    if let Some(admission) = answer.admission() {
        text += &format!("  {}\n", place(&admission.placement));
        text += &warning(contract, *promise);
    }
    if let Some(refusal) = answer.refusal() {
        text += "\n";
        text += &why_not(refusal);
    }
    text
}

/// `9 ms every 33 ms`, and what else was asked.
pub fn terms(contract: &Contract) -> String {
    let (budget, period) = (Duration(contract.budget_ns), Duration(contract.period_ns));
    let mut text = format!("{budget} every {period}");
    if contract.deadline_ns != contract.period_ns {
        text += &format!(", within {}", Duration(contract.deadline_ns));
    }
    if contract.tolerance.window > 0 {
        text += &format!(", may lose {}", contract.tolerance);
    }
    if let Some(cpu) = contract.cpu {
        text += &format!(", on CPU {cpu}");
    }
    text
}

/// Where it runs.
pub fn place(placement: &Placement) -> String {
    match placement {
        Placement::Whole { cpu } => format!("CPU {cpu}"),
        Placement::Split { pieces } => {
            let piece = |piece: &Piece| {
                let from = Duration(piece.offset_ns);
                let to = Duration(piece.offset_ns + piece.window_ns);
                let from = if piece.offset_ns == 0 {
                    "0".into()
                } else {
                    from.to_string()
                };
                format!(
                    "CPU {} {} ({from} to {to})",
                    piece.cpu,
                    Duration(piece.budget_ns)
                )
            };
            let shown: Vec<_> = pieces.iter().take(MAX_PIECES_SHOWN).map(piece).collect();
            let more = match pieces.len().saturating_sub(MAX_PIECES_SHOWN) {
                0 => String::new(),
                more => format!(", then {more} more pieces"),
            };
            format!("split: {}{more}", shown.join(", then "))
        }
    }
}

/// What an admitted contract cannot rely on, as a line.
fn warning(contract: &Contract, promise: Option<Promise>) -> String {
    let text = unpromised(contract, promise);
    text.map_or_else(String::new, |text| format!("    {}\n", paint(MEND, text)))
}

/// What an admitted contract cannot rely on.
pub fn unpromised(contract: &Contract, promise: Option<Promise>) -> Option<String> {
    match promise {
        Some(Promise::Windows) => Some(format!(
            "loses at most {} of {} periods; the CPU cannot serve all",
            contract.tolerance.losses, contract.tolerance.window
        )),
        Some(Promise::Nothing(unproved)) => Some(format!(
            "nothing is promised: {unproved}, so that more than {} may be lost",
            contract.tolerance
        )),
        _ => None,
    }
}

/// What stands in the way on each CPU, and what would do.
pub fn why_not(refusal: &Refusal) -> String {
    let mut cpus: Vec<&Obstacle> = refusal.cpus.iter().collect();
    // The emptiest first: there the least is missing.
    cpus.sort_by_key(|obstacle| (held_ppm(obstacle), obstacle.cpu));
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for obstacle in cpus {
        let reasons = reasons(obstacle);
        match groups.iter_mut().find(|(known, _)| *known == reasons) {
            Some((_, cpus)) => cpus.push(obstacle.cpu),
            None => groups.push((reasons, vec![obstacle.cpu])),
        }
    }
    let mut text = String::new();
    for (reasons, cpus) in groups.iter().take(MAX_REASONS_SHOWN) {
        text += &format!("    {}: {reasons}", named(cpus));
    }
    let more = groups.iter().skip(MAX_REASONS_SHOWN);
    let more: usize = more.map(|(_, cpus)| cpus.len()).sum();
    if more > 0 {
        text += &format!("    and the same on {more} fuller CPUs (see --json)\n");
    }
    if let Some(split) = refusal.split {
        text += &format!(
            "    split: {} pieces in windows of {} carry {} of {}\n",
            split.pieces,
            Duration(split.window_ns),
            Duration(split.found_ns),
            Duration(split.needed_ns)
        );
    }
    text + &offers(refusal)
}

/// `CPU 1`, or `CPUs 1, 2 and 5 more`.
fn named(cpus: &[u32]) -> String {
    let shown: Vec<_> = cpus
        .iter()
        .take(MAX_CPUS_NAMED)
        .map(u32::to_string)
        .collect();
    let plural = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let more = match cpus.len().saturating_sub(MAX_CPUS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{plural} {}{more}", shown.join(", "))
}

/// Everything in the way on a CPU, in whole lines.
fn reasons(obstacle: &Obstacle) -> String {
    let mut text = format!("{}\n", reason(obstacle));
    if let Some(windows) = &obstacle.windows {
        text += &format!("      losses: {}\n", window_reason(windows));
    }
    text + &format!("      {}\n", paint(DIM, holders(obstacle)))
}

/// What would be admitted instead.
pub fn offers(refusal: &Refusal) -> String {
    let nearest = &refusal.nearest;
    let offers = [&nearest.largest_budget, &nearest.shortest_period];
    let offers: Vec<_> = offers.into_iter().flatten().map(instead).collect();
    if offers.is_empty() {
        return format!("    {}\n", paint(MEND, "nothing near it would be admitted"));
    }
    let line = |offer: &String| format!("    {}\n", paint(MEND, offer));
    offers.iter().map(line).collect()
}

fn instead(offer: &Offer) -> String {
    format!(
        "→ would be admitted: {}  {}",
        terms(&offer.contract),
        place(&offer.admission.placement)
    )
}

fn reason(obstacle: &Obstacle) -> String {
    let mut text = match obstacle.failure {
        Failure::Utilisation {
            asked_ppm,
            supply_ppm,
        } => format!("{} asked of {}", percent(asked_ppm), percent(supply_ppm)),
        Failure::Demand => "too much at once".into(),
        Failure::Undecided => "too close to full to be decided".into(),
    };
    if let Some(overload) = obstacle.overload {
        text += &format!(
            ": within {} there is {} due and {} supplied",
            Duration(overload.at_ns),
            Duration(overload.demand_ns),
            Duration(overload.supply_ns)
        );
    }
    text
}

fn window_reason(failure: &WindowFailure) -> String {
    match failure {
        WindowFailure::Exceeded => "even with all that may be lost it is too much".into(),
        WindowFailure::Unproved(unproved) => format!("nothing could be promised: {unproved}"),
        WindowFailure::Endangers {
            unproved,
            contracts,
        } => format!(
            "nothing could be promised ({unproved}), and {} may lose nothing",
            contracts.join(", ")
        ),
    }
}

fn holders(obstacle: &Obstacle) -> String {
    if obstacle.holders.is_empty() {
        return "held by nobody".into();
    }
    let holder = |holder: &Holder| format!("{} {}", holder.name, percent(holder.share_ppm));
    let shown = obstacle.holders.iter().take(MAX_HOLDERS_SHOWN);
    let shown: Vec<_> = shown.map(holder).collect();
    let more = match obstacle.holders.len().saturating_sub(MAX_HOLDERS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("held by {}{more}", shown.join(", "))
}

fn held_ppm(obstacle: &Obstacle) -> u64 {
    obstacle.holders.iter().map(|holder| holder.share_ppm).sum()
}

/// Parts in a million as a percentage with one decimal, rounded up.
pub fn percent(ppm: u64) -> String {
    let tenths = ppm.div_ceil(1000);
    if tenths.is_multiple_of(10) {
        format!("{} %", tenths / 10)
    } else {
        format!("{}.{} %", tenths / 10, tenths % 10)
    }
}
