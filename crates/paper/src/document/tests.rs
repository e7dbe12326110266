use super::*;
use crate::cell::CellSpec;
use crate::result::Published;
use crate::source::{Demand, RunKey, Starves};

const SCENARIO: &str = r#"
title = "A desk"
duration_s = 2
warmup_s = 0
trace_s = 1

[classes]
"/a" = 100
"/b" = 300

[programs.typist]
class = "/a"
kind = "typist"

[programs.build]
class = "/b"
kind = "loop"
count = 2

[cases.with]
[cases.alone]
programs.build.count = 0
"#;

const PAPER: &str = r#"
title = "A paper"
authors = ["A. One", "B. Two"]
venue = "A conference"
year = 1993
claim = "It works."

[[table]]
id = "Table 1"
title = "Latencies"
row_title = "load"
label_titles = ["X"]
baseline = "none"
scenario = "desk"
measure = "latency_us.mean"
program = "typist"
scale = 0.001
within = 0.1
why = "because"

[[table.column]]
title = "typing"
unit = "ms"

[[table.column]]
title = "typing, stock"
scheduler = "fair"
factor = 2
explained = "it is slow"

[[table.row]]
title = "none"
labels = ["TS"]
case = "alone"
published = [38.5, { value = 40, shown = true }]

[[table.row]]
title = "a build"
labels = ["RT"]
case = "with"
starves = 20
published = ["-", ""]

[[figure]]
id = "Figure 1"
title = "Value"
kind = "value-contour"
table = "Table 1"
application = [{ title = "typing", measures = { mean = "typing" } }]
"#;

fn read_scenario(name: &str) -> Result<Scenario, NoScenario> {
    match name {
        "desk" => Scenario::parse("desk.toml", SCENARIO, &[]).map_err(NoScenario::Wrong),
        "wrong" => Scenario::parse("wrong.toml", "title = 3", &[]).map_err(NoScenario::Wrong),
        _ => Err(NoScenario::Unknown(vec!["desk".to_owned()])),
    }
}

fn parse(text: &str) -> Result<Paper, DocumentError> {
    Paper::parse("p", "paper.toml", text, &read_scenario)
}

/// The error of [`PAPER`] with one line replaced.
fn broken(line: &str, by: &str) -> String {
    assert!(PAPER.contains(line), "{line}");
    let error = parse(&PAPER.replacen(line, by, 1)).expect_err("must be refused");
    error.to_string()
}

/// The error of [`PAPER`] with another exhibit at its end.
fn with(more: &str) -> String {
    let error = parse(&format!("{PAPER}\n{more}\n")).expect_err("must be refused");
    error.to_string()
}

