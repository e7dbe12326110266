// SPDX-License-Identifier: GPL-2.0
//! Contracts on a real kernel: what they are worth, what is answered to those who ask, and what is
//! left of them.

use super::{Report, in_charge, number};

/// Each answer has the status it should, and says something of what it should.
fn assert_answers(report: &Report, expected: &[(&str, u8, &str)]) {
    for (case, status, says) in expected {
        let answer = &report[*case][0];
        let (got, sentence) = answer.split_once(' ').unwrap_or((answer, ""));
        assert_eq!(got.parse(), Ok(*status), "{case}: {sentence}");
        assert!(sentence.contains(says), "{case} says {says}: {sentence}");
    }
}

/// Parts of a CPU are within this of what they should be [%].
const TOLERANCE: f64 = 0.5;

/// What `parts` reported [% of a CPU].
fn parts(lines: &[String]) -> Vec<f64> {
    lines.iter().map(|part| part.parse().unwrap()).collect()
}

fn assert_share(report: &Report, key: &str, expected: f64) {
    let got = number(report, key);
    assert!(
        (got - expected).abs() <= TOLERANCE,
        "{key}: {got}: {report:?}"
    );
}

#[test]
#[ignore = "needs the virtual machine"]
fn contracts_hold_beside_endless_loops() {
    let report = in_charge("contracts", &[], 1);
    for key in ["without", "released"] {
        assert_share(&report, key, 100.0 / 9.0);
    }
    for key in ["reserved", "executed", "process", "thread"] {
        assert_share(&report, key, 40.0);
    }
    assert_share(&report, "child", 60.0 / 10.0);
    assert_eq!(number(&report, "threads"), 4.0);
    let class = number(&report, "class_first") + number(&report, "class_second");
    // And of the 60 % that are left, 10 parts of 910 at most, since it owes for what it was promised.
    let beside = 60.0 * 10.0 / 910.0;
    assert!(
        (40.0 - TOLERANCE..=40.0 + beside + TOLERANCE).contains(&class),
        "{report:?}"
    );
    let nested = parts(&report["nested"]);
    assert!(nested[0] >= 20.0 - TOLERANCE, "{report:?}");
    assert!(
        (nested.iter().sum::<f64>() - 40.0).abs() <= TOLERANCE,
        "{report:?}"
    );
    // What contracts may have is 80 %: 30 of that the hard one's, and the rest the soft one's. Of the
    // others' 20 % they get nothing: both have had more than their share.
    let soft = parts(&report["soft"]);
    assert!((soft[0] - 50.0).abs() <= TOLERANCE, "{report:?}");
    assert!((soft[1] - 30.0).abs() <= TOLERANCE, "{report:?}");
    assert_eq!(number(&report, "learnt_alone"), 1.0);
    assert_eq!(number(&report, "learnt_in_class"), 0.0);
    assert_eq!(number(&report, "promised_in_class"), 1.0);
    // 27 times as many as this are more than there can be.
    assert!(number(&report, "ending") >= 38.0, "{report:?}");
    // And that of the thread that has made them, and sleeps.
    assert!(number(&report, "learnt") >= 40.0, "{report:?}");
    assert_eq!(
        report["contracts"],
        ["1", "0", "0", "0", "0", "0", "2", "0"]
    );
    // It wakes every 20 ms or so, and is never late.
    assert!(number(&report, "jobs") >= 40.0, "{report:?}");
    assert_eq!(number(&report, "missed"), 0.0);
    assert_eq!(number(&report, "in_status"), 1.0);
    assert_eq!(number(&report, "in_top"), 1.0);
    assert_eq!(number(&report, "left_with"), 0.0);
}

