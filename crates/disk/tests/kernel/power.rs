//! What is on the disk below if the power is cut: dm-log-writes keeps a log of what was safe there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::disks::{Direct, Drawn, PAGE, attached, file_of, run, tmpfs};
use crate::guest::is_inside;

/// Pages of each writer.
const PAGES: u64 = 32;
const WRITERS: u64 = 6;
const CUTS: u64 = 10;
/// Of the log [bytes].
const LOG: u64 = 64 << 20;

/// One page, which tells where it is and how often that was written.
fn page(at: u64, times: u64) -> Vec<u8> {
    page_word(at, times).to_le_bytes().repeat(PAGE / 8)
}

fn page_word(at: u64, times: u64) -> u64 {
    at << 32 | times
}

/// Of a page, how often it was written, and how often at least when it was safe.
type Known = Vec<(u64, u64)>;

/// Writes, at times so that it is safe when it is answered, and at times flushes what was written.
fn write(device: &str, writer: u64, seed: u64, known: &mut Known, over: &AtomicBool) {
    let plain = Direct::open(device, 0);
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
        let (offset, bytes) = (at * PAGE as u64, page(at, one.0));
        match kind {
            1 => plain.write_safely(offset, &bytes),
            _ => plain.write(offset, &bytes).expect("is written"),
        }
        if kind == 1 {
            one.1 = one.0;
        }
    }
}

/// Every page that the log has, as it was written last.
///
/// The log begins with a block that has a magic number, a version, the number of entries and the size of a block. Each entry
/// is a block with its first block, its blocks, flags and the length of a text, and then what was written
/// (`drivers/md/dm-log-writes.c`). Writes come into it when they are safe: by themselves, or with the next flush.
fn logged(log: &Direct) -> BTreeMap<u64, u64> {
    let bytes = log.read(0, LOG as usize);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), 0x006a_7366_7773_6872, "the log has another form");
    let (entries, block) = (word(16), word(24) as u32 as usize);
    let mut pages: BTreeMap<u64, u64> = BTreeMap::new();
    let mut at = block;
    for _ in 0..entries {
        let (first, blocks, flags) = (word(at) as usize, word(at + 8) as usize, word(at + 16));
        at += block;
        // LOG_DISCARD_FLAG: nothing follows.
        assert_eq!(flags & 0b100, 0, "nothing was discarded here");
        for page in 0..blocks * block / PAGE {
            let here = at + page * PAGE;
            // What was safe by itself is before what was written earlier and flushed later; a disk has the newest.
            let newest = pages
                .entry((first * block / PAGE + page) as u64)
                .or_default();
            *newest = word(here).max(*newest);
        }
        at += blocks * block;
    }
    pages
}

/// Everything that was safe is in the log, or something newer; returns writes that are not.
fn check(log: &Direct, all: &[Known]) -> u64 {
    // With a mark it is written how many entries there are; they are, a moment later.
    run("dmsetup", &["message", "logged", "0", "mark cut"]);
    std::thread::sleep(Duration::from_millis(20));
    let pages = logged(log);
    let mut lost = 0;
    for (writer, known) in (0_u64..).zip(all) {
        for (own, one) in (0_u64..).zip(known) {
            let at = writer * PAGES + own;
            let word = pages.get(&at).copied().unwrap_or(page_word(at, 0));
            let times = word & u64::from(u32::MAX);
            assert_eq!(word, page_word(at, times), "page {at} is another's");
            assert!(
                (one.1..=one.0).contains(&times),
                "page {at}: {times}, which is not of {one:?}"
            );
            lost += one.0 - times;
        }
    }
    lost
}

#[test]
#[ignore = "needs the virtual machine"]
fn what_was_flushed_is_safe_when_the_power_is_cut() {
    if !is_inside("power::what_was_flushed_is_safe_when_the_power_is_cut") {
        return;
    }
    let log = tmpfs("/tmp/memory").join("log");
    file_of(&log, LOG);
    run("busybox", &["losetup", "/dev/loop0", log.to_str().unwrap()]);
    let table = "0 32768 log-writes /dev/ram0 /dev/loop0";
    run("dmsetup", &["create", "logged", "--table", table]);
    let mut attached = attached(Path::new("/dev/dm-0")).unwrap();
    let log = Direct::open("/dev/loop0", 0);
    let mut all = vec![vec![(0, 0); PAGES as usize]; WRITERS as usize];
    let mut drawn = Drawn(11);
    let mut lost = 0;
    for cut in 0..CUTS {
        let over = AtomicBool::new(false);
        let device = attached.path();
        std::thread::scope(|scope| {
            for (writer, known) in (0_u64..).zip(&mut all) {
                let (over, device) = (&over, &device);
                scope.spawn(move || write(device, writer, cut, known, over));
            }
            std::thread::sleep(Duration::from_micros(2000 + drawn.below(20_000)));
            over.store(true, Relaxed);
        });
        lost += check(&log, &all);
    }
    let writes: u64 = all.iter().flatten().map(|one| one.0).sum();
    println!("{writes} writes, {CUTS} cuts, {lost} writes that were not safe would be lost");
    // Else nothing was tried.
    assert!(lost > CUTS && writes > 10 * lost);
    attached.stop().unwrap();
    attached.end().unwrap();
    // What was written before it was taken off is safe.
    assert_eq!(check(&log, &all), 0);
}
