//! What tells the cases of one scenario apart.
//!
//! A scenario may be run as several cases: the same film beside 1, 2, 3 … Dhrystones, the same two
//! classes at weights 1:1, 1:2, 1:4. The results carry no "parameter" of their own; it is read off
//! them, as a reader would: the one number that differs between the cases, or two if each value of
//! one meets each of the other. Otherwise the cases go by their names.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ProgramResult, RunResult};

/// How the parameter that counts programs is named.
const NUMBER_OF: &str = "number of ";
/// How a class's weight is named.
const WEIGHT_OF: &str = "weight of ";

/// One case on the axis of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Place on the axis: the parameter's value, or the case's number if it has none.
    pub x: f64,
    /// What to write at that place.
    pub label: String,
    /// The second parameter's value, if there is one.
    pub second: Option<f64>,
}

/// The cases of a scenario and the parameter that sets them apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Cases {
    /// The parameter, e.g. `number of dhrystone`.
    pub parameter: String,
    /// Another that varies independently: each of its values makes a line of its own.
    pub second: Option<String>,
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
        let case = &self.cases[index];
        match (&self.second, case.second) {
            (Some(second), Some(value)) => {
                format!("{}: {}, {second}: {value}", self.parameter, case.label)
            }
            _ if self.numeric => format!("{}: {}", self.parameter, case.label),
            _ => case.label.clone(),
        }
    }

    /// The places of the cases that one line joins, from left to right, for each line.
    pub fn lines(&self) -> Vec<Vec<usize>> {
        let x = |place: &usize| self.cases[*place].x;
        let line = |second: f64| {
            let of_it = |place: &usize| self.cases[*place].second.unwrap_or_default() == second;
            let mut line: Vec<usize> = (0..self.cases.len()).filter(of_it).collect();
            line.sort_by(|a, b| x(a).total_cmp(&x(b)));
            line
        };
        self.second_values().into_iter().map(line).collect()
    }

    /// The values of the second parameter, in their order; 0 if there is none.
    pub fn second_values(&self) -> Vec<f64> {
        levels(
            self.cases
                .iter()
                .map(|case| case.second.unwrap_or_default()),
        )
    }
}

/// The scheduler names of all `results`, in the order they first appear.
pub fn scheduler_names(results: &[RunResult]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for scheduler in results.iter().flat_map(|r| &r.schedulers) {
        if !names.contains(&scheduler.name) {
            names.push(scheduler.name.clone());
        }
    }
    names
}

/// The scenario's name for a program, without the number of the instance: `loop` of `loop.3`.
pub fn base_name(program: &ProgramResult) -> &str {
    match program.name.rsplit_once('.') {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => &program.name,
    }
}

/// Cases that differ in one number, or in two of which each value meets each of the other.
fn numeric(results: &[RunResult]) -> Option<Cases> {
    let mut parameters = parameters(results);
    let count = |(_, values): &Parameter| levels(values.iter().copied()).len();
    // The one with more values makes the better axis.
    parameters.sort_by_key(|parameter| std::cmp::Reverse(count(parameter)));
    let (first, second) = match parameters.as_slice() {
        [first] => (first, None),
        [first, second] => (first, Some(second)),
        _ => return None,
    };
    let expected = count(first) * second.map_or(1, count);
    let case = |(place, &x): (usize, &f64)| Case {
        x,
        label: x.to_string(),
        second: second.map(|(_, values)| values[place]),
    };
    let cases: Vec<Case> = first.1.iter().enumerate().map(case).collect();
    let bits = |case: &Case| (case.x.to_bits(), case.second.map(f64::to_bits));
    if cases.len() != expected || !distinct(cases.iter().map(bits)) {
        return None;
    }
    Some(Cases {
        parameter: first.0.clone(),
        second: second.map(|(name, _)| name.clone()),
        numeric: true,
        cases,
    })
}

/// A number that varies: its name, and its value in each case.
type Parameter = (String, Vec<f64>);

/// The numbers that vary. Those that go together are one: two programs moved to one depth, or weights,
/// of which one is raised as others are lowered; it goes by the one that is raised.
fn parameters(results: &[RunResult]) -> Vec<Parameter> {
    let readings: Vec<_> = results.iter().map(readings).collect();
    // A program that a case lacks counts as none; a weight or depth it lacks is no number.
    let everywhere = |name: &&String| readings.iter().all(|r| r.contains_key(*name));
    let names = readings.iter().flat_map(BTreeMap::keys);
    let names: BTreeSet<&String> = names
        .filter(|name| name.starts_with(NUMBER_OF) || everywhere(name))
        .collect();
    let values = |name: &String| -> Vec<f64> {
        let value = |r: &BTreeMap<String, f64>| r.get(name).copied().unwrap_or(0.0);
        readings.iter().map(value).collect()
    };
    let mut found: Vec<Parameter> = Vec::new();
    for name in names {
        let values = values(name);
        if values.iter().all(|value| *value == values[0]) {
            continue;
        }
        let same = |(other, theirs): &&mut Parameter| {
            let weights = name.starts_with(WEIGHT_OF) && other.starts_with(WEIGHT_OF);
            *theirs == values || weights && pattern(theirs) == pattern(&values)
        };
        match found.iter_mut().find(same) {
            Some(known) if raised(&values) && !raised(&known.1) => *known = (name.clone(), values),
            Some(_) => {}
            None => found.push((name.clone(), values)),
        }
    }
    found
}

fn raised(values: &[f64]) -> bool {
    values.first() < values.last()
}

/// For each value where it is met first: equal for numbers that change at the same places.
fn pattern(values: &[f64]) -> Vec<Option<usize>> {
    let first = |value: &f64| values.iter().position(|other| other == value);
    values.iter().map(first).collect()
}

/// The values that occur, in their order.
fn levels(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut levels: Vec<f64> = values.collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
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
        readings.insert(
            format!("{WEIGHT_OF}{}", class.path),
            f64::from(class.weight),
        );
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
            second: None,
        }
    };
    let cases = results.iter().enumerate().map(case).collect();
    Cases {
        parameter: "case".into(),
        second: None,
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
    use crate::{ClassResult, SchedulerResult};

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
            title: title.into(),
            duration_s: 1.0,
            schedulers: vec![SchedulerResult {
                programs: programs.iter().map(program).collect(),
                classes: weights.iter().enumerate().map(class).collect(),
                ..Default::default()
            }],
            ..Default::default()
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
                label: "2".into(),
                second: None,
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
    fn two_numbers_of_which_each_value_meets_each_make_a_line_for_each_of_one() {
        let shares = [[90, 10], [80, 20], [70, 30]];
        let loops: [&[&str]; 2] = [&["film", "hog.1"], &["film", "hog.1", "hog.2"]];
        let pairs = shares
            .iter()
            .flat_map(|w| loops.map(|programs| (w, programs)));
        let results: Vec<_> = pairs.map(|(w, programs)| case("t", programs, w)).collect();
        let cases = Cases::of(&results);
        assert_eq!(cases.parameter, "weight of /c1");
        assert_eq!(cases.second.as_deref(), Some("number of hog"));
        assert_eq!(cases.lines(), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(cases.title(3), "weight of /c1: 20, number of hog: 2");
        // One left out: they go by their names.
        assert!(!Cases::of(&results[1..]).numeric);
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
