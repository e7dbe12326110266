use andante_result::{SchedulerResult, Spread};

use super::*;

const SCENARIO: &str = "
title = 't'
duration_s = 10
[classes]
'/film' = 300
'/build' = 100
[programs.film]
class = '/film'
kind = 'player'
work_ms = 1
[programs.build]
class = '/build'
kind = 'loop'
[cases.with]
[cases.alone]
programs.film.count = 0
";

/// A result in which the film takes 4 s of the CPU and the build 5.4 s.
fn run(case: &str, film: bool, iterations: &[u64], schedulers: &[&str]) -> RunResult {
    let class = |path: &str, cpu_s: f64| ClassResult {
        path: path.to_owned(),
        share_asked: 0.5,
        share_received: cpu_s / 10.0,
        cpu_ns: (cpu_s * 1e9) as u64,
        samples: vec![0, (cpu_s * 0.25e9) as u64, (cpu_s * 1e9) as u64],
        ..ClassResult::default()
    };
    let program = |(index, count): (usize, &u64)| ProgramResult {
        name: match iterations {
            [_] => "build".to_owned(),
            _ => format!("build.{}", index + 1),
        },
        iterations: Some(*count),
        latency_us: Spread::of(&[*count as f64]),
        ..ProgramResult::default()
    };
    let scheduler = |name: &&str| SchedulerResult {
        name: (*name).to_owned(),
        sample_ns: vec![0, 2_500_009_000, 10_000_009_000],
        classes: vec![
            class("/film", if film { 4.0 } else { 0.0 }),
            class("/build", 5.4),
        ],
        programs: iterations.iter().enumerate().map(program).collect(),
        ..SchedulerResult::default()
    };
    RunResult {
        scenario: "x".to_owned(),
        case: Some(case.to_owned()),
        on: "vm".to_owned(),
        duration_s: 10.0,
        schedulers: schedulers.iter().map(scheduler).collect(),
        ..RunResult::default()
    }
}

/// The judgements of the case `with` on one expectation.
fn judged(expectation: &str, iterations: &[u64], schedulers: &[&str]) -> Vec<Judgement> {
    let text = format!("{SCENARIO}\n[[expect]]\n{expectation}\n");
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    let mut runs = [
        run("with", true, iterations, schedulers),
        run("alone", false, &[100], schedulers),
    ];
    judge(&scenario, &mut runs);
    runs[0].expectations.clone()
}

fn figure(expectation: &str) -> (Verdict, f64) {
    let [one] = &judged(expectation, &[60], &["andante", "eevdf"])[..] else {
        panic!()
    };
    (one.verdict, one.measured.unwrap_or(f64::NAN))
}

#[test]
fn the_sample_nearest_to_the_instant_counts() {
    let class = ClassResult {
        samples: vec![1_000_000_000, 2_000_000_000, 3_000_000_000],
        ..ClassResult::default()
    };
    let sample_ns = [498_000_000_000, 500_000_000_009, 502_000_000_000];
    assert_eq!(cpu_s_at(&class, &sample_ns, 500.0), Some(2.0));
    assert_eq!(cpu_s_at(&class, &sample_ns, 498.1), Some(1.0));
    assert_eq!(cpu_s_at(&class, &sample_ns, 480.0), None);
}

#[test]
fn figures_are_compared_with_their_bounds() {
    let share = "measure = 'share_received'\nclass = '/build'\nof = 0.54\nwithin = 0.01";
    assert_eq!(figure(share), (Verdict::Pass, 0.54));
    let narrow = "measure = 'share_received'\nclass = '/build'\nof = 0.55\nwithin = 0.01";
    assert_eq!(figure(narrow), (Verdict::Fail, 0.54));
    let rest = "measure = 'share_of_rest'\nclass = '/build'\nmin = 0.9";
    assert_eq!(figure(rest), (Verdict::Pass, 0.9));
    let at = "measure = 'class_cpu_s'\nclass = '/film'\nat_s = 2.5\nof = 1\nwithin = 0.02";
    assert_eq!(figure(at), (Verdict::Pass, 1.0));
}

#[test]
fn ratios_are_taken_over_schedulers_cases_and_what_is_left() {
    let expect = |over: &str| {
        format!(
            "case = 'with'\nmeasure = 'iterations'\nprogram = 'build'\nover = {{ {over} }}\nmin = 0.9"
        )
    };
    assert_eq!(figure(&expect("scheduler = 'eevdf'")), (Verdict::Pass, 1.0));
    assert_eq!(figure(&expect("case = 'alone'")), (Verdict::Fail, 0.6));
    let left = figure(&expect("case = 'alone', left_by = '/film'"));
    assert_eq!(left, (Verdict::Pass, 1.0));
}

