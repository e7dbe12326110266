// SPDX-License-Identifier: GPL-2.0
//! Where programs come to an end of something: descriptors, threads, the connection.

mod common;

use andante_daemon::fakes::FakeKernel;

use common::{Served, Workshop, passes, run};

fn after(what: &str) -> FakeKernel {
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("limits.c", &[]);
    passes(&program, &[what], &served.socket, &[]);
    let kernel = served.end();
    assert!(kernel.made.is_empty());
    kernel
}

#[test]
fn a_page_that_could_not_be_taken_is_not_called_a_wrong_one() {
    assert!(after("files").declared.is_empty());
}

#[test]
fn threads_that_end_without_leaving_hold_nothing() {
    // Nothing is said to the kernel about them: what it knew of them has gone with them, and their numbers may be
    // others' by now. This kernel does not see that they end.
    assert_eq!(after("ends").declared.len(), 20);
}

#[test]
fn a_session_ends_for_all_who_have_its_connection() {
    after("copy");
}

#[test]
fn under_a_filter_of_system_calls_the_daemon_is_asked() {
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("limits.c", &[]);
    let output = run(&program, &["filtered"], &served.socket, &[]);
    let looked_at = served.end().looked_at;
    if output.status.code() == Some(77) {
        eprintln!("skipped: this machine has no seccomp");
        return;
    }
    // A call that the filter knows is SIGSYS.
    assert!(output.status.success(), "{output:?}");
    assert_eq!(looked_at.len(), 1);
}

#[test]
fn a_thread_takes_part_in_one_session_at_a_time() {
    assert!(after("twice").declared.is_empty());
}
