//! Runs as the laboratory might bring them back, made up but of realistic shape.

use andante_report::Check;
use andante_result::{ClassResult, ProgramResult, Run, RunResult, SchedulerResult, Spread};

const FRAME_MS: f64 = 1000.0 / 30.0;
const SAMPLE_NS: u64 = 100_000_000;

/// A result without schedulers.
pub fn empty() -> RunResult {
    RunResult {
        scenario: "film-make".into(),
        title: "A film beside make -j8".into(),
        on: "vm".into(),
        kernel: "7.2.13+deb14-cloud-amd64".into(),
        cpus: 1,
        memory_mib: 1024,
        duration_s: 14.0,
        ..RunResult::default()
    }
}

/// A film beside a build: smooth under Andante, halting under the stock scheduler.
pub fn film() -> RunResult {
    let mut random = Random(7);
    let mut smooth = player("film", "mpv", &mut random, 0.0, 40.0);
    smooth.late = Some(0);
    let halting = player("film", "mpv", &mut random, 0.09, 230.0);
    let peer = player("film", "mpv", &mut random, 0.012, 150.0);
    RunResult {
        schedulers: vec![
            film_scheduler("andante", Some(312.4), smooth, 41, 0.362),
            film_scheduler("eevdf", None, halting, 44, 0.288),
            film_scheduler("scx_bpfland", Some(2150.0), peer, 42, 0.341),
        ],
        ..empty()
    }
}

fn film_scheduler(
    name: &str,
    load_ms: Option<f64>,
    film: ProgramResult,
    objects: u64,
    share: f64,
) -> SchedulerResult {
    let make = ProgramResult {
        name: "make".into(),
        class: "/build".into(),
        kind: "make".into(),
        iterations: Some(objects),
        cpu_ns: ((1.0 - share) * 14e9) as u64,
        ..Default::default()
    };
    let mut scheduler = SchedulerResult {
        name: name.into(),
        load_ms,
        idle_ns: 3_000_000,
        programs: vec![film, make],
        ..Default::default()
    };
    let mut random = Random(objects);
    sample(
        &mut scheduler,
        (140, 1),
        &[("/film", 100, 0.5), ("/build", 100, 0.5)],
        &mut |i| {
            let film = if i < 4 {
                0.1
            } else {
                share + 0.08 * (random.next() - 0.5)
            };
            vec![film, 0.999 - film]
        },
    );
    scheduler
}

/// A tree of classes, 1/16, 3/16 and 12/16, with four busy CPUs.
pub fn tree() -> RunResult {
    let classes = [
        ("/s1", 2, 0.25),
        ("/s1/a", 1, 1.0 / 16.0),
        ("/s1/b", 3, 3.0 / 16.0),
        ("/s2", 6, 0.75),
    ];
    let scheduler = |name: &str, shares: [f64; 3]| {
        let mut random = Random(3);
        let mut scheduler = SchedulerResult {
            name: name.into(),
            ..Default::default()
        };
        sample(&mut scheduler, (300, 4), &classes, &mut |_| {
            let noise = 0.01 * (random.next() - 0.5);
            let [a, b, c] = shares;
            vec![a + b + noise, a, b + noise, c - noise]
        });
        for (i, class) in ["/s1/a", "/s1/b", "/s2"].iter().enumerate() {
            scheduler.programs.push(ProgramResult {
                name: format!("loop.{}", i + 1),
                class: (*class).into(),
                kind: "loop".into(),
                iterations: Some((shares[i] * 30e6) as u64),
                cpu_ns: (shares[i] * 30e9) as u64,
                ..Default::default()
            });
        }
        scheduler
    };
    RunResult {
        scenario: "tree".into(),
        title: "Shares in a tree: 1/16, 3/16, 12/16".into(),
        cpus: 4,
        duration_s: 30.0,
        schedulers: vec![
            scheduler("andante", [0.0624, 0.1877, 0.7499]),
            scheduler("eevdf", [0.0593, 0.1921, 0.7486]),
        ],
        ..empty()
    }
}