#[test]
fn what_is_absent_fails_unless_left_out_on_purpose() {
    let load = judged("measure = 'load_ms'\nmax = 5000", &[60], &["andante"]);
    assert_eq!((load[0].verdict, load[0].measured), (Verdict::Fail, None));
    assert!(
        load[0].reason.as_ref().unwrap().contains("no load_ms"),
        "{load:?}"
    );

    let build = "case = 'with'\nmeasure = 'iterations'\nprogram = 'build'\nmin = 1";
    assert_eq!(
        judged(build, &[60], &["eevdf"])[0].verdict,
        Verdict::NotJudged
    );
    let none = judged(build, &[], &["andante"]);
    assert_eq!((none.len(), none[0].verdict), (1, Verdict::Fail));
}

#[test]
fn what_is_compared_with_a_case_that_was_left_out_is_not_judged() {
    let text = format!(
        "{SCENARIO}\n[[expect]]\nmeasure = 'iterations'\nprogram = 'build'\nover = {{ case = 'alone' }}\n\
         min = 0.9\n"
    );
    let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    let mut runs = [run("with", true, &[60], &["andante"])];
    judge(&scenario, &mut runs);
    assert_eq!(runs[0].expectations[0].verdict, Verdict::Fail); // lost, for all one knows
    scenario
        .cases
        .retain(|case| case.name.as_deref() == Some("with"));
    judge(&scenario, &mut runs);
    let [one] = &runs[0].expectations[..] else {
        panic!("{:?}", runs[0].expectations)
    };
    let reason = one.reason.as_deref();
    assert_eq!(
        (one.verdict, reason),
        (Verdict::NotJudged, Some("case alone was not run"))
    );
}

#[test]
fn instances_together_are_one_figure() {
    let expect = |key: &str| {
        format!("measure = 'iterations'\nprogram = 'build'\ninstances = '{key}'\nmax = 100")
    };
    for (key, figure) in [
        ("sum", 120.0),
        ("mean", 40.0),
        ("least", 10.0),
        ("largest", 60.0),
    ] {
        let [one] = &judged(&expect(key), &[50, 10, 60], &["andante"])[..] else {
            panic!()
        };
        assert_eq!(one.measured, Some(figure), "{one:?}");
    }
    // A sum may be divided by a sum.
    let over = "case = 'with'\nmeasure = 'iterations'\nprogram = 'build'\ninstances = 'sum'\n\
                over = { scheduler = 'eevdf' }\nof = 1\nwithin = 0.01";
    let verdicts = judged(over, &[60, 61], &["andante", "eevdf"]);
    assert_eq!((verdicts.len(), verdicts[0].verdict), (1, Verdict::Pass));
    assert!(
        verdicts[0]
            .expectation
            .contains("sum of iterations of build")
    );
}

#[test]
fn a_frame_rate_is_set_against_the_share_of_its_class() {
    let text = format!(
        "{SCENARIO}\n[[expect]]\nmeasure = 'frame_rate_over_asked'\nprogram = 'film'\ncase = 'w*'\n\
         of = 60\nwithin = 0.01\n"
    );
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    let mut runs = [run("with", true, &[1], &["andante"])];
    // Thirty frames a second where a half of the machine is asked for.
    runs[0].schedulers[0].programs.push(ProgramResult {
        name: "film".to_owned(),
        class: "/film".to_owned(),
        frames: Some(31),
        span_s: Some(1.0),
        ..ProgramResult::default()
    });
    judge(&scenario, &mut runs);
    let [one] = &runs[0].expectations[..] else {
        panic!("{:?}", runs[0].expectations)
    };
    assert_eq!((one.verdict, one.measured), (Verdict::Pass, Some(60.0)));

    let nowhere = text.replace("'w*'", "'x*'");
    let error = Scenario::parse("x.toml", &nowhere, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown case `x*`"), "{error}");
}

#[test]
fn cases_without_the_program_are_not_concerned() {
    let text = format!("{SCENARIO}\n[[expect]]\nmeasure = 'late'\nprogram = 'film'\nmax = 0\n");
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    let mut runs = [
        run("with", true, &[1], &["andante"]),
        run("alone", false, &[1], &["andante"]),
    ];
    judge(&scenario, &mut runs);
    let counts = runs.map(|run| run.expectations.len());
    assert_eq!(counts, [1, 0]);

    let nowhere = text.replace("[cases.with]", "[cases.with]\nprograms.film.count = 0");
    let error = Scenario::parse("x.toml", &nowhere, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("runs together in no case"), "{error}");
}

#[test]
fn every_instance_must_hold() {
    let build = "case = 'with'\nmeasure = 'latency_us.max'\nprogram = 'build'\nmax = 60";
    let verdicts = judged(build, &[60, 61], &["andante"]);
    assert_eq!(
        verdicts.iter().map(|one| one.verdict).collect::<Vec<_>>(),
        [Verdict::Pass, Verdict::Fail]
    );
    assert!(
        verdicts[1].expectation.ends_with("(build.2)"),
        "{verdicts:?}"
    );
}
