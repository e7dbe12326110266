// SPDX-License-Identifier: GPL-2.0
//! Calls that are made where sound is: no system call, nothing allocated, few instructions.

mod common;

use std::collections::BTreeMap;

use common::{Served, Workshop, run};

/// What a program ends with that cannot find out here.
const CANNOT: i32 = 77;

#[test]
fn no_system_call_and_no_allocation_not_even_in_calls_that_fail() {
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("hot.c", &["-Wl,-z,now"]);
    let output = run(&program, &["quiet"], &served.socket, &[]);
    if output.status.code() == Some(CANNOT) {
        eprintln!("skipped: this machine has no seccomp");
    } else {
        // A system call is SIGKILL; other numbers are lines of the program.
        assert!(output.status.success(), "{output:?}");
    }
    served.end();
}

/// Instructions: a sixth of the cheapest system call there is (getppid, 343 on Linux 7.2). Reading the clock, which
/// begin and end do once, is the machine's, and comes on top.
const MOST: u32 = 60;

#[test]
fn few_instructions() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: the library is not optimised");
        return;
    }
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("hot.c", &["-Wl,-z,now", "-O2"]);
    let output = run(&program, &["steps"], &served.socket, &[]);
    served.end();
    if output.status.code() == Some(CANNOT) {
        eprintln!("skipped: nothing can be traced here, or this is no x86-64");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    println!("{said}");
    let taken: BTreeMap<&str, u32> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, number)| (name, number.parse().unwrap()))
        .collect();
    for (call, clock) in [
        ("begin", taken["now"]),
        ("end", taken["now"]),
        ("raise", 0),
        ("surge", 0),
    ] {
        let own = taken[call].saturating_sub(clock);
        assert!((1..=MOST).contains(&own), "{call}: {own} of {said}");
    }
}
