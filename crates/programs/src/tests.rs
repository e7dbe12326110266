//! What the programs measure of themselves. How long something took depends on what else a machine
//! does, so this test runs itself in the virtual machine, where time is a count of instructions.

use std::path::Path;
use std::time::Duration;

use andante_scenario::{Display, ReadPattern};
use andante_vm::{Boot, Cache, Event, find_kernel, find_qemu};

use super::*;

/// Set where the test is to measure and not to boot.
const IN_GUEST: &str = "ANDANTE_TEST_IN_GUEST";
/// How long is measured [ns].
const LENGTH_NS: u64 = 250_000_000;
/// From a program's start to the measurement [ns]: some frames.
const WARMUP_NS: u64 = 50_000_000;
/// A machine that takes longer on its host hangs.
const HANGS: Duration = Duration::from_secs(3600);

// One test: the programs of this process share the flag that stops them.
#[test]
#[ignore = "needs the virtual machine"]
fn programs_count_within_the_measurement() {
    if std::env::var_os(IN_GUEST).is_none() {
        return in_vm("tests::programs_count_within_the_measurement");
    }
    let measuring = Measuring {
        steps_per_ms: work::calibrate(),
    };
    measuring.work();
    measuring.players();
    measuring.sleepers();
    measuring.sound();
    measuring.with_a_server();
    measuring.memory();
    measuring.readers();
    measuring.workers();
}

/// Runs this executable's test `name` in a machine with one CPU.
fn in_vm(name: &str) {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let this = std::env::current_exe().expect("the path of this test");
    let program = this.file_name().and_then(|name| name.to_str());
    let folder = tempfile::tempdir().expect("a folder");
    let program = program.expect("a name");
    let script = format!("{IN_GUEST}=1 exec {program} --exact {name} --ignored --nocapture");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let boot = Boot {
        programs: vec![this],
        timeout: HANGS,
        console_log: folder.path().join("console"),
        ..Boot::of(&kernel, &qemu, &["sh", "-c", &script])
    };
    let mut console = Vec::new();
    let outcome = boot.run(&mut |event| {
        if let Event::Console(line) = event {
            console.push(line.to_owned());
        }
    });
    let passed = outcome.expect("the machine runs").exit_status == 0;
    // A filter that meets no test would pass as well.
    let ran = console.iter().any(|line| line.contains("1 passed"));
    assert!(passed && ran, "{}", console.join("\n"));
}

struct Measuring {
    steps_per_ms: f64,
}

impl Measuring {
    /// Runs `kind` in this process.
    fn measure(&self, kind: &Kind) -> Samples {
        self.measure_on(kind, None)
    }

    /// The same, with a disk.
    fn measure_on(&self, kind: &Kind, disk: Option<&Path>) -> Samples {
        let begin_ns = clock::now_ns() + WARMUP_NS;
        let order = Order {
            name: "test".to_owned(),
            number: 0,
            kind: kind.clone(),
            begin_ns,
            end_ns: begin_ns + LENGTH_NS,
            steps_per_ms: self.steps_per_ms,
            out: PathBuf::new(),
            server: None,
            session: None,
            url: None,
            peer: None,
            library: None,
            disk: disk.map(Path::to_owned),
            lock: false,
        };
        stop::set(false);
        let stop_ns = order.end_ns + WARMUP_NS;
        let stopper = std::thread::spawn(move || {
            clock::sleep_until(stop_ns);
            stop::set(true);
        });
        let samples = match kind.server() {
            None => run(&order).unwrap(),
            Some(_) => run_with_server(order),
        };
        stopper.join().unwrap();
        samples
    }

    /// Calibrated work takes the time that it stands for.
    fn work(&self) {
        let start_ns = clock::now_ns();
        work::compute((20.0 * self.steps_per_ms) as u64);
        let took_ms = (clock::now_ns() - start_ns) as f64 / 1e6;
        assert!((19.5..20.5).contains(&took_ms), "{took_ms} ms");
    }

