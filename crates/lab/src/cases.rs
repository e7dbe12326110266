//! What tells the cases of one scenario apart.
//!
//! A scenario may be run as several cases: the same film beside 1, 2, 3 … Dhrystones, the same two
//! classes at weights 1:1, 1:2, 1:4. The results carry no "parameter" of their own; it is read off
//! them, as a reader would: the one number that differs between the cases. Where more than one
//! differs, the cases go by their names.

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{ProgramResult, RunResult};

/// How the parameter that counts programs is named.
const NUMBER_OF: &str = "number of ";

/// One case on the axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    /// Place on the axis: the parameter's value, or the case's number if it has none.
    pub x: f64,
    /// What to write at that place.
    pub label: String,
}

/// The cases of a scenario and the parameter that sets them apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cases {
    /// The parameter, e.g. `number of dhrystone`.
    pub parameter: String,
    /// Whether the parameter is a number; if not, places on the axis only count.
    pub numeric: bool,
    /// In the order of the results.
    pub cases: Vec<Case>,
}

impl Cases {
    /// Finds what sets `results` apart.
    pub fn of(results: &[RunResult]) -> Self {
        numeric(results).unwrap_or_else(|| named(results))
    }

    /// The case as a heading, e.g. `number of dhrystone: 3`, or its name.
    pub fn title(&self, index: usize) -> String {
        let label = &self.cases[index].label;
        if self.numeric {
            format!("{}: {label}", self.parameter)
        } else {
            label.clone()
        }
    }
}

/// The scheduler names of all `results`, in the order they first appear.
pub(crate) fn scheduler_names(results: &[RunResult]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for scheduler in results.iter().flat_map(|r| &r.schedulers) {
        if !names.contains(&scheduler.name) {
            names.push(scheduler.name.clone());
        }
    }
    names
}

/// The scenario's name for a program, without the number of the instance: `loop` of `loop.3`.
pub(crate) fn base_name(program: &ProgramResult) -> &str {
    match program.name.rsplit_once('.') {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => &program.name,
    }
}

/// Cases that differ in one number alone, and in every case: a parameter in the strict sense.
fn numeric(results: &[RunResult]) -> Option<Cases> {
    let readings: Vec<_> = results.iter().map(readings).collect();
    // A program that a case lacks counts as none; a weight or depth it lacks is no number.
    let everywhere = |name: &&String| readings.iter().all(|r| r.contains_key(*name));
    let names = readings.iter().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = names
        .filter(|name| name.starts_with(NUMBER_OF) || everywhere(name))
        .collect();
    let values = |name: &String| -> Vec<f64> {
        readings
            .iter()
            .map(|r| r.get(name).copied().unwrap_or(0.0))
            .collect()
    };
    let mut varying = names
        .into_iter()
        .map(|name| (name, values(name)))
        .filter(|(_, v)| v.iter().any(|x| *x != v[0]));
    let (name, values) = varying.next()?;
    // Two numbers that go together (two programs moved to one depth) are one parameter.
    if varying.any(|(_, others)| others != values) || !distinct(values.iter().map(|x| x.to_bits()))
    {
        return None;
    }
    let case = |&x: &f64| Case {
        x,
        label: x.to_string(),
    };
    let cases = values.iter().map(case).collect();
    Some(Cases {
        parameter: name.clone(),
        numeric: true,
        cases,
    })
}

/// Every number of a result that a scenario may vary.
fn readings(result: &RunResult) -> BTreeMap<String, f64> {
    let mut readings = BTreeMap::from([("CPUs".to_owned(), f64::from(result.cpus))]);
    let Some(scheduler) = result.schedulers.first() else {
        return readings;
    };
    for program in &scheduler.programs {
        let name = base_name(program);
        let depth = program
            .class
            .split('/')
            .filter(|step| !step.is_empty())
            .count();
        *readings.entry(format!("{NUMBER_OF}{name}")).or_default() += 1.0;
        readings.insert(format!("depth of {name}"), depth as f64);
    }
    for class in &scheduler.classes {
        readings.insert(format!("weight of {}", class.path), f64::from(class.weight));
    }
    readings
}

