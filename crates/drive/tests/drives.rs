//! Disks, asked one request after the other and several at once.

use andante_drive::{Action, Drive, Flash, Hdd, Ns, Request, SECTOR, Tag};

const MS: Ns = 1_000_000;
const GIB: u64 = 1 << 30;

fn read(byte: u64, bytes: u32) -> Request {
    Request {
        action: Action::Read,
        sector: byte / SECTOR,
        sectors: bytes / SECTOR as u32,
    }
}

/// The request that is done next, and when [ns].
fn next(drive: &mut impl Drive) -> (Tag, Ns) {
    loop {
        let now_ns = drive.next_ns().expect("something is served");
        assert_eq!(drive.done(now_ns - 1), None, "before its time");
        if let Some(tag) = drive.done(now_ns) {
            return (tag, now_ns);
        }
    }
}

/// Serves them one after the other: when each is done [ns].
fn one_by_one(drive: &mut impl Drive, requests: impl IntoIterator<Item = Request>) -> Vec<Ns> {
    let mut now_ns = 0;
    let mut done = Vec::new();
    for request in requests {
        drive.take(0, request, now_ns);
        now_ns = next(drive).1;
        done.push(now_ns);
    }
    done
}

/// All at once: when each is done, and which [ns].
fn at_once(drive: &mut impl Drive, requests: &[Request]) -> Vec<(Tag, Ns)> {
    for (tag, request) in (0..).zip(requests) {
        drive.take(tag, *request, 0);
    }
    requests.iter().map(|_| next(drive)).collect()
}

#[test]
fn what_follows_on_comes_at_the_rate_of_the_platters() {
    let mut disk = Hdd::desktop(16 * GIB).spin();
    let done = one_by_one(&mut disk, (0..100).map(|n| read(n << 19, 1 << 19)));
    let all_ns = done[99] - done[0];
    let rate = 99.0 * f64::from(1 << 19) * 1e9 / all_ns as f64;
    // 50 µs beside 4.2 ms.
    assert!((122e6..125e6).contains(&rate), "{rate}");
}

/// A seek of a third of the way on average, and half a turn: 1 + 9 E[√d] + 4.2 ms, E[√d] of two places at random being
/// 8/15.
#[test]
fn what_lies_anywhere_takes_a_seek_and_half_a_turn() {
    let mut disk = Hdd::desktop(16 * GIB).spin();
    let mut place: u64 = 1;
    let anywhere = std::iter::from_fn(|| {
        place = place
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        Some(read((place >> 33) % (16 * GIB / 4096) * 4096, 4096))
    });
    let done = one_by_one(&mut disk, anywhere.take(4000));
    let mean_ms = done[3999] as f64 / 4000.0 / MS as f64;
    let wanted_ms = 1.0 + 9.0 * 8.0 / 15.0 + 8.333 / 2.0 + 0.033;
    assert!(
        (mean_ms / wanted_ms - 1.0).abs() < 0.02,
        "{mean_ms} is not {wanted_ms}"
    );
}

#[test]
fn a_disk_that_sorts_takes_the_near_ones_first() {
    let far_and_near = [
        read(15 * GIB, 4096),
        read(14 * GIB, 4096),
        read(1 << 20, 4096),
    ];
    let plain = at_once(&mut Hdd::desktop(16 * GIB).spin(), &far_and_near);
    assert_eq!(
        plain.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    let sorts = Hdd {
        sorts: true,
        ..Hdd::desktop(16 * GIB)
    };
    let sorted = at_once(&mut sorts.spin(), &far_and_near);
    // The first was taken when it was alone.
    assert_eq!(
        sorted.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    let near_last = [
        read(1 << 20, 4096),
        read(15 * GIB, 4096),
        read(2 << 20, 4096),
    ];
    let sorted = at_once(&mut sorts.spin(), &near_last);
    assert_eq!(
        sorted.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
        [0, 2, 1]
    );
}

#[test]
fn channels_of_flash_work_side_by_side() {
    let flash = Flash::small();
    let stripe = flash.stripe * SECTOR as u32;
    let one = at_once(&mut flash.power(), &[read(0, stripe)]);
    let four = at_once(&mut flash.power(), &[read(0, 4 * stripe)]);
    assert_eq!(one[0].1, four[0].1, "four stripes are on four channels");
    let five = at_once(&mut flash.power(), &[read(0, 5 * stripe)]);
    assert_eq!(five[0].1, 2 * one[0].1);
    let each: Vec<_> = (0..4).map(|n| read(n * u64::from(stripe), 4096)).collect();
    let all = at_once(&mut flash.power(), &each);
    assert!(all.iter().all(|(_, ns)| *ns == all[0].1));
}

#[test]
fn a_read_behind_writes_waits_for_the_block_that_is_erased() {
    let flash = Flash {
        channels: 1,
        ..Flash::small()
    };
    let mut disk = flash.power();
    let write = Request {
        action: Action::Write,
        ..read(0, 1 << 20)
    };
    let mut longest_ns = 0;
    let mut now_ns = 0;
    for _ in 0..8 {
        disk.take(0, write, now_ns);
        now_ns = next(&mut disk).1;
        disk.take(1, read(1 << 30, 4096), now_ns);
        let read_ns = next(&mut disk).1;
        longest_ns = longest_ns.max(read_ns - now_ns);
        now_ns = read_ns;
    }
    let alone_ns = flash.read_ns + 40_960;
    assert_eq!(longest_ns, flash.erase_ns + alone_ns);
}
