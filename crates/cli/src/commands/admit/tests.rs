// SPDX-License-Identifier: GPL-2.0

use super::*;

/// The answers to a file as plain text.
fn text(toml: &str) -> String {
    let report = answer(file::parse("my.toml", toml).unwrap()).unwrap();
    let coloured = render::render(&report);
    anstream::adapter::strip_str(&coloured).to_string()
}

#[test]
fn the_example_of_the_help_is_admitted() {
    let text = text(EXAMPLE);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "2 CPUs (20 % of each left for others)");
    assert!(lines[2].starts_with("✓ film "), "{text}");
    assert!(
        lines[3].contains("2 ms every 10 ms, within 5 ms, on CPU 0"),
        "{text}"
    );
    assert!(text.ends_with("all 3 admitted\n"), "{text}");
}

#[test]
fn a_split_says_where_and_when_each_piece_runs() {
    let contract =
        |name| format!("[[contract]]\nname = \"{name}\"\nbudget = \"6ms\"\nperiod = \"10ms\"\n");
    let file = ["a", "b", "c", "d"].map(contract).join("\n");
    let text = text(&format!("cpus = 2\nleft_for_others = 0\n{file}"));
    assert!(
        text.contains("split: CPU 0 4 ms (0 to 5 ms), then CPU 1 2 ms (5 ms to 10 ms)"),
        "{text}"
    );
    assert!(text.contains("✗ d  6 ms every 10 ms  no"), "{text}");
    assert!(
        text.contains("CPU 1: 140 % asked of 100 %: within 10 ms"),
        "{text}"
    );
    assert!(text.contains("held by b 60 %, c 20 %"), "{text}");
    assert!(
        text.contains("→ would be admitted: 2 ms every 10 ms  CPU 1"),
        "{text}"
    );
    assert!(
        text.contains("→ would be admitted: 6 ms every 30 ms  CPU 1"),
        "{text}"
    );
    assert!(text.ends_with("1 of 4 refused\n"), "{text}");
}

#[test]
fn what_is_not_promised_is_said() {
    let contract = |name, budget, period| {
        format!(
            "[[contract]]\nname = \"{name}\"\nbudget = \"{budget}ms\"\nperiod = \"{period}ms\"\n\
             tolerate = \"1/2\"\n"
        )
    };
    let file =
        |contracts: &[String]| format!("cpus = 1\nleft_for_others = 0\n{}", contracts.join("\n"));
    let equal = ["a", "b", "c"].map(|name| contract(name, 5, 10));
    let text_of_equal = text(&file(&equal));
    let promised = text_of_equal
        .matches("loses at most 1 of 2 periods")
        .count();
    assert_eq!(promised, 3, "{text_of_equal}");
    let unequal = [contract("a", 8, 10), contract("b", 5, 7)];
    let text_of_unequal = text(&file(&unequal));
    let warned = text_of_unequal
        .matches("nothing is promised: periods differ")
        .count();
    assert_eq!(warned, 2, "{text_of_unequal}");
}

#[test]
fn cpus_with_the_same_reason_are_named_together() {
    let text = text(
        "cpus = 12\n[[contract]]\nname = \"a\"\nbudget = \"9ms\"\nperiod = \"33ms\"\n\
         deadline = \"10ms\"\n",
    );
    assert!(
        text.contains("CPUs 0, 1, 2, 3, 4, 5, 6, 7 and 4 more: too much at once: within 10 ms"),
        "{text}"
    );
    assert_eq!(text.matches("held by nobody").count(), 1, "{text}");
}