/// Cases without a parameter: by their own name, else by title, else by number.
fn named(results: &[RunResult]) -> Cases {
    let by_name =
        distinct(results.iter().map(|r| &r.case)) && results.iter().all(|r| r.case.is_some());
    let by_title = distinct(results.iter().map(|r| &r.title));
    let case = |(i, result): (usize, &RunResult)| {
        let label = match &result.case {
            Some(name) if by_name => name.clone(),
            _ if by_title => result.title.clone(),
            _ => format!("case {}", i + 1),
        };
        Case {
            x: i as f64 + 1.0,
            label,
        }
    };
    let cases = results.iter().enumerate().map(case).collect();
    Cases {
        parameter: "case".into(),
        numeric: false,
        cases,
    }
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> bool {
    let mut seen = BTreeSet::new();
    items.into_iter().all(|item| seen.insert(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{ClassResult, SchedulerResult};

    fn case(title: &str, programs: &[&str], weights: &[u32]) -> RunResult {
        let program = |name: &&str| ProgramResult {
            name: (*name).into(),
            ..Default::default()
        };
        let class = |(i, &weight): (usize, &u32)| ClassResult {
            path: format!("/c{i}"),
            weight,
            ..Default::default()
        };
        RunResult {
            schema: crate::result::SCHEMA.into(),
            version: crate::result::VERSION,
            scenario: "s".into(),
            case: None,
            expectations: Vec::new(),
            title: title.into(),
            on: "vm".into(),
            kernel: "7.2.13".into(),
            cpus: 1,
            memory_mib: 512,
            duration_s: 1.0,
            schedulers: vec![SchedulerResult {
                programs: programs.iter().map(program).collect(),
                classes: weights.iter().enumerate().map(class).collect(),
                ..Default::default()
            }],
        }
    }

    #[test]
    fn a_sweep_is_known_by_the_number_of_programs() {
        let cases = Cases::of(&[
            case("t", &["film", "d.1"], &[]),
            case("t", &["film", "d.1", "d.2"], &[]),
        ]);
        assert_eq!(cases.parameter, "number of d");
        assert_eq!(
            cases.cases[1],
            Case {
                x: 2.0,
                label: "2".into()
            }
        );
        assert_eq!(cases.title(0), "number of d: 1");
    }

    #[test]
    fn or_by_a_weight_or_by_its_titles_or_by_number() {
        let weights = Cases::of(&[case("t", &[], &[100, 100]), case("t", &[], &[100, 200])]);
        assert_eq!(weights.parameter, "weight of /c1");
        let titles = Cases::of(&[case("with make", &[], &[]), case("with loops", &[], &[])]);
        assert_eq!(titles.cases[1].label, "with loops");
        let nothing = Cases::of(&[case("t", &[], &[]), case("t", &[], &[])]);
        assert_eq!(nothing.title(1), "case 2");
        assert!(Cases::of(&[]).cases.is_empty());
    }

    #[test]
    fn cases_that_differ_in_kind_go_by_their_names() {
        let mut make = case("t", &["film", "make"], &[]);
        let mut loops = case("t", &["film", "loop.1", "loop.2"], &[]);
        (make.case, loops.case) = (Some("make".into()), Some("loops".into()));
        let cases = Cases::of(&[make, loops]);
        assert!(!cases.numeric);
        assert_eq!(cases.title(1), "loops");
    }

    #[test]
    fn only_a_trailing_number_is_an_instance() {
        let named = |name: &str| ProgramResult {
            name: name.into(),
            ..Default::default()
        };
        assert_eq!(base_name(&named("loop.12")), "loop");
        assert_eq!(base_name(&named("film.h264")), "film.h264");
    }
}
