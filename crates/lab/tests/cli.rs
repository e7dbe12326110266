//! The laboratory's command line as a user without any privilege meets it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, is_empty};

fn lab(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante-lab").unwrap();
    command.args(arguments).assert()
}

/// The same in the repository's folder, wherever the binary was built.
fn lab_here(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("andante-lab").unwrap();
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(arguments).assert()
}

#[test]
fn help_teaches_with_an_example_in_every_subcommand() {
    for subcommand in [
        "run",
        "sweep",
        "list",
        "record-frames",
        "figures",
        "paper",
        "completions",
        "man",
    ] {
        lab(&[subcommand, "--help"])
            .success()
            .stdout(contains("Example"));
    }
    lab(&["--help"]).success().stdout(contains("Exit status:"));
}

#[test]
fn completions_and_manual_pages_are_generated() {
    lab(&["completions", "bash"])
        .success()
        .stdout(contains("complete -F _andante__lab"));
    let folder = tempfile::tempdir().unwrap();
    lab(&["man", "--dir", folder.path().to_str().unwrap()]).success();
    for page in ["andante-lab.1", "andante-lab-run.1", "andante-lab-paper.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
    }
    let hidden = folder.path().join("andante-lab-guest.1");
    assert!(!hidden.exists(), "it is for the laboratory alone");
}

#[test]
fn a_scenario_that_does_not_exist_or_has_a_wrong_type_is_refused() {
    lab(&["run", "no-such-scenario"])
        .code(18)
        .stderr(contains("no-such-scenario"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "title = \"wrong\"\nduration_s = \"three\"\n").unwrap();
    let refused = lab(&["run", file.to_str().unwrap()]).code(18);
    refused.stderr(contains("wrong.toml:2").and(contains("duration_s")));
}

/// As `cargo install` leaves it: the program, and nothing that comes with it.
#[test]
fn without_what_comes_with_it_says_where_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin("andante-lab");
    let alone = folder.path().join("andante-lab");
    // By another process: this one may be starting programs at the same time.
    let copied = std::process::Command::new("cp")
        .arg(program)
        .arg(&alone)
        .status();
    assert!(copied.unwrap().success());
    for arguments in [
        &["list"][..],
        &["list", "--families"],
        &["paper", "list"],
        &["run", "shares"],
        &["sweep", "keys"],
        &["paper", "qlinux00"],
    ] {
        let mut command = Command::new(&alone);
        let refused = command.current_dir(&folder).args(arguments).assert();
        refused
            .code(18)
            .stdout(is_empty())
            .stderr(contains("make install").and(contains("the package andante-lab")));
    }
}

#[test]
fn the_list_has_a_line_for_each_and_the_families_apart() {
    let list = lab_here(&["list"]).success();
    let text = String::from_utf8(list.get_output().stdout.clone()).unwrap();
    let (scenarios, families) = text.split_once("\nFamilies").unwrap();
    let json = lab_here(&["list", "--json"]).success();
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    let json = json.as_array().unwrap();
    assert_eq!(scenarios.lines().count(), json.len());
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    // A long line is cut, and whole in the data.
    let cut = scenarios
        .lines()
        .find(|line| line.starts_with("alicherry "))
        .unwrap();
    assert!(cut.ends_with('…'), "{cut}");
    let whole = json.iter().find(|one| one["name"] == "alicherry").unwrap();
    assert!(whole["cases"].as_array().unwrap().len() > 30);
    assert!(families.contains("\nkeys ") && !scenarios.contains("\nkeys "));
}

