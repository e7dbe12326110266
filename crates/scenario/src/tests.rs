use super::*;

const GOOD: &str = r#"
title = "Two classes"
duration_s = 10

[classes]
"/a/x" = 300
"/a" = 50
"/b" = 150

[programs.hog]
class = "/a/x"
kind = "loop"

[programs.film]
class = "/b"
kind = "player"
work_ms = [16, 6, 6]
start_s = 0
"#;

fn error(text: &str) -> String {
    Scenario::parse("x.toml", text, &[])
        .expect_err("must be refused")
        .to_string()
}

/// `GOOD` with one line replaced.
fn broken(line: &str, by: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    error(&GOOD.replace(line, by))
}

#[test]
fn reads_tree_and_programs_in_order() {
    let scenario = Scenario::parse("dir/two.toml", GOOD, &[]).unwrap();
    assert_eq!(scenario.key, "two");
    let workload = &scenario.cases[0].workload;
    let classes: Vec<_> = workload
        .classes
        .iter()
        .map(|c| (c.path.as_str(), c.weight))
        .collect();
    assert_eq!(classes, [("/a", 50), ("/a/x", 300), ("/b", 150)]);
    assert_eq!(workload.share_asked("/a/x"), 0.25);
    assert_eq!(workload.share_asked("/b"), 0.75);
    assert_eq!(workload.programs[0].name, "hog");
    assert_eq!(workload.programs[1].start_s, Some(0.0));
    assert!(matches!(&workload.programs[1].kind,
        Kind::Player { work_ms, .. } if *work_ms == [16.0, 6.0, 6.0]));
}

#[test]
fn names_line_and_key_of_mistakes() {
    assert_eq!(
        broken("start_s = 0", "strat_s = 0"),
        "x.toml:18: programs.film.strat_s: unknown key, did you mean `start_s`?"
    );
    assert_eq!(
        broken("class = \"/b\"", "class = 3"),
        "x.toml:15: programs.film.class: expected a string, found a whole number"
    );
    assert_eq!(
        broken("class = \"/b\"", "class = \"/bb\""),
        "x.toml:15: programs.film.class: unknown class `/bb`, did you mean `/b`?"
    );
    assert_eq!(
        broken("\"/b\" = 150", "\"/b\" = 10001"),
        "x.toml:8: classes.\"/b\": the weight must be a whole number from 1 to 10000"
    );
    assert_eq!(
        broken("kind = \"loop\"", "kind = \"lop\""),
        "x.toml:12: programs.hog.kind: unknown kind `lop`, did you mean `loop`?"
    );
    assert_eq!(
        broken("duration_s = 10", "duration_s = 10\ndomain_cpus = 3"),
        "x.toml:4: domain_cpus: 3 is no power of two up to the 1 CPUs there are"
    );
    assert_eq!(
        broken(
            "duration_s = 10",
            "duration_s = 10\ncpus = 4\nthreads_of_core = 3"
        ),
        "x.toml:5: threads_of_core: the 4 CPUs of a cache are no whole number of 3"
    );
    assert_eq!(
        broken("duration_s = 10", "duration_s = -1"),
        "x.toml:3: duration_s: -1 is out of range: give 0.1 to 3600"
    );
    assert_eq!(
        broken("kind = \"loop\"", "knid = \"loop\""),
        "x.toml:12: programs.hog.knid: unknown key, did you mean `kind`?"
    );
    assert_eq!(
        broken("duration_s = 10", ""),
        "x.toml:1: `duration_s` is missing: give a number"
    );
    assert_eq!(
        broken("class = \"/b\"", ""),
        "x.toml:14: programs.film: `class` is missing: give a string"
    );
}

#[test]
fn refuses_duplicates() {
    let message = broken("\"/a\" = 50", "\"/a/x\" = 50");
    assert!(message.starts_with("x.toml:7: duplicate key"), "{message}");
    let message = broken("[programs.film]", "[programs.hog]");
    assert!(message.starts_with("x.toml:14: duplicate key"), "{message}");
}

#[test]
fn refuses_the_impossible() {
    assert!(broken("\"/b\" = 150", "\"b\" = 150").contains("starts with `/`"));
    let deep = format!("\"{}\" = 1", "/d".repeat(17));
    assert!(broken("\"/b\" = 150", &deep).contains("17 steps deep"));
    assert!(broken("start_s = 0", "stop_s = 3\nstart_s = 4").contains("must come after `start_s`"));
    assert!(broken("start_s = 0", "resume_s = 4").contains("nothing to resume"));
    assert!(broken("start_s = 0", "affinity = [1]").contains("CPU 1 does not exist"));
    assert!(broken("title = \"Two classes\"", "title = ").starts_with("x.toml:2: "));
}

