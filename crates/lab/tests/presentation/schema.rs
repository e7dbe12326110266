//! `docs/result.schema.json` describes the results as they are written.

use andante_lab::result::{Judgement, RunResult, Verdict};
use serde_json::{Value, json};

use crate::fixture;

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is in docs/");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// What is wrong with `value` by the schema.
fn errors(value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is a JSON Schema");
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
    let judgement = |verdict| Judgement {
        expectation: "andante: dropped of film at most 0".into(),
        measure: Some("dropped".into()),
        program: Some("film".into()),
        verdict,
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
    (first.deadlines, first.missed) = (Some(3), Some(2));
    (first.violations, first.exhaustions) = (Some(1), Some(1));
    (first.events, first.swaps) = (Some(4), Some(1));
    for run in &mut result.schedulers[0].runs {
        run.rule = Some("share".into());
    }
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
    assert_eq!(errors(&complete()), [""; 0]);
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
    let mut schema = schema();
    strict(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let unknown: Vec<_> = validator
        .iter_errors(&complete())
        .map(|e| e.to_string())
        .collect();
    assert_eq!(unknown, [""; 0]);
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
    let mut described = Vec::new();
    names(&schema(), &mut described);
    let written = complete().to_string();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result-schema.md");
    let page = std::fs::read_to_string(page).expect("the page is in docs/");
    for name in described {
        assert!(
            written.contains(&format!("\"{name}\":")),
            "no result has `{name}`"
        );
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/result-schema.md lacks `{name}`"
        );
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
