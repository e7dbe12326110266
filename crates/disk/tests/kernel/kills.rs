//! Servers that are killed at any instant.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use andante_disk::{detach, found};

use crate::disks::{Direct, Drawn, PAGE, run};
use crate::guest::is_inside;
use crate::servers::{serves, serving, started};

const NAME: &str = "kills::no_write_that_was_answered_is_lost_when_servers_are_killed";
/// Each writer has so many pages of its own, few, so that it comes back soon to where it has just written.
const PAGES: u64 = 64;
const WRITERS: u64 = 8;
const DEVICE: &str = "/dev/ublkb0";

/// One page, which tells where it is and how often that was written.
fn page(at: u64, times: u64) -> Vec<u8> {
    let word = at << 32 | times;
    word.to_ne_bytes().repeat(PAGE / 8)
}

/// Writes or discards its own pages again and again, one at a time, and reads what it has written; what is to be there at the
/// end is returned.
fn write(writer: u64, over: &AtomicBool, answered: &AtomicU64) -> Vec<u64> {
    let flags = if writer.is_multiple_of(2) {
        0
    } else {
        libc::O_DSYNC
    };
    let disk = Direct::open(DEVICE, flags);
    let mut all = vec![0; PAGES as usize];
    let mut drawn = Drawn(writer);
    while !over.load(Relaxed) {
        let own = drawn.below(PAGES);
        let at = writer * PAGES + own;
        let offset = at * PAGE as u64;
        let known = &mut all[own as usize];
        match drawn.below(4) {
            0 => assert!(
                *disk.read(offset, PAGE) == page(at, *known)[..],
                "page {at}"
            ),
            1 => {
                disk.discard(offset, PAGE as u64).expect("is discarded");
                // If the discard comes late it is this that is lost.
                *known += 1;
                disk.write(offset, &page(at, *known)).expect("is written");
                answered.fetch_add(1, Relaxed);
            }
            _ => {
                *known += 1;
                disk.write(offset, &page(at, *known)).expect("is written");
                answered.fetch_add(1, Relaxed);
            }
        }
    }
    all
}

fn check(path: &str, all: &[Vec<u64>]) {
    let disk = Direct::open(path, 0);
    for (writer, known) in (0_u64..).zip(all) {
        for (own, known) in (0_u64..).zip(known) {
            let at = writer * PAGES + own;
            let found = disk.read(at * PAGE as u64, PAGE);
            assert!(
                *found == page(at, *known)[..],
                "{path}: page {at} is not that of write {}",
                known
            );
        }
    }
}

/// The disk below takes five milliseconds to begin with a request, so that most of them are under way when the server is
/// killed; one that was done after its successor would be seen.
#[test]
#[ignore = "needs the virtual machine"]
fn no_write_that_was_answered_is_lost_when_servers_are_killed() {
    if serves() || !is_inside(NAME) {
        return;
    }
    let kills: u64 = std::env::var("ANDANTE_DISK_KILLS")
        .unwrap()
        .parse()
        .unwrap();
    run(
        "dmsetup",
        &["create", "slow", "--table", "0 32768 delay /dev/ram0 0 5"],
    );
    let backing = "/dev/dm-0";
    let zero = Direct::open(backing, 0);
    for at in 0..PAGES * WRITERS {
        zero.write(at * PAGE as u64, &page(at, 0)).unwrap();
    }
    drop(zero);
    let mut server = started(NAME, backing);
    assert!(!serving(&mut server));
    let (over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut drawn = Drawn(34);
    let times: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let (over, answered) = (&over, &answered);
                    move || write(writer, over, answered)
                })
            })
            .collect();
        for kill in 0..kills {
            // Some before they serve; then the next one takes over from what that has left.
            let wait = Duration::from_micros(drawn.below(60_000));
            std::thread::sleep(wait);
            server.kill().unwrap();
            server.wait().unwrap();
            let begin = Instant::now();
            server = started(NAME, backing);
            if drawn.below(4) == 0 {
                std::thread::sleep(Duration::from_micros(drawn.below(20_000)));
                server.kill().unwrap();
                server.wait().unwrap();
                server = started(NAME, backing);
            }
            assert!(serving(&mut server), "the device is a new one");
            println!(
                "kill {kill} after {wait:?}: served again in {:?}",
                begin.elapsed()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
        over.store(true, Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    println!("{} writes answered, {kills} kills", answered.load(Relaxed));
    assert!(answered.load(Relaxed) > 10 * kills);
    check(DEVICE, &times);
    detach(Path::new(backing), false).unwrap();
    server.wait().unwrap();
    assert!(found().unwrap().is_empty());
    check(backing, &times);
}
