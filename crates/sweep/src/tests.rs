use std::path::Path;

use andante_result::Verdict;
use andante_scenario::Kind;

use super::*;

const FAMILY: &str = r#"
title = "Films"
duration_s = 2
[draw]
fps = { choice = [24, 25, 30] }
load = { uniform = [0.1, 0.6] }
frame_ms = "= load * 1000 / fps"
[programs.film]
class = "/"
kind = "player"
fps = "= fps"
work_ms = { length = { integer = [2, 5] }, first = "= 1.5 * frame_ms", others = { uniform = ["= 0.5 * frame_ms", "= frame_ms"] } }
[programs.keys]
class = "/"
kind = "typist"
seed = { integer = [1, 1000] }
[programs.batch]
class = "/"
kind = "batch"
count = { integer = [0, 4] }
work_ms = { pareto = { least = 1, shape = 1.2, most = 50 } }
[variants.place.flat]
[variants.place.apart]
chance = 3
classes."/jobs" = { integer = [10, 200] }
programs.batch.class = "/jobs"
[bounds]
key_p99_ms = 12
"#;

fn family(set: &[&str]) -> Result<Family, String> {
    let set: Vec<String> = set.iter().map(|line| (*line).to_owned()).collect();
    Family::parse("films.toml", FAMILY, &set).map_err(|error| error.to_string())
}

fn draw(family: &Family, number: u64) -> Drawn {
    family.draw(DrawId { seed: 1, number }).unwrap()
}

/// The variable of this name.
fn variable(drawn: &Drawn, name: &str) -> f64 {
    let (_, node) = drawn
        .variables
        .iter()
        .find(|(known, _)| known == name)
        .unwrap();
    summary::to_json(node).as_f64().unwrap()
}

#[test]
fn the_same_seed_and_number_give_the_same_draw() {
    let one = family(&[]).unwrap();
    let text = |number| draw(&one, number).document.to_toml();
    assert_eq!(text(5), text(5));
    assert_ne!(text(5), text(6));
    let other = one.draw(DrawId { seed: 2, number: 5 }).unwrap();
    assert_ne!(text(5), other.document.to_toml());
}

#[test]
fn what_is_set_leaves_the_rest_as_it_was() {
    let (one, set) = (
        family(&[]).unwrap(),
        family(&["draw.load = 0.5", "cpus = 2"]).unwrap(),
    );
    for number in 0..20 {
        let (one, set) = (draw(&one, number), draw(&set, number));
        assert_eq!(variable(&one, "fps"), variable(&set, "fps"));
        assert_eq!(one.variants, set.variants);
        let programs = |drawn: &Drawn| drawn.scenario.cases[0].workload.programs.clone();
        assert_eq!(programs(&one)[1..], programs(&set)[1..]);
        assert_eq!(variable(&set, "load"), 0.5);
        assert_eq!(set.scenario.cases[0].workload.cpus, 2);
    }
}

#[test]
fn a_family_with_sessions_is_the_same_but_for_them() {
    let (one, told) = (family(&[]).unwrap(), family(&["sessions = true"]).unwrap());
    for number in 0..20 {
        let (one, told) = (draw(&one, number), draw(&told, number));
        let mut programs = one.scenario.cases[0].workload.programs.clone();
        for program in &mut programs {
            program.session = program.name != "batch";
        }
        assert_eq!(programs, told.scenario.cases[0].workload.programs);
    }
}

#[test]
fn a_draw_is_what_the_family_says() {
    let family = family(&[]).unwrap();
    let mut apart = 0;
    for number in 0..400 {
        let drawn = draw(&family, number);
        let workload = &drawn.scenario.cases[0].workload;
        let Kind::Player { fps, work_ms, .. } = &workload.programs[0].kind else {
            panic!("the first is the film")
        };
        let frame_ms = variable(&drawn, "load") * 1000.0 / fps;
        assert_eq!(*fps, variable(&drawn, "fps"));
        assert!((2..=5).contains(&work_ms.len()));
        assert!(
            (work_ms[0] / frame_ms - 1.5).abs() < 2e-3,
            "{work_ms:?} {frame_ms}"
        );
        let of_frame = work_ms[1..].iter().map(|ms| ms / frame_ms);
        assert!(
            of_frame
                .into_iter()
                .all(|part| (0.499..=1.001).contains(&part))
        );
        assert!(workload.programs[2].count <= 4);
        let place = &drawn.variants[0].1;
        assert_eq!(place == "apart", workload.programs[2].class == "/jobs");
        apart += usize::from(place == "apart");
    }
    // Three of four; the standard deviation of their number is 8.7.
    assert!((265..=335).contains(&apart), "{apart}");
}

