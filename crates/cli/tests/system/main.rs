//! The packages in a whole system: Debian (or Ubuntu) with systemd boots in the virtual machine, `dpkg -i`
//! installs what `make deb` has made, and the unit is started, stopped, killed, given mistakes, upgraded and
//! removed, as on anybody's machine.
//!
//! `make package-test` makes the packages first; without them the tests say so.

#[expect(dead_code, reason = "these scripts report words")]
#[path = "../../../net/tests/machine/mod.rs"]
mod machine;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_vm::{Boot, Cache, Content, Event, InitrdFile, build_system, find_kernel, find_qemu};
use machine::tool;

/// A machine that takes longer hangs: how fast it is depends on what else its host does, and decides nothing.
const HANGS: Duration = Duration::from_secs(1800);
/// What the tests need beside the packages: libraries that those depend on, and what users have.
const PACKAGES: [&str; 15] = [
    "libelf1",
    "zlib1g",
    "sudo",
    "polkitd",
    "rtkit",
    "gamemode",
    "pipewire",
    "pipewire-bin",
    "wireplumber",
    "xvfb",
    "mpv",
    "python3-minimal",
    "make",
    "gcc",
    "libc6-dev",
];
/// More of them for tests of devices: udev, of which systemd learns of devices.
const WITH_UDEV: [&str; 3] = ["libelf1", "zlib1g", "udev"];
/// For what is installed, in a file system that is thrown away [MiB].
const FREE_MIB: u32 = 256;

/// What a script reported: one `REPORT key value` line each, in order.
type Report = BTreeMap<String, Vec<String>>;

/// Runs tests/system/NAME.sh as root of a system in which nothing is installed yet; the packages are in
/// `/andante/packages`.
fn in_system(name: &str) -> Report {
    in_system_of(&PACKAGES, name, &[])
}

/// The same in a system of these packages, with arguments for the script.
fn in_system_of(of: &[&str], name: &str, arguments: &[&str]) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel with sched_ext");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let image = build_system(&cache, of, FREE_MIB, &quiet).expect("a system");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system");
    let file = |guest: String, host: PathBuf, mode| InitrdFile {
        guest: guest.into(),
        content: Content::Host(host),
        mode,
    };
    let script = format!("/andante/{name}.sh");
    let command: Vec<&str> = ["/bin/sh", &script]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let files = ["common.sh", "ann.sh", "sounds.sh", &format!("{name}.sh")]
        .map(|name| file(format!("/andante/{name}"), folder.join(name), 0o644));
    let boot = Boot {
        memory_mib: 1024,
        image: Some(&image),
        system: true,
        initrd_files: packages()
            .into_iter()
            .map(|(name, host)| file(format!("/andante/packages/{name}"), host, 0o644))
            .collect(),
        files: files.into(),
        programs: vec![tool("ip"), tool("tc")],
        modules: vec!["veth"],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("system-{name}.log")),
        ..Boot::of(&kernel, &qemu, &command)
    };
    let mut report = Report::new();
    let outcome = boot
        .run(&mut |event| {
            let Event::Console(line) = event else { return };
            println!("{line}"); // seen if the test fails
            if let Some(words) = line.trim().strip_prefix("REPORT ") {
                let (key, value) = words.split_once(' ').unwrap_or((words, ""));
                report
                    .entry(key.into())
                    .or_default()
                    .push(value.trim().into());
            }
        })
        .expect("the machine runs");
    assert_eq!(outcome.exit_status, 0, "{name}: {report:?}");
    report
}

/// The packages that `make deb` has made, by their names without version.
fn packages() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/deb");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "deb"))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.split_once('_')?.0.to_owned();
            // What is compiled with it is large, and nobody compiles here.
            (!name.ends_with("-dev")).then(|| (format!("{name}.deb"), path))
        })
        .collect();
    found.sort();
    assert!(
        !found.is_empty(),
        "no packages are in {}: make deb",
        folder.display()
    );
    found
}

fn last<'a>(report: &'a Report, key: &str) -> &'a str {
    let values = report.get(key);
    let value = values.and_then(|values| values.last());
    value.unwrap_or_else(|| panic!("the script reports no {key}: {report:?}"))
}

/// What is so for each of these keys, and what should be.
fn all_are(report: &Report, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(last(report, key), *value, "{key}: {report:?}");
    }
}

