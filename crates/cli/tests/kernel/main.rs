//! Tests on a real kernel: each boots the virtual machine, runs one of the shell scripts beside
//! this file in it, and reads what the script reports. Time is the machine's, so a figure is the
//! same on every run; on several CPUs as long as the machine that they go on from is kept.
//!
//! They need QEMU and a kernel, hence `#[ignore]`; `make test` runs them, in alphabetical order: the one
//! that takes longest begins with an a.

mod binding;
mod calls;
mod contracts;
mod historical;
mod policies;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use andante_vm::{
    Boot, Cache, Content, InitrdFile, Kernel, KernelError, KernelKind, KernelSearch, Order,
    find_kernel, find_qemu,
};

/// A machine that takes longer hangs. How fast it is depends on what else its host does, and decides
/// nothing; the longest script takes ninety seconds of its time.
const HANGS: Duration = Duration::from_secs(3600);

/// What a script reported, one `REPORT key value` line each, in order.
type Report = BTreeMap<String, Vec<String>>;

/// Programs in C beside this file.
const COMPILED: [&str; 10] = [
    "calls", "endless", "flood", "parts", "peers", "realtime", "ring", "session", "threads", "told",
];

/// Runs tests/kernel/NAME.sh in a machine with so many CPUs. All are given the same programs, so that a
/// machine that has been booted for one test serves the others.
fn in_vm(name: &str, cpus: u32) -> Report {
    let [report] = in_vm_given(name, &[], cpus, [None]);
    report
}

/// The same for a script that begins when Andante is in charge. Loading is most of what a short test
/// takes, and is done once for all with the same options on so many CPUs.
fn in_charge(name: &str, options: &[&str], cpus: u32) -> Report {
    in_charge_told(name, "", options, cpus)
}

/// The same, where the script begins with these lines.
fn in_charge_told(name: &str, lines: &str, options: &[&str], cpus: u32) -> Report {
    let script = scripts().join(format!("{name}.sh"));
    let script = std::fs::read_to_string(script).expect("the script of a test");
    let script = Content::Bytes(format!("{lines}{script}").into_bytes());
    let [report] = in_vm_given("in_charge", options, cpus, [Some(script)]);
    report
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel")
}

/// Runs tests/kernel/NAME.sh once for each that it is given: where it calls `given`, the machine is saved,
/// and each goes on from there with a text of its own.
fn in_vm_given<const TIMES: usize>(
    name: &str,
    arguments: &[&str],
    cpus: u32,
    given: [Option<Content>; TIMES],
) -> [Report; TIMES] {
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &|_| {}).expect("a kernel with sched_ext");
    on_kernel(&kernel, name, arguments, cpus, given)
}

fn on_kernel<const TIMES: usize>(
    kernel: &Kernel,
    name: &str,
    arguments: &[&str],
    cpus: u32,
    given: [Option<Content>; TIMES],
) -> [Report; TIMES] {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let qemu = find_qemu(&cache, cpus, &quiet).expect("QEMU");
    let script = format!("{name}.sh");
    let file = |guest: &str, content, mode| InitrdFile {
        guest: format!("/andante/{guest}").into(),
        content,
        mode,
    };
    let of_host = |name: &str| file(name, Content::Host(scripts().join(name)), 0o755);
    // The shell of the virtual machine has no `nice` of its own.
    let others = [env!("CARGO_BIN_EXE_andante"), "/usr/bin/nice"].map(PathBuf::from);
    let guest = format!("/andante/{script}");
    let command: Vec<&str> = (["/bin/sh", &guest].into_iter())
        .chain(arguments.iter().copied())
        .collect();
    let boot = Boot {
        cpus,
        memory_mib: 1024, // of which the verifier of 6.18 takes half for a while
        files: vec![of_host("common.sh"), of_host(&script)],
        programs: compiled().iter().cloned().chain(others).collect(),
        saved: Some(&cache),
        timeout: HANGS,
        // Of this checkout, for another's tests may run at the same time.
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{cpus}.log")),
        ..Boot::of(kernel, &qemu, &command)
    };
    given.map(|given| {
        let order = given.map(|content| Order {
            files: vec![file("given", content, 0o644)],
            save: true,
        });
        reported(&Boot {
            order,
            ..boot.clone()
        })
    })
}

