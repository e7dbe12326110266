//! The HTML report is well-formed, stands alone, and says what came out.

use andante_report::{Check, html};
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
        lead.starts_with("Andante: 0 of 360 frames dropped, longest freeze 34.5\u{a0}ms; "),
        "{lead}"
    );
    assert!(
        lead.contains("stock scheduler, same weights: 35 of 360 frames dropped"),
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
        lead.starts_with("Andante: 0 of 360 frames dropped"),
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
    assert!(texts(&page, ".lead")[0].ends_with("The worst of 8 cases."));

    let depth = parse(&fixture::latencies(), &[]);
    assert!(texts(&depth, "h2").contains(&"By depth of pingpong".to_owned()));
    assert!(texts(&depth, ".lead")[0].contains("µs"));
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