/// From `dpkg -i` to `dpkg --purge`: in charge after it is installed, the stock scheduler at once after
/// stop and kill, in charge again after a kill; refused with one sentence in the journal for a mistake in
/// the configuration; given up after three ejections within five minutes; in charge after an upgrade, or refused
/// once where the configuration is of a version that knew another key; gone without a trace after removal.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn the_unit_lives_as_it_says() {
    let report = in_system("unit");
    all_are(
        &report,
        &[
            ("installed", "active enabled andante"),
            ("group", "andante"),
            ("stopped", "inactive disabled"),
            ("started", "active enabled andante"),
            ("killed", "disabled"),
            ("after_kill", "active enabled andante"),
            ("restarts_after_kill", "1"),
            ("reserved_min", "20971520"),
            ("killed_min", "0"),
            ("bad_config", "failed disabled 27"),
            ("bad_config_restarts", "0"),
            ("mended", "active enabled andante"),
            ("ejections_given_up", "failed disabled"),
            ("upgraded", "active enabled andante"),
            ("upgraded_runs", "anew /usr/bin/andante"),
            ("old_config", "failed disabled"),
            ("old_config_restarts", "0"),
            ("old_config_package", "installed"),
            ("old_config_mended", "active enabled andante"),
            ("removed", "disabled"),
            ("removed_left", "0"),
            ("purged_left", "0"),
        ],
    );
    let said = last(&report, "bad_config_said");
    assert!(said.contains("/etc/andante.toml:2"), "{report:?}");
    let said = last(&report, "old_config_said");
    assert!(
        said.contains("/etc/andante.toml:2: turn_ms: unknown key"),
        "{report:?}"
    );
}

/// Packets that come are placed by the unit: when the class is there and the device is up; put back after a kill before it is
/// started again, and when it is stopped.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn the_unit_of_packets_in_puts_the_device_back() {
    let report = in_system_of(&WITH_UDEV, "receive", &[]);
    all_are(
        &report,
        &[
            ("no_class", "1 10"),
            ("down", "active 0 0"),
            ("placed", "active 1 1"),
            ("killed", "activating 0 0"),
            ("after_kill", "active 1 1"),
            ("stopped", "inactive 0 0"),
            ("files", "0"),
            ("mistake", "failed 27"),
        ],
    );
    let said = last(&report, "mistake_said");
    assert!(
        said.contains("/etc/andante.toml:3: net.uplink.receive_lst: unknown key"),
        "{said}"
    );
}

/// The units of a device that are enabled begin when it appears, with what the file says, and end when it goes, without
/// anything left; again when it appears again. Stopped, they leave it as it was.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn the_units_of_a_device_come_and_go_with_it() {
    let report = in_system_of(&WITH_UDEV, "devices", &[]);
    all_are(
        &report,
        &[
            ("enabled", "inactive none none none 0"),
            ("appeared", "active andante 10000000 50 4"),
            ("appeared_in", "active 1 1"),
            ("segments", "3348"),
            ("gone", "inactive none none none 0"),
            ("gone_in", "inactive 0 0"),
            ("failed", "0"),
            ("again", "active andante 10000000 50 4"),
            ("again_in", "active 1 1"),
            ("stopped", "inactive noqueue none none 0"),
            ("segments_after", "65536"),
            ("started", "active andante 10000000 50 4"),
            ("restarted", "active andante 10000000 50 4"),
            ("stopped_again", "inactive pfifo none none 0"),
            ("stopped_in", "inactive 0 0"),
            ("mistake", "failed 27"),
            ("mistaken", "failed pfifo none none 0"),
        ],
    );
    let said = last(&report, "mistake_said");
    assert!(said.contains("/etc/andante.toml:2"), "{said}");
}

/// Through sudo the program is hers, with her environment; without sudo the class is a scope of her own systemd,
/// and contracts are to be had within her quota.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn a_user_starts_programs_as_herself() {
    let report = in_system("user");
    all_are(
        &report,
        &[
            ("sudo", "0 ann /home/ann /run/user/1000 hers /film"),
            ("sudo_as_root", "0 root"),
            ("sudo_asked", "0 asked"),
            ("sudo_reserve", "0 ann"),
            ("own_reserve", "0 ann"),
        ],
    );
    let own = last(&report, "own");
    let scope = "/user.slice/user-1000.slice/user@1000.service/app.slice/andante-film-";
    assert!(own.contains(scope) && own.ends_with(".scope 300"), "{own}");
    let said = "is a scope of your own systemd instance";
    assert!(own.starts_with("0 ") && own.contains(said), "{own}");
    assert!(last(&report, "own_both").ends_with(" ann"), "{report:?}");
    let min = format!(" ann {}", 16 << 20);
    for key in ["own_memory", "own_memory_and_cpu", "sudo_memory"] {
        let said = last(&report, key);
        assert!(
            said.starts_with("0 ") && said.ends_with(&min),
            "{key}: {said}"
        );
    }
    let refused = last(&report, "own_memory_too_much");
    assert!(refused.starts_with("23 "), "{refused}");
    assert!(refused.contains("would do"), "{refused}");
    assert!(last(&report, "own_failing").starts_with("5 "), "{report:?}");
    // A twentieth of a second to watch, and what users get of the daemon's time does not make her wait.
    let took_s: f64 = last(&report, "looks_took_s").parse().expect("a time");
    assert!(took_s < 1.0, "{report:?}");
}

