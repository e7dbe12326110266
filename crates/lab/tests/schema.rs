//! The schemas in `docs/` describe what is written as it is written.

use andante_experiment::perturb;
use andante_result::{Judgement, RunResult, Unclocked, Verdict};
use andante_sweep as sweep;
use serde_json::{Value, json};

// The report's tests use all of it.
#[allow(dead_code)]
#[path = "../../report/tests/presentation/fixture.rs"]
mod fixture;

/// Schemas and pages that begin with these, and one of each in which no field is left out.
fn all() -> [(&'static str, Value); 3] {
    [
        ("result", complete()),
        ("sweep", complete_sweep()),
        ("perturbed", complete_perturbed()),
    ]
}

fn in_docs(file: &str) -> String {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn schema(of: &str) -> Value {
    serde_json::from_str(&in_docs(&format!("{of}.schema.json"))).expect("the schema is JSON")
}

/// What is wrong with the `value` of a result by its schema.
fn errors(value: &Value) -> Vec<String> {
    errors_of("result", value)
}

fn errors_of(of: &str, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema(of)).expect("the schema is a JSON Schema");
    validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect()
}

/// A result in which no field is left out.
fn complete() -> Value {
    let mut result = fixture::awkward();
    result.case = Some("make".into());
    (result.cases_chosen, result.set) = (true, vec!["cpus = 4".into()]);
    result.perturbation = Some("1/0".into());
    let judgement = |verdict| Judgement {
        expectation: "andante: dropped of film at most 0".into(),
        measure: Some("dropped".into()),
        program: Some("film".into()),
        verdict,
        tail: true,
        measured: Some(0.0),
        reason: Some("because".into()),
    };
    result.expectations = [Verdict::Pass, Verdict::Fail, Verdict::NotJudged]
        .map(judgement)
        .into();
    result.schedulers[0].programs[0].dropped_ms = vec![1.0];
    let first = &mut result.schedulers[0].programs[0];
    first.released_ms = vec![0.5];
    first.lateness_us = first.frame_ms;
    first.xruns = Some(1);
    (first.major_faults, first.resume_ms) = (Some(7), Some(6034.0));
    (first.first_touch_ms, first.first_read_ms) = (Some(63.0), Some(254.0));
    (first.read_bytes_per_s, first.skipped) = (Some(1.9e6), Some(3));
    (first.deadlines, first.missed) = (Some(3), Some(2));
    (first.violations, first.exhaustions) = (Some(1), Some(1));
    (first.events, first.swaps) = (Some(4), Some(1));
    let class = &mut result.schedulers[0].classes[0];
    (class.swapped_in, class.refaults) = (Some(5), Some(6));
    class.swapped_out = vec![0, 7];
    let named = || vec!["film".to_owned()];
    result.schedulers[0].unclocked = Some(Box::new(Unclocked {
        complaints: named(),
        never_ran: named(),
        hung: named(),
        left: named(),
    }));
    for run in &mut result.schedulers[0].runs {
        run.rule = Some("share".into());
    }
    serde_json::to_value(&result).unwrap()
}

fn complete_sweep() -> Value {
    let worst = sweep::Worst {
        draw: "1/3".into(),
        load: 0.4,
        figure: 0.1,
        reference: Some(0.0),
        on_sim: "andante lab run films --draw 1/3 --on sim".into(),
        on_vm: "andante lab run films --draw 1/3 --on vm".into(),
    };
    let of = sweep::Distribution {
        scheduler: "andante".into(),
        n: 1,
        min: 0.1,
        p50: 0.1,
        p90: 0.1,
        p99: 0.1,
        max: 0.1,
        share_in_bound: Some(0.0),
        share_near_reference: Some(0.0),
        worst: vec![worst],
    };
    let late = sweep::MeasureResult {
        name: "late_share".into(),
        more_is_better: false,
        bound: Some(0.01),
        within: 0.01,
        schedulers: vec![of],
    };
    let load = sweep::LoadResult {
        from: 0.4,
        to: Some(0.5),
        n: 1,
        good: vec![0],
    };
    let requirement = sweep::RequirementResult {
        requirement: "andante: 90 % of the draws".into(),
        n: 1,
        kept: 0,
        share: 0.9,
        verdict: Verdict::Fail,
        bad: vec!["1/3".into()],
    };
    let draw = sweep::DrawResult {
        draw: "1/3".into(),
        load: 0.4,
        cpus: 2,
        work_scale: 1.0,
        variables: [("fps".to_owned(), json!(25))].into(),
        variants: [("layout".to_owned(), "flat".to_owned())].into(),
        figures: vec![[("late_share".to_owned(), 0.1)].into()],
    };
    let result = sweep::SweepResult {
        schema: sweep::SCHEMA.into(),
        version: sweep::VERSION,
        family: "films".into(),
        title: "Films".into(),
        simulator: "simulator 0.1.0".into(),
        seed: 1,
        draws_asked: 4,
        set: vec!["cpus = 2".into()],
        schedulers: vec!["andante".into()],
        reference: "andante".into(),
        measures: vec![late],
        by_load: vec![load],
        requirements: vec![requirement],
        draws: vec![draw],
    };
    serde_json::to_value(&result).unwrap()
}

fn complete_perturbed() -> Value {
    let command = "andante lab run desktop --perturbation 1/3".to_owned();
    let expectation = perturb::Distribution {
        expectation: "andante: xruns of sound at most 0".into(),
        verdict: Verdict::Fail,
        n: 4,
        held: 3,
        needed: 4,
        figures: Some(perturb::Figures {
            min: 0.0,
            p50: 0.0,
            p90: 2.0,
            p99: 2.0,
            max: 2.0,
        }),
        worst: vec![perturb::Worst {
            perturbation: "1/3".into(),
            measured: 2.0,
            command: command.clone(),
        }],
        reason: Some("because".into()),
    };
    let exception = perturb::Exception {
        perturbation: "1/3".into(),
        scheduler: "andante".into(),
        reason: "program `film` ended early".into(),
        command,
    };
    let result = perturb::PerturbedResult {
        schema: perturb::SCHEMA.into(),
        version: perturb::VERSION,
        scenario: "desktop".into(),
        title: "A desktop".into(),
        on: "sim".into(),
        kernel: "simulator 0.1.0".into(),
        set: vec!["cpus = 2".into()],
        schedulers: vec!["andante".into()],
        seed: 1,
        asked: 4,
        cases: vec![perturb::CaseResult {
            case: Some("batch-8".into()),
            n: 4,
            expectations: vec![expectation],
            exceptions: vec![exception],
        }],
    };
    serde_json::to_value(&result).unwrap()
}

#[test]
fn results_are_valid() {
    let mut results = vec![fixture::empty(), fixture::film(), fixture::tree()];
    results.extend(fixture::sweep());
    results.extend(fixture::latencies());
    for result in &results {
        assert_eq!(errors(&serde_json::to_value(result).unwrap()), [""; 0]);
    }
    for (of, value) in all() {
        assert_eq!(errors_of(of, &value), [""; 0], "{of}");
    }
}

#[test]
fn every_field_is_described() {
    // Readers must bear fields they do not know, so the schema allows them; here none may be.
    fn strict(schema: &mut Value) {
        if let Some(properties) = schema.get_mut("properties") {
            properties
                .as_object_mut()
                .unwrap()
                .values_mut()
                .for_each(strict);
            schema["additionalProperties"] = json!(false);
        }
        for (key, part) in schema.as_object_mut().into_iter().flatten() {
            match key.as_str() {
                "$defs" => part.as_object_mut().unwrap().values_mut().for_each(strict),
                "items" => strict(part),
                _ => {}
            }
        }
    }
    for (of, value) in all() {
        let mut schema = schema(of);
        strict(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let unknown = validator.iter_errors(&value).map(|e| e.to_string());
        assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "{of}");
    }
}

#[test]
fn every_described_field_exists_and_is_documented() {
    fn names(schema: &Value, found: &mut Vec<String>) {
        for (key, part) in schema.as_object().into_iter().flatten() {
            if key == "properties" {
                found.extend(part.as_object().unwrap().keys().cloned());
            }
            names(part, found);
        }
    }
    for (of, value) in all() {
        let mut described = Vec::new();
        names(&schema(of), &mut described);
        let (written, page) = (value.to_string(), in_docs(&format!("{of}-schema.md")));
        for name in described {
            assert!(
                written.contains(&format!("\"{name}\":")),
                "no {of} has `{name}`"
            );
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/{of}-schema.md lacks `{name}`"
            );
        }
    }
}

#[test]
fn wrong_results_are_not_valid() {
    let break_it = |change: fn(&mut Value)| {
        let mut value = complete();
        change(&mut value);
        errors(&value).len()
    };
    assert_ne!(break_it(|v| v["version"] = json!(2)), 0);
    assert_ne!(break_it(|v| v["schema"] = json!("other")), 0);
    assert_ne!(
        break_it(|v| drop(v.as_object_mut().unwrap().remove("kernel"))),
        0
    );
    assert_ne!(
        break_it(|v| v["schedulers"][0]["classes"][0]["share_asked"] = json!(1.5)),
        0
    );
    assert_ne!(
        break_it(|v| v["schedulers"][0]["programs"][0]["frames"] = json!(-1)),
        0
    );
    assert_ne!(
        break_it(|v| v["expectations"][0]["verdict"] = json!("maybe")),
        0
    );
}

#[test]
fn a_result_reads_back_as_it_was_written() {
    let result = fixture::awkward();
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<RunResult>(&text).unwrap(), result);
}
