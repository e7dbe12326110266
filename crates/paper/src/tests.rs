//! Papers carried out: small ones whose outcome is known.

use std::path::PathBuf;

use andante_scenario::Scenario;

use super::result::{Content, Exhibit, Mark, Table};
use super::*;

const SCENARIO: &str = r#"
title = "Loops"
duration_s = 4
warmup_s = 0
sample_ms = 1000
trace_s = 0.2
simulator.quantum_ms = 10

[classes]
"/a" = 100
"/b" = 300

[programs.a]
class = "/a"
kind = "loop"

[programs.b]
class = "/b"
kind = "loop"

[programs.film]
class = "/a"
kind = "player"
fps = 10
work_ms = 1
start_s = 0
count = 0

[cases.loops]
[cases.film]
programs.a.count = 0
programs.film.count = 1
"#;

const HEAD: &str = "title = 'T'\nauthors = ['A']\nvenue = 'V'\nyear = 1993\nclaim = 'C'\n";

const TABLE: &str = "
[[table]]
id = 'T'
title = 't'
scenario = 'loops'
case = 'loops'
measure = 'class_cpu_s'
why = 'w'
";

/// The exhibits of a paper with these.
fn run_paper(exhibits: &str) -> PaperResult {
    let read = |_: &str| Ok(Scenario::parse("loops.toml", SCENARIO, &[]).unwrap());
    let paper = Paper::parse("p", "paper.toml", &format!("{HEAD}{exhibits}"), &read);
    let paper = paper.unwrap_or_else(|error| panic!("{error}"));
    run::run(&[paper], &mut Count::on_stderr())
        .unwrap()
        .remove(0)
}