#[test]
#[ignore = "needs the virtual machine"]
fn those_who_ask_for_contracts_are_told_the_truth() {
    let report = in_charge("answers", &[], 1);
    assert_answers(
        &report,
        &[
            ("nobody_to_ask", 8, "sudo andante run"),
            ("exec_without", 8, "sudo andante run"),
            ("more_than_all", 24, "40 ms of CPU time within 33 ms"),
            ("no_budget", 24, "more than 0"),
            ("no_period", 24, "more than 0"),
            ("too_many_losses", 24, "5/1"),
            ("too_long", 24, "4.294967295 s at most"),
            ("beyond", 23, "would be admitted: 8 ms every 10 ms"),
            ("beyond_exec", 23, "would be admitted: 9 ms every 11.3 ms"),
            ("no_process", 14, "no process 99999"),
            ("no_thread", 14, "no thread 99999"),
            ("kernel_thread", 15, "(kthreadd) is a kernel thread"),
            ("unknown_class", 10, "no class /nowhere"),
            ("yes", 0, "4 ms every 10 ms"),
            ("again", 25, "already"),
            ("holders", 23, "held by endless ("),
            ("dry_run", 0, "2 ms every 10 ms"),
            ("unknown_contract", 26, "nobody"),
            ("released", 0, "released"),
            ("not_found", 127, "no-such-program"),
            ("both", 0, "0::/brief CONTRACT"),
            ("kim_own", 0, "1 ms every 20 ms"),
            ("kim_more", 23, "a user may hold 10 %"),
            ("kim_roots", 3, "belongs to user 0"),
            ("kim_list", 0, "1ms/20ms"),
            ("lee_roots", 0, "1 ms every 20 ms"),
            ("kim_releases_lees", 3, "made by user 1001"),
            ("lee_releases_kims", 0, "released"),
            ("after_kill", 8, "sudo andante run"),
            ("half", 23, "would be admitted: 5 ms every 10 ms"),
            ("new_quota", 0, ""),
        ],
    );
    assert_eq!(report["contracts"], ["0", "0", "0"]);
    // All that can be had: nothing of those that are gone is in the way.
    assert_share(&report, "share", 80.0);
    for key in ["loop_alive", "socket_gone"] {
        assert_eq!(number(&report, key), 1.0, "{key}");
    }
    assert_eq!(number(&report, "left_with"), 0.0);
}

#[test]
#[ignore = "needs the virtual machine"]
fn contracts_are_split_and_follow_cpus_that_come_and_go() {
    let report = in_charge("placement", &[], 2);
    for share in parts(&report["moves"]) {
        assert!((share - 30.0).abs() <= TOLERANCE, "{report:?}");
    }
    assert_eq!(number(&report, "split"), 1.0);
    let at_least = |key: &str, count: usize| {
        let shares = parts(&report[key]);
        let held = shares
            .iter()
            .filter(|share| **share >= 50.0 - TOLERANCE)
            .count();
        assert_eq!((shares.len(), held), (3, count), "{key}: {report:?}");
    };
    at_least("before", 3);
    // One CPU carries one half; the others share what it leaves with six loops.
    assert_eq!(number(&report, "homeless"), 2.0);
    at_least("gone", 1);
    assert_eq!(number(&report, "homeless_again"), 0.0);
    at_least("after", 3);
    // Timers that come late give some too much, and others too little: on average none gets more either.
    let anew = parts(&report["anew"]);
    assert_eq!(anew.len(), 30);
    for contract in 0..3 {
        let rounds: Vec<f64> = anew.iter().skip(contract).step_by(3).copied().collect();
        let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
        assert!(
            (mean - 50.0).abs() <= 2.0 * TOLERANCE,
            "{mean} of {rounds:?}"
        );
        assert!(
            rounds.iter().all(|share| *share >= 50.0 - TOLERANCE),
            "{rounds:?}"
        );
    }
    assert_eq!(report["contracts"], ["3", "0"]);
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(number(&report, "left_with"), 0.0);
}

/// 1,200 threads, of which each wakes every two seconds and works for a millisecond.
#[test]
#[ignore = "needs the virtual machine"]
fn a_contract_is_had_when_no_place_for_learnt_ones_is_left() {
    let report = in_charge("full_contracts", &[], 1);
    assert!(number(&report, "held") >= 1008.0, "{report:?}");
    assert!(number(&report, "refused") > 0.0, "{report:?}");
    let full = "of the 1024 places for learnt contracts are taken";
    for case in ["status", "doctor"] {
        assert!(report[case][0].contains(full), "{case}: {report:?}");
    }
    assert_answers(&report, &[("dry_run", 0, "4 ms"), ("reserve", 0, "4 ms")]);
    assert!(
        number(&report, "reserved") >= 40.0 - TOLERANCE,
        "{report:?}"
    );
    assert!(number(&report, "left_held") < 100.0, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(number(&report, "left_with"), 0.0);
}
