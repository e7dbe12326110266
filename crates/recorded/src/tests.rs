use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use andante_result::{ProgramResult, RunResult, SchedulerResult};
use andante_scenario::Scenario;
use tempfile::TempDir;

use super::declaration::Declaration;
use super::evaluate::{Left, values};
use super::file::Recorded;
use super::provenance::Recording;
use super::*;

const SCENARIO: &str = "
title = 't'
duration_s = 10
[programs.film]
class = '/'
kind = 'player'
work_ms = 1
[programs.fill]
class = '/'
kind = 'loop'
[cases.light]
[cases.heavy]
[cases.alone]
programs.film.count = 0
";

/// A repository with a declaration, in which `@` stands for the scenario's path, and a README.
struct Repository {
    folder: TempDir,
}

impl Repository {
    fn new(declared: &str, readme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        let repository = Self { folder };
        fs::write(repository.scenario(), SCENARIO).unwrap();
        let declared = declared.replace('@', &repository.scenario().display().to_string());
        fs::write(repository.docs().join(DECLARED), declared).unwrap();
        fs::write(repository.readme(), readme).unwrap();
        repository
    }

    fn scenario(&self) -> PathBuf {
        self.folder.path().join("two.toml")
    }

    fn docs(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn readme(&self) -> PathBuf {
        self.folder.path().join("README.md")
    }

    fn declaration(&self) -> Declaration {
        Declaration::load(&self.docs().join(DECLARED)).unwrap()
    }

    /// What is wrong with the declaration, without the folder.
    fn mistake(&self) -> String {
        let error = Declaration::load(&self.docs().join(DECLARED)).unwrap_err();
        let folder = format!("{}/", self.folder.path().display());
        error.to_string().replace(&folder, "")
    }

    /// Records an entry as if it had come out so, on this day.
    fn record(&self, name: &str, measured: &[(f64, f64)], date: &str) {
        let (declaration, file) = (self.declaration(), self.docs().join(FILE));
        let mut recorded = Recorded::load(&file).unwrap();
        recorded.put(declaration.entry(name).unwrap(), measured, on(date));
        recorded.settled(&declaration).write(&file).unwrap();
    }

    /// The differences, without the folder.
    fn differences(&self) -> Vec<String> {
        match check(&self.docs()) {
            Ok(_) => Vec::new(),
            Err(LabError::FiguresDiffer { differences }) => {
                let folder = format!("{}/", self.folder.path().display());
                let told = differences.iter().map(ToString::to_string);
                told.map(|told| told.replace(&folder, "")).collect()
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn on(date: &str) -> Recording {
    Recording {
        date: date.to_owned(),
        commit: "0123456789abcdef".to_owned(),
        changed: false,
        objects: BTreeMap::from([("sched".to_owned(), "ab".repeat(32))]),
        kernel: Some("7.2.13".to_owned()),
        qemu: Some("10.0".to_owned()),
    }
}

const DECLARED_TWO: &str = "
quoted_in = ['README.md']
[figures.film]
title = 'a film'
says = '{frames} frames, longest freeze {freeze}'
scenario = '@'
[figures.film.values]
frames = { measure = 'frames', program = 'film' }
freeze = { measure = 'longest_freeze_ms', program = 'film', decimals = 1, unit = 'ms' }
late = { measure = 'late', program = 'film' }
[figures.load]
title = 'loading'
says = '{s}'
command = 'make kernel-test TEST=loads'
values.s = { report = 'load_s', decimals = 1, unit = 's' }
[figures.agreement]
title = 'the simulator'
says = 'all agree'
asserted = 'make agreement'
";

const README: &str = "# A

It freezes <!--fig:film.freeze-->?<!--/--> at most, and <!--fig:agreement-->?<!--/-->.

<!--figures: film load
agreement-->
<!--/figures-->
";

#[test]
fn pages_are_written_from_what_was_recorded_and_then_hold() {
    let repository = Repository::new(DECLARED_TWO, README);
    repository.record(
        "film",
        &[(270.0, 270.0), (38.44, 51.0), (0.0, 0.0)],
        "2026-11-26",
    );
    repository.record("load", &[(3.04, 3.04)], "2026-11-27");
    assert_eq!(
        repository.differences().len(),
        4,
        "{:?}",
        repository.differences()
    );

    let counted = render(&repository.docs()).unwrap();
    assert_eq!(
        (counted.declared, counted.recorded, counted.quoted),
        (3, 2, 3)
    );
    let film = repository.scenario().display().to_string();
    let expected = format!(
        "# A

It freezes <!--fig:film.freeze-->38.4 to 51.0 ms<!--/--> at most, and <!--fig:agreement-->all agree<!--/-->.

<!--figures: film load
agreement-->
| | measured | command |
|---|---|---|
| a film | 270 frames, longest freeze 38.4 to 51.0 ms | `andante lab run --scheduler andante {film}` |
| loading | 3.0 s | `make kernel-test 'TEST=loads'` |
| the simulator | all agree | `make agreement` |
<!--/figures-->
"
    );
    let written = fs::read_to_string(repository.readme()).unwrap();
    assert_eq!(
        written.replace("'TEST=loads'", "TEST=loads"),
        expected.replace("'TEST=loads'", "TEST=loads")
    );
    let page = fs::read_to_string(repository.docs().join(PAGE)).unwrap();
    assert!(
        page.contains("longest freeze 38.4 to 51.0 ms; `late` 0 |"),
        "{page}"
    );
    assert!(
        page.contains("| 2 | 2026-11-27 | `0123456789ab` | sched `abababababab` | 7.2.13 | 10.0 |")
    );

    // Again changes nothing.
    render(&repository.docs()).unwrap();
    assert_eq!(fs::read_to_string(repository.readme()).unwrap(), written);
}

#[test]
fn a_figure_typed_by_hand_is_found_with_line_and_mend() {
    let repository = Repository::new(DECLARED_TWO, README);
    repository.record(
        "film",
        &[(270.0, 270.0), (38.4, 38.4), (0.0, 0.0)],
        "2026-11-26",
    );
    repository.record("load", &[(3.0, 3.0)], "2026-11-26");
    render(&repository.docs()).unwrap();
    let written = fs::read_to_string(repository.readme()).unwrap();
    let typed = written
        .replace("38.4 ms<", "33.3 ms<")
        .replace("| 3.0 s |", "| 2.0 s |");
    fs::write(repository.readme(), typed).unwrap();
    let [value, row] = &repository.differences()[..] else {
        panic!("{:?}", repository.differences());
    };
    assert_eq!(
        value,
        "README.md:3: film.freeze says \"33.3 ms\", figures.json has \"38.4 ms\": \
         run `andante lab figures --render`, or `make figures` to measure anew"
    );
    assert!(
        row.starts_with("README.md:5: a row says \"| loading | 2.0 s |"),
        "{row}"
    );
    render(&repository.docs()).unwrap();
    assert_eq!(fs::read_to_string(repository.readme()).unwrap(), written);
}

#[test]
fn what_was_not_recorded_is_not_quoted_and_unknown_markers_are_named() {
    let quotes = "a <!--fig:film.freeze-->38 ms<!--/--> b <!--fig:flim-->x<!--/-->
c <!--fig:film.freze-->x<!--/-->
<!--fig:agreement-->x<!--/-->
<!--figures: load-->
<!--/figures-->
d <!--fig:load.s-->3 s
";
    let repository = Repository::new(DECLARED_TWO, quotes);
    let told: Vec<_> = repository.differences();
    let said = |at: usize, what: &str| assert!(told[at].starts_with(what), "{}", told[at]);
    assert_eq!(told.len(), 7, "{told:?}");
    said(
        1,
        "README.md:1: `film.freeze` has not been recorded: run `make figures ONLY=film`",
    );
    said(
        2,
        "README.md:1: unknown figure `flim`, did you mean `film`?",
    );
    said(
        3,
        "README.md:2: `film` has no value `freze`, did you mean `freeze`?",
    );
    said(4, "README.md:3: the marker of agreement begins its line");
    said(5, "README.md:4: `load` has not been recorded");
    said(6, "README.md:6: the marker `<!--fig:…` has no end");
    // Nor is anything made up for them.
    assert!(render(&repository.docs()).is_err());
    let written = fs::read_to_string(repository.readme()).unwrap();
    assert!(
        written.contains("38 ms") && !written.contains("| loading"),
        "{written}"
    );
}

#[test]
fn what_is_declared_otherwise_now_has_to_be_recorded_anew() {
    let repository = Repository::new(DECLARED_TWO, "");
    repository.record("film", &[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], "2026-11-26");
    render(&repository.docs()).unwrap();
    let declared = fs::read_to_string(repository.docs().join(DECLARED)).unwrap();
    let declare = |text: String| fs::write(repository.docs().join(DECLARED), text).unwrap();

    // Another way to write it needs no run.
    declare(declared.replace("decimals = 1, unit = 'ms'", "decimals = 2, unit = 'ms'"));
    assert!(
        repository.differences()[0].contains("--render"),
        "{:?}",
        repository.differences()
    );
    render(&repository.docs()).unwrap();
    let json = fs::read_to_string(repository.docs().join(FILE)).unwrap();
    assert!(json.contains("\"text\": \"2.00 ms\""), "{json}");

    declare(declared.replace("'longest_freeze_ms'", "'span_s'"));
    let told = repository.differences();
    assert!(
        told[0].starts_with(
            "docs/figures.toml:3: `film` has `freeze` recorded as longest_freeze_ms of film"
        ),
        "{told:?}"
    );
    assert!(told[0].contains("make figures ONLY=film"), "{told:?}");

    declare(declared.replace("scenario = ", "set = ['duration_s = 5']\nscenario = "));
    assert!(repository.differences()[0].contains("was recorded by `andante lab run"));
    // It is forgotten then.
    render(&repository.docs()).unwrap();
    let json = fs::read_to_string(repository.docs().join(FILE)).unwrap();
    assert!(!json.contains("2026"), "{json}");
}

#[test]
fn a_partial_recording_keeps_the_date_of_the_others() {
    let repository = Repository::new(DECLARED_TWO, "");
    repository.record("film", &[(1.0, 1.0), (2.0, 2.0), (0.0, 0.0)], "2026-11-26");
    repository.record("load", &[(3.0, 3.0)], "2026-11-26");
    repository.record("load", &[(4.0, 4.0)], "2026-12-24");
    let recorded = Recorded::load(&repository.docs().join(FILE)).unwrap();
    let date = |name| &recorded.recordings[recorded.entry(name).unwrap().recording - 1].date;
    assert_eq!(
        (date("film").as_str(), date("load").as_str()),
        ("2026-11-26", "2026-12-24")
    );
    assert_eq!(recorded.entry("load").unwrap().says, "4.0 s");
    // The recording that nothing is of any more is gone.
    assert_eq!(recorded.recordings.len(), 2);
}

#[test]
fn a_wrong_declaration_names_file_line_and_key() {
    for (from, to, told) in [
        (
            "'frames', program",
            "'franes', program",
            "docs/figures.toml:8: figures.film.values.frames.measure: unknown measure `franes`, did you mean `frames`?",
        ),
        (
            "program = 'film' }\nfreeze",
            "program = 'flim' }\nfreeze",
            "docs/figures.toml:8: figures.film.values.frames: unknown program `flim`",
        ),
        (
            "{freeze}",
            "{freezes}",
            "docs/figures.toml:5: figures.film.says: unknown value `freezes`, did you mean `freeze`?",
        ),
        (
            "scenario = '@'",
            "scenario = 'no-such'",
            "docs/figures.toml:6: figures.film.scenario: there is no scenario `no-such`",
        ),
        (
            "scenario = '@'",
            "scenario = '@'\nschedulers = ['eevfd']",
            "docs/figures.toml:7: figures.film.schedulers: unknown scheduler `eevfd`, did you mean `eevdf`?",
        ),
        (
            "scenario = '@'",
            "scenario = '@'\ncases = ['hevy']",
            "docs/figures.toml:7: figures.film.cases: there is no scenario `two/hevy`; did you mean the case `heavy`?",
        ),
        (
            "scenario = '@'",
            "scenario = '@'\npaper = 'qlinux00'",
            "docs/figures.toml:3: figures.film: give exactly one of",
        ),
        (
            "decimals = 1, unit = 'ms'",
            "decimals = 1, units = 'ms'",
            "docs/figures.toml:9: figures.film.values.freeze.units: unknown key, did you mean `unit`?",
        ),
        (
            "decimals = 1, unit = 'ms'",
            "scheduler = 'stock'",
            "docs/figures.toml:9: figures.film.values.freeze: `stock` is none of the entry's `schedulers`",
        ),
        (
            "decimals = 1, unit = 'ms'",
            "case = 'hevy'",
            "docs/figures.toml:9: figures.film.values.freeze: unknown case `hevy`, did you mean `heavy`?",
        ),
        (
            "report = 'load_s'",
            "reports = 'load_s'",
            "docs/figures.toml:15: figures.load.values.s.reports: unknown key, did you mean `report`?",
        ),
        (
            "says = 'all agree'",
            "says = '{all} agree'",
            "docs/figures.toml:18: figures.agreement.says: unknown value `all`; there are none",
        ),
        (
            "title = 'loading'",
            "title = 7",
            "docs/figures.toml:12: figures.load.title: expected a string",
        ),
        (
            "quoted_in",
            "qouted_in",
            "docs/figures.toml:2: qouted_in: unknown key, did you mean `quoted_in`?",
        ),
    ] {
        assert!(DECLARED_TWO.contains(from), "{from}");
        let repository = Repository::new(&DECLARED_TWO.replacen(from, to, 1), "");
        let mistake = repository.mistake();
        assert!(mistake.starts_with(told), "{mistake}\nand not\n{told}");
    }
}

/// A result of `case`: the film with so many frames, and two loops.
fn result(case: &str, frames: Option<u64>, iterations: [u64; 2]) -> RunResult {
    let fill = |n: usize| ProgramResult {
        name: format!("fill.{}", n + 1),
        iterations: Some(iterations[n]),
        ..ProgramResult::default()
    };
    let film = frames.map(|frames| ProgramResult {
        name: "film".to_owned(),
        frames: Some(frames),
        ..ProgramResult::default()
    });
    RunResult {
        case: Some(case.to_owned()),
        schedulers: vec![SchedulerResult {
            name: "andante".to_owned(),
            programs: film.into_iter().chain((0..2).map(fill)).collect(),
            ..SchedulerResult::default()
        }],
        ..RunResult::default()
    }
}

#[test]
fn values_are_read_in_the_cases_that_they_concern() {
    let declared = "
[figures.film]
title = 't'
says = ''
scenario = '@'
[figures.film.values]
frames = { measure = 'frames', program = 'film' }
least = { measure = 'frames', program = 'film', show = 'least' }
not-light = { measure = 'frames', program = 'film', not_case = 'light' }
each = { measure = 'iterations', program = 'fill', case = '*' }
sum = { measure = 'iterations', program = 'fill', case = 'light', instances = 'sum', scale = 0.1 }
lost = { measure = 'iterations', program = 'fill', case = 'alone', instances = 'sum', minus = { case = 'light' } }
over = { measure = 'iterations', program = 'fill', case = 'light', instances = 'sum', over = { case = 'alone' } }
all = { measure = 'iterations', programs = 'fi*', case = 'heavy', show = 'sum' }
";
    let declared = declared.replace("programs = 'fi*'", "programs = 'fill*'");
    let repository = Repository::new(&declared, "");
    let scenario = Scenario::load(&repository.scenario(), &[]).unwrap();
    let runs = [
        result("light", Some(300), [10, 20]),
        result("heavy", Some(290), [1, 2]),
        result("alone", None, [20, 40]),
    ];
    let declaration = repository.declaration();
    let left = Left::Results(&scenario, &runs);
    let measured = values(&declaration.entries[0], &left).unwrap();
    let once = |value| (value, value);
    assert_eq!(
        measured,
        [
            (290.0, 300.0),
            once(290.0),
            once(290.0),
            (1.0, 40.0),
            once(3.0),
            once(30.0),
            once(0.5),
            once(3.0)
        ]
    );
    // A figure that is not there is no figure.
    let runs = [
        result("light", Some(300), [1, 1]),
        result("alone", None, [1, 1]),
    ];
    let missing = values(&declaration.entries[0], &Left::Results(&scenario, &runs));
    assert!(
        missing
            .unwrap_err()
            .starts_with("not-light: was not measured")
    );
}

#[test]
fn reports_of_a_command_are_read_by_key_words_and_place() {
    let declared = "
[figures.load]
title = 't'
says = ''
command = 'make kernel-test'
[figures.load.values]
all = { report = 'share' }
second = { report = 'share', nth = 2 }
learning = { report = 'waited', with = '--learn 5' }
";
    let repository = Repository::new(declared, "");
    let entry = &repository.declaration().entries[0];
    let printed = "running 1 test\n  REPORT share 3\r\nREPORT shares 9\nREPORT share 4.5\n\
                   REPORT waited --learn 50 7\nREPORT waited --learn 5 8\n";
    let measured = values(entry, &Left::Printed(printed)).unwrap();
    assert_eq!(measured, [(3.0, 4.5), (4.5, 4.5), (8.0, 8.0)]);
    let told = |printed| values(entry, &Left::Printed(printed)).unwrap_err();
    assert_eq!(told(""), "all: nothing is reported of share as reported");
    assert_eq!(
        told("REPORT share no"),
        "all: `REPORT share no` ends in no number"
    );
    assert!(told("REPORT share 1").starts_with("second: nothing is reported"));
}

#[test]
fn a_command_that_fails_says_its_last_line() {
    let words = |line: &str| shlex::split(line).unwrap();
    assert_eq!(
        command::run(&words("echo REPORT a 1")).unwrap(),
        "REPORT a 1\n"
    );
    let error = command::run(&words("sh -c 'echo first >&2; echo why >&2; exit 3'")).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("exit status: 3: why"), "{told}");
    assert!(command::run(&words("no-such-program-here")).is_err());
}

#[test]
fn a_file_of_figures_that_is_none_says_so() {
    let repository = Repository::new(DECLARED_TWO, "");
    let file = repository.docs().join(FILE);
    fs::write(&file, "{").unwrap();
    assert!(
        check(&repository.docs())
            .unwrap_err()
            .to_string()
            .contains("figures.json: EOF")
    );
    let other =
        "{\"schema\": \"andante-figures\", \"version\": 9, \"recordings\": [], \"figures\": []}";
    fs::write(&file, other).unwrap();
    let told = check(&repository.docs()).unwrap_err().to_string();
    assert!(
        told.contains("it is andante-figures 9, this build reads"),
        "{told}"
    );
}
