// SPDX-License-Identifier: GPL-2.0
//! The historical policies on a real kernel.

use super::{Report, in_vm, number};

const POLICIES: [&str; 5] = ["svr4-ts", "svr4-rt", "svr4-new", "linux-2.2", "rr"];

/// What is reported of a policy under a key.
fn of<'a>(report: &'a Report, key: &str, policy: &str) -> &'a str {
    let values = report.get(key).map_or(&[][..], Vec::as_slice);
    let found = values
        .iter()
        .find_map(|value| value.strip_prefix(policy)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {key} of {policy}: {report:?}"))
}

/// Of 4 s, or of one, in ticks of 10 ms.
fn number_of(report: &Report, key: &str, policy: &str) -> f64 {
    of(report, key, policy).parse().expect("a number")
}

/// Each takes charge, keeps the CPUs busy with one loop more than there are of them, and leaves.
fn each_serves_and_leaves(cpus: u32) -> Report {
    let report = in_vm("historical", cpus);
    for policy in POLICIES {
        let ops = format!("andante_{}", policy.replace('-', "_"));
        assert!(of(&report, "ops", policy).starts_with(&ops), "{report:?}");
        let busy = number_of(&report, "busy", policy);
        assert!(busy >= 98.0, "{policy} {busy}");
    }
    for policy in POLICIES.iter().chain(&["fifo"]) {
        assert_eq!(of(&report, "left_with", policy), "0", "{report:?}");
        assert_eq!(of(&report, "state", policy), "disabled", "{report:?}");
    }
    report
}

#[test]
#[ignore = "needs the virtual machine"]
fn historical_policies_serve_and_leave_on_one_cpu() {
    let report = each_serves_and_leaves(1);
    // 20 ticks of 10 ms in an epoch against 1 [core/policies/linux22.h].
    let share = number_of(&report, "nice_0", "linux-2.2");
    assert!((93.0..=97.0).contains(&share), "{share}");
    // 100 ms each, whatever their nice values.
    let share = number_of(&report, "nice_0", "rr");
    assert!((47.0..=53.0).contains(&share), "{share}");
    // Whom a real-time task wakes does not wait to the end of the quantum of what it interrupted.
    assert!(number(&report, "waited_us") < 100.0, "{report:?}");
    for (case, status, names) in [
        ("status", 8, "svr4-ts"),
        ("top", 8, "svr4-ts"),
        ("reserve", 8, "svr4-ts"),
        ("class", 0, "svr4-ts"),
        ("second", 7, "loaded already"),
        ("unknown", 2, "svr4-ts"),
        ("not_theirs", 2, "--leave"),
    ] {
        let said = &report[case][0];
        let (got, sentence) = said.split_once(' ').expect("status and sentence");
        assert_eq!(got.parse(), Ok(status), "{case}: {sentence}");
        assert!(sentence.contains(names), "{case}: {sentence}");
    }
}

#[test]
#[ignore = "needs the virtual machine"]
fn historical_policies_serve_and_leave_on_three_cpus() {
    each_serves_and_leaves(3);
}
