//! The command line as a user without any privilege meets it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, is_empty};

fn andante(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante").unwrap();
    command.args(arguments).assert()
}

/// The same in the repository's folder, wherever the binary was built.
fn andante_here(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante").unwrap();
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(arguments).assert()
}

#[test]
fn help_teaches_with_an_example_in_every_subcommand() {
    andante(&["lab", "sweep", "--help"])
        .success()
        .stdout(contains("Example"));
    for subcommand in [
        "run", "status", "top", "class", "admit", "reserve", "exec", "doctor", "lab", "paper",
        "man",
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

#[test]
fn a_recording_is_drawn_as_text() {
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

#[test]
fn output_into_a_closed_pipe_or_a_file_has_no_colours() {
    andante(&["doctor"]).stdout(contains("\u{1b}[").not());
}

#[test]
fn a_scenario_that_does_not_exist_or_has_a_wrong_type_is_refused() {
    andante(&["lab", "run", "no-such-scenario"])
        .code(18)
        .stderr(contains("no-such-scenario"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "title = \"wrong\"\nduration_s = \"three\"\n").unwrap();
    let refused = andante(&["lab", "run", file.to_str().unwrap()]).code(18);
    refused.stderr(contains("wrong.toml:2").and(contains("duration_s")));
}

#[test]
fn of_a_scenario_only_the_cases_that_are_named_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let depth = |cases| {
        let run = ["lab", "run", "qlinux-5-depth", "--on", "sim", "--out", out];
        andante_here(&[&run[..], &["--case", cases]].concat())
    };
    depth("depth-1,depth-16").success();
    let run = |case: &str| folder.path().join("qlinux-5-depth").join(case).exists();
    assert!(run("depth-1") && run("depth-16") && !run("depth-4"));
    depth("depth-1,depth-3")
        .code(18)
        .stderr(contains("qlinux-5-depth/depth-3").and(contains("depth-8, depth-16")));
}

/// A paper of one figure: a loop alone on a CPU for a second, published with `published`.
fn small_paper(folder: &std::path::Path, published: &str) {
    let loops = "title = 'l'\nduration_s = 1\n[programs.l]\nclass = '/'\nkind = 'loop'\n";
    std::fs::write(folder.join("loop.toml"), loops).unwrap();
    let paper = format!(
        "title = 'Small'\nauthors = ['A. One']\nvenue = 'V'\nyear = 1993\nclaim = 'It runs.'\n\
         [[table]]\nid = 'Table 1'\ntitle = 't'\nscenario = 'loop'\nmeasure = 'cpu_s'\n\
         program = 'l'\nwithin = 0.01\nwhy = 'it is alone'\n[[table.column]]\ntitle = 'CPU'\n\
         [[table.row]]\ntitle = 'r'\npublished = [{published}]\n"
    );
    std::fs::write(folder.join("paper.toml"), paper).unwrap();
}

#[test]
fn a_paper_is_run_and_its_deviations_are_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    small_paper(folder.path(), "1");
    andante(&["paper", path])
        .success()
        .stdout(contains("published").and(contains("all 1 figures compared hold")));
    let out = folder.path().join("out");
    andante(&[
        "paper",
        path,
        "--report",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ])
    .success()
    .stdout(contains("\"measured\": 1.0"))
    .stderr(contains("the book is"));
    let key = folder.path().file_name().unwrap().to_str().unwrap();
    let book = std::fs::read_to_string(out.join(format!("{key}.html"))).unwrap();
    assert!(book.contains("<h2 class=\"chapter-title\">Small</h2>"));
    small_paper(folder.path(), "2");
    andante(&["paper", path])
        .code(19)
        .stdout(contains("it is alone"))
        .stderr(contains("1 of 1 figures deviate"));
    small_paper(folder.path(), "'two'");
    andante(&["paper", path])
        .code(18)
        .stderr(contains("paper.toml:18: table.row.published"));
}

#[test]
fn the_papers_that_come_with_andante_are_found() {
    andante_here(&["paper", "list"])
        .success()
        .stdout(contains("qlinux00").and(contains("Application Performance in the QLinux")));
    andante_here(&["paper", "list", "--json"])
        .success()
        .stdout(contains("\"key\": \"qlinux00\""));
    andante_here(&["paper", "qlinux99"])
        .code(18)
        .stderr(contains("qlinux99").and(contains("qlinux00")));
    andante(&["paper"]).code(2).stderr(contains("KEY"));
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
        contains("held by film 27.3 %").and(contains("would be admitted: 8.436363 ms every 16 ms")),
    );
    let json = andante(&["admit", path, "--json"]).code(23);
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    let refused = &json["contracts"][1]["answer"]["refused"];
    assert_eq!(refused["cpus"][0]["holders"][0]["name"], "film");
    // 0.8 less 9/33, of 16 ms.
    let budget_ns = &refused["nearest"]["largest_budget"]["contract"]["budget_ns"];
    assert_eq!(*budget_ns, 8_436_363);
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
}

#[test]
fn lab_record_frames_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.mkv");
    std::fs::write(&text, "no film").unwrap();
    let text = text.to_str().unwrap();
    let mut without = Command::cargo_bin("andante").unwrap();
    without
        .args(["lab", "record-frames", text])
        .env("PATH", folder.path())
        .assert()
        .code(20)
        .stdout(is_empty())
        .stderr(contains("`ffmpeg` is needed"));
    andante(&["lab", "record-frames", text, "--decodings", "0"]).code(2);
    if Command::new("ffmpeg").arg("-version").ok().is_err() {
        eprintln!("skipped: ffmpeg is not installed");
        return;
    }
    andante(&["lab", "record-frames", text])
        .code(1)
        .stdout(is_empty())
        .stderr(contains("text.mkv is no film that ffmpeg can decode"));
    andante(&["lab", "record-frames", "/nowhere/film.mkv"])
        .code(1)
        .stderr(contains("No such file"));
}

