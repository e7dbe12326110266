// SPDX-License-Identifier: GPL-2.0

use super::*;

const GOOD: &str = "\
cpus = 4

[[contract]]
name = \"film\"
budget = \"9ms\"
period = \"33ms\"
deadline = \"20ms\"
tolerate = \"1/5\"
cpu = 2

[[contract]]
name = \"a mixer\"
budget = \"1.5 ms\"
period = \"10ms\"
";

/// The error of [`GOOD`] with `from` replaced.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    match parse("my.toml", &text) {
        Err(error) => error.to_string(),
        Ok(request) => panic!("{request:?}"),
    }
}

#[test]
fn a_file_is_read_with_its_defaults() {
    let request = parse("my.toml", GOOD).unwrap();
    let left_for_others_per_mille = 200;
    let cpus = 4;
    assert_eq!(
        request.machine,
        Machine {
            cpus,
            left_for_others_per_mille
        }
    );
    assert_eq!(request.policy, Policy::default());
    let film = Contract::new("film", 9_000_000, 33_000_000)
        .with_deadline_ns(20_000_000)
        .with_tolerance(1, 5)
        .with_cpu(2);
    let mixer = Contract::new("a mixer", 1_500_000, 10_000_000);
    assert_eq!(request.contracts, [film, mixer]);
}

#[test]
fn every_choice_is_understood() {
    let text = "left_for_others = 0.125\nheuristic = \"worst-fit\"\norder = \"decreasing\"\n\
                split = \"fair-windows\"\nunproved = \"refuse\"\nleast_piece = \"1ms\"\n";
    let request = parse("my.toml", &format!("{text}{GOOD}")).unwrap();
    assert_eq!(request.machine.left_for_others_per_mille, 125);
    let splitting = Splitting::EqualWindows(Excess::Fair);
    let (fit, order, only_proved) = (Fit::Worst, Order::Decreasing, true);
    assert_eq!(
        request.policy,
        Policy {
            fit,
            order,
            splitting,
            least_piece_ns: 1_000_000,
            only_proved
        }
    );
    for (text, per_mille) in [("0", 0), ("0.0", 0), ("0.999", 999)] {
        let text = format!("left_for_others = {text}\n{GOOD}");
        let machine = parse("my.toml", &text).unwrap().machine;
        assert_eq!(machine.left_for_others_per_mille, per_mille);
    }
}

/// What is replaced in [`GOOD`], by what, and how the answer begins.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "cpus = 4",
        "cpus = 0",
        "my.toml:1: cpus: 0 is out of range: give 1 to 1024",
    ),
    (
        "cpus = 4",
        "cpus = \"4\"",
        "my.toml:1: cpus: expected a whole number of CPUs",
    ),
    ("cpus = 4", "", "my.toml:1: `cpus` is missing"),
    (
        "cpus = 4",
        "cpu = 4",
        "my.toml:1: cpu: unknown key, did you mean `cpus`?",
    ),
    (
        "cpus = 4",
        "cpus = 4\nlef_for_others = 0.1",
        "my.toml:2: lef_for_others: unknown key, did you mean `left_for_others`?",
    ),
    (
        "cpus = 4",
        "cpus = 4\nleft_for_others = 1",
        "my.toml:2: left_for_others: 1 is out of range",
    ),
    (
        "cpus = 4",
        "cpus = 4\nleft_for_others = -0.1",
        "my.toml:2: left_for_others: -0.1 is out of range",
    ),
    (
        "cpus = 4",
        "cpus = 4\nleft_for_others = 0.2001",
        "my.toml:2: left_for_others: 0.2001 is too fine",
    ),
    (
        "cpus = 4",
        "cpus = 4\nheuristic = \"next-fit\"",
        "my.toml:2: heuristic: `next-fit` is not known: give one of \"first-fit\"",
    ),
    (
        "cpus = 4",
        "cpus = 4\ncontracts = 1",
        "my.toml:2: contracts: unknown key, did you mean `contract`?",
    ),
    ("cpus = 4", "cpus = = 4", "my.toml:1: "),
    (
        "budget = \"9ms\"",
        "budget = \"9\"",
        "my.toml:5: contract.film.budget: `9` is not understood: give a time with its unit",
    ),
    (
        "budget = \"9ms\"",
        "budget = 9",
        "my.toml:5: contract.film.budget: expected a time with its unit",
    ),
    (
        "budget = \"9ms\"",
        "budget = \"0ms\"",
        "my.toml:5: contract.film.budget: a budget of nothing",
    ),
    (
        "budget = \"9ms\"",
        "budget = \"0.1ns\"",
        "my.toml:5: contract.film.budget: `0.1ns` is too fine",
    ),
    (
        "budget = \"9ms\"",
        "budget = \"21ms\"",
        "my.toml:5: contract.film.budget: the budget does not fit before the deadline",
    ),
    (
        "budget = \"9ms\"",
        "budgt = \"9ms\"",
        "my.toml:5: contract.film.budgt: unknown key, did you mean `budget`?",
    ),
    (
        "budget = \"9ms\"\n",
        "",
        "my.toml:3: contract.film: `budget` is missing: give a time",
    ),
    (
        "period = \"33ms\"",
        "period = \"2h\"",
        "my.toml:6: contract.film.period: `2h` is not understood",
    ),
    (
        "period = \"33ms\"",
        "period = \"9999s\"",
        "my.toml:6: contract.film.period: the period is too long",
    ),
    (
        "period = \"33ms\"",
        "period = \"99999999999999s\"",
        "my.toml:6: contract.film.period: `99999999999999s` is too long",
    ),
    (
        "deadline = \"20ms\"",
        "deadline = \"34ms\"",
        "my.toml:7: contract.film.deadline: the deadline (34 ms) lies after the end of the period (33 ms)",
    ),
    (
        "tolerate = \"1/5\"",
        "tolerate = \"6/5\"",
        "my.toml:8: contract.film.tolerate: 6/5 tolerates more losses",
    ),
    (
        "tolerate = \"1/5\"",
        "tolerate = \"one in five\"",
        "my.toml:8: contract.film.tolerate: `one in five` is not understood",
    ),
    (
        "cpu = 2",
        "cpu = 4",
        "my.toml:9: contract.film.cpu: there is no CPU 4",
    ),
    (
        "name = \"a mixer\"",
        "name = \"film\"",
        "my.toml:12: contract.film.name: another contract has this name",
    ),
    (
        "name = \"a mixer\"",
        "",
        "my.toml:11: contract[2]: `name` is missing",
    ),
    (
        "name = \"a mixer\"",
        "name = \"\"",
        "my.toml:12: contract.\"\".name: a contract needs a name",
    ),
    (
        "period = \"10ms\"",
        "period = \"0s\"",
        "my.toml:14: contract.\"a mixer\".period: the period must be longer",
    ),
];

#[test]
fn errors_name_file_line_and_key() {
    for &(from, to, expected) in WRONG {
        let found = error(from, to);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
    let empty = parse("my.toml", "cpus = 1\n").unwrap_err().to_string();
    assert!(empty.contains("write [[contract]]"), "{empty}");
    let wrong = parse("my.toml", "cpus = 1\ncontract = 3\n").unwrap_err();
    assert_eq!((wrong.line, wrong.key.as_str()), (2, "contract"));
}
