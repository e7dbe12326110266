//! A disk, in virtual time: by Cello, and as requests come.

use andante_drive::{Flash, Hdd};
use andante_sim::disk::{Fifo, MqDeadline, Pattern, Priority, Queue, Reader, Served, read};
use andante_sim::{Disk, DiskMode, DiskModel, Manner, NS_PER_MS, NS_PER_S, Ns, Random};

const GIB: u64 = 1 << 30;
const SECTORS: u64 = 16 * GIB / 512;
const FRAME_NS: Ns = 33_333_333;
const FRAME: u32 = 64 << 10;

/// What Cello knows of [`Hdd::desktop`].
fn model() -> DiskModel {
    DiskModel::platters(SECTORS, 125_000_000, 1_000_000, 9_000_000, 8_333_333)
}

fn hdd() -> andante_drive::Spinning {
    Hdd::desktop(16 * GIB).spin()
}

fn film(class: u32, sector: u64) -> Reader {
    Reader {
        class,
        priority: Priority::Usual,
        bytes: FRAME,
        sector,
        pattern: Pattern::Periodic { every_ns: FRAME_NS },
    }
}

fn copy(class: u32, sector: u64, depth: u32) -> Reader {
    Reader {
        class,
        priority: Priority::Usual,
        bytes: 512 << 10,
        sector,
        pattern: Pattern::Sequential {
            depth,
            think_ns: 50_000,
        },
    }
}

fn anywhere(class: u32, bytes: u32, depth: u32, think_ns: Ns, seed: u64) -> Reader {
    Reader {
        class,
        priority: Priority::Usual,
        bytes,
        sector: SECTORS,
        pattern: Pattern::Anywhere {
            depth,
            think_ns,
            seed,
        },
    }
}

/// A film at one place, copies at two others, and a program that starts.
fn desktop(classes: [u32; 3], places: [u64; 3], seed: u64) -> [Reader; 4] {
    [
        film(classes[0], places[0]),
        anywhere(classes[1], 4096, 1, 50 * NS_PER_MS, seed),
        copy(classes[2], places[1], 1),
        copy(classes[2], places[2], 1),
    ]
}

/// Where films and copies are in the experiments of others.
const PLACES: [u64; 3] = [2 * GIB / 512, 8 * GIB / 512, 12 * GIB / 512];

fn ten_seconds(queue: &mut dyn Queue, readers: &[Reader]) -> Vec<Served> {
    read(queue, &mut hdd(), readers, 0, 10 * NS_PER_S)
}

/// The film has a contract and next to no weight; of the others nothing is said.
fn by_cello(places: [u64; 3], seed: u64) -> Vec<Served> {
    let mut disk = Disk::new(&model(), DiskMode::Time);
    let [film, typing, copies] =
        [1, 100, 100].map(|weight| disk.create(Disk::ROOT, weight, Manner::ByUse).unwrap());
    assert!(disk.promise(film, FRAME, FRAME_NS, 0));
    ten_seconds(&mut disk, &desktop([film, typing, copies], places, seed))
}

fn rate_of_copies(served: &[Served]) -> f64 {
    served[2..].iter().map(Served::rate).sum()
}

#[test]
fn a_film_beside_copies_and_a_program_that_starts() {
    let plain = ten_seconds(&mut Fifo::new(1), &desktop([0; 3], PLACES, 1));
    assert!(
        plain[0].late > 100,
        "else nothing is shown: {}",
        plain[0].late
    );
    let served = by_cello(PLACES, 1);
    assert_eq!((served[0].late, served[0].skipped), (0, 0));
    assert_eq!(served[0].delays_ns.len(), 300);
    let p99 = served[1].delay_ns(0.99);
    assert!(p99 <= 60 * NS_PER_MS, "{p99}");
    let rate = rate_of_copies(&served);
    assert!(rate >= 18e6, "{rate}");
}

/// What the kernel's own do with it: reads up the disk leave the film late, and to call it urgent does not help enough.
#[test]
fn mq_deadline_is_late() {
    let mut readers = desktop([0; 3], PLACES, 1);
    for (priority, late) in [(Priority::Usual, 150..=280), (Priority::RealTime, 20..=250)] {
        readers[0].priority = priority;
        let served = ten_seconds(&mut MqDeadline::new(1), &readers);
        assert!(late.contains(&served[0].late), "{}", served[0].late);
    }
}

/// Wherever the film and the copies are.
#[test]
fn no_frame_is_late_wherever_it_is_read() {
    let mut rates = 0.0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let places = [0; 3].map(|_| random.below(SECTORS - GIB / 512));
        let served = by_cello(places, seed);
        assert_eq!(
            (served[0].late, served[0].skipped),
            (0, 0),
            "{seed}: {places:?}"
        );
        let p99 = served[1].delay_ns(0.99);
        assert!(p99 <= 60 * NS_PER_MS, "{seed}: {p99}");
        rates += rate_of_copies(&served);
    }
    assert!(rates / 100.0 >= 18e6, "{}", rates / 100.0);
}

