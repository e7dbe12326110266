//! A disk, in virtual time, by Cello and as requests come.

use andante_drive::Hdd;
use andante_sim::disk::{Fifo, Pattern, Queue, Reader, Served, read};
use andante_sim::{Disk, DiskMode, DiskModel, Manner, NS_PER_MS, NS_PER_S};

const GIB: u64 = 1 << 30;
const SECTORS: u64 = 16 * GIB / 512;

/// What Cello knows of [`Hdd::desktop`].
fn model() -> DiskModel {
    DiskModel::platters(SECTORS, 125_000_000, 1_000_000, 9_000_000, 8_333_333)
}

fn at_gib(gib: u64) -> u64 {
    gib * GIB / 512
}

/// A film, a program that starts, and two copies.
fn desktop(classes: [u32; 3]) -> [Reader; 4] {
    let copy = |gib| Reader {
        class: classes[2],
        bytes: 512 << 10,
        sector: at_gib(gib),
        pattern: Pattern::Sequential {
            depth: 1,
            think_ns: 50_000,
        },
    };
    [
        Reader {
            class: classes[0],
            bytes: 64 << 10,
            sector: at_gib(2),
            pattern: Pattern::Periodic {
                every_ns: 33_333_333,
            },
        },
        Reader {
            class: classes[1],
            bytes: 4096,
            sector: SECTORS,
            pattern: Pattern::Anywhere {
                depth: 1,
                think_ns: 50 * NS_PER_MS,
                seed: 12345,
            },
        },
        copy(8),
        copy(12),
    ]
}

fn run(queue: &mut dyn Queue, readers: &[Reader]) -> Vec<Served> {
    let mut drive = Hdd::desktop(16 * GIB).spin();
    read(queue, &mut drive, readers, 0, 10 * NS_PER_S)
}

fn told(name: &str, served: &[Served]) {
    let ms = |served: &Served, part| served.delay_ns(part) as f64 / 1e6;
    let copies: f64 = served[2..].iter().map(Served::rate).sum();
    println!(
        "{name}: late {} skipped {}; player {:.1} / {:.1}; interactive {:.1} / {:.1}; copies {:.1} MB/s",
        served[0].late,
        served[0].skipped,
        ms(&served[0], 0.5),
        ms(&served[0], 0.99),
        ms(&served[1], 0.5),
        ms(&served[1], 0.99),
        copies / 1e6
    );
}

fn desktop_drawn(classes: [u32; 3], seed: u64) -> Vec<Reader> {
    let mut random = andante_sim::Random::new(seed);
    let mut place = || random.below(15) * GIB / 512 + random.below(1 << 20);
    let mut readers = desktop(classes).to_vec();
    for at in [0, 2, 3] {
        readers[at].sector = place();
    }
    if let Pattern::Anywhere { seed: s, .. } = &mut readers[1].pattern {
        *s = seed + 7;
    }
    readers
}

#[test]
fn explore() {
    for ahead in [1] {
        let (mut late, mut skipped, mut worst_p99, mut worst_copies, mut sum) =
            (0, 0, 0, f64::MAX, 0.0);
        let mut lates = 0;
        for seed in 0..100 {
            let mut disk = Disk::new(&model(), DiskMode::Time);
            let film = disk.create(Disk::ROOT, 100, Manner::Interactive).unwrap();
            let inter = disk.create(Disk::ROOT, 100, Manner::Interactive).unwrap();
            let copies = disk.create(Disk::ROOT, 100, Manner::Throughput).unwrap();
            assert!(disk.promise(film, 64 << 10, 33_333_333, 0));
            let served = run(&mut disk, &desktop_drawn([film, inter, copies], seed));
            late += served[0].late;
            lates += u64::from(served[0].late > 0);
            skipped += served[0].skipped;
            worst_p99 = worst_p99.max(served[1].delay_ns(0.99));
            let rate = served[2].rate() + served[3].rate();
            worst_copies = rate.min(worst_copies);
            sum += rate;
        }
        println!(
            "cello {ahead}: late {late} in {lates} of 100, skipped {skipped}, interactive p99 at most {:.1}, copies at least {:.1} mean {:.1}",
            worst_p99 as f64 / 1e6,
            worst_copies / 1e6,
            sum / 1e8
        );
    }
}

#[test]
fn explore_shares() {
    for mode in [DiskMode::Time, DiskMode::Bytes] {
        for depth in [1, 2, 4, 8] {
            for ahead in [1] {
                let mut disk = Disk::new(&model(), mode);
                let classes = [100, 200, 400]
                    .map(|w| disk.create(Disk::ROOT, w, Manner::Throughput).unwrap());
                let reader = |class, gib, bytes, random| Reader {
                    class,
                    bytes,
                    sector: if random { SECTORS } else { at_gib(gib) },
                    pattern: if random {
                        Pattern::Anywhere {
                            depth,
                            think_ns: 50_000,
                            seed: gib,
                        }
                    } else {
                        Pattern::Sequential {
                            depth,
                            think_ns: 50_000,
                        }
                    },
                };
                let readers = [
                    reader(classes[0], 2, 512 << 10, false),
                    reader(classes[1], 8, 512 << 10, false),
                    reader(classes[2], 12, 16384, true),
                ];
                let mut drive = Hdd::desktop(16 * GIB).spin();
                let served = read(&mut disk, &mut drive, &readers, 0, 200 * NS_PER_S);
                let all: f64 = served.iter().map(|s| s.bytes as f64).sum();
                let times = classes.map(|c| disk.counts(c).time_ns as f64);
                let time: f64 = times.iter().sum();
                println!(
                    "shares {mode:?} depth {depth} ahead {ahead}: time {:.3?} bytes {:.3?} {:.1} MB/s",
                    times.map(|t| 7.0 * t / time),
                    served
                        .iter()
                        .map(|s| 7.0 * s.bytes as f64 / all)
                        .collect::<Vec<_>>(),
                    all / 200e6
                );
            }
        }
    }
}
#[test]
fn dbg_one() {
    let mut disk = Disk::new(&model(), DiskMode::Time);
    let film = disk.create(Disk::ROOT, 100, Manner::Interactive).unwrap();
    let inter = disk.create(Disk::ROOT, 100, Manner::Interactive).unwrap();
    let copies = disk.create(Disk::ROOT, 100, Manner::Throughput).unwrap();
    assert!(disk.promise(film, 64 << 10, 33_333_333, 0));
    let readers = desktop_drawn([film, inter, copies], 1);
    let mut drive = Hdd::desktop(16 * GIB).spin();
    for r in read(&mut disk, &mut drive, &readers, 0, NS_PER_S) {
        println!("DBG {} {}", r.bytes, r.delays_ns.len());
    }
    for c in [film, inter, copies] {
        println!("DBG {:?}", disk.counts(c));
    }
}