#[test]
fn of_a_scenario_only_the_cases_that_are_named_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let depth = |cases| {
        let run = ["run", "qlinux-5-depth", "--on", "sim", "--out", out];
        lab_here(&[&run[..], &["--case", cases]].concat())
    };
    depth("depth-1,depth-16").success();
    let run = |case: &str| folder.path().join("qlinux-5-depth").join(case).exists();
    assert!(run("depth-1") && run("depth-16") && !run("depth-4"));
    // The report leads to what lies beside it, and to nothing else.
    let left = folder.path().join("qlinux-5-depth");
    let report = std::fs::read_to_string(left.join("report.html")).unwrap();
    let links: Vec<&str> = report
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(links.len(), 4, "{links:?}");
    assert!(
        links.iter().all(|link| left.join(link).is_file()),
        "{links:?}"
    );
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
    lab(&["paper", path])
        .success()
        .stdout(contains("published").and(contains("all 1 figures compared hold")));
    let out = folder.path().join("out");
    lab(&[
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
    lab(&["paper", path])
        .code(19)
        .stdout(contains("it is alone"))
        .stderr(contains("1 of 1 figures deviate"));
    small_paper(folder.path(), "'two'");
    lab(&["paper", path])
        .code(18)
        .stderr(contains("paper.toml:18: table.row.published"));
}

#[test]
fn the_papers_that_come_with_andante_are_found() {
    lab_here(&["paper", "list"])
        .success()
        .stdout(contains("qlinux00").and(contains("Application Performance in the QLinux")));
    lab_here(&["paper", "list", "--json"])
        .success()
        .stdout(contains("\"key\": \"qlinux00\""));
    lab_here(&["paper", "qlinux99"])
        .code(18)
        .stderr(contains("qlinux99").and(contains("qlinux00")));
    lab(&["paper"]).code(2).stderr(contains("KEY"));
}

#[test]
fn record_frames_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.mkv");
    std::fs::write(&text, "no film").unwrap();
    let text = text.to_str().unwrap();
    let mut without = Command::cargo_bin("andante-lab").unwrap();
    without
        .args(["record-frames", text])
        .env("PATH", folder.path())
        .assert()
        .code(20)
        .stdout(is_empty())
        .stderr(contains("`ffmpeg` is needed"));
    lab(&["record-frames", text, "--decodings", "0"]).code(2);
    if Command::new("ffmpeg").arg("-version").ok().is_err() {
        eprintln!("skipped: ffmpeg is not installed");
        return;
    }
    lab(&["record-frames", text])
        .code(1)
        .stdout(is_empty())
        .stderr(contains("text.mkv is no film that ffmpeg can decode"));
    lab(&["record-frames", "/nowhere/film.mkv"])
        .code(1)
        .stderr(contains("No such file"));
}

#[test]
fn record_frames_leaves_what_a_scenario_reads() {
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
    let arguments = ["record-frames", &file(&film), "--decodings", "2"];
    lab(&[&arguments[..], &["--out", &file(&trace)]].concat()).success();
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
    lab(&["run", &file(&scenario), "--on", "sim", "--out", &out])
        .success()
        .stdout(contains("film"));
}

#[test]
fn a_sweep_draws_simulates_and_says_how_to_see_a_draw_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let sweep = [
        "sweep",
        "desktop",
        "--draws",
        "4",
        "--scheduler",
        "andante,fair",
    ];
    lab_here(&[&sweep[..], &["--out", out]].concat())
        .success()
        .stdout(contains("4 draws of seed 1").and(contains("frames not in time")));
    let left = folder.path().join("sweep/desktop");
    assert!(left.join("report.html").is_file());
    let text = std::fs::read_to_string(left.join("sweep.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of_draw = |figure: &str| result["draws"][3]["figures"][0][figure].as_f64().unwrap();

    // The same draw alone: an ordinary run with the same figures.
    let run = [
        "run",
        "desktop",
        "--draw",
        "1/3",
        "--on",
        "sim",
        "--scheduler",
        "andante",
    ];
    lab_here(&[&run[..], &["--out", out]].concat()).success();
    let text = std::fs::read_to_string(folder.path().join("desktop-1-3/result.json")).unwrap();
    let alone: serde_json::Value = serde_json::from_str(&text).unwrap();
    let typing = &alone["schedulers"][0]["programs"][1];
    let p99_ms = typing["latency_us"]["p99"].as_f64().unwrap() / 1e3;
    // To the nanosecond: one was divided from microseconds.
    assert!((p99_ms - of_draw("key_p99_ms")).abs() < 1e-6, "{p99_ms} ms");
}

#[test]
fn a_sweep_refuses_what_it_cannot_do() {
    lab_here(&["sweep", "dekstop"])
        .code(18)
        .stderr(contains("there is no family `dekstop`").and(contains("desktop")));
    lab_here(&["sweep", "desktop", "--draws", "0"]).code(2);
    lab_here(&[
        "sweep",
        "desktop",
        "--set",
        "draw.fps = { uniform = [2, 1] }",
    ])
    .code(18)
    .stderr(contains("--set:1: draw.fps.uniform: 2 and 1 are no range"));
    lab_here(&["sweep", "desktop", "--scheduler", "/bin/true"])
        .code(2)
        .stderr(contains("draw 1/0 under true"));
    lab_here(&["run", "desktop", "--draw", "17"])
        .code(2)
        .stderr(contains("SEED/NUMBER"));
    lab_here(&["list", "--families"])
        .success()
        .stdout(contains("desktop").and(contains("systemd")));
}
