//! Perturbations: the same scenario on another machine, or another evening.
//!
//! What a scenario leaves open may not decide what comes out. So a perturbation, which seed and number
//! determine, draws it anew:
//! - *when each program starts*, and its beats begin: later by up to a beat of its own, and at least a
//!   tick, so that every phase to the tick and to the others is as likely;
//! - *in which order programs are loaded* (those that hold contracts keep theirs among each other: in
//!   another order there may be no room for the last one);
//! - *where files lie* in the root image and in the RAM disk of a virtual machine.
//!
//! [`run`] judges a scenario over many of them.

mod result;
mod run;
mod table;
#[cfg(test)]
mod tests;

use crate::scenario::{Program, Workload};
use crate::sweep::DrawId;

pub use result::{
    CaseResult, Distribution, Exception, Figures, PerturbedResult, SCHEMA, VERSION, Worst,
};
pub(crate) use run::jobs;
pub use run::{PerturbOptions, run, verdict};
pub use table::text;

/// The longest time between two ticks of the kernels that the laboratory finds (`CONFIG_HZ=250`) [s].
const TICK_S: f64 = 0.004;

/// The workload, perturbed.
pub(crate) fn perturbed(workload: &Workload, id: DrawId) -> Workload {
    let mut workload = workload.clone();
    let running = || workload.programs.iter().filter(|program| program.count > 0);
    let beats = running().filter_map(|program| program.kind.beat_s());
    let longest_s = beats.fold(TICK_S, f64::max);
    for program in &mut workload.programs {
        // What has no beat meets those of the others at any instant of theirs.
        let range_s = program.kind.beat_s().map_or(longest_s, |s| s.max(TICK_S));
        let later_s = |number: u32| {
            let mut random = id.stream(&format!("{}.{number}", program.name));
            random.unit() * range_s
        };
        program.later_s = (1..=program.count).map(later_s).collect();
    }
    workload.programs = shuffled(std::mem::take(&mut workload.programs), id);
    workload
}

/// The seed of the order in which files are written.
pub(crate) fn layout(id: DrawId) -> u64 {
    id.stream("layout").bits()
}

/// The programs in another order, but for those with contracts among each other.
fn shuffled(mut programs: Vec<Program>, id: DrawId) -> Vec<Program> {
    let mut random = id.stream("order");
    let holders: Vec<String> = holders(&programs).map(str::to_owned).collect();
    // Fisher and Yates.
    for last in (1..programs.len()).rev() {
        programs.swap(last, random.below(last as u64 + 1) as usize);
    }
    let places: Vec<usize> = (0..programs.len())
        .filter(|place| programs[*place].contract.is_some())
        .collect();
    for (place, name) in places.into_iter().zip(&holders) {
        let from = programs.iter().position(|program| program.name == *name);
        programs.swap(place, from.expect("it is one of them"));
    }
    programs
}

fn holders(programs: &[Program]) -> impl Iterator<Item = &str> {
    let holders = programs.iter().filter(|program| program.contract.is_some());
    holders.map(|program| program.name.as_str())
}
