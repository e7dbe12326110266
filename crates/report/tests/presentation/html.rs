//! The HTML report is well-formed, stands alone, and says what came out.

use andante_report::beside::Beside;
use andante_report::{Check, html, html_beside};
use andante_result::{Judgement, ProgramResult, RunResult, SchedulerResult, Spread, Verdict};
use scraper::{Html, Selector};

use crate::fixture;

/// The report, parsed; fails if it is not well-formed or refers to anything outside itself.
fn parse(results: &[RunResult], checks: &[Check]) -> Html {
    let text = html(results, checks);
    let page = Html::parse_document(&text);
    assert_eq!(
        page.errors,
        Vec::<&str>::new(),
        "the parser had to mend the page"
    );
    for outside in [
        "://", "url(", "@import", "<script", "<link", "src=", "href=",
    ] {
        assert!(!text.contains(outside), "the page contains {outside}");
    }
    assert!(
        !text.contains("NaN") && !text.contains("inf%"),
        "a figure is not a number"
    );
    page
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector)
        .map(|element| element.text().collect())
        .collect()
}

#[test]
fn the_command_names_what_was_chosen() {
    let case = |name: &str| RunResult {
        case: Some(name.into()),
        cases_chosen: true,
        set: vec!["programs.film.fps = 50".into()],
        ..fixture::film()
    };
    let page = parse(&[case("make"), case("loops")], &[]);
    assert_eq!(
        texts(&page, "pre"),
        [
            "andante lab run film-make --scheduler andante,eevdf,scx_bpfland --on vm \
          --case make,loops --set 'programs.film.fps = 50'"
        ]
    );
}

#[test]
fn a_film_is_judged_in_one_sentence() {
    let page = parse(&[fixture::film()], &fixture::checks());
    let lead = &texts(&page, ".lead")[0];
    assert!(
        lead.starts_with("Andante: 0 of 360 frames not shown, longest freeze 34.5\u{a0}ms; "),
        "{lead}"
    );
    assert!(
        lead.contains("stock scheduler, same weights: 35 of 360 frames not shown"),
        "{lead}"
    );
    assert_eq!(texts(&page, "h1"), ["A film beside make -j8"]);
    assert_eq!(texts(&page, ".column.andante dd")[0], "0");
    assert_eq!(texts(&page, ".checks .passed").len(), 2);
    assert_eq!(texts(&page, ".checks .failed").len(), 1);
    assert!(
        texts(&page, "pre")[0]
            .contains("andante lab run film-make --scheduler andante,eevdf,scx_bpfland --on vm")
    );
    assert!(texts(&page, ".footnote")[0].contains("virtual"));
}

#[test]
fn a_case_without_the_film_says_nothing_of_its_frames() {
    let mut alone = fixture::film();
    alone.case = Some("build-alone".into());
    for scheduler in &mut alone.schedulers {
        scheduler.programs.retain(|p| p.frames.is_none());
    }
    let page = parse(&[fixture::film(), alone], &[]);
    let lead = &texts(&page, ".lead")[0];
    assert!(
        lead.starts_with("Andante: 0 of 360 frames not shown"),
        "{lead}"
    );
}

#[test]
fn every_player_is_plotted_under_every_scheduler() {
    let film = fixture::film();
    let page = parse(std::slice::from_ref(&film), &[]);
    assert_eq!(texts(&page, ".geometry .dots").len(), 3);
    let dropped: u64 = film
        .schedulers
        .iter()
        .filter_map(|s| s.programs[0].dropped)
        .sum();
    assert_eq!(texts(&page, ".drops line").len() as u64, dropped);
    let titles = texts(&page, "svg > title");
    assert_eq!(
        titles.len(),
        texts(&page, "svg[role=img]").len(),
        "a plot without a title"
    );
    assert!(titles.iter().all(|title| !title.is_empty()));
}

#[test]
fn names_are_escaped() {
    let mut checks = fixture::checks();
    checks[0].wanted = "<b>what</b>".into();
    let page = parse(&[fixture::awkward()], &checks);
    assert_eq!(texts(&page, "h1"), ["<b>bold</b> & \"quoted\""]);
    assert!(texts(&page, "b, i, script").is_empty());
    assert_eq!(texts(&page, ".checks tbody th")[0], "<b>what</b>");
    let trouble = ["left before the end, </svg><b> ended early"];
    assert_eq!(texts(&page, ".column .trouble"), trouble);
    assert!(
        texts(&page, "tr.trouble")
            .iter()
            .any(|row| row.contains("<mpv>[42]"))
    );
}

