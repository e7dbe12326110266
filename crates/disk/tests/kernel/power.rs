//! A disk below that loses what it has in its cache, as one does whose power is cut.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use andante_disk::detach;

use crate::disks::{Direct, Drawn, PAGE, run};
use crate::guest::is_inside;
use crate::servers::{serves, serving, started};

const NAME: &str = "power::what_was_flushed_is_there_after_the_power_was_cut";
/// Pages of each writer.
const PAGES: u64 = 32;
const WRITERS: u64 = 6;
const CUTS: u64 = 10;
/// A disk of the kernel's in memory, with a cache that is written to it when it is flushed, and forgotten when it is
/// switched off.
const DISK: &str = "/sys/kernel/config/nullb/cut";

fn set(name: &str, value: &str) {
    fs::write(format!("{DISK}/{name}"), value).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// One page, which tells where it is and how often that was written.
fn page(at: u64, times: u64) -> Vec<u8> {
    (at << 32 | times).to_ne_bytes().repeat(PAGE / 8)
}

/// Of a page, how often it was written, and how often at least when it was safe.
type Known = Vec<(u64, u64)>;

/// Writes, at times so that it is safe when it is answered, and at times flushes what was written.
fn write(device: &str, writer: u64, seed: u64, known: &mut Known, over: &AtomicBool) {
    let (plain, safe) = (Direct::open(device, 0), Direct::open(device, libc::O_DSYNC));
    let mut drawn = Drawn(seed * WRITERS + writer);
    while !over.load(Relaxed) {
        let own = drawn.below(PAGES);
        let at = writer * PAGES + own;
        let kind = drawn.below(12);
        if kind == 0 {
            let before = known.clone();
            plain.0.sync_data().expect("is flushed");
            for (now, before) in known.iter_mut().zip(before) {
                now.1 = before.0;
            }
            continue;
        }
        let one = &mut known[own as usize];
        one.0 += 1;
        let disk = if kind == 1 { &safe } else { &plain };
        disk.write(at * PAGE as u64, &page(at, one.0))
            .expect("is written");
        if kind == 1 {
            one.1 = one.0;
        }
    }
}

/// Everything that was safe is there, or something newer; what is there is what goes on from here.
fn check(device: &str, all: &mut [Known]) -> u64 {
    let disk = Direct::open(device, 0);
    let mut lost = 0;
    for (writer, known) in (0_u64..).zip(all) {
        for (own, one) in (0_u64..).zip(known) {
            let at = writer * PAGES + own;
            let found = disk.read(at * PAGE as u64, PAGE);
            let word = u64::from_ne_bytes(found[..8].try_into().unwrap());
            let times = word & u64::from(u32::MAX);
            assert!(*found == page(at, times)[..], "page {at} is torn");
            assert!(
                (one.1..=one.0).contains(&times),
                "page {at}: {times}, which is not of {one:?}"
            );
            lost += one.0 - times;
            *one = (times, times);
        }
    }
    lost
}

#[test]
#[ignore = "needs the virtual machine"]
fn what_was_flushed_is_there_after_the_power_was_cut() {
    if serves() || !is_inside(NAME) {
        return;
    }
    fs::create_dir_all("/sys/kernel/config").unwrap();
    if !Path::new("/sys/kernel/config/nullb").exists() {
        run(
            "busybox",
            &["mount", "-t", "configfs", "none", "/sys/kernel/config"],
        );
    }
    fs::create_dir(DISK).unwrap();
    // [MB]; the cache has room for everything that is written.
    for (name, value) in [("size", "16"), ("memory_backed", "1"), ("cache_size", "8")] {
        set(name, value);
    }
    set("power", "1");
    let backing = "/dev/cut";
    let disk = Direct::open(backing, libc::O_DSYNC);
    for at in 0..WRITERS * PAGES {
        disk.write(at * PAGE as u64, &page(at, 0)).unwrap();
    }
    drop(disk);
    let mut all = vec![vec![(0, 0); PAGES as usize]; WRITERS as usize];
    let mut drawn = Drawn(11);
    let mut lost = 0;
    for cut in 0..CUTS {
        let mut server = started(NAME, backing);
        assert!(!serving(&mut server));
        let device = "/dev/ublkb0";
        lost += check(device, &mut all);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (writer, known) in (0_u64..).zip(&mut all) {
                let over = &over;
                scope.spawn(move || write(device, writer, cut, known, over));
            }
            std::thread::sleep(Duration::from_micros(2000 + drawn.below(30_000)));
            over.store(true, Relaxed);
        });
        println!("{:?} {:?}", fs::read_to_string("/sys/block/cut/queue/write_cache"), fs::read_to_string("/sys/block/cut/stat"));
        println!("{:?}", all[0]);
        server.kill().unwrap();
        server.wait().unwrap();
        detach(Path::new(device), true).unwrap();
        set("power", "0");
        set("power", "1");
    }
    let mut server = started(NAME, backing);
    assert!(!serving(&mut server));
    lost += check("/dev/ublkb0", &mut all);
    detach(Path::new(backing), false).unwrap();
    server.wait().unwrap();
    println!("{CUTS} cuts, {lost} writes were lost that were not safe");
    // Else nothing was tried.
    assert!(lost > CUTS);
}