/// A player beside 1 to 8 Dhrystones.
pub fn sweep() -> Vec<RunResult> {
    let case = |count: u64| {
        let scheduler = |name: &str, drops: f64, freeze_ms: f64| {
            let mut random = Random(count);
            let mut programs = vec![player("player", "player", &mut random, drops, freeze_ms)];
            programs.extend((1..=count).map(|i| ProgramResult {
                name: format!("dhrystone.{i}"),
                class: "/best-effort".into(),
                kind: "dhrystone".into(),
                iterations: Some(8_000_000 / count + i),
                cpu_ns: 8_000_000_000 / count,
                ..Default::default()
            }));
            SchedulerResult {
                name: name.into(),
                programs,
                ..Default::default()
            }
        };
        RunResult {
            scenario: "qlinux-3".into(),
            title: "QLinux experiment 3: a player beside Dhrystones".into(),
            schedulers: vec![
                scheduler("andante", 0.0, 40.0),
                scheduler("eevdf", 0.03 * count as f64, 60.0 * count as f64),
            ],
            ..empty()
        }
    };
    (1..=8).map(case).collect()
}

/// Round trips at three depths: latencies, no frames.
pub fn latencies() -> Vec<RunResult> {
    let case = |depth: usize| {
        let scheduler = |name: &str, mean: f64| SchedulerResult {
            name: name.into(),
            programs: vec![
                program("pingpong", "pingpong", &"/c".repeat(depth), mean),
                program("typist", "typist", "/c", mean * 6.0),
            ],
            ..Default::default()
        };
        RunResult {
            scenario: "overhead".into(),
            title: "Cost of a switch by depth".into(),
            schedulers: vec![
                scheduler("andante", 5.31 + 0.05 * depth as f64),
                scheduler("eevdf", 5.12 + 0.02 * depth as f64),
            ],
            ..empty()
        }
    };
    [1, 3, 6].map(case).into()
}

/// A result in which every field is set, names are hostile, and a good deal went wrong.
pub fn awkward() -> RunResult {
    let mut result = film();
    result.title = "<b>bold</b> & \"quoted\"".into();
    result.scenario = "a'b<script>alert(1)</script>".into();
    let scheduler = &mut result.schedulers[0];
    scheduler.name = "scx_<i>&".into();
    scheduler.ejected = Some("runnable task stall (<mpv>[42] failed to run for 30 s)".into());
    scheduler.classes[0].path = "/<film>".into();
    scheduler.classes[0].share_usable = Some(0.25);
    scheduler.programs[0].name = "</svg><b>".into();
    scheduler.programs[0].failed = Some("exited with status 1 & \"no\" word".into());
    scheduler.programs[0].latency_us = Spread::of(&[1.0, 2.0, 900.0]);
    scheduler.programs[0].iteration_ms = Spread::of(&[10.0, 11.0]);
    scheduler.programs[0].levels = vec![29, 39];
    scheduler.programs[0].released_ms = vec![0.5];
    scheduler.runs = vec![
        Run {
            cpu: 0,
            tid: 7,
            comm: "mpv".into(),
            start_ns: 5_000,
            length_ns: 2_000,
            rule: Some("share".into()),
        },
        Run {
            cpu: 0,
            tid: 9,
            comm: "cc1".into(),
            start_ns: 1_000,
            length_ns: 4_000,
            rule: None,
        },
    ];
    result
}

/// Two checks that passed and one that did not.
pub fn checks() -> Vec<Check> {
    let check = |wanted: &str, measured: &str, passed| Check {
        what: String::new(),
        wanted: wanted.into(),
        measured: measured.into(),
        passed,
    };
    vec![
        check("andante: dropped of film at most 0", "0", true),
        check(
            "andante: longest_freeze_ms of film at most 67",
            "34.5",
            true,
        ),
        check(
            "andante: iterations of make at least 90 % of what the film leaves",
            "0.87",
            false,
        ),
    ]
}