/// Of many checks only those that failed stand before the figures; all are behind a fold.
#[test]
fn many_checks_are_folded() {
    let checks: Vec<Check> = (0..8).flat_map(|_| fixture::checks()).collect();
    let page = parse(&[fixture::film()], &checks);
    assert_eq!(texts(&page, "section > .scroll .checks tbody tr").len(), 8);
    assert_eq!(texts(&page, "details .checks tbody tr").len(), 24);
    let few = parse(&[fixture::film()], &fixture::checks());
    assert!(texts(&few, "details .checks").is_empty());
}

#[test]
fn shares_alone_make_a_report() {
    let page = parse(&[fixture::tree()], &[]);
    assert!(
        texts(&page, ".lead")[0].starts_with("Andante: every class within"),
        "{:?}",
        texts(&page, ".lead")
    );
    // Three leaves under two schedulers; the inner class has no task of its own.
    assert_eq!(texts(&page, ".geometry .area").len(), 6);
    assert_eq!(texts(&page, ".bars rect").len(), 8);
    assert!(texts(&page, ".geometry .dots").is_empty());
}

/// A share that a class cannot use is not asked of the scheduler: neither in words nor as a mark.
#[test]
fn what_cannot_be_used_is_marked() {
    let mut tree = fixture::tree();
    for scheduler in &mut tree.schedulers {
        let class = &mut scheduler.classes[3];
        (class.share_usable, class.share_received) = (Some(0.5), 0.5);
    }
    let page = parse(&[tree], &[]);
    let label = &texts(&page, ".bar-label")[3];
    assert_eq!(
        label.replace('\u{a0}', " "),
        "/s2 · weight 6 · asked 75.00 %, can use 50.00 %"
    );
    let within: f64 = texts(&page, ".column.andante dd")[0]
        .trim_end_matches('%')
        .parse()
        .unwrap();
    assert!(
        within < 1.0,
        "half of it is all that could be had: {within}"
    );
}

/// A player that overruns its contract on purpose is late, and nobody asks that it be not.
#[test]
fn the_headline_is_of_the_players_that_are_asked_to_be_in_time() {
    let mut result = fixture::film();
    for scheduler in &mut result.schedulers {
        let mut wild = scheduler.programs[0].clone();
        (wild.name, wild.late) = ("wild".into(), wild.frames);
        scheduler.programs.push(wild);
    }
    result.expectations = vec![Judgement {
        expectation: "andante: late_share of film at most 0.01".into(),
        measure: Some("late_share".into()),
        program: Some("film".into()),
        verdict: Verdict::Pass,
        tail: false,
        measured: Some(0.0),
        reason: None,
    }];
    let page = parse(&[result.clone()], &[]);
    let begins = |lead: &str, with: &str| assert!(lead.starts_with(with), "{lead}");
    begins(
        &texts(&page, ".lead")[0],
        "Andante: 0 of 360 frames not in time, longest freeze 34.5\u{a0}ms; ",
    );
    result.expectations[0].program = Some("wild".into());
    begins(
        &texts(&parse(&[result], &[]), ".lead")[0],
        "Andante: 360 of 360 frames not in time",
    );
}

#[test]
fn judged_expectations_become_checks() {
    let mut result = fixture::tree();
    result.case = Some("four".into());
    let judgement = |expectation: &str, verdict, measured| Judgement {
        expectation: expectation.into(),
        measure: None,
        program: None,
        verdict,
        tail: false,
        measured,
        reason: None,
    };
    result.expectations = vec![
        judgement(
            "andante: share_received of /s2 within 1 % of 0.75",
            Verdict::Pass,
            Some(0.749_89),
        ),
        judgement("andante: idle_share at most 0", Verdict::Fail, None),
        judgement("scx_rusty: dropped at most 0", Verdict::NotJudged, None),
    ];
    let checks = Check::of(&[result.clone()]);
    assert_eq!(checks.len(), 2, "what was left out on purpose is no check");
    assert_eq!(
        (checks[0].passed, checks[0].measured.as_str()),
        (true, "0.7499")
    );
    assert_eq!((checks[1].passed, checks[1].what.as_str()), (false, "four"));
    let page = parse(&[result], &checks);
    assert_eq!(
        texts(&page, ".checks thead th"),
        ["case", "wanted", "measured", "outcome"]
    );
}

