//! Sessions of applications on a real kernel.

use super::{in_charge_told, number};

/// On four CPUs: what an ordinary user is told, one in a container, two thousand sessions at a time, programs that are killed in
/// one, two hundred of them or `ANDANTE_KILLS`, and one that writes anything into the memory that it shares with
/// the scheduler.
#[test]
#[ignore = "needs the virtual machine"]
fn sessions_need_no_privilege_and_leave_nothing_behind() {
    let kills = std::env::var("ANDANTE_KILLS").unwrap_or_else(|_| "200".to_owned());
    let report = in_charge_told("session", &format!("kills={kills}\n"), &[], 4);
    let user = &report["user"][0];
    // 54 % of one CPU of four: yes. 96 %: no, but.
    assert!(
        user.contains("\"joined\"") && user.contains("\"granted\""),
        "{user}"
    );
    assert!(user.contains("\"offer\""), "{user}");
    let strange = &report["strange"][0];
    for kind in ["not_permitted", "no_thread", "no_session"] {
        assert!(strange.contains(&format!("\"{kind}\"")), "{strange}");
    }
    // Of its own number 1, and of no other that is there outside.
    let contained = &report["contained"][0];
    assert!(contained.starts_with("0 1 {\"granted\""), "{contained}");
    assert!(contained.contains("\"no_thread\""), "{contained}");
    assert_eq!(report["many"], ["2000"]);
    assert_eq!(report["kills"], [kills]);
    assert!(number(&report, "nonsense") > 100.0, "{report:?}");
    assert_eq!(number(&report, "contracts"), 0.0);
    assert_eq!(number(&report, "files_more"), 0.0);
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(report["outlived"], ["told back"]);
}

/// On one CPU: the first frame that takes more than three times as long as those before comes before another program's
/// if that was announced, and is done when it is due (12 ms); otherwise the other comes in between.
#[test]
#[ignore = "needs the virtual machine"]
fn sessions_that_announce_a_surge_have_room_for_it() {
    let report = super::in_charge("surge", &[], 1);
    let longest: Vec<f64> = report["longest"][0]
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    println!("unannounced, announced [us]: {longest:?}");
    assert!(longest[1] <= 12_000.0, "{longest:?}");
    assert!(longest[1] < longest[0], "{longest:?}");
}