#[test]
fn a_draw_written_is_the_draw() {
    let folder = tempfile::tempdir().unwrap();
    let family = family(&["work_scale = 0.5"]).unwrap();
    for number in 0..20 {
        let drawn = draw(&family, number);
        let file = family::write(&drawn, &family, folder.path()).unwrap();
        let read = andante_scenario::Scenario::load(&file, &[]).unwrap();
        assert_eq!(read.cases, drawn.scenario.cases);
        assert_eq!(read.key, format!("films-1-{number}"));
    }
}

#[test]
fn recorded_times_go_with_a_draw() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("film.csv"), "3\n4\n").unwrap();
    let file = folder.path().join("recorded.toml");
    let text = "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'player'\n\
                work_trace = 'film.csv'\nwork_first = { integer = [0, 1] }\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let written = write_draw(file, &[], DrawId { seed: 1, number: 0 }, folder.path()).unwrap();
    assert!(
        written.ends_with("sweep/recorded/draws/recorded-1-0.toml"),
        "{written:?}"
    );
    andante_scenario::Scenario::load(&written, &[]).unwrap();
}

#[test]
fn wrong_families_name_file_line_and_key() {
    let wrong = |from: &str, to: &str| {
        assert!(FAMILY.contains(from), "{from}");
        let text = FAMILY.replace(from, to);
        let family = Family::parse("films.toml", &text, &[]);
        let drawn = family.and_then(|family| family.draw(DrawId { seed: 1, number: 0 }));
        drawn.unwrap_err().to_string()
    };
    for (from, to, said) in [
        (
            "uniform = [0.1, 0.6]",
            "uniform = [0.6, 0.1]",
            "films.toml:6: draw.load.uniform: 0.6 and 0.1 are no range",
        ),
        (
            "uniform = [0.1, 0.6]",
            "unifrom = [0.1, 0.6]",
            "films.toml:7: draw.frame_ms: `= load * 1000 / fps`: `load` is not a number",
        ),
        (
            "\"= load * 1000 / fps\"",
            "\"= laod * 1000 / fps\"",
            "did you mean `load`?",
        ),
        (
            "fps = \"= fps\"",
            "fps = { unifrom = [1, 2] }",
            "films.toml:11: programs.film.fps: expected a number, found a table; distributions are told by",
        ),
        (
            "fps = \"= fps\"",
            "fps = { uniform = [2000, 3000] }",
            "is out of range: give 0.1 to 1000 (draw 1/0)",
        ),
        (
            "most = 50",
            "mots = 50",
            "films.toml:21: programs.batch.work_ms.pareto: needs `least`",
        ),
        (
            "integer = [10, 200]",
            "integer = [10]",
            "films.toml:25: variants.place.apart.classes.\"/jobs\".integer: give the least",
        ),
        (
            "chance = 3",
            "chance = -1",
            "films.toml:24: variants.place.apart.chance: -1 is out of range",
        ),
        (
            "key_p99_ms = 12",
            "key_p99ms = 12",
            "films.toml:28: bounds.key_p99ms: there is no such measure, did you mean `key_p99_ms`?",
        ),
        (
            "[bounds]",
            "[cases.x]\n[bounds]",
            "cases: belongs to scenarios",
        ),
        ("title = \"Films\"", "", "`title` is missing"),
    ] {
        let error = wrong(from, to);
        assert!(error.contains(said), "{to}\n{error}\n{said}");
    }
    let error = family(&["programs.film.fps = { choice = [] }"]).unwrap_err();
    assert!(
        error.starts_with("--set:1: programs.film.fps.choice: "),
        "{error}"
    );
}

#[test]
fn a_family_varies_another() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("films.toml"), FAMILY).unwrap();
    let text = "title = 'Faster'\nbase = 'films.toml'\ndraw.fps = { integer = [50, 60] }\n";
    let file = folder.path().join("faster.toml");
    std::fs::write(&file, text).unwrap();
    let family = Family::load(file.to_str().unwrap(), &[]).unwrap();
    assert_eq!(family.bounds[2], Some(12.0));
    let fps: Vec<f64> = (0..50)
        .map(|number| variable(&draw(&family, number), "fps"))
        .collect();
    assert!(fps.iter().all(|fps| (50.0..=60.0).contains(fps)), "{fps:?}");
}