#[test]
fn many_cases_become_a_sweep() {
    let page = parse(&fixture::sweep(), &[]);
    assert!(texts(&page, "h2").contains(&"By number of dhrystone".to_owned()));
    assert!(texts(&page, "h3").contains(&"player: frame rate [/s]".to_owned()));
    assert_eq!(texts(&page, "details.case > summary").len(), 8);

    let depth = parse(&fixture::latencies(), &[]);
    assert!(texts(&depth, "h2").contains(&"By depth of pingpong".to_owned()));
    assert!(texts(&depth, ".lead")[0].contains("µs"));
}

/// A starved scheduler shows fewer frames in the case that is hardest, and was not run in another.
#[test]
fn the_headline_compares_one_case_that_all_ran() {
    let mut cases = fixture::sweep();
    cases.truncate(3);
    for (place, case) in cases.iter_mut().enumerate() {
        case.case = Some(format!("loops-{place}"));
        let ours = &mut case.schedulers[0].programs[0];
        // Ours loses most in the second case; the other one in the last.
        ours.shown_ms.clear();
        ours.dropped = Some([0, 7, 3][place]);
        ours.frames = Some(360 - [0, 7, 3][place]);
        let theirs = &mut case.schedulers[1].programs[0];
        (theirs.frames, theirs.dropped) = (Some(360 - 10 * place as u64), Some(0));
    }
    // Where only ours ran, it is bad, and that is not held against it.
    let mut alone = cases[0].clone();
    alone.case = Some("alone".into());
    alone.schedulers.truncate(1);
    (
        alone.schedulers[0].programs[0].frames,
        alone.schedulers[0].programs[0].dropped,
    ) = (Some(1), Some(359));
    cases.push(alone);
    let page = parse(&cases, &[]);
    let lead = &texts(&page, ".lead")[0];
    assert!(
        lead.starts_with("Andante: 7 of 360 frames not shown, "),
        "{lead}"
    );
    // Frames that were due and never came are missing as well as dropped ones.
    assert!(lead.contains(": 10 of 360 frames not shown, "), "{lead}");
    assert!(
        lead.ends_with(", the worst for Andante of 3 with a film that all schedulers ran."),
        "{lead}"
    );
    assert_eq!(
        texts(&page, ".tally"),
        [
            "every frame shown in 1 of 3 cases",
            "every frame shown in 1 of 3 cases"
        ]
    );
}

#[test]
fn a_player_that_showed_nothing_looks_no_better_for_it() {
    let mut film = fixture::film();
    let starved = &mut film.schedulers[1].programs[0];
    *starved = ProgramResult {
        frames: Some(1),
        due: starved.due,
        dropped: Some(0),
        late: Some(0),
        name: starved.name.clone(),
        ..ProgramResult::default()
    };
    let page = parse(&[film], &[]);
    let lead = &texts(&page, ".lead")[0];
    assert!(
        lead.contains(": 359 of 360 frames not shown, fewer than two frames shown;"),
        "{lead}"
    );
}

/// Names have no order that a line could follow.
#[test]
fn cases_that_go_by_names_are_no_curve() {
    let mut cases = fixture::sweep();
    cases.truncate(3);
    for (case, name) in cases.iter_mut().zip(["alone", "make", "both"]) {
        case.case = Some(name.into());
        // Two numbers that vary, and not independently: names it is.
        case.cpus = if name == "make" { 2 } else { 1 };
        for (scheduler, class) in case.schedulers.iter_mut().zip(["/a", "/b/c"]) {
            scheduler.programs[0].class = class.into();
            // Shown as a sentence: ones among zeros are no chart.
            scheduler.programs[0].dropped = Some(u64::from(name == "both" && class == "/b/c"));
        }
    }
    let page = parse(&cases, &[]);
    assert!(texts(&page, "h2").contains(&"By case".to_owned()));
    assert!(texts(&page, ".small .curve").is_empty());
    let rates = texts(&page, "svg text.label");
    assert!(rates.starts_with(&["alone".into(), "make".into(), "both".into()]));
    let title = "player: longest freeze [ms]".to_owned();
    assert!(texts(&page, "h3").contains(&title));
    assert!(
        texts(&page, ".said li").contains(
            &"player: frames dropped: Andante 0 in every case; stock scheduler, same weights 1 in both, else 0."
                .to_owned()
        ),
        "{:?}",
        texts(&page, ".said li")
    );
    assert!(
        !texts(&page, ".small h3")
            .iter()
            .any(|title| title.contains("dropped"))
    );
}