#[test]
fn cases_lay_their_keys_over_the_scenario() {
    let text = format!(
        "{GOOD}\n[cases.two]\nprograms.hog.count = 2\n[cases.heavy]\nclasses.\"/b\" = 950\nduration_s = 5\n"
    );
    let scenario = Scenario::parse("x.toml", &text, &["duration_s = 7".to_owned()]).unwrap();
    let [two, heavy] = &scenario.cases[..] else {
        panic!("{:?}", scenario.cases)
    };
    assert_eq!(two.name.as_deref(), Some("two"));
    assert_eq!(two.workload.programs[0].count, 2);
    assert_eq!(heavy.workload.programs[0].count, 1);
    assert_eq!(heavy.workload.share_asked("/b"), 0.95);
    // What the command line sets holds for every case.
    assert_eq!(heavy.workload.duration_s, 7.0);
    assert_eq!(
        error(&format!("{GOOD}\n[cases.two]\nprograms.hog.cuont = 2\n")),
        "x.toml:21: programs.hog.cuont: unknown key, did you mean `count`?"
    );
    assert!(error(&format!("{GOOD}\n[cases.two]\ntitle = \"x\"\n")).contains("whole scenario"));
}

#[test]
fn expectations_must_name_what_exists() {
    let with = |lines: &str| error(&format!("{GOOD}\n[[expect]]\n{lines}\n"));
    let unknown = with("measure = \"droped\"\nprogram = \"film\"\nmax = 0");
    assert_eq!(
        unknown,
        "x.toml:21: expect.measure: unknown measure `droped`, did you mean `dropped`?"
    );
    assert!(
        with("measure = \"dropped\"\nprogram = \"flim\"\nmax = 0").contains("did you mean `film`")
    );
    assert!(with("measure = \"dropped\"\nmax = 0").contains("give `program"));
    assert!(with("measure = \"dropped\"\nprogram = \"film\"").contains("exactly one of"));
    assert!(with("measure = \"idle_share\"\nmax = 0\ncase = \"x\"").contains("unknown case `x`"));
    assert!(
        with("measure = \"class_cpu_s\"\nclass = \"/b\"\nmax = 0\nat_s = 11").contains("outside")
    );
    assert!(
        with("measure = \"load_ms\"\nmax = 0\nscheduler = \"endante\"").contains("did you mean")
    );
}

#[test]
fn expectations_can_be_read_aloud() {
    let aloud = |lines: &str| {
        let text = format!("{GOOD}\n[cases.x]\n[[expect]]\n{lines}\n");
        Scenario::parse("x.toml", &text, &[]).unwrap().expectations[0].to_string()
    };
    assert_eq!(
        aloud("measure = \"share_received\"\nclass = \"/b\"\nof = 0.75\nwithin = 0.01"),
        "andante: share_received of /b within 1 % of 0.75"
    );
    assert_eq!(
        aloud(
            "measure = \"dropped\"\nprogram = \"film\"\nmax = 1\nover = { scheduler = \"eevdf\" }"
        ),
        "andante: dropped of film over that under eevdf at most 1"
    );
    assert_eq!(
        aloud(
            "measure = \"iterations\"\nprogram = \"hog\"\nmin = 0.9\n\
             over = { program = \"film\", case = \"x\", left_by = \"/b\" }"
        ),
        "andante: iterations of hog over iterations of film in x times what /b leaves at least 0.9"
    );
}