#[test]
fn families_that_come_along_can_be_drawn_and_simulated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/families");
    let files = andante_job::files::toml_files(&[folder]);
    assert!(files.len() >= 6, "{files:?}");
    for (name, file) in files {
        let family = Family::load(file.to_str().unwrap(), &[]).unwrap();
        for number in 0..100 {
            let drawn = family.draw(DrawId { seed: 3, number });
            let drawn = drawn.unwrap_or_else(|error| panic!("{error}"));
            let workload = &drawn.scenario.cases[0].workload;
            // Draws with memory run on a kernel alone.
            match check(&drawn, &Choice::Andante) {
                Ok(()) => assert!(workload.memory.is_none(), "{name}"),
                Err(error) => assert!(workload.memory.is_some(), "{name}: {error}"),
            }
            // What an expert does by hand must be known of what matters, and of nothing else.
            for program in &workload.programs {
                let batch = matches!(
                    program.kind,
                    Kind::Batch { .. }
                        | Kind::Disk { .. }
                        | Kind::Loop
                        | Kind::MemoryHog { .. }
                        | Kind::MemoryReader { .. }
                );
                let talks = program.name.starts_with("talk");
                let waits = batch || talks || program.is_background();
                assert_eq!(waits, program.tuned.is_none(), "{name}: {}", program.name);
            }
        }
    }
}

fn options(folder: &Path) -> SweepOptions {
    let file = folder.join("films.toml");
    std::fs::write(&file, FAMILY).unwrap();
    SweepOptions {
        family: file.display().to_string(),
        draws: 12,
        seed: 1,
        schedulers: Some(vec!["andante".to_owned(), "fair".to_owned()]),
        reference: None,
        set: Vec::new(),
        bounds: vec!["late_share = 0.5".to_owned()],
        within: Vec::new(),
        requirements: Vec::new(),
        out: folder.to_owned(),
    }
}

#[test]
fn a_sweep_that_does_not_show_what_is_required_fails() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = |requirements: &[&str], bounds: &[&str]| {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let options = SweepOptions {
            requirements: texts(requirements),
            bounds: texts(bounds),
            ..options(folder.path())
        };
        let family = format!("require = [{{ share = 1, draws = 13 }}]\n{FAMILY}");
        std::fs::write(&options.family, family).unwrap();
        run(&options, &mut Count::on_stderr())
    };
    // Whatever comes, it is good.
    let easy = ["late_share = 1", "key_p99_ms = 1e9", "batch = 0"];
    let all = sweep(&["share = 1"], &easy).unwrap();
    assert_eq!((all.requirements[0].n, all.requirements[0].kept), (12, 12));
    assert_eq!(all.requirements[0].verdict, Verdict::Pass);
    verdict(&all).unwrap();
    // The reference is judged by the same bounds: what it does not keep does not count.
    let hard = ["late_share = 1", "key_p99_ms = 0", "batch = 0"];
    let none = sweep(&["share = 0.1"], &hard).unwrap();
    let error = verdict(&none).unwrap_err().to_string();
    assert!(
        error.contains("there is no such draw, draw more"),
        "{error}"
    );
    // The reference does as much as itself; nobody does so much more.
    let more = ["late_share = 1", "key_p99_ms = 1e9", "batch = 1"];
    let some = sweep(&["share = 1, load = 100", "share = 0.0"], &more).unwrap();
    let first = &some.requirements[0];
    assert_eq!(first.n, 12);
    assert_eq!(first.bad.len() as u64, first.n - first.kept);
    assert_eq!(first.verdict == Verdict::Fail, first.kept < first.n);
    assert_eq!(some.requirements[1].verdict, Verdict::Pass);
    // The family's own is not asked of another family, nor of fewer draws.
    assert_eq!(sweep(&[], &[]).unwrap().requirements, []);
    let absent = sweep(&["share = 1, scheduler = 'stock'"], &easy).unwrap();
    assert_eq!(absent.requirements[0].verdict, Verdict::NotJudged);
    for wrong in ["share = 2", "load = 1", "share = 1, loads = 1", "share"] {
        let error = sweep(&[wrong], &easy).unwrap_err().to_string();
        assert!(error.contains("--require"), "{wrong}: {error}");
    }
}