    /// Programs that only touch their memory, where there is enough of it.
    fn memory(&self) {
        let player = self.measure(&Kind::MemoryPlayer {
            fps: 100.0,
            anonymous_bytes: 3 << 20,
            library_bytes: 0,
            wait_s: 0.01,
        });
        assert_eq!((player.due, player.late), (Some(25), Some(0)));
        assert_eq!(player.shown_ns.len(), 25);
        assert!(player.first_touch_ns > Some(0) && player.first_read_ns.is_none());
        let hog = self.measure(&Kind::MemoryHog { bytes: 1 << 20 });
        // It sleeps for 200 µs after sixteen touches; those take up to 60 where nothing was optimised.
        let turns = LENGTH_NS / 200_000;
        let touches = hog.iterations.unwrap() / 16;
        assert!(
            (turns * 7 / 10..=turns).contains(&touches),
            "{touches} of {turns}"
        );
    }

    /// Programs that read, from a file in memory that takes no time.
    fn readers(&self) {
        let file = PathBuf::from("/tmp/disk");
        std::fs::write(&file, vec![0; 64 << 10]).unwrap();
        let reader = |pattern, depth, think_ms| Kind::Reader {
            pattern,
            bytes: 16 << 10,
            depth,
            think_ms,
            io_class: None,
        };
        let every_ms = 10.0;
        let at = 16 << 10;
        let film = reader(ReadPattern::Periodic { every_ms, at }, 1, 0.0);
        let film = self.measure_on(&film, Some(&file));
        assert_eq!(
            (film.due, film.late, film.skipped),
            (Some(25), Some(0), Some(0))
        );
        assert_eq!(
            film.read_bytes,
            Some(25 * (16 << 10)),
            "also where it begins again"
        );
        assert_eq!(film.latency_ns.len(), 25);
        let copy = reader(ReadPattern::Sequential { at }, 1, 1.0);
        let one = self.measure_on(&copy, Some(&file)).iterations.unwrap();
        assert!((200..=250).contains(&one), "{one} reads in 250 ms");
        let anywhere = reader(ReadPattern::Anywhere { seed: 1 }, 3, 1.0);
        let three = self.measure_on(&anywhere, Some(&file)).iterations.unwrap();
        assert!(
            (600..=750).contains(&three),
            "{three} reads of three threads"
        );
    }

    fn players(&self) {
        let player = |work_ms: &[f64], drops, by_clock| Kind::Player {
            fps: 100.0,
            work_ms: work_ms.to_vec(),
            display: Display::NONE,
            drops,
            by_clock,
        };
        let mut kind = player(&[0.1, 0.2], true, false);
        if let Kind::Player { display, .. } = &mut kind {
            display.work_ms = 0.1;
        }
        let in_time = self.measure(&kind);
        assert_eq!(in_time.shown_ns.len(), 25);
        assert!(in_time.shown_ns.is_sorted_by(|a, b| a < b));
        assert_eq!((in_time.late, in_time.due), (Some(0), Some(25)));

        // Every frame takes three periods and a half.
        let slow = self.measure(&player(&[35.0], true, false));
        assert!((15..25).contains(&slow.dropped_ns.len()), "{slow:?}");
        assert_eq!(slow.late, Some(slow.shown_ns.len() as u64));

        let late = self.measure(&player(&[11.0], false, true));
        assert!(late.dropped_ns.is_empty(), "{late:?}");
        assert_eq!(late.late, Some(late.shown_ns.len() as u64), "{late:?}");
        assert_eq!(late.due, Some(25));
    }

    fn sleepers(&self) {
        let waker = self.measure(&Kind::Waker {
            interval_us: 10_000.0,
        });
        assert_eq!(waker.latency_ns.len(), 25);
        assert!(waker.latency_ns.iter().all(|ns| *ns > 0.0));

        let typist = self.measure(&Kind::Typist {
            keys_per_s: 100.0,
            regular: false,
            work_ms: vec![0.5],
            input_ms: vec![0.0],
            until_s: None,
            seed: 3,
            display: Display::NONE,
        });
        assert!((15..35).contains(&typist.latency_ns.len()), "{typist:?}");
        assert!(typist.latency_ns.iter().all(|ns| *ns >= 480_000.0));
    }