#[test]
fn a_film_is_shown_by_an_x_server_only() {
    let film = |display: &str, x: &str| {
        let keys = format!("kind = \"mpv\"\nuntimed = true\ndisplay = \"{display}\"");
        let text = GOOD.replace("kind = \"player\"\nwork_ms = [16, 6, 6]", &keys);
        let text = format!("{text}\n[programs.x]\nclass = \"/b\"\nkind = \"{x}\"\n");
        Scenario::parse("x.toml", &text, &[])
    };
    let refused = |display: &str, x: &str| film(display, x).unwrap_err().to_string();
    assert!(refused("y", "xvfb").contains("no single program of kind `xvfb`"));
    assert!(refused("x", "server").contains("no single program of kind `xvfb`"));
    assert!(refused("x", "xvfb\"\ncount = 2\nsize = \"640x480").contains("no single program"));
    let scenario = film("x", "xvfb\"\nsize = \"640x480").unwrap();
    let programs = &scenario.cases[0].workload.programs;
    assert!(programs[1].kind.is_real() && programs[2].kind.is_real());
    assert!(!programs[1].kind.ends_by_itself() && !programs[1].may_end);
    let Kind::Xvfb { screen } = programs[2].kind else {
        panic!("{:?}", programs[2].kind)
    };
    assert_eq!((screen.width, screen.height), (640, 480));
}

#[test]
fn only_budgets_can_be_exceeded() {
    let hog = |kind: &str| {
        let contract = format!("{{ {kind}budget_ms = 2, period_ms = 10, soft = true }}");
        let hog = format!("kind = \"loop\"\ncontract = {contract}");
        Scenario::parse("x.toml", &GOOD.replace("kind = \"loop\"", &hog), &[])
    };
    assert!(hog("").is_ok());
    let refused = hog("kind = \"dwcs\", ").unwrap_err().to_string();
    assert!(refused.contains("`dwcs` cannot be soft"), "{refused}");
}

#[test]
fn what_is_tuned_by_hand_must_be_possible() {
    let hog = |tuned: &str| {
        broken(
            "kind = \"loop\"",
            &format!("kind = \"loop\"\ntuned = {tuned}"),
        )
    };
    assert!(hog("{ fifo = 99 }").contains("programs.hog.tuned.fifo: 99 is out of range"));
    assert!(hog("{ weigth = 3 }").contains("did you mean `weight`"));
    assert!(hog("{ period_ms = 10, budget_ms = 3 }").contains("`budget_max_ms` is missing"));
    let wide = hog("{ period_ms = 10, budget_ms = 3, budget_max_ms = 11 }");
    assert!(wide.contains("budget_max_ms <= period_ms"), "{wide}");
    let text = GOOD.replace("kind = \"loop\"", "kind = \"loop\"\ntuned = {}");
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    let tuned = scenario.cases[0].workload.programs[0]
        .tuned
        .as_ref()
        .unwrap();
    assert_eq!(
        (tuned.nice, tuned.weight, tuned.fifo, tuned.deadline),
        (-10, 1000, 50, None)
    );
}

#[test]
fn shipped_scenarios_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let scenario = Scenario::load(&path, &[]).unwrap();
            assert!(
                !scenario.expectations.is_empty(),
                "{} expects nothing",
                path.display()
            );
        }
    }
}

#[test]
fn the_readme_names_every_kind_and_measure() {
    let readme = include_str!("../../../scenarios/README.md");
    let measures = andante_result::measures::names().map(|name| match name {
        "frame_ms" | "iteration_ms" | "latency_us" | "lateness_us" => format!("`{name}.mean`"),
        name => format!("`{name}`"),
    });
    let kinds = super::kind::KINDS.map(|kind| format!("| `{kind}` |"));
    for name in measures.chain(kinds) {
        assert!(
            readme.contains(&name),
            "scenarios/README.md does not mention {name}"
        );
    }
    // Its example is a scenario.
    let example = readme
        .split("```toml")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    Scenario::parse("README.md", example.unwrap(), &[]).unwrap();
}

