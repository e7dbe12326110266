// SPDX-License-Identifier: GPL-2.0
//! Sixty frames a second, each of so many ms of work: `frame_loop [FRAMES [WORK_MS]]`. Says at the end how many
//! were late. Runs with Andante and without it.

use std::time::Duration;

use andante::{Cycle, Role, Session, Wish, in_ns, now_ns};

const PERIOD_NS: u64 = 16_666_667;

/// Stands for what a game computes and draws.
fn work(ns: u64) {
    let until_ns = in_ns(ns);
    while now_ns() < until_ns {}
}

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse().ok());
    let frames: u64 = numbers.next().unwrap_or(300);
    let work_ns = numbers.next().unwrap_or(4) * 1_000_000;
    let session = Session::open(Wish::new(Role::Game, Cycle::every_ns(PERIOD_NS)));
    let session = session.inspect_err(|error| println!("without Andante: {error}"));
    let thread = session.ok().and_then(|session| session.join(None).ok());
    let mut late = 0;
    let mut frame_ns = now_ns();
    for _ in 0..frames {
        std::thread::sleep(Duration::from_nanos(frame_ns.saturating_sub(now_ns())));
        frame_ns += PERIOD_NS;
        let cycle = thread.as_ref().map(|thread| thread.begin(frame_ns));
        work(work_ns);
        drop(cycle);
        late += u64::from(now_ns() > frame_ns);
    }
    println!("{late} of {frames} frames were late");
}