/// An unmodified player with display and sound, in her session, beside two endless loops of root's: she
/// sees what was learnt of her own programs, and nothing of others'.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn a_user_sees_what_is_done_for_her() {
    let report = in_system("desktop");
    all_are(
        &report,
        &[
            ("sound", "0 active"),
            ("player", "runs"),
            ("status_status", "0"),
            ("status_json", "0"),
            ("status_top", "0"),
            ("status_list", "0"),
            ("status_why", "0"),
            ("status_metrics", "0"),
            ("others_not_seen", "1"),
            ("quota", "1"),
            ("metrics", "1"),
        ],
    );
    for key in [
        "learnt_seen",
        "learnt_json",
        "counters",
        "own_row",
        "learnt_listed",
        "why_contract",
    ] {
        let found: u32 = last(&report, key).parse().expect("a count");
        assert!(found >= 1, "{key}: {report:?}");
    }
}

/// No quantum of PipeWire's is late beside a build and eight loops of the same user, and these go on. In
/// 3 s there are 2,250 of 64 samples. ANDANTE_SOUND="60" watches for longer, and ANDANTE_SOUND="60 stock" tells how many are
/// late under the stock scheduler.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn pipewire_is_in_time_as_it_is() {
    let asked = std::env::var("ANDANTE_SOUND").unwrap_or_else(|_| "3".to_owned());
    let arguments: Vec<&str> = asked.split_whitespace().collect();
    let report = in_system_of(&PACKAGES, "sound", &arguments);
    let built: u32 = last(&report, "built").parse().expect("a count");
    assert!(built > 0, "{report:?}");
    if arguments.contains(&"stock") {
        return println!("{report:?}");
    }
    // The quantum that was in force, and late ones of the sink and of the client.
    let kept = [
        ("late_64", "64 0 0"),
        ("late_128", "128 0 0"),
        ("late_256", "256 0 0"),
    ];
    all_are(&report, &kept);
}

/// Requests over D-Bus in an ordinary user's session: a thread of hers, of nobody else's; PipeWire's own,
/// through its module-rt, with which no quantum is late beside a build and loops; and a game of `gamemoderun`'s. rtkit
/// keeps the name as long as it runs, and makes room for the package. Requests stand again after the
/// scheduler was loaded anew. They end with the program that asked, and with the package.
#[test]
#[ignore = "needs the virtual machine and the packages"]
fn requests_are_answered() {
    let report = in_system("bus");
    let by = "by the word of andante-bus";
    let (sleeper, game) = (
        format!("sleep (PID), audio, 1 thread, {by}"),
        format!("sleep (PID), game, 1 thread, {by}"),
    );
    all_are(
        &report,
        &[
            ("installed", "active enabled andante"),
            ("rtkit_goes_on", "active"),
            ("rtkit_after", "config-files 0"),
            ("bus_installed", "active enabled"),
            ("asked", "method return, active"),
            ("asked_seen", &sleeper),
            ("asked_policy", "SCHED_OTHER"),
            ("said_again", &sleeper),
            ("ended", "nothing"),
            ("gamemode", "andante-bus"),
            ("game_seen", &game),
            ("game_ended", "nothing"),
            ("late", "64 0 0"),
            ("policies", "SCHED_OTHER"),
            ("removed", "nothing"),
            ("removed_left", "0 0"),
            ("others_go_on", "active enabled andante"),
        ],
    );
    for (key, part) in [
        (
            "beside_rtkit",
            "org.freedesktop.RealtimeKit1 is another program's",
        ),
        ("others", "user"),
        ("not_its_thread", "thread"),
        ("stopped", "systemctl start andante"),
        ("removed_answers", "was not provided by any .service files"),
    ] {
        let said = last(&report, key);
        assert!(said.contains(part), "{key}: {report:?}");
    }
    for key in ["asked_json", "listed"] {
        let found: u32 = last(&report, key).parse().expect("a count");
        assert!(found >= 1, "{key}: {report:?}");
    }
    let sound = format!("pipewire (PID), audio, 1 thread, {by}");
    assert!(report["sound_seen"].contains(&sound), "{report:?}");
    let threads = &report["policies"];
    assert!(threads.iter().all(|one| one == "SCHED_OTHER"), "{report:?}");
}
