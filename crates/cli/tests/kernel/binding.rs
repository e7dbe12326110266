//! Work done for another: whose share a server works with.

use super::{compiled, in_vm_with, number};

/// Of the CPU [%]. Half is the client's with the server's, the other half the loop's.
const HALF: f64 = 50.0;
const TOLERANCE: f64 = 2.0;
/// What a class of weight 1 beside two of 100 may get [%], and a little.
const OWN: f64 = 2.5;

#[test]
#[ignore = "needs the virtual machine"]
fn a_server_works_with_the_share_of_the_client_that_it_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = in_vm_with("binding", 1, &[compiled("peers", &folder)]);
    // A server that is awake already when its next client comes is not bound to that: of the brief
    // clients the first is sure to find it asleep.
    for key in ["answers", "brief"] {
        let share: f64 = report[key][0].parse().expect("a share");
        assert!((share - HALF).abs() <= TOLERANCE, "{key}: {report:?}");
    }
    for key in ["silent", "unbound"] {
        assert!(number(&report, key) <= OWN, "{key}: {report:?}");
    }
    assert_eq!(report["removed"].len(), 3);
    assert_eq!(number(&report, "alive"), 1.0);
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(number(&report, "left_with"), 0.0);
}
