//! Work done for another: whose share a server works with.

use super::{in_charge, number};

/// Of the CPU [%]. Half is the client's with the server's, the other half the loop's.
const HALF: f64 = 50.0;
const TOLERANCE: f64 = 2.0;
/// What a class of weight 4 gets beside one of 100 [%], and a little.
const OWN: f64 = 4.5;

#[test]
#[ignore = "needs the virtual machine"]
fn a_server_works_with_the_share_of_the_client_that_it_answers() {
    let report = in_charge("binding", &["--learn", "0"], 1);
    for key in ["answers", "late", "woken", "brief"] {
        for share in &report[key] {
            let share: f64 = share.parse().expect("a share");
            assert!((share - HALF).abs() <= TOLERANCE, "{key}: {report:?}");
        }
    }
    assert_eq!(report["brief"].len(), 3);
    for key in ["silent", "stranger", "unbound"] {
        assert!(number(&report, key) <= OWN, "{key}: {report:?}");
    }
    assert_eq!(report["removed"].len(), 3);
    assert_eq!(number(&report, "alive"), 1.0);
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(number(&report, "left_with"), 0.0);
}