/// Runs the machine, and returns what its script reported.
fn reported(boot: &Boot) -> Report {
    let mut report = Report::new();
    let outcome = boot
        .run(&mut |event| {
            let andante_vm::Event::Console(line) = event else {
                return;
            };
            println!("{line}"); // seen if the test fails
            if let Some(words) = line.trim().strip_prefix("REPORT ") {
                let (key, value) = words.split_once(' ').unwrap_or((words, ""));
                report
                    .entry(key.to_owned())
                    .or_default()
                    .push(value.to_owned());
            }
        })
        .expect("the machine runs");
    let command = &boot.command;
    assert_eq!(
        outcome.exit_status, 0,
        "{command:?} failed; see the console: {report:?}"
    );
    report
}

/// The programs of tests/kernel/NAME.c, compiled once for all tests.
fn compiled() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<[PathBuf; COMPILED.len()]> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
        std::fs::create_dir_all(&folder).expect("a folder");
        COMPILED.map(|name| compile(name, &folder))
    })
}

fn compile(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = std::process::Command::new(compiler);
    command.args(["-O1", "-pthread", "-o"]).arg(&program);
    let source = scripts().join(format!("{name}.c"));
    let status = command.arg(source).status().expect("a C compiler");
    assert!(status.success(), "{status}");
    program
}

fn number(report: &Report, key: &str) -> f64 {
    let value = report.get(key).and_then(|values| values.last());
    let value = value.unwrap_or_else(|| panic!("the script reports no {key}: {report:?}"));
    value
        .parse()
        .unwrap_or_else(|_| panic!("{key} is no number: {value}"))
}

/// Twenty kills of one that is in charge and under load, each at another instant between two ticks; after
/// the last, in the same kernel, two more of ones that are loaded anew.
#[test]
#[ignore = "needs the virtual machine"]
fn after_each_of_twenty_kills_under_load_the_stock_scheduler_is_back() {
    /// Kills, and how many of them are in the machine of the last.
    const KILLS: usize = 20;
    const AGAIN: usize = 2;
    /// After so long, and so much longer each time [µs]: ticks are 4 ms apart, so that each comes at another
    /// of twenty instants of a tick.
    const FIRST_US: usize = 100_000;
    const STEP_US: usize = 4_000 + 4_000 / KILLS;
    let given: [_; KILLS] = std::array::from_fn(|kill| {
        let after_s = (FIRST_US + kill * STEP_US) as f64 / 1e6;
        let again = if kill + 1 == KILLS { AGAIN } else { 0 };
        let text = format!("after_s={after_s}\nagain={again}\n");
        Some(Content::Bytes(text.into_bytes()))
    });
    let reports = in_vm_given("kill", &[], 2, given);
    for (kill, report) in reports.iter().enumerate() {
        let states = &report["after_kill"];
        let kills = if kill + 1 == KILLS { 1 + AGAIN } else { 1 };
        assert_eq!(states.len(), kills, "{report:?}");
        assert!(states.iter().all(|state| state == "disabled"), "{report:?}");
        assert_eq!(number(report, "hogs_alive"), 6.0, "no task may be lost");
        assert_eq!(
            number(report, "hogs_progressing"),
            6.0,
            "no task may be stuck"
        );
    }
}

#[test]
#[ignore = "needs the virtual machine"]
fn cpus_may_leave_and_come_back() {
    let given = [1, 2, 3].map(|back| {
        let text = format!("back={back}\n");
        Some(Content::Bytes(text.into_bytes()))
    });
    in_vm_given("hotplug", &[], 4, given)
        .iter()
        .for_each(cpus_left_and_came_back);
}

fn cpus_left_and_came_back(report: &Report) {
    for key in ["while_gone", "when_back", "at_the_end"] {
        let states = &report[key];
        assert!(states.iter().all(|state| state == "enabled"), "{report:?}");
    }
    assert_eq!(report["while_gone"].len() + report["when_back"].len(), 18);
    assert_eq!(number(report, "hogs_progressing"), 8.0, "{report:?}");
    // Of 4 s on four CPUs, in ticks of 10 ms: all come back to work.
    assert!(number(report, "idle_ticks") < 16.0, "{report:?}");
    assert_eq!(number(report, "left_with"), 0.0);
}