fn table(paper: &Paper) -> &TableSpec {
    match &paper.exhibits[0].content {
        ContentSpec::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_nearest_key_counts() {
    let paper = parse(PAPER).unwrap();
    let table = table(&paper);
    let [alone, with] = &table.rows[..] else {
        panic!("{:?}", table.rows)
    };
    let source = |cell: &CellSpec| cell.source.clone().unwrap();
    let first = source(&alone.cells[0]);
    assert_eq!(first.run.to_string(), "desk/alone andante");
    assert_eq!(
        (first.scale, first.figure.measure.as_str()),
        (0.001, "latency_us.mean")
    );
    assert_eq!(source(&with.cells[1]).run.to_string(), "desk/with fair");
    assert_eq!(alone.cells[0].demand, Demand::Within(0.1));
    assert_eq!(alone.cells[0].explained, "");
    assert_eq!(
        alone.cells[1].demand,
        Demand::Nothing,
        "the cell is nearer than its column"
    );
    assert_eq!(alone.cells[1].explained, "it is slow");
    assert_eq!(with.cells[0].published, Some(Published::Starved));
    assert_eq!(with.cells[0].starves, Some(Starves::Times(20.0)));
    assert_eq!(with.cells[1].published, None);
    assert_eq!(with.cells[1].starves, None, "nothing is published there");
    assert_eq!((table.baseline, table.lower_is_better), (Some(0), true));
    assert_eq!(paper.exhibits[0].says, "published");
}

#[test]
fn exhibits_keep_the_order_of_the_file() {
    let text = PAPER.replace(
        "[[table]]",
        "[[computed]]\nid = 'C'\ntitle = 't'\nfunction = 'sfq-fairness'\n\n[[table]]",
    );
    let paper = parse(&text).unwrap();
    let ids: Vec<_> = paper
        .exhibits
        .iter()
        .map(|exhibit| exhibit.id.as_str())
        .collect();
    assert_eq!(ids, ["C", "Table 1", "Figure 1"]);
}

#[test]
fn mistakes_are_answered_with_line_and_key() {
    assert_eq!(
        broken("unit = \"ms\"", "unti = \"ms\""),
        "paper.toml:23: table.column.unti: unknown key, did you mean `unit`?"
    );
    assert_eq!(
        broken("scenario = \"desk\"", "scenario = \"disk\""),
        "paper.toml:35: table.row.published: there is no scenario `disk` beside this file, did you mean `desk`?"
    );
    assert_eq!(
        broken("scenario = \"desk\"", "scenario = \"wrong\""),
        "wrong.toml:1: title: expected a string, found a whole number"
    );
    assert_eq!(
        broken("case = \"alone\"", "case = \"alnoe\""),
        "paper.toml:35: table.row.published: `desk` has no case `alnoe`, did you mean `alone`?"
    );
    assert_eq!(
        broken("published = [\"-\", \"\"]", "published = [\"-\"]"),
        "paper.toml:42: table.row.published: give a list of 2, one a column"
    );
    assert_eq!(
        broken("table = \"Table 1\"", "table = \"Table 2\""),
        "paper.toml:48: figure.table: no table above is called `Table 2`, did you mean `Table 1`?"
    );
}

#[test]
fn what_is_demanded_must_be_said_and_possible() {
    assert!(broken("why = \"because\"", "").contains("a tolerance needs `why`"));
    assert!(broken("why = \"because\"", "why = \" \"").contains("says nothing"));
    assert!(broken("within = 0.1", "within = 0.1\nfactor = 2").contains("give one of"));
    assert!(broken("within = 0.1", "factor = 0.5").contains("0.5 is out of range"));
    assert!(broken("starves = 20", "starves = 0.5").contains("how many times worse"));
    assert!(broken("baseline = \"none\"", "").contains("needs a `baseline`"));
    assert!(broken("baseline = \"none\"", "baseline = \"nome\"").contains("did you mean `none`"));
    assert!(broken("measure = \"latency_us.mean\"", "").contains("no `measure` measures"));
    assert!(
        broken("scheduler = \"fair\"", "scheduler = \"eevdf\"").contains("cannot be simulated")
    );
    assert!(broken("program = \"typist\"", "class = \"/a\"").contains("is a measure of a program"));
    let several = broken("program = \"typist\"", "program = \"build\"");
    assert!(
        several.contains("unknown program `build` in case `alone`"),
        "{several}"
    );
    assert!(broken("labels = [\"RT\"]", "").contains("0 words for 1 label titles"));
    assert!(broken("title = \"a build\"", "title = \"none\"").contains("two are called `none`"));
    assert!(broken("id = \"Figure 1\"", "id = \"Table 1\"").contains("two are called `Table 1`"));
}

#[test]
fn instances_and_divisors_are_checked_before_anything_runs() {
    let cell = |keys: &str| {
        broken(
            "published = [\"-\", \"\"]",
            &format!("published = [{{ value = 1, {keys} }}, \"\"]"),
        )
    };
    let loops = "measure = 'iterations', program = 'build'";
    assert!(cell(loops).contains("has several instances"));
    // Taken together, they can be divided by; but not while another class's part is taken off.
    let over = "over = { program = 'build', case = 'with', left_by = '/a' }";
    let over = format!("{loops}, instances = 'sum', {over}");
    assert!(cell(&over).contains("no single figure to divide by"));
    assert!(cell("over = { case = 'wtih' }").contains("did you mean `with`"));
    assert!(cell("over = { tail = 1 }").contains("unknown key"));
    let good = "measure = 'cpu_s', over = { case = 'alone', scheduler = 'fair' }";
    let text = PAPER.replace(
        "published = [\"-\", \"\"]",
        &format!("published = [{{ value = 1, {good} }}, \"\"]"),
    );
    let paper = parse(&text).unwrap();
    let source = table(&paper).rows[1].cells[0].source.clone().unwrap();
    let runs: Vec<_> = source.runs().map(RunKey::to_string).collect();
    assert_eq!(runs, ["desk/with andante", "desk/alone fair"]);
}

#[test]
fn figures_must_have_what_they_draw() {
    let figure = |keys: &str| with(&format!("[[figure]]\nid = 'F'\ntitle = 't'\n{keys}"));
    assert!(figure("kind = 'line'").contains("did you mean `lines`"));
    assert!(figure("kind = 'lines'\ntable = 'Table 1'").contains("need an `x`"));
    assert!(
        figure("kind = 'bars'\ntable = 'Table 1'\ncolumns = ['typin']")
            .contains("did you mean `typing`")
    );
    let lane = |keys: &str| {
        figure(&format!(
            "kind = 'timeline'\nscenario = 'desk'\ncase = 'with'\nslot_ms = 10\n[[figure.lane]]\ntitle = 'l'\n{keys}"
        ))
    };
    assert!(lane("published = 'A B'").contains("need `why`"));
    assert!(lane("to_ms = 1100").contains("traces 1 s only"));
    assert!(lane("to_ms = 100\ncpu = 1").contains("CPU 1 does not exist"));
    assert!(lane("").contains("`to_ms` is missing"));
    let series = |quantity: &str, keys: &str| {
        figure(&format!(
            "kind = 'samples'\nquantity = '{quantity}'\nscenario = 'desk'\n[[figure.series]]\ntitle = 's'\n{keys}"
        ))
    };
    assert!(series("shares", "").contains("did you mean `share`"));
    assert!(series("share", "class = '/a'").contains("names no `case`"));
    assert!(series("share", "case = 'with'\nprogram = 'typist'").contains("give `class"));
    assert!(series("frame_rate", "case = 'with'\nclass = '/a'").contains("give `program"));
    assert!(series("share", "case = 'with'\nclass = '/a'\npublished = [[1]]").contains("pairs"));
    assert!(
        with("[[computed]]\nid = 'F'\ntitle = 't'\nfunction = 'sfq-fairnes'")
            .contains("did you mean `sfq-fairness`")
    );
}

#[test]
fn shipped_papers_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers");
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let folder = entry.unwrap().path();
        // A folder without one is a draft, which `andante paper` does not list either.
        if !folder.join("paper.toml").is_file() {
            continue;
        }
        let paper = Paper::load(&folder).unwrap_or_else(|error| panic!("{error}"));
        let readme = std::fs::read_to_string(folder.join("README.md"));
        let readme = readme.unwrap_or_else(|_| panic!("{} has no README.md", paper.key));
        let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            readme.contains(&paper.title),
            "{}: the README lacks the title",
            paper.key
        );
        for departure in &paper.departures {
            assert!(
                readme.contains(&departure.what),
                "papers/{}/README.md does not name the departure `{}`",
                paper.key,
                departure.what
            );
        }
        let unused = beside(&folder)
            .into_iter()
            .find(|name| !paper.scenarios.contains_key(name));
        assert_eq!(unused, None, "{}: no exhibit uses it", paper.key);
        keys.push(paper.key);
    }
    assert!(keys.contains(&"qlinux00".to_owned()), "{keys:?}");
}