fn table(exhibit: &Exhibit) -> &Table {
    match &exhibit.content {
        Content::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

/// The mark and the figure of one cell: class /a, which gets 1 s of 4.
fn cell(column: &str, row: &str) -> (Mark, Option<f64>) {
    let text = format!(
        "{TABLE}[[table.column]]\ntitle = 'c'\nclass = '/a'\n{column}\n[[table.row]]\ntitle = 'r'\n{row}\n"
    );
    let paper = run_paper(&text);
    let cell = &table(&paper.exhibits[0]).rows[0].cells[0];
    (cell.mark, cell.measured)
}

#[test]
fn tolerances_mean_what_they_say() {
    let one = Some(1.0);
    assert_eq!(cell("within = 0.1", "published = [1.1]"), (Mark::Pass, one));
    assert_eq!(
        cell("within = 0.1", "published = [1.2]"),
        (Mark::Deviation, one)
    );
    assert_eq!(
        cell("within_abs = 0.2", "published = [1.2]"),
        (Mark::Pass, one)
    );
    assert_eq!(
        cell("within_abs = 0.1", "published = [1.2]"),
        (Mark::Deviation, one)
    );
    assert_eq!(cell("factor = 2", "published = [2]"), (Mark::Pass, one));
    assert_eq!(
        cell("factor = 2", "published = [0.4]"),
        (Mark::Deviation, one)
    );
    assert_eq!(cell("at_most = true", "published = [1]"), (Mark::Pass, one));
    assert_eq!(
        cell("at_most = true", "published = [0.9]"),
        (Mark::Deviation, one)
    );
    assert_eq!(
        cell("at_least = true", "published = [1.1]"),
        (Mark::Deviation, one)
    );
    assert_eq!(cell("", "published = [7]"), (Mark::Shown, one));
    assert_eq!(cell("within = 0.1", ""), (Mark::Shown, one));
    assert_eq!(
        cell("scale = 100\nwithin = 0", "published = [100]"),
        (Mark::Pass, Some(100.0))
    );
    let explained = "within = 0.1\nexplained = 'e'";
    assert_eq!(cell(explained, "published = [2]"), (Mark::Explained, one));
    let third = cell("over = { class = '/b' }", "").1.unwrap();
    assert!((third - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(cell("at_s = 2", ""), (Mark::Shown, Some(0.5)));
}

#[test]
fn a_dash_wants_starvation() {
    // Class /b gets 3 s: as good as the baseline; /a gets 1, three times less.
    let starves = |starves: &str, case: &str| {
        let text = format!(
            "{TABLE}baseline = 'b'\nbetter = 'higher'\n[[table.column]]\ntitle = 'c'\n{starves}\n\
             [[table.row]]\ntitle = 'b'\nclass = '/b'\npublished = [3]\n\
             [[table.row]]\ntitle = 'r'\nclass = '/a'\ncase = '{case}'\npublished = ['-']\n"
        );
        let paper = run_paper(&text);
        table(&paper.exhibits[0]).rows[1].cells[0].mark
    };
    assert_eq!(starves("starves = 2.9", "loops"), Mark::Pass);
    assert_eq!(starves("starves = 3.1", "loops"), Mark::Deviation);
    assert_eq!(starves("starves = true", "loops"), Mark::Deviation);
    assert_eq!(starves("", "loops"), Mark::Shown);
    // What has no figure, or none of anything, was not completed.
    let film = |measure: &str| {
        cell(
            "starves = true",
            &format!("published = ['-']\nmeasure = '{measure}'\nprogram = 'film'\ncase = 'film'"),
        )
    };
    assert_eq!(film("dropped"), (Mark::Pass, Some(0.0)));
    assert_eq!(film("frames"), (Mark::Deviation, Some(40.0)));
    assert_eq!(film("latency_us.mean"), (Mark::Pass, None));
}

#[test]
fn orders_are_checked_pair_by_pair() {
    let check = |order: &str, published: [f64; 3]| {
        let [first, second, third] = published;
        let text = format!(
            "{TABLE}[[table.column]]\ntitle = 'c'\norder = {order}\n\
             [[table.row]]\ntitle = 'x'\nclass = '/a'\npublished = [{first}]\n\
             [[table.row]]\ntitle = 'y'\nclass = '/b'\npublished = [{second}]\n\
             [[table.row]]\ntitle = 'z'\nclass = '/b'\nat_s = 2\npublished = [{third}]\n"
        );
        let paper = run_paper(&text);
        let [check] = &paper.exhibits[0].checks[..] else {
            panic!("{:?}", paper.exhibits[0].checks)
        };
        (check.mark, check.text.clone())
    };
    // Measured: 1, 3, 1.5.
    assert_eq!(check("0", [10.0, 30.0, 20.0]).0, Mark::Pass);
    let (mark, text) = check("0", [10.0, 20.0, 30.0]);
    assert_eq!(mark, Mark::Deviation);
    assert!(
        text.contains("1 of 3 pairs are not: y and z: 3 and 1.5"),
        "{text}"
    );
    assert_eq!(
        check("0.4", [10.0, 20.0, 30.0]).0,
        Mark::Pass,
        "20 and 30 are not far enough apart"
    );
    assert_eq!(
        check("0.9", [10.0, 20.0, 30.0]).0,
        Mark::Deviation,
        "no pair is no order"
    );
    assert_eq!(check("'rising'", [0.0; 3]).0, Mark::Deviation);
    assert_eq!(check("'falling'", [0.0; 3]).0, Mark::Deviation);
}

#[test]
fn slots_are_compared_one_by_one() {
    let lane = |published: &str| {
        let text = format!(
            "[[figure]]\nid = 'F'\ntitle = 't'\nkind = 'timeline'\nslot_ms = 10\nscenario = 'loops'\n\
             case = 'loops'\nlabels = {{ a = 'A', b = 'B' }}\n\
             [[figure.lane]]\ntitle = 'l'\nwhy = 'w'\npublished = '{published}'\n"
        );
        let paper = run_paper(&text);
        let check = paper.exhibits[0].checks[0].clone();
        (check.mark, check.text)
    };
    assert_eq!(lane("A B B B A B B B").0, Mark::Pass);
    let (mark, text) = lane("A B B A B");
    assert_eq!(mark, Mark::Deviation);
    assert_eq!(
        text,
        "l: 3 of 5 slots; the first that differs is slot 3: B instead of A"
    );
    assert_eq!(
        lane("A* B B").0,
        Mark::Deviation,
        "no event decided that slot"
    );
}

#[test]
fn samples_and_charts_take_what_the_runs_hold() {
    let samples = |quantity: &str, keys: &str| {
        let text = format!(
            "[[figure]]\nid = 'F'\ntitle = 't'\nkind = 'samples'\nquantity = '{quantity}'\nscenario = 'loops'\n\
             [[figure.series]]\ntitle = 's'\n{keys}\n"
        );
        match &run_paper(&text).exhibits[0].content {
            Content::Samples(samples) => samples.series[0].measured.clone(),
            other => panic!("{other:?}"),
        }
    };
    let shares = samples("share", "class = '/b'\ncase = 'loops'");
    assert_eq!(shares, [(0.5, 75.0), (1.5, 75.0), (2.5, 75.0), (3.5, 75.0)]);
    let cpu_s = samples("cpu_s", "class = '/a'\ncase = 'loops'");
    assert_eq!(
        cpu_s,
        [(0.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
    );
    let rates = samples("frame_rate", "program = 'film'\ncase = 'film'");
    assert_eq!(rates, [(1.0, 10.0), (2.0, 10.0), (3.0, 10.0), (4.0, 10.0)]);
    let levels = samples(
        "priority",
        "program = 'a'\ncase = 'loops'\nscheduler = 'svr4'",
    );
    assert!(
        levels.len() == 4 && levels[3].1 < levels[0].1,
        "a loop sinks: {levels:?}"
    );
    let none = samples("priority", "program = 'a'\ncase = 'loops'");
    assert!(none.is_empty(), "Andante has no levels: {none:?}");
}

#[test]
fn a_value_is_the_baseline_over_the_figure() {
    let text = format!(
        "{TABLE}baseline = 'b'\n[[table.column]]\ntitle = 'c'\n\
         [[table.row]]\ntitle = 'b'\nclass = '/b'\npublished = [30]\n\
         [[table.row]]\ntitle = 'r'\nclass = '/a'\npublished = [120]\n\
         [[table.row]]\ntitle = 's'\nclass = '/a'\npublished = ['-']\n\
         [[figure]]\nid = 'F'\ntitle = 't'\nkind = 'value-contour'\ntable = 'T'\n\
         application = [{{ title = 'x', measures = {{ mean = 'c' }} }}]\n"
    );
    let paper = run_paper(&text);
    let Content::ValueContour(contour) = &paper.exhibits[1].content else {
        panic!("{:?}", paper.exhibits[1])
    };
    let [r, s] = &contour.settings[..] else {
        panic!("{contour:?}")
    };
    assert_eq!(r.title, "r");
    assert_eq!(
        (r.values[0][0].published, r.values[0][0].measured),
        (Some(0.25), Some(3.0))
    );
    assert_eq!(s.values[0][0].published, Some(0.0));
}

#[test]
fn explanations_that_are_not_needed_are_told() {
    let text = format!(
        "{TABLE}within = 0.1\n[[table.column]]\ntitle = 'c'\nclass = '/a'\n\
         [[table.row]]\ntitle = 'r'\npublished = [{{ value = 1, explained = 'e' }}]\n"
    );
    let paper = run_paper(&text);
    assert_eq!(paper.stale, ["T: r, c"]);
    assert!(verdict(&[paper]).is_ok());
}

#[test]
fn qlinux_holds_in_every_figure_and_brings_the_same_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/qlinux00");
    let papers = run(&[folder.to_owned()]).unwrap();
    let tally = papers[0].tally();
    assert_eq!((tally.explained, tally.deviations), (0, 0));
    assert!(tally.passed >= 48, "{tally:?}");
    assert!(verdict(&papers).is_ok());
    assert_eq!(papers, run(&[folder.to_owned()]).unwrap());
    let error = run(&["qlinux99".to_owned()]).unwrap_err();
    assert!(matches!(error, LabError::NoPaper { .. }), "{error}");
    // Wherever the tests are run there may be no papers around.
    let text = error.to_string();
    assert!(
        text.contains("did you mean `qlinux00`") || text.contains("give the path"),
        "{text}"
    );
}

#[test]
fn a_book_is_named_by_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let paper = run_paper(&format!(
        "{TABLE}[[table.column]]\ntitle = 'c'\nclass = '/a'\n[[table.row]]\ntitle = 'r'\n"
    ));
    let written = |papers: &[PaperResult], names: &[&str]| -> PathBuf {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let file = write_book(papers, &names, folder.path()).unwrap();
        assert!(file.is_file());
        file.strip_prefix(folder.path()).unwrap().to_owned()
    };
    let one = [paper];
    assert_eq!(written(&one, &["papers/p"]), PathBuf::from("p.html"));
    assert_eq!(written(&one, &["all"]), PathBuf::from("book.html"));
}