#[test]
fn what_only_the_simulator_has_is_read_and_named() {
    let text = |keys: &str| {
        GOOD.replace(
            "work_ms = [16, 6, 6]",
            &format!("work_ms = [16, 6, 6]\n{keys}"),
        )
    };
    let film = |keys: &str| {
        let scenario = Scenario::parse("x.toml", &text(keys), &[]).unwrap();
        scenario.cases[0].workload.programs[1].kind.clone()
    };
    assert_eq!(film("display_ms = 2").only_simulated(), None);
    assert_eq!(film("display_ms = 2\nahead = 128").only_simulated(), None);
    assert_eq!(
        film("display_ms = 2\nahead = 129").only_simulated(),
        Some("`ahead` above 128")
    );
    let Kind::Player { display, .. } = film("display_ms = 2\nahead = 4") else {
        panic!("it is a player")
    };
    assert_eq!((display.ahead, display.exchanges), (4, 1));
    assert_eq!(
        error(&text("exchanges = 0")),
        "x.toml:18: programs.film.exchanges: 0 is out of range: give 1 to 1000"
    );

    let hog = |kind: &str| {
        let text = GOOD.replace("kind = \"loop\"", kind);
        let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases[0].workload.programs[0].kind.clone()
    };
    let typist =
        hog("kind = \"typist\"\nwork_ms = [1, 2]\ninput_ms = 3\nuntil_s = 8\nregular = true");
    assert_eq!(typist.only_simulated(), None);
    let Kind::Typist {
        regular: true,
        work_ms,
        input_ms,
        until_s,
        ..
    } = typist
    else {
        panic!("it is a typist")
    };
    assert_eq!(
        (work_ms, input_ms, until_s),
        (vec![1.0, 2.0], vec![3.0], Some(8.0))
    );
    assert_eq!(
        hog("kind = \"batch\"\nwork_ms = [5, 6]").only_simulated(),
        None
    );
    let batch = hog("kind = \"batch\"\nfork_ms = 4");
    assert_eq!(batch.only_simulated(), Some("`fork_ms`"));
}

#[test]
fn whoever_can_opens_a_session_where_the_scenario_says_so() {
    let programs = "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'player'\nwork_ms = 1\n\
        [programs.still]\nclass = '/'\nkind = 'player'\nwork_ms = 1\nsession = false\n\
        [programs.keys]\nclass = '/'\nkind = 'typist'\n[programs.jobs]\nclass = '/'\nkind = 'batch'\n";
    let read = |set: &str| {
        let scenario = Scenario::parse("x.toml", programs, &[set.to_owned()]);
        let programs = scenario.map_err(|error| error.to_string())?.cases;
        let all = programs[0].workload.programs.iter();
        Ok::<Vec<bool>, String>(all.map(|program| program.session).collect())
    };
    assert_eq!(read("sessions = false"), Ok(vec![false; 4]));
    assert_eq!(read("sessions = true"), Ok(vec![true, false, true, false]));
    let films = read("sessions = ['player']");
    assert_eq!(films, Ok(vec![true, false, false, false]));
    for (set, said) in [
        (
            "sessions = ['plyer']",
            "--set:1: sessions: no program of kind `plyer` here opens any, did you mean `player`?",
        ),
        (
            "sessions = ['batch']",
            "no program of kind `batch` here opens any; known here: player, typist",
        ),
        (
            "sessions = 3",
            "--set:1: sessions: give true or false, or a list of kinds",
        ),
        (
            "programs.flm.session = true",
            "--set:1: programs.flm: there is no such program, of a class and a kind, did you mean `film`?",
        ),
    ] {
        let error = read(set).unwrap_err();
        assert!(error.contains(said), "{set}\n{error}");
    }
    let jobs = programs.replace("player", "loop").replace("typist", "loop");
    let jobs = jobs
        .replace("work_ms = 1\n", "")
        .replace("session = false\n", "");
    let error = Scenario::parse("x.toml", &jobs, &["sessions = true".to_owned()]);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("no program here opens any"), "{error}");
}

/// One task is on one CPU at a time, whatever weight its class has.
#[test]
fn a_class_cannot_use_more_cpus_than_it_has_tasks() {
    let text = "title = 'x'\nduration_s = 1\ncpus = 4\n[classes]\n'/a' = 300\n'/b' = 100\n'/a/c' = 100\n\
                [programs.one]\nclass = '/a/c'\nkind = 'loop'\n\
                [programs.many]\nclass = '/b'\nkind = 'make'\n";
    let workload = |lines: &[String]| {
        let scenario = Scenario::parse("x.toml", text, lines).unwrap();
        scenario.cases[0].workload.clone()
    };
    let of = |lines: &[&str], path: &str| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        workload(&lines).share_usable(path, 4)
    };
    assert_eq!(of(&[], "/a"), Some(0.25));
    assert_eq!(of(&[], "/a/c"), Some(0.25));
    assert_eq!(of(&[], "/b"), None, "make may use all");
    assert_eq!(of(&["programs.one.count = 2"], "/a"), Some(0.5));
    assert_eq!(of(&["programs.one.count = 3"], "/a"), None);
    assert_eq!(
        of(
            &["programs.one.count = 3", "programs.one.affinity = [1]"],
            "/a"
        ),
        Some(0.25)
    );
    assert_eq!(of(&["programs.one.count = 0"], "/a"), Some(0.0));
}
