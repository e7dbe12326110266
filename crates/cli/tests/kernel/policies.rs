//! Policies of classes, on the kernel.

use super::*;

/// What a class and each of its two loops got [% of the CPU].
fn shares(report: &Report, policy: &str) -> [f64; 3] {
    let line = &report[policy][0];
    let numbers: Vec<f64> = line
        .split(' ')
        .map(|word| word.parse().expect("a number"))
        .collect();
    numbers.try_into().expect("a class and two tasks")
}

/// A policy is set while tasks run and wait: from then on it orders them, nobody is lost, and the class gets what
/// it gets beside another in any case. It lasts as long as the class, whoever schedules meanwhile.
#[test]
#[ignore = "needs the virtual machine"]
fn a_policy_orders_the_tasks_of_its_class_alone() {
    let report = in_charge("policies", &[], 1);
    assert!(!report.contains_key("failed"), "{report:?}");
    let all = [
        "none",
        "fifo",
        "rr:20ms",
        "svr4-ts",
        "deadline:20ms",
        "linux-2.2",
        "svr4-rt",
        "sfq",
    ];
    for policy in all {
        let [class, one, two] = shares(&report, policy);
        assert!((class - 33.3).abs() <= 1.4, "{policy}: {report:?}");
        match policy {
            // Who was there first goes on, or who is of the class RT.
            "fifo" => assert!(one.min(two) <= 1.0, "{policy}: {report:?}"),
            // A quantum is 0.6 s of the class's time, which are 1.8 s here.
            "svr4-ts" => assert!(one.min(two) >= 5.0, "{policy}: {report:?}"),
            "svr4-rt" => assert!(one <= 1.0, "{policy}: {report:?}"),
            _ => assert!((one - two).abs() <= 6.0, "{policy}: {report:?}"),
        }
    }
    assert_eq!(report["shown"], ["svr4-rt"]);
    assert_eq!(report["status"], ["svr4-rt"]);
    assert_eq!(report["again"], ["svr4-rt"]);
    assert_eq!(report["status_sfq"], ["0"]);
    for (case, status, says) in [
        ("unknown", 2, "linux-2.2"),
        ("no_deadline", 2, "deadline:20ms"),
        ("root", 2, "policies are for leaves"),
        ("inner", 12, "/inner/below"),
        ("nothing", 2, "--policy"),
    ] {
        let (got, sentence) = report[case][0].split_once(' ').expect("a sentence");
        assert_eq!(got.parse(), Ok(status), "{case}: {sentence}");
        assert!(sentence.contains(says), "{case}: {sentence}");
    }
    assert_eq!(report["state"], ["enabled"]);
}