fn program(name: &str, kind: &str, class: &str, mean_us: f64) -> ProgramResult {
    let mut random = Random(11);
    let tail = |x: f64| mean_us * (0.8 + 0.3 * x + if x > 0.985 { 6.0 * x } else { 0.0 });
    let samples: Vec<f64> = (0..500).map(|_| tail(random.next())).collect();
    ProgramResult {
        name: name.into(),
        class: class.into(),
        kind: kind.into(),
        latency_us: Spread::of(&samples),
        iterations: Some(500),
        cpu_ns: 60_000_000,
        ..Default::default()
    }
}

/// A player of 360 frames that freezes with probability `halts` at each frame, for up to
/// `freeze_ms`, drops what it missed, and hurries a little afterwards.
fn player(
    name: &str,
    kind: &str,
    random: &mut Random,
    halts: f64,
    freeze_ms: f64,
) -> ProgramResult {
    let (mut shown_ms, mut dropped_ms) = (Vec::new(), Vec::new());
    let (start_ms, mut late, mut free_ms) = (412.0, 0, 0.0);
    for frame in 0..360 {
        let due_ms = start_ms + f64::from(frame) * FRAME_MS;
        if due_ms + 1.5 * FRAME_MS < free_ms {
            dropped_ms.push(due_ms);
            continue;
        }
        let jitter = 1.2 * (random.next() - 0.5)
            + if halts > 0.0 {
                14.0 * random.next().powi(6)
            } else {
                0.0
            };
        let at_ms = (due_ms + jitter).max(free_ms);
        late += u64::from(at_ms > due_ms + 5.0);
        shown_ms.push(at_ms);
        free_ms = at_ms + 3.0;
        if random.next() < halts {
            free_ms += FRAME_MS + freeze_ms * random.next().powi(2);
        }
    }
    let gaps: Vec<f64> = shown_ms.windows(2).map(|w| w[1] - w[0]).collect();
    ProgramResult {
        name: name.into(),
        class: "/film".into(),
        kind: kind.into(),
        frames: Some(shown_ms.len() as u64),
        due: Some(360),
        late: Some(late),
        dropped: Some(dropped_ms.len() as u64),
        frame_ms: Spread::of(&gaps),
        cpu_ns: 4_300_000_000,
        longest_freeze_ms: gaps.iter().copied().reduce(f64::max),
        gaps_over_100ms: Some(gaps.iter().filter(|gap| **gap > 100.0).count() as u64),
        span_s: Some((shown_ms[shown_ms.len() - 1] - shown_ms[0]) / 1e3),
        shown_ms,
        dropped_ms,
        ..Default::default()
    }
}

/// Gives `scheduler` the classes (path, weight, share asked) and `count` samples, of which
/// `shares` says what part of the machine each class has in the i-th.
fn sample(
    scheduler: &mut SchedulerResult,
    (count, cpus): (u64, u64),
    classes: &[(&str, u32, f64)],
    shares: &mut dyn FnMut(u64) -> Vec<f64>,
) {
    let machine_ns = (SAMPLE_NS * cpus) as f64;
    scheduler.sample_ns = (0..=count).map(|i| i * SAMPLE_NS).collect();
    let class = |&(path, weight, share_asked): &(&str, u32, f64)| ClassResult {
        path: path.into(),
        weight,
        share_asked,
        samples: vec![0],
        ..Default::default()
    };
    scheduler.classes = classes.iter().map(class).collect();
    for i in 0..count {
        for (class, share) in scheduler.classes.iter_mut().zip(shares(i)) {
            class.cpu_ns += (share * machine_ns) as u64;
            class.samples.push(class.cpu_ns);
        }
    }
    for class in &mut scheduler.classes {
        class.share_received = class.cpu_ns as f64 / (count as f64 * machine_ns);
    }
}

/// A small deterministic generator (the constants of Knuth's MMIX), for shape, not for statistics.
struct Random(u64);

impl Random {
    /// The next number in [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