#[test]
fn lab_record_frames_leaves_what_a_scenario_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (film, trace) = (
        folder.path().join("a: film.mkv"),
        folder.path().join("film.csv"),
    );
    let picture = "testsrc2=size=160x90:rate=25:duration=1";
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", picture])
        .args(["-c:v", "mpeg4", "-bf", "2"])
        .arg(format!("file:{}", film.display()))
        .ok();
    if made.is_err() {
        eprintln!("skipped: ffmpeg cannot make a film here");
        return;
    }
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let arguments = ["lab", "record-frames", &file(&film), "--decodings", "2"];
    andante(&[&arguments[..], &["--out", &file(&trace)]].concat()).success();
    let text = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#')).count(),
        25
    );
    let scenario = folder.path().join("film.toml");
    let toml = "title = 'a'\nduration_s = 2\n\
                [programs.film]\nclass = '/'\nkind = 'player'\nfps = 25\nwork_trace = 'film.csv'\n";
    std::fs::write(&scenario, toml).unwrap();
    let out = file(folder.path());
    andante(&["lab", "run", &file(&scenario), "--on", "sim", "--out", &out])
        .success()
        .stdout(contains("film"));
}

#[test]
fn lab_sweep_draws_simulates_and_says_how_to_see_a_draw_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let sweep = [
        "lab",
        "sweep",
        "desktop",
        "--draws",
        "4",
        "--scheduler",
        "andante,fair",
    ];
    andante_here(&[&sweep[..], &["--out", out]].concat())
        .success()
        .stdout(contains("4 draws of seed 1").and(contains("frames not in time")));
    let left = folder.path().join("sweep/desktop");
    assert!(left.join("report.html").is_file());
    let text = std::fs::read_to_string(left.join("sweep.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of_draw = |figure: &str| result["draws"][3]["figures"][0][figure].as_f64().unwrap();

    // The same draw alone: an ordinary run with the same figures.
    let run = [
        "lab",
        "run",
        "desktop",
        "--draw",
        "1/3",
        "--on",
        "sim",
        "--scheduler",
        "andante",
    ];
    andante_here(&[&run[..], &["--out", out]].concat()).success();
    let text = std::fs::read_to_string(folder.path().join("desktop-1-3/result.json")).unwrap();
    let alone: serde_json::Value = serde_json::from_str(&text).unwrap();
    let typing = &alone["schedulers"][0]["programs"][1];
    let p99_ms = typing["latency_us"]["p99"].as_f64().unwrap() / 1e3;
    // To the nanosecond: one was divided from microseconds.
    assert!((p99_ms - of_draw("key_p99_ms")).abs() < 1e-6, "{p99_ms} ms");
}

#[test]
fn lab_sweep_refuses_what_it_cannot_do() {
    andante_here(&["lab", "sweep", "dekstop"])
        .code(18)
        .stderr(contains("there is no family `dekstop`").and(contains("desktop")));
    andante_here(&["lab", "sweep", "desktop", "--draws", "0"]).code(2);
    andante_here(&[
        "lab",
        "sweep",
        "desktop",
        "--set",
        "draw.fps = { uniform = [2, 1] }",
    ])
    .code(18)
    .stderr(contains("--set:1: draw.fps.uniform: 2 and 1 are no range"));
    andante_here(&["lab", "sweep", "desktop", "--scheduler", "/bin/true"])
        .code(2)
        .stderr(contains("draw 1/0 under true"));
    andante_here(&["lab", "run", "desktop", "--draw", "17"])
        .code(2)
        .stderr(contains("SEED/NUMBER"));
    andante_here(&["lab", "list", "--families"])
        .success()
        .stdout(contains("desktop").and(contains("systemd")));
}