/// A level line says less than a sentence.
#[test]
fn what_is_the_same_everywhere_is_said() {
    let mut cases = fixture::sweep();
    for case in &mut cases {
        for scheduler in &mut case.schedulers {
            scheduler.programs[0].dropped = Some(0);
        }
    }
    let page = parse(&cases, &[]);
    assert!(
        texts(&page, ".said li").contains(
            &"player: frames dropped: 0 in every case, under every scheduler.".to_owned()
        )
    );
    assert!(!texts(&page, ".geometry .curve").is_empty());
}

/// A page that is read has no time without its unit.
#[test]
fn times_have_their_units() {
    let mut film = fixture::film();
    film.expectations = vec![Judgement {
        expectation: "andante: longest_freeze_ms of film at most 67 ms".into(),
        measure: Some("longest_freeze_ms".into()),
        program: Some("film".into()),
        verdict: Verdict::Pass,
        tail: false,
        measured: Some(34.456),
        reason: None,
    }];
    let checks = Check::of(std::slice::from_ref(&film));
    assert_eq!(checks[0].measured, "34.5\u{a0}ms");
    let page = parse(&[film], &checks);
    let selector = Selector::parse(".figures tr").unwrap();
    let rows = page.select(&selector).map(|row| {
        let text: Vec<String> = row
            .children()
            .filter_map(scraper::ElementRef::wrap)
            .map(|cell| cell.text().collect())
            .collect();
        text
    });
    let mut times = 0;
    for row in rows.filter(|row| {
        ["frame time", "longest", "span", "CPU time", "latency"]
            .iter()
            .any(|name| row[0].starts_with(name))
    }) {
        let units: Vec<&str> = row[1..]
            .iter()
            .filter(|cell| !cell.is_empty())
            .map(|cell| cell.split_once('\u{a0}').map_or("", |(_, unit)| unit))
            .collect();
        assert!(["ns", "µs", "ms", "s"].contains(&units[0]), "{row:?}");
        assert!(units.iter().all(|unit| *unit == units[0]), "{row:?}");
        times += 1;
    }
    assert!(times > 5);
}

#[test]
fn little_or_nothing_is_no_trouble() {
    assert!(texts(&parse(&[], &[]), ".lead")[0].contains("no results"));
    parse(&[fixture::empty()], &[]);
    let mut one = fixture::film();
    one.schedulers.truncate(1);
    one.schedulers[0].sample_ns.clear();
    one.schedulers[0].programs[0].dropped_ms.clear();
    one.schedulers[0].programs[0].shown_ms.truncate(1);
    assert_eq!(texts(&parse(&[one.clone()], &[]), ".column").len(), 1);
    one.schedulers[0].programs.clear();
    one.schedulers[0].classes.clear();
    one.duration_s = 0.0;
    parse(&[one.clone(), one], &[]);
}

/// The scenario's own words, and the files that lie there: those, by addresses from here, and no others.
#[test]
fn what_lies_beside_the_report_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lay = |path: &str| {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    };
    lay("8 loops?/result.json");
    lay("8 loops?/trace.perfetto-trace");
    lay("logs/8 loops?-andante.console");
    lay("logs/of-another-run.console");
    let result = RunResult {
        case: Some("8 loops?".into()),
        ..fixture::film()
    };
    let words = "A <film>, and `make -j8`.\nMore of it.\n\n    andante lab run x\n\nThe end.\n";
    let beside = Beside::of(words, std::slice::from_ref(&result), folder.path());
    let text = html_beside(std::slice::from_ref(&result), &[], &beside);
    let page = Html::parse_document(&text);
    assert_eq!(page.errors, Vec::<&str>::new());
    assert!(!text.contains("://"), "no address outside the folder");
    let links: Vec<String> = page
        .select(&Selector::parse("a").unwrap())
        .map(|link| link.attr("href").unwrap().to_owned())
        .collect();
    assert_eq!(
        links,
        [
            "8%20loops%3F/trace.perfetto-trace",
            "8%20loops%3F/result.json",
            "logs/8%20loops%3F-andante.console"
        ]
    );
    assert!(text.contains("ui.perfetto.dev"));
    let said = texts(&page, ".description p");
    assert_eq!(said, ["A <film>, and make -j8.\nMore of it.", "The end."]);
    assert_eq!(texts(&page, ".description pre"), ["andante lab run x"]);
    let nothing = Beside::of("", &[result], &folder.path().join("nowhere"));
    assert_eq!(nothing, Beside::default());
}