#[test]
#[ignore = "needs the virtual machine"]
fn top_status_and_why_show_a_live_tree() {
    let report = in_charge("watch", &[], 1);
    for key in ["top_light", "top_heavy", "status_light", "status_heavy"] {
        assert!(number(&report, key) >= 1.0, "{key}: {report:?}");
    }
    for key in ["why_waits", "why_forks", "why_works"] {
        assert_eq!(number(&report, key), 1.0, "{key}: {report:?}");
    }
    assert_eq!(report["received"].len(), 3);
    for received in &report["received"] {
        let received: f64 = received.parse().expect("a share");
        assert!((received - 1.0).abs() < 0.02, "{report:?}");
    }
    assert_eq!(number(&report, "left_with"), 0.0);
}

/// The kernel goes on with what a real-time task has interrupted, and asks nobody who is next: what the
/// real-time task has woken would wait for the rest of a slice: 2 ms at most, under SVR4's policy to the end
/// of the quantum.
#[test]
#[ignore = "needs the virtual machine"]
fn whom_a_real_time_task_wakes_does_not_wait_for_what_it_interrupted() {
    // Without learnt contracts and with them; for a historical policy see historical.rs.
    for options in [&["--learn", "0"][..], &[]] {
        let report = in_charge("realtime", options, 1);
        assert!(
            number(&report, "waited_us") < 100.0,
            "{options:?}: {report:?}"
        );
        // If a task of the kernel's has just begun: 200 µs are its own, and what waking takes.
        assert!(
            number(&report, "longest_us") < 300.0,
            "{options:?}: {report:?}"
        );
        // The daemon comes before everybody: no film is to notice what it looks at each second.
        assert!(
            number(&report, "daemon_part") < 1e-3,
            "{options:?}: {report:?}"
        );
    }
}

#[test]
#[ignore = "needs the virtual machine"]
fn domains_are_one_scheduler() {
    let report = in_vm("domains", 2);
    let percent = |key: &str| -> Vec<f64> {
        report[key]
            .iter()
            .map(|value| value.parse().unwrap())
            .collect()
    };
    let is_near = |key: &str, asked: &[f64]| {
        let given = percent(key);
        assert_eq!(given.len(), asked.len());
        for (given, asked) in given.iter().zip(asked) {
            assert!((given / asked - 1.0).abs() < 0.03, "{key}: {report:?}");
        }
    };
    assert_eq!(number(&report, "domains"), 2.0);
    is_near("weights", &[100.0 / 3.0, 200.0 / 3.0, 100.0]);
    let of_nested = [200.0 / 3.0, 400.0 / 3.0, 100.0 / 3.0, 100.0 / 3.0];
    is_near("nested", &of_nested);
    // One of them may run in the first domain only, or in the second.
    is_near("bound1", &of_nested);
    is_near("bound2", &of_nested);
    for share in percent("promised") {
        assert!(share > 59.0, "{report:?}");
    }
    // Of 2 s each on two CPUs, in ticks of 10 ms.
    for ticks in percent("idle_ticks") {
        assert!(ticks < 16.0, "{report:?}");
    }
    assert!(report["state"].iter().all(|state| state == "enabled"));
    verifies_easily(&report);
    assert_eq!(number(&report, "left_with"), 0.0);
}

/// The verifier's limit is a million instructions for each program; ours are far from it, also on 6.18,
/// which takes twice as many.
fn verifies_easily(report: &Report) {
    let verified = &report["verified"];
    assert!(verified.len() >= 10, "{report:?}");
    for program in verified {
        let (_, instructions) = program.split_once(' ').expect("name and count");
        assert!(instructions.parse::<u32>().unwrap() < 300_000, "{program}");
    }
}

#[test]
#[ignore = "needs the virtual machine"]
fn loads_in_under_five_seconds_of_virtual_time() {
    let report = in_charge("load", &[], 1);
    assert!(number(&report, "load_s") < 5.0, "{report:?}");
    verifies_easily(&report);
}

/// Events ask more of the verifier; who has not asked for them does not pay for that (above).
#[test]
#[ignore = "needs the virtual machine"]
fn loads_with_events() {
    for options in [&["--events"][..], &["--policy", "dwcs", "--events=4,5"]] {
        let report = in_charge("load", options, 1);
        assert!(number(&report, "load_s") < 8.0, "{report:?}");
        for program in &report["verified"] {
            let (_, instructions) = program.split_once(' ').expect("name and count");
            assert!(instructions.parse::<u32>().unwrap() < 400_000, "{program}");
        }
    }
}