/// Three classes of 1 : 2 : 4, each of which has so many requests at a time: of the disk's time, or of bytes. Of time
/// the third may have small ones; for as many bytes of these it would have the disk for ten seconds at a stretch.
#[test]
fn time_or_bytes_are_shared_by_weights() {
    for (mode, depth) in [DiskMode::Time, DiskMode::Bytes]
        .into_iter()
        .flat_map(|mode| [1, 2, 4, 8].map(|depth| (mode, depth)))
    {
        let mut disk = Disk::new(&model(), mode);
        let classes =
            [100, 200, 400].map(|w| disk.create(Disk::ROOT, w, Manner::Throughput).unwrap());
        let bytes = match mode {
            DiskMode::Time => 16 << 10,
            DiskMode::Bytes => 512 << 10,
        };
        let readers = [
            copy(classes[0], PLACES[0], depth),
            copy(classes[1], PLACES[1], depth),
            anywhere(classes[2], bytes, depth, 50_000, 3),
        ];
        read(&mut disk, &mut hdd(), &readers, 0, 120 * NS_PER_S);
        let had = classes.map(|class| {
            let counts = disk.counts(class);
            match mode {
                DiskMode::Time => counts.time_ns,
                DiskMode::Bytes => counts.bytes,
            }
        });
        let all: u64 = had.iter().sum();
        for (had, part) in had.iter().zip([1.0, 2.0, 4.0]) {
            let ratio = *had as f64 * 7.0 / all as f64 / part;
            assert!(
                (ratio - 1.0).abs() <= 0.02,
                "{mode:?} {depth}: {had} of {all}, not {part} of 7"
            );
        }
    }
}

/// What one does not use is the others', by their weights, and it has its own again at once.
#[test]
fn the_share_of_one_that_is_idle_is_the_others() {
    let mut disk = Disk::new(&model(), DiskMode::Time);
    let classes = [100, 100, 200].map(|w| disk.create(Disk::ROOT, w, Manner::ByUse).unwrap());
    let two = [
        copy(classes[0], PLACES[0], 2),
        anywhere(classes[2], 4096, 2, 50_000, 3),
    ];
    read(&mut disk, &mut hdd(), &two, 0, 30 * NS_PER_S);
    let [a, _, c] = classes.map(|class| disk.counts(class).time_ns as f64);
    assert!((c / a - 2.0).abs() < 0.05, "{a} and {c}");
    assert!(
        (a + c) / (30.0 * NS_PER_S as f64) > 0.99,
        "the disk is used"
    );
}

/// Two copies in one class: the disk reads on in each for a while. As they come it does not.
#[test]
fn copies_take_turns() {
    let mut disk = Disk::new(&model(), DiskMode::Time);
    let class = disk.create(Disk::ROOT, 100, Manner::ByUse).unwrap();
    let copies = |class| [copy(class, PLACES[1], 1), copy(class, PLACES[2], 1)];
    let turns: f64 = (ten_seconds(&mut disk, &copies(class)).iter())
        .map(Served::rate)
        .sum();
    let plain: f64 = (ten_seconds(&mut Fifo::new(1), &copies(0)).iter())
        .map(Served::rate)
        .sum();
    assert!(turns >= 100e6, "{turns}");
    assert!(turns >= 2.0 * plain, "{turns} and {plain}");
}

/// Without an arm requests go side by side, by weights all the same.
#[test]
fn flash_is_shared_by_weights() {
    let flash = Flash::small();
    let channels = flash.channels;
    let model = DiskModel::flash(SECTORS, 400_000_000, flash.read_ns, channels);
    let mut disk = Disk::new(&model, DiskMode::Time);
    let classes = [100, 300].map(|w| disk.create(Disk::ROOT, w, Manner::ByUse).unwrap());
    let readers = classes.map(|class| anywhere(class, 4096, 32, 1_000, u64::from(class)));
    let served = read(&mut disk, &mut flash.power(), &readers, 0, NS_PER_S);
    let [light, heavy] = classes.map(|class| disk.counts(class).time_ns as f64);
    assert!((heavy / light - 3.0).abs() < 0.06, "{light} and {heavy}");
    // 121 µs each, on four channels; some wait for one that is busy while another is not.
    let plain: f64 = {
        let readers = [0; 2].map(|_| anywhere(0, 4096, 32, 1_000, 7));
        let served = read(
            &mut Fifo::new(channels),
            &mut flash.power(),
            &readers,
            0,
            NS_PER_S,
        );
        served.iter().map(Served::rate).sum()
    };
    let all: f64 = served.iter().map(Served::rate).sum();
    assert!(all >= 0.98 * plain, "{all} and {plain}");
}