#[test]
fn a_sweep_from_the_family_to_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let result = run(&options, &mut Count::on_stderr()).unwrap();
    assert_eq!(
        (result.draws.len(), result.reference.as_str()),
        (12, "fair")
    );
    let named = |name: &str| result.measures.iter().find(|measure| measure.name == name);
    assert_eq!(named("late_share").unwrap().bound, Some(0.5), "by option");
    assert_eq!(named("key_p99_ms").unwrap().bound, Some(12.0), "by family");
    assert_eq!(named("batch").unwrap().bound, Some(0.95), "as usual");
    assert!(named("xrun_share").is_none(), "nothing sounds");
    for measure in &result.measures {
        for of in &measure.schedulers {
            let ordered = [of.min, of.p50, of.p90, of.p99, of.max];
            assert!(ordered.is_sorted(), "{} {of:?}", measure.name);
            assert_eq!(of.worst.len() as u64, of.n.min(10));
            assert_eq!(of.share_near_reference.is_none(), of.scheduler == "fair");
        }
    }
    let batch = &named("batch").unwrap().schedulers[1];
    assert_eq!(
        (batch.min, batch.max),
        (1.0, 1.0),
        "the reference over itself"
    );
    let counted: u64 = result.by_load.iter().map(|load| load.n).sum();
    assert_eq!(counted, 12);

    let left = folder.path().join("sweep/films");
    let json = std::fs::read(left.join("sweep.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<SweepResult>(&json).unwrap(),
        result
    );
    let report = std::fs::read_to_string(left.join("report.html")).unwrap();
    assert!(report.contains("--draw 1/") && report.contains("class=\"cloud\""));
    let links = report.split("href=\"").skip(1);
    let links: Vec<&str> = links.filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.contains(&"sweep.json") && links.len() > 10);
    for link in links {
        assert!(left.join(link).is_file(), "{link} leads nowhere");
    }
    let text = text(&result, false);
    assert!(
        text.contains("12 draws of seed 1") && text.contains("frames not in time [%]"),
        "{text}"
    );
    let worst = &named("late_share").unwrap().schedulers[0].worst[0];
    let number = worst.draw.strip_prefix("1/").unwrap();
    assert!(left.join(format!("draws/films-1-{number}.toml")).is_file());
    assert!(
        worst.on_vm.contains("--on vm --scheduler andante,stock"),
        "{}",
        worst.on_vm
    );

    // More draws: the first are the same, figures included.
    let more = run(
        &SweepOptions {
            draws: 14,
            ..options
        },
        &mut Count::on_stderr(),
    )
    .unwrap();
    assert_eq!(more.draws[..12], result.draws[..]);
}

#[test]
fn what_the_simulator_cannot_do_is_told_with_the_draw() {
    let folder = tempfile::tempdir().unwrap();
    let usual = options(folder.path());
    let program = SweepOptions {
        schedulers: Some(vec!["/bin/true".to_owned()]),
        ..usual.clone()
    };
    let error = run(&program, &mut Count::on_stderr())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("draw 1/0 under true: the scheduler `true`"),
        "{error}"
    );
    let absent = SweepOptions {
        reference: Some("stock".to_owned()),
        ..usual.clone()
    };
    let error = run(&absent, &mut Count::on_stderr())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the reference `stock` does not take part"),
        "{error}"
    );
    let real = SweepOptions {
        set: vec!["programs.film = { class = '/', kind = 'mpv', fps = 25 }".to_owned()],
        ..usual.clone()
    };
    assert!(run(&real, &mut Count::on_stderr()).is_err());
    let bound = SweepOptions {
        bounds: vec!["late = 1".to_owned()],
        ..usual
    };
    let error = run(&bound, &mut Count::on_stderr())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("--bound:1: late: there is no such measure"),
        "{error}"
    );
}

#[test]
fn on_a_kernel_cpus_share_the_speed_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = SweepOptions {
        set: vec!["cpus = 2".to_owned(), "work_scale = 0.5".to_owned()],
        draws: 1,
        ..options(folder.path())
    };
    let result = run(&options, &mut Count::on_stderr()).unwrap();
    let worst = &result.measures[0].schedulers[0].worst[0];
    assert!(
        worst
            .on_vm
            .ends_with("--set 'cpus = 2' --set 'work_scale = 0.5' --set 'work_scale = 0.25'"),
        "{}",
        worst.on_vm
    );
    assert!(!worst.on_sim.contains("0.25"));
}

#[test]
fn draws_are_named_by_seed_and_number() {
    assert_eq!(
        "7/42".parse(),
        Ok(DrawId {
            seed: 7,
            number: 42
        })
    );
    assert_eq!(
        DrawId {
            seed: 7,
            number: 42
        }
        .to_string(),
        "7/42"
    );
    for wrong in ["7", "7/", "/4", "a/b", "1/2/3", "-1/2"] {
        assert!(wrong.parse::<DrawId>().is_err(), "{wrong}");
    }
}