#[test]
#[ignore = "draws the results below the folder ANDANTE_RESULTS again, to report-new.html beside each"]
fn drawn_again() {
    let folder = std::env::var("ANDANTE_RESULTS").unwrap();
    let folder = std::path::Path::new(&folder);
    let mut files = vec![folder.join("result.json")];
    let below = std::fs::read_dir(folder).unwrap();
    files.extend(below.map(|entry| entry.unwrap().path().join("result.json")));
    files.sort();
    let files = files.into_iter().filter(|file| file.is_file());
    let read = |file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let results: Vec<RunResult> = files.map(read).collect();
    let key = &results[0].scenario;
    let file = format!("../../scenarios/{key}.toml");
    let scenario = andante_scenario::Scenario::load(std::path::Path::new(&file), &[]);
    let description = scenario.map_or_else(|_| String::new(), |one| one.description);
    let beside = Beside::of(&description, &results, folder);
    let page = html_beside(&results, &Check::of(&results), &beside);
    std::fs::write(folder.join("report-new.html"), page).unwrap();
}

#[test]
#[ignore = "writes sample pages for people to look at, to target/tmp"]
fn sample_pages() {
    let write = |name: &str, text: String| {
        let path = format!("{}/{name}.html", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&path, text).unwrap();
        println!("{path}");
    };
    let loops = RunResult {
        title: "A film beside 8 endless loops".into(),
        ..fixture::film()
    };
    write("film", html(&[fixture::film()], &fixture::checks()));
    write("films", html(&[fixture::film(), loops], &fixture::checks()));
    write("tree", html(&[fixture::tree()], &[]));
    write("sweep", html(&fixture::sweep(), &[]));
    write("latencies", html(&fixture::latencies(), &[]));
    write("awkward", html(&[fixture::awkward()], &fixture::checks()));
    write("empty", html(&[], &[]));
}

/// A program's kind, the mean of its times and their standard deviation; none: it never completed
/// anything.
type Timed = (&'static str, Option<(f64, f64)>);

/// A run of programs under each of the schedulers named.
fn trio_case(case: &str, schedulers: &[(&str, &[Timed])]) -> RunResult {
    let spread = |(mean, sd)| Spread {
        n: 9,
        mean,
        sd,
        ..Spread::default()
    };
    let program = |(name, times): &Timed| {
        let mut program = ProgramResult {
            name: (*name).into(),
            kind: (*name).into(),
            ..ProgramResult::default()
        };
        match *name {
            "typist" => program.latency_us = times.map(spread),
            "player" => program.frame_ms = times.map(spread),
            _ => program.iteration_ms = times.map(spread),
        }
        program
    };
    let run = |(name, programs): &(&str, &[Timed])| SchedulerResult {
        name: (*name).into(),
        programs: programs.iter().map(program).collect(),
        ..SchedulerResult::default()
    };
    RunResult {
        case: Some(case.into()),
        schedulers: schedulers.iter().map(run).collect(),
        ..fixture::empty()
    }
}

#[test]
fn programs_that_also_run_alone_are_judged_by_value_contours() {
    let server = ("server", None);
    let typist: [_; 2] = [server, ("typist", Some((3000.0, 500.0)))];
    let slow: [_; 2] = [server, ("typist", Some((9000.0, 900.0)))];
    let player = [server, ("player", Some((40.0, 2.0)))];
    let cases = [
        trio_case("typist-alone", &[("andante", &slow), ("stock", &typist)]),
        trio_case("player-alone", &[("stock", &player)]),
        trio_case(
            "together",
            &[
                (
                    "andante",
                    &[
                        ("typist", Some((6000.0, 1000.0))),
                        ("player", Some((40.0, 0.0))),
                        ("batch", Some((8.0, 1.0))),
                    ],
                ),
                (
                    "stock",
                    &[("typist", None), ("player", Some((160.0, 20.0)))],
                ),
            ],
        ),
    ];
    let page = parse(&cases, &[]);
    assert_eq!(
        texts(&page, ".contour h4"),
        ["Andante", "stock scheduler, untouched"]
    );
    // Alone under the stock scheduler is 1 for both; there is nothing to compare a deviation of 0 with,
    // and nothing alone to compare the batch job with.
    assert_eq!(
        texts(&page, ".contour svg > desc"),
        [
            "typist mean 0.50, typist standard deviation 0.50, player mean 1.00",
            "typist mean 0.00, typist standard deviation 0.00, player mean 0.25, \
             player standard deviation 0.10",
        ]
    );
    assert!(texts(&parse(&cases[1..], &[]), ".contour").is_empty());
}