/// With the priority of everybody else it took 38 s, without a word.
#[test]
#[ignore = "needs the virtual machine"]
fn loads_in_under_eight_seconds_beside_eight_busy_loops() {
    let report = in_vm("load_busy", 1);
    assert!(number(&report, "load_s") < 8.0, "{report:?}");
    // Standard error is no terminal: one line, if loading took longer than two seconds.
    let said = report.get("said").map_or(0, Vec::len);
    let expected = usize::from(number(&report, "load_s") > 2.2);
    assert!(said == expected || said == 1, "{report:?}");
    let how = &report["out"][0];
    assert!(how.contains("with real-time priority 1"), "{how}");
    assert_eq!(report["as"], ["0 0"], "priority and policy are given back");
    // Among those of its class, so that it answers however many there are.
    assert_eq!(number(&report, "nice"), -20.0);
    assert_eq!(number(&report, "left_with"), 0.0);
}

/// With each class that a token went through left ready behind it, a hop took five times as long.
#[test]
#[ignore = "needs the virtual machine"]
fn a_wakeup_costs_the_same_among_a_thousand_classes() {
    let report = in_charge("ring", &[], 1);
    let hops: Vec<f64> = (report["hop_ns"].iter())
        .map(|ns| ns.parse().expect("a number"))
        .collect();
    assert_eq!(hops.len(), 3, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
    for ns in &hops[1..] {
        assert!(*ns < 1.1 * hops[0], "{report:?}");
    }
}

/// A quota and idleness hold as they are written; what was throttled is shown, by us: `cpu.stat` counts what
/// the kernel throttles, which is none of our tasks.
/// Three users who connect and close, one of 2,000 half-open connections, one who reads nothing. Nothing is learnt
/// here: what is learnt of those who flood comes before the shares of others, and would be measured instead of the
/// daemon.
#[test]
#[ignore = "needs the virtual machine"]
fn a_flooded_daemon_answers_others_in_twenty_milliseconds_and_ends_in_a_second() {
    let report = in_charge("flood", &["--learn", "0"], 1);
    for who in ["root", "user"] {
        let (p99_us, refused) = report[who][0].split_once(' ').expect("two numbers");
        assert_eq!(refused, "0", "{report:?}");
        let p99_us: f64 = p99_us.parse().expect("a number");
        assert!(p99_us <= 20_000.0, "{report:?}");
    }
    assert!(report["reserve"][0].starts_with("0 "), "{report:?}");
    assert!(number(&report, "term_ms") <= 1000.0, "{report:?}");
    assert_eq!(report["status"], ["0"]);
    assert_eq!(report["state"], ["disabled"]);
}

#[test]
#[ignore = "needs the virtual machine"]
fn quotas_and_idle_classes_change_live() {
    let report = in_charge("quota", &[], 1);
    let near = |key: &str, percent: f64, within: f64| {
        assert!(
            (number(&report, key) - percent).abs() <= within,
            "{key}: {report:?}"
        );
    };
    near("unlimited", 99.0, 1.0);
    near("fifth", 20.0, 1.0);
    near("half", 50.0, 1.0);
    near("freed", 99.0, 1.0);
    near("idle", 0.0, 1.0);
    near("usual", 50.0, 2.0);
    assert_eq!(number(&report, "quota_usec"), 20_000.0);
    assert_eq!(report["shown"], ["1"]);
    assert!(number(&report, "nr_throttled") >= 18.0, "{report:?}");
    assert!(
        number(&report, "throttled_usec") >= 1_600_000.0,
        "{report:?}"
    );
    assert_eq!(number(&report, "cpu_stat_throttled"), 0.0);
    assert_eq!(report["quota_after"], [""]);
    assert_eq!(report["state"], ["enabled"]);
}

#[test]
#[ignore = "needs the virtual machine"]
fn bad_input_gets_one_sentence_and_a_status_of_its_own() {
    let report = in_vm("refusals", 1);
    for (case, status) in [
        ("second_scheduler", 7),
        ("status_without_scheduler", 8),
        ("unknown_class", 10),
        ("class_exists", 11),
        ("class_with_tasks", 12),
        ("class_with_children", 12),
        ("weight_out_of_range", 13),
        ("no_such_process", 14),
        ("kernel_thread", 15),
        ("command_not_found", 127),
        ("wrong_config", 27),
        ("no_config", 27),
    ] {
        let said = &report[case][0];
        let (got, sentence) = said.split_once(' ').expect("status and sentence");
        assert_eq!(got.parse(), Ok(status), "{case}: {sentence}");
        assert!(sentence.len() > 20, "{case} says why: {sentence:?}");
    }
    let says = "/tmp/wrong.toml:1: learn_percent: 95 is out of range: give 0 to 90";
    assert!(report["wrong_config"][0].contains(says), "{report:?}");
    assert_eq!(report["learn_off"], ["1"]);
    assert_eq!(report["nothing_left"], ["0"]);
}

/// It was all well with the doctor, and then the verifier's log, again and again.
#[test]
#[ignore = "needs the virtual machine"]
fn a_preempt_rt_kernel_is_refused_in_one_sentence_with_a_status_of_its_own() {
    let cache = Cache::open().expect("a cache folder");
    let search = KernelSearch {
        kind: KernelKind::RealTime,
        ..KernelSearch::default()
    };
    let kernel = match search.find(&cache, &|_| {}) {
        Err(error @ (KernelError::NoneOffered | KernelError::Apt(_))) => {
            return println!("not tried, for apt gives no PREEMPT_RT kernel: {error}");
        }
        found => found.expect("a kernel with PREEMPT_RT and sched_ext"),
    };
    let [report] = on_kernel(&kernel, "preempt_rt", &[], 1, [None]);
    for case in ["run", "historical", "doctor"] {
        let said = &report[case][0];
        assert!(said.starts_with("29 "), "{case}: {said}");
        assert!(said.contains("PREEMPT_RT"), "{case}: {said}");
        assert!(said.contains("boot a kernel without it"), "{case}: {said}");
    }
    // One sentence, and no log of the verifier's.
    assert!(report["run"][0].len() < 500, "{report:?}");
    // The day that the kernel takes them, the refusal is wrong.
    assert_eq!(report["tried"], ["refused"], "{report:?}");
}

/// 8,200 cgroups and one with a child; then a hundred go.
#[test]
#[ignore = "needs the virtual machine"]
fn who_finds_no_room_for_a_class_is_told_and_gets_one_when_there_is_room() {
    let report = in_charge("full_table", &[], 1);
    for case in ["create", "below", "set"] {
        let said = &report[case][0];
        assert!(said.starts_with("28 "), "{case}: {said}");
        assert!(said.contains("shares its parent's class"), "{case}: {said}");
    }
    for case in ["status", "doctor"] {
        let said = &report[case][0];
        assert!(
            said.contains("share their parents' classes"),
            "{case}: {said}"
        );
        assert!(said.contains("remove cgroups"), "{case}: {said}");
    }
    let shared: Vec<u32> = report["shared"]
        .iter()
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(shared[0] > 2 && shared[1] == 0, "{report:?}");
    assert_eq!(report["set_again"], ["0"]);
    let parts = |key: &str| -> Vec<f64> {
        let words = report[key][0].split_whitespace();
        words.map(|word| word.parse().unwrap()).collect()
    };
    // Two loops in one class; then one in a class of weight 300 beside that of 100.
    let (both, own) = (parts("with_parent"), parts("of_its_own"));
    assert!((both[0] / both[1] - 1.0).abs() < 0.05, "{report:?}");
    assert!((own[0] / own[1] / 3.0 - 1.0).abs() < 0.05, "{report:?}");
    assert_eq!(report["state"], ["enabled"]);
    assert_eq!(number(&report, "left_with"), 0.0);
}

/// Runs a short scenario into a folder of its own and returns the result file.
fn short_run(folder: &Path) -> String {
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_andante"))
        .args(["lab", "run", "shares-smp", "--scheduler", "andante"])
        .args(["--set", "duration_s = 2", "--set", "expect = []", "--out"])
        .arg(folder)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdout(std::process::Stdio::null())
        .status()
        .expect("the laboratory runs");
    assert!(status.success(), "{status}");
    std::fs::read_to_string(folder.join("shares-smp/result.json")).expect("a result")
}

#[test]
#[ignore = "needs the virtual machine"]
fn two_runs_give_the_same_figures_to_the_last_digit() {
    let folder = tempfile::tempdir().expect("a folder");
    // On four CPUs; on one see crates/vm/tests/saved.rs.
    let first = short_run(&folder.path().join("first"));
    let second = short_run(&folder.path().join("second"));
    assert!(first.contains("share_received"));
    assert!(
        first == second,
        "result.json differs between two runs of one scenario"
    );
}
