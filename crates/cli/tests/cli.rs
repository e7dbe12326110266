//! The command line as a user without any privilege meets it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, is_empty};

fn andante(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante").unwrap();
    command.args(arguments).assert()
}

#[test]
fn help_teaches_with_an_example_in_every_subcommand() {
    for subcommand in [
        "run", "status", "top", "class", "admit", "reserve", "exec", "doctor", "why", "man", "net",
    ] {
        andante(&[subcommand, "--help"])
            .success()
            .stdout(contains("Example"));
    }
    andante(&["--help"])
        .success()
        .stdout(contains("Exit status:"));
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    andante(&["walk"]).code(2).stderr(contains("walk"));
    andante(&["exec", "true"])
        .code(2)
        .stderr(contains("--class").and(contains("--reserve")));
    for arguments in [
        &["exec", "--reserve", "9ms", "true"][..],
        &["exec", "--class", "a", "--tolerate", "1/5", "true"],
        &["exec", "--reserve", "9ms/33ms", "--weight", "10", "true"],
        &["exec", "--reserve-net", "2mbit/10ms", "true"],
        &["exec", "--class", "a", "--reserve-net", "2mbit", "true"],
        &["reserve", "7"],
        &["reserve", "7", "9/33"],
        &["reserve", "--list", "7", "9ms/33ms"],
        &["reserve", "film", "9ms/33ms", "--thread"],
        &[
            "reserve",
            "7",
            "9ms/33ms",
            "--tolerate",
            "1/5",
            "--flexible",
        ],
        &["run", "--leave", "0"],
        &["run", "--user-quota", "101"],
    ] {
        andante(arguments).code(2).stderr(is_empty().not());
    }
    andante(&["class", "create", "../etc"])
        .code(2)
        .stderr(contains("class path"));
    andante(&["class", "create", "a", "--weight", "heavy"]).code(2);
    andante(&["class", "create", "a", "--adopt", "--threaded"]).code(2);
    andante(&["run", "--slice-us", "5"]).code(2);
    andante(&["status", "--interval", "0"]).code(2);
    andante(&["net", "detach"]).code(2);
    andante(&["net", "attach", "eth0", "--rate", "0mbit"])
        .code(2)
        .stderr(contains("8bit a second at least"));
}

#[test]
fn status_and_top_say_when_nothing_is_loaded() {
    if andante_sched::doctor::Loaded::find().is_some() {
        eprintln!("skipped: a sched_ext scheduler is loaded here");
        return;
    }
    for arguments in [["status", "--all"], ["top", "--once"]] {
        andante(&arguments)
            .code(8)
            .stdout(is_empty())
            .stderr(contains("sudo andante run"));
    }
    andante(&["status", "--json"])
        .code(8)
        .stdout(contains("\"loaded\": false"));
}

#[test]
fn run_refuses_with_the_status_that_the_doctor_reports() {
    let Some(check) = andante_sched::doctor::obstacle() else {
        eprintln!("skipped: this machine could load the scheduler");
        return;
    };
    let refused = andante(&["run"]).failure().stderr(contains(check.detail));
    let code = refused.get_output().status.code().unwrap();
    andante(&["doctor"]).code(code).stdout(contains("✗"));
    let report = andante(&["doctor", "--json"]).code(code);
    let report: serde_json::Value = serde_json::from_slice(&report.get_output().stdout).unwrap();
    assert_eq!(report["scheduler_can_run"], false);
}

/// A file as `top --record` leaves it.
fn recording() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let snapshot = |now_ns: u64, cpu_ns: u64| {
        serde_json::json!({ "now_ns": now_ns, "cpus": 1, "classes": [
            { "path": "/", "cgroup_id": 1, "depth": 0, "weight": 100, "queued": 1, "running": 1,
              "cpu_ns": cpu_ns, "share_asked": 1.0 },
            { "path": "/film", "cgroup_id": 2, "depth": 1, "weight": 800, "queued": 1, "running": 1,
              "cpu_ns": cpu_ns / 2, "share_asked": 0.5 } ] })
    };
    let text = format!("{}\n{}\n", snapshot(0, 0), snapshot(1_000_000, 1_000_000));
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_recording_is_drawn_as_text() {
    let file = recording();
    let file = file.path().to_str().unwrap();
    andante(&["top", "--once", "--replay", file])
        .success()
        .stdout(
            contains("└─ film")
                .and(contains("800"))
                .and(contains("50.0 %   50.0 %")),
        );
    andante(&["top", "--once", "--replay", "/dev/null"])
        .code(2)
        .stderr(contains("record for longer"));
    andante(&["top", "--once", "--replay", "/no/such/file"])
        .code(1)
        .stderr(contains("/no/such/file"));
}

