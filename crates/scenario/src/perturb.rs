//! Perturbations: the same scenario on another machine, or another evening.
//!
//! What a scenario leaves open may not decide what comes out. So a perturbation, which seed and number
//! determine, draws it anew:
//! - *when each program starts*, and its beats begin: later by up to a beat of its own, and at least a
//!   tick, so that every phase to the tick and to the others is as likely;
//! - *in which order programs are loaded* (those that hold contracts keep theirs among each other: in
//!   another order there may be no room for the last one);
//! - *where files lie* in the root image and in the RAM disk of a virtual machine.

use crate::{DrawId, Program, Workload};

/// The longest time between two ticks of the kernels that the laboratory finds (`CONFIG_HZ=250`) [s].
const TICK_S: f64 = 0.004;

/// The workload, perturbed.
pub fn perturbed(workload: &Workload, id: DrawId) -> Workload {
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
pub fn layout(id: DrawId) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    const SCENARIO: &str = "
title = 'x'
cpus = 1
duration_s = 2
[programs.x]
class = '/'
kind = 'server'
[programs.film]
class = '/'
kind = 'player'
fps = 25
work_ms = 5
display_ms = 1
server = 'x'
[programs.sound]
class = '/'
kind = 'audio'
frames = 48
load = 0.1
[programs.one]
class = '/'
kind = 'loop'
contract = { budget_ms = 1, period_ms = 100 }
[programs.jobs]
class = '/'
kind = 'batch'
count = 3
[programs.two]
class = '/'
kind = 'loop'
contract = { budget_ms = 1, period_ms = 100 }
";

    fn workload() -> Workload {
        let mut scenario = Scenario::parse("x.toml", SCENARIO, &[]).unwrap();
        scenario.cases.remove(0).workload
    }

    fn id(number: u64) -> DrawId {
        DrawId { seed: 1, number }
    }

    #[test]
    fn a_perturbation_is_the_same_again_and_another_for_another_number() {
        let all: Vec<Workload> = (0..20)
            .map(|number| perturbed(&workload(), id(number)))
            .collect();
        assert_eq!(all[3], perturbed(&workload(), id(3)));
        let mut film_s = Vec::new();
        for workload in &all {
            let named = |name: &str| {
                let mut programs = workload.programs.iter();
                programs.find(|program| program.name == name).unwrap()
            };
            // Within a beat of its own; of sound, whose beat is 1 ms, within a tick.
            for (name, beat_s) in [("film", 0.04), ("sound", TICK_S), ("jobs", 0.04)] {
                let program = named(name);
                assert_eq!(program.later_s.len() as u32, program.count);
                assert!(program.later_s.iter().all(|s| (0.0..=beat_s).contains(s)));
            }
            assert_ne!(named("jobs").later_s[0], named("jobs").later_s[1]);
            film_s.push(named("film").later_s(1));
            let holders: Vec<_> = holders(&workload.programs).collect();
            assert_eq!(
                holders,
                ["one", "two"],
                "there may be no room in another order"
            );
        }
        film_s.sort_by(f64::total_cmp);
        assert!(
            film_s[4] < 0.02 && film_s[15] > 0.02,
            "all over the beat: {film_s:?}"
        );
        let first: std::collections::BTreeSet<_> = all
            .iter()
            .map(|workload| workload.programs[0].name.clone())
            .collect();
        assert!(first.len() > 2, "{first:?}");
        assert_ne!(layout(id(0)), layout(id(1)));
    }
}
