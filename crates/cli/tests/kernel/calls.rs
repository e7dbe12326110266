//! Calls to the scheduler on a real kernel.

use super::{in_charge, number};

/// On one CPU: what a call costs [instructions], and what it brings: a thread that waits behind a sibling, and has
/// an event, runs at once, or when it is due, instead of when its turn comes.
#[test]
#[ignore = "needs the virtual machine"]
fn calls_cost_little_and_are_heard_at_once() {
    let report = in_charge("calls", &[], 1);
    let ns = |key: &str| number(&report, key);
    assert!(report["opened"][0].contains(r#""fast":true,"general":true"#));
    assert!(report["promise"][0].contains("granted"), "{report:?}");
    assert!(ns("fast") <= 2.2 * ns("getppid"), "{report:?}");
    assert!(ns("general") <= 4.0 * ns("getppid"), "{report:?}");
    // Who calls for something else pays only while there is a session.
    assert!(ns("bystander") <= ns("prctl") + 120.0, "{report:?}");
    assert!(ns("prctl_again") <= ns("prctl") + 10.0, "{report:?}");
    // A store alone is seen when the turn is over, some 2 ms later.
    assert!(ns("wait_store") > 1e6, "{report:?}");
    for call in ["wait_fast", "wait_general"] {
        assert!(ns(call) < 50e3, "{call}: {report:?}");
    }
    assert!(ns("median_later") >= 500e3, "{report:?}");
    assert!(ns("wait_later") < 600e3, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
}

/// Data on a socket raises an event for each frame's worth: of datagrams, within the machine and over a network, and
/// of a stream, in pieces of 100 bytes.
#[test]
#[ignore = "needs the virtual machine"]
fn calls_by_data_come_a_frame_at_a_time() {
    let report = in_charge("sources", &[], 1);
    let count = |key: &str| number(&report, key);
    assert_eq!(["frames", "stream", "udp"].map(count), [3.0, 4.0, 4.0]);
    assert_eq!(["each", "each_udp"].map(count), [7.0, 7.0]);
    assert_eq!(["other", "none"].map(count), [0.0, 0.0]);
    assert_eq!(count("writes"), 5.0);
    let of_nobody = ["of_other", "of_next", "of_none"].map(|what| count(&format!("writes_{what}")));
    assert_eq!(of_nobody, [0.0; 3]);
    assert!(
        count("write_of_other") <= count("write") + 200.0,
        "{report:?}"
    );
    let refused = report["refused"].join(" ");
    assert!(refused.contains("bad_terms") && refused.contains("bad_request"));
    // Others pay for it only while somebody has subscribed.
    assert!(
        count("piece_of_other") <= count("piece") + 250.0,
        "{report:?}"
    );
    assert_eq!(report["state"], ["enabled"]);
}

/// On two CPUs: a thread of the same process that runs elsewhere is heard, one of another process is not.
#[test]
#[ignore = "needs the virtual machine"]
fn calls_are_heard_from_other_cpus_but_not_from_strangers() {
    let report = in_charge("across", &[], 2);
    assert!(report["promise"][0].contains("granted"), "{report:?}");
    // Two virtual CPUs take turns of tens of microseconds.
    assert!(number(&report, "wait_another") < 500e3, "{report:?}");
    assert!(number(&report, "wait_stranger") > 1e6, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
}

/// What holds however many CPUs there are. How often a flood of a hundred wakes its sink, and of how much it is told,
/// is returned: on several the thread runs meanwhile.
fn told(cpus: u32) -> [f64; 2] {
    let report = in_charge("told", &[], cpus);
    let count = |key: &str| number(&report, key);
    assert_eq!([count("frame_wakes"), count("frame_bytes")], [20.0, 20e3]);
    for (event, service) in [("now", 1), ("later", 3)] {
        for by in ["", "signal_"] {
            let of = |what: &str| count(&format!("{by}{event}{what}"));
            assert!(of("") > 0.0 && of("") < 100e3, "{by}{event}: {report:?}");
            assert_eq!(of("_wakes"), 1.0, "{by}{event}: {report:?}");
            assert_eq!(of("_services"), f64::from(1 << service), "{report:?}");
        }
    }
    assert_eq!(["untold_wakes", "of_root_wakes"].map(count), [0.0, 0.0]);
    let refused = report["refused"].join(" ");
    assert!(refused.contains("bad_terms") && refused.contains("no_thread"));
    assert_eq!(report["left"], ["0 0"]);
    assert_eq!(count("files_more"), 0.0, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
    ["flood_wakes", "flood_notices"].map(count)
}

/// A thread that sleeps in epoll, or in sigwaitinfo(), is told of its events: once for a frame of data and not for each
/// of its ten packets, at the instant that an event was raised for, and once for a flood of them.
#[test]
#[ignore = "needs the virtual machine"]
fn calls_wake_who_asks_to_be_told_and_nobody_else() {
    // A hundred times, of two services, before the thread can run.
    assert_eq!(told(1), [1.0, 2.0]);
}

/// The same where who raises an event runs beside its sink.
#[test]
#[ignore = "needs the virtual machine"]
fn calls_wake_across_cpus() {
    let [wakes, notices] = told(3);
    assert!((1.0..=100.0).contains(&wakes) && notices >= wakes && notices <= 100.0);
}
