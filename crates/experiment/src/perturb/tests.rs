use andante_job::progress::Silent;
use andante_job::{On, RunOptions};
use andante_result::Verdict;
use andante_scenario::Scenario;

use super::*;

const SCENARIO: &str = "
title = 'x'
cpus = 1
duration_s = 2
[programs.x]
class = '/'
kind = 'server'
[programs.film]
class = '/'
kind = 'player'
fps = 25
work_ms = 5
display_ms = 1
server = 'x'
[programs.sound]
class = '/'
kind = 'audio'
frames = 48
load = 0.1
[programs.one]
class = '/'
kind = 'loop'
contract = { budget_ms = 1, period_ms = 100 }
[programs.jobs]
class = '/'
kind = 'batch'
count = 3
[programs.two]
class = '/'
kind = 'loop'
contract = { budget_ms = 1, period_ms = 100 }
[[expect]]
measure = 'late_share'
program = 'film'
max = 0.01
[[expect]]
measure = 'iterations'
program = 'jobs'
max = 1
[[expect]]
measure = 'latency_us.max'
program = 'sound'
max = 0.001
perturbed = { share = 0, worst = 1e6 }
";

fn options(folder: &std::path::Path) -> PerturbOptions {
    let file = folder.join("x.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    PerturbOptions {
        run: RunOptions {
            scenario: file.display().to_string(),
            cases: Vec::new(),
            set: Vec::new(),
            schedulers: vec!["andante".to_owned()],
            perturbation: None,
            on: On::Sim,
            against: None,
            out: folder.to_owned(),
            lab: "andante-lab".into(),
            machines: None,
            boot: false,
        },
        seed: 1,
        count: 6,
    }
}

#[test]
fn a_scenario_is_judged_over_all_perturbations() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let result = run(&options, &mut Silent).unwrap();
    let json = std::fs::read(folder.path().join("x/perturbed.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<PerturbedResult>(&json).unwrap(),
        result
    );
    let case = &result.cases[0];
    assert_eq!((case.n, case.exceptions.len()), (6, 0));
    let [late, jobs @ .., sound] = &case.expectations[..] else {
        panic!("{:?}", case.expectations);
    };
    assert_eq!(
        (late.verdict, late.held, late.needed),
        (Verdict::Pass, 6, 6)
    );
    // One each of three instances.
    assert_eq!(jobs.len(), 3);
    assert!(
        jobs.iter()
            .all(|one| one.verdict == Verdict::Fail && one.held == 0)
    );
    assert!(
        jobs[0].worst[0].command.contains("--perturbation 1/"),
        "{:?}",
        jobs[0]
    );
    // None holds the bound, none must, and each is within the worst that is allowed.
    assert_eq!(
        (sound.verdict, sound.held, sound.needed),
        (Verdict::Pass, 0, 0)
    );
    let figures = sound.figures.unwrap();
    assert!(figures.min <= figures.p50 && figures.p50 <= figures.max && figures.min > 0.0);
    let error = verdict(&result).unwrap_err().to_string();
    assert!(
        error.starts_with("3 of 5 expectations of x failed"),
        "{error}"
    );
    assert!(
        error.contains("held under 0 of 6 perturbations, 6 are needed"),
        "{error}"
    );
    let text = text(&result, 100, false);
    assert!(
        text.contains("6 perturbations of seed 1") && text.contains("6 of 6"),
        "{text}"
    );
}

#[test]
fn one_of_them_alone_gives_the_same_figure_in_the_order_of_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let worst = &run(&options, &mut Silent).unwrap().cases[0].expectations[1].worst[0];
    let alone = RunOptions {
        perturbation: Some(worst.perturbation.parse().unwrap()),
        ..options.run
    };
    let runs = crate::run(&alone, &mut Silent).unwrap();
    assert_eq!(runs[0].perturbation.as_ref(), Some(&worst.perturbation));
    let names: Vec<_> = runs[0].schedulers[0]
        .programs
        .iter()
        .map(|one| &*one.name)
        .collect();
    let wanted = [
        "x", "film", "sound", "one", "jobs.1", "jobs.2", "jobs.3", "two",
    ];
    assert_eq!(names, wanted);
    assert_eq!(runs[0].expectations[1].measured, Some(worst.measured));
    assert!(
        runs[0].expectations[4].tail,
        "beyond the bound, within the worst"
    );
}

#[test]
fn how_often_a_bound_holds_is_said_with_a_weaker_one() {
    let read = |perturbed: &str| {
        let text = SCENARIO.replace("{ share = 0, worst = 1e6 }", perturbed);
        Scenario::parse("x.toml", &text, &[])
    };
    read("{ share = 0.5, worst = 2 }").unwrap();
    for wrong in [
        "{ share = 2, worst = 2 }",
        "{ share = 0.5, worst = 0.0001 }",
        "{ share = 1 }",
    ] {
        let error = read(wrong).unwrap_err();
        assert!(
            error.key.starts_with("expect.perturbed"),
            "{wrong}: {error}"
        );
    }
}