/// Whatever it does then: a key is waited for most of the time.
#[test]
fn top_ends_when_its_terminal_is_closed() {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    let file = recording();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let end = || std::process::Stdio::from(terminal.slave.try_clone().unwrap());
    let [fd, other_end] = [&terminal.slave, &terminal.master].map(|end| end.as_raw_fd());
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("andante"));
    command
        .args(["top", "--replay"])
        .arg(file.path())
        .stdin(end())
        .stdout(end())
        .stderr(end());
    // SAFETY: system calls, without memory; the terminal is open until the child has been started.
    unsafe {
        command.pre_exec(move || {
            // With this one open it would never be closed.
            nix::unistd::close(other_end)?;
            nix::unistd::setsid()?;
            match nix::libc::ioctl(fd, nix::libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().unwrap();
    // It has drawn something, and waits for a key.
    let mut drawn = [0; 64];
    assert!(nix::unistd::read(&terminal.master, &mut drawn).unwrap() > 0);
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(terminal);
    for _ in 0..600 {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("it still runs a minute later");
}

#[test]
fn output_into_a_closed_pipe_or_a_file_has_no_colours() {
    andante(&["doctor"]).stdout(contains("\u{1b}[").not());
}

#[test]
fn contracts_are_admitted_or_refused_with_a_status_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contracts.toml");
    let path = file.to_str().unwrap();
    let admit = |text: &str| {
        std::fs::write(&file, text).unwrap();
        andante(&["admit", path])
    };
    let film = "cpus = 1\n[[contract]]\nname = \"film\"\nbudget = \"9ms\"\nperiod = \"33ms\"\n";
    admit(film).success().stdout(contains("all 1 admitted"));
    let two = format!("{film}[[contract]]\nname = \"game\"\nbudget = \"9ms\"\nperiod = \"16ms\"\n");
    admit(&two).code(23).stdout(
        contains("held by film 27.3 %").and(contains("would be admitted: 8.43 ms every 16 ms")),
    );
    let json = andante(&["admit", path, "--json"]).code(23);
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    let refused = &json["contracts"][1]["answer"]["refused"];
    assert_eq!(refused["cpus"][0]["holders"][0]["name"], "film");
    // 0.8 less 9/33, of 16 ms: 8.436363 ms, of which three digits are offered.
    let budget_ns = &refused["nearest"]["largest_budget"]["contract"]["budget_ns"];
    assert_eq!(*budget_ns, 8_430_000);
    let wrong = admit(&film.replace("9ms", "9 bananas")).code(24);
    wrong.stderr(contains(
        "contracts.toml:4: contract.film.budget: `9 bananas`",
    ));
    andante(&["admit", "/no/such/file"])
        .code(24)
        .stderr(contains("/no/such/file"));
}

/// Asked without anybody to ask.
fn andante_alone(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante").unwrap();
    command.env("ANDANTE_SOCKET", "/no/such/socket");
    command.args(arguments).assert()
}

#[test]
fn contracts_that_make_no_sense_are_refused_by_themselves() {
    for (rate, more, says) in [
        ("40ms/33ms", &[][..], "40 ms of CPU time within 33 ms"),
        ("0ms/33ms", &[], "more than 0"),
        ("9ms/0ms", &[], "longer than 0"),
        ("9ms/33ms", &["--tolerate", "6/5"], "6/5"),
        (
            "9ms/33ms",
            &["--deadline", "50ms"],
            "after the end of the period",
        ),
        ("1ms/5s", &[], "4.294967295 s at most"),
        ("100us/400us", &[], "500 us at least"),
        ("10us/1ms", &[], "50 us at least"),
    ] {
        let reserve = [&["reserve", "1", rate], more].concat();
        let exec = [&["exec", "--reserve", rate], more, &["--", "true"]].concat();
        for arguments in [reserve, exec] {
            andante_alone(&arguments).code(24).stderr(contains(says));
        }
    }
}

#[test]
fn without_a_daemon_nothing_is_reserved_and_nothing_started() {
    for arguments in [
        &["reserve", "1", "9ms/33ms"][..],
        &["reserve", "--list"],
        &["reserve", "--release", "film"],
    ] {
        andante_alone(arguments)
            .code(8)
            .stdout(is_empty())
            .stderr(contains("sudo andante run"));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    let touch = [
        "exec",
        "--reserve",
        "9ms/33ms",
        "--",
        "touch",
        file.to_str().unwrap(),
    ];
    andante_alone(&touch)
        .code(8)
        .stderr(contains("sudo andante run"));
    assert!(!file.exists());
}

#[test]
fn completions_and_manual_pages_are_generated() {
    andante(&["completions", "bash"])
        .success()
        .stdout(contains("_andante"));
    andante(&["man"])
        .success()
        .stdout(contains(".TH andante").and(contains("Exit status")));
    let directory = tempfile::tempdir().unwrap();
    andante(&["man", "--dir", directory.path().to_str().unwrap()]).success();
    for page in [
        "andante.1",
        "andante-class-create.1",
        "andante-top.1",
        "andante-reserve.1",
    ] {
        assert!(directory.path().join(page).is_file(), "{page}");
    }
    // It has another of its own.
    assert!(!directory.path().join("andante-lab.1").exists());
}

/// Copies a program by another process: a file that is open for writing here is so in whatever another test starts
/// meanwhile, and cannot be executed until that is over ("text file busy").
fn copied(from: &std::path::Path, to: &std::path::Path) {
    let status = std::process::Command::new("cp").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

/// `andante` in a folder with nothing else, and no path to find anything by.
fn andante_by_itself(folder: &std::path::Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let copy = folder.join("andante");
    if !copy.exists() {
        copied(&assert_cmd::cargo::cargo_bin("andante"), &copy);
    }
    let mut command = Command::new(copy);
    command.args(arguments).env("PATH", "").assert()
}

#[test]
fn without_the_laboratory_it_is_said_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["lab", "run", "shares"][..],
        &["lab", "--help"],
        &["paper", "all"],
    ] {
        andante_by_itself(folder.path(), arguments)
            .code(30)
            .stdout(is_empty())
            .stderr(contains("package andante-lab").and(contains("make")));
    }
}

#[test]
fn the_laboratory_is_given_every_word_and_its_status_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let lab = folder.path().join("andante-lab");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 19\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    copied(&script, &lab);
    let given = |arguments: &[&str], words: &'static str| {
        andante_by_itself(folder.path(), arguments)
            .code(19)
            .stdout(words);
    };
    given(
        &["lab", "run", "--set", "duration_s = 3", "--json"],
        "[run][--set][duration_s = 3][--json]",
    );
    given(&["lab", "--help"], "[--help]");
    given(&["paper", "-h"], "[paper][-h]");
    given(&["paper", "all", "--report"], "[paper][all][--report]");
}
