//! The terminal table, as it is printed.

use andante_report::table::render;

use crate::fixture;

#[test]
fn a_film_as_a_table() {
    let mut film = fixture::film();
    film.schedulers.truncate(2);
    let expected = "\
A film beside make -j8
virtual machine, virtual time · Linux 7.2.13+deb14-cloud-amd64 · 1 CPU · 1024 MiB · 14 s

                            Andante  stock scheduler, same weights
 film  mpv in /film
   frames shown                 360                            325
   frames late                    0                             83
   frames dropped                 0                             35
   frames not in time        0.00 %                        32.78 %
   longest freeze          34.46 ms                      236.31 ms
   frame rate              30.00 /s                       27.07 /s
   frame time, p99         34.39 ms                      201.39 ms
 make  in /build
   iterations                    41                             44
 share of the CPUs  received
   /film (asked 50.00 %)    35.27 %                        28.27 %
   /build (asked 50.00 %)   64.63 %                        71.63 %
";
    assert_eq!(render(&[film], 100, false), expected);
}

#[test]
fn instances_are_taken_together_and_cases_follow_each_other() {
    let table = render(&fixture::sweep()[..3], 80, false);
    assert_eq!(
        table.matches("stock scheduler, same weights").count(),
        1,
        "one header for all cases"
    );
    assert!(table.contains("number of dhrystone: 3\n"), "{table}");
    let third = table.split("number of dhrystone: 3").nth(1).unwrap();
    assert!(
        third.contains("dhrystone  3 × in /best-effort\n"),
        "{third}"
    );
    assert!(
        third.contains("8,000,004"),
        "the sum over the three: {third}"
    );
}

#[test]
fn it_keeps_to_the_width_and_colours_only_when_asked() {
    for width in [60, 80, 120] {
        let table = render(&[fixture::tree()], width, false);
        // The first two lines are prose, which the terminal wraps.
        let widest = table.lines().skip(3).map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{table}");
        assert!(!table.contains('\u{1b}'));
    }
    assert!(render(&[fixture::tree()], 80, true).contains('\u{1b}'));
}

#[test]
fn words_and_labels_stay_whole_beside_many_schedulers() {
    let mut film = fixture::film();
    for name in ["eevdf-nice", "eevdf-fifo", "eevdf-deadline"] {
        let mut scheduler = film.schedulers[0].clone();
        scheduler.name = name.into();
        film.schedulers.push(scheduler);
    }
    film.schedulers.remove(2);
    let table = render(&[film], 100, false);
    for whole in [
        " film  mpv in /film\n",
        "  frames not in time   ",
        "SCHED_DEADLINE",
    ] {
        assert!(table.contains(whole), "{table}");
    }
}

#[test]
fn what_went_wrong_is_said_and_nothing_is_no_trouble() {
    let table = render(&[fixture::awkward()], 200, false);
    assert!(
        table.contains("runnable task stall (<mpv>[42] failed to run for 30 s)"),
        "{table}"
    );
    assert!(table.contains("exited with status 1"), "{table}");
    assert_eq!(render(&[], 80, true), "No results.\n");
    assert!(render(&[fixture::empty()], 80, false).starts_with("A film beside make -j8\n"));
}