    fn sound(&self) {
        let audio = |work_ms| Kind::Audio {
            frames: 480,
            rate_hz: 48_000,
            work_ms: vec![work_ms],
        };
        let light = self.measure(&audio(0.5));
        assert_eq!((light.iterations, light.xruns), (Some(25), Some(0)));
        assert!(light.latency_ns.iter().all(|ns| *ns > 480_000.0));
        // None can end in time, and after each a period or more is lost.
        let heavy = self.measure(&audio(15.0));
        assert!(heavy.iterations > Some(2));
        assert_eq!(heavy.xruns, Some(25));
    }

    fn with_a_server(&self) {
        let x = |ahead| Display {
            work_ms: 0.5,
            server: Some("x".to_owned()),
            exchanges: 2,
            ahead,
        };
        for ahead in [0, 3] {
            let player = self.measure(&Kind::Player {
                fps: 100.0,
                work_ms: vec![0.1],
                display: x(ahead),
                drops: true,
                by_clock: false,
            });
            assert_eq!(player.shown_ns.len(), 25);
            let frames = player.shown_ns.iter().zip(&player.released_ns);
            // The player's work and the server's are in every frame's time.
            let took_ns = frames.map(|(at, from)| at - from);
            assert!(took_ns.min() >= Some(580_000), "{player:?}");
            // Two requests for each frame.
            assert_eq!(player.iterations, Some(50));

            let typist = self.measure(&Kind::Typist {
                keys_per_s: 100.0,
                regular: false,
                work_ms: vec![0.1],
                input_ms: vec![1.0],
                until_s: Some(0.2),
                seed: 3,
                display: x(ahead),
            });
            assert!((10..30).contains(&typist.latency_ns.len()), "{typist:?}");
            let long_enough = |ns: &f64| *ns >= 1_580_000.0;
            assert!(typist.latency_ns.iter().all(long_enough), "{typist:?}");
        }
        let client = self.measure(&Kind::Client {
            server: "x".to_owned(),
            work_ms: 0.5,
            think_ms: 1.0,
        });
        // 1.5 ms and a little for each request.
        assert!((140..=167).contains(&client.latency_ns.len()));
        assert!(client.latency_ns.iter().all(|ns| *ns >= 480_000.0));
    }

    fn workers(&self) {
        let pingpong = self.measure(&Kind::Pingpong { window: 10 });
        assert!(pingpong.latency_ns.len() > 100);
        assert!(pingpong.latency_ns.iter().all(|ns| *ns > 500.0));
        let round_trips = pingpong.latency_ns.len() as u64 * 10;
        assert_eq!(pingpong.iterations, Some(round_trips));

        let batch = self.measure(&Kind::Batch {
            work_ms: vec![1.0],
            fork_ms: None,
        });
        // A child is a copy of this process, which takes time as well.
        assert!(
            (100..=250).contains(&batch.iterations.unwrap()),
            "{batch:?}"
        );
        assert!(batch.iteration_ns.iter().all(|ns| *ns >= 980_000.0));
        let disk = self.measure(&Kind::Disk {
            work_ms: vec![1.0],
            wait_ms: vec![1.0, 3.0],
        });
        // Three milliseconds for each, on average, and a little.
        assert!((60..=84).contains(&disk.iterations.unwrap()), "{disk:?}");
        assert!(disk.iteration_ns.iter().all(|ns| *ns >= 980_000.0));
        let crowd = self.measure(&Kind::Crowd {
            threads: 100,
            yields: 10,
        });
        assert!(crowd.iterations > Some(2), "{crowd:?}");
        for kind in [Kind::Loop, Kind::Dhrystone] {
            assert!(self.measure(&kind).iterations > Some(1000), "{kind:?}");
        }
    }
}

/// Runs it beside the server that it asks; its iterations are the server's.
fn run_with_server(mut order: Order) -> Samples {
    let folder = tempfile::tempdir().unwrap();
    order.server = Some(folder.path().join("socket"));
    let of_server = Order {
        kind: Kind::Server,
        ..order.clone()
    };
    // It may well come up after its client.
    let server = std::thread::spawn(move || run(&of_server).unwrap());
    let mut samples = run(&order).unwrap();
    samples.iterations = server.join().unwrap().iterations;
    samples
}
