// SPDX-License-Identifier: GPL-2.0
//! Everything that is read as TOML: no text makes a reader panic, and every mistake is told with the
//! file, a line that it has, and what to do.

use std::path::Path;

use andante_admission::System;
use andante_daemon::{Choices, choices};
use andante_document::DocumentError;
use andante_scenario::{DEFAULT_WEIGHT, MAX_DEPTH, Scenario, WEIGHTS};

/// Where nothing else lies that a text could name.
const FOLDER: &str = "/nowhere";

/// Contracts that are admitted, not only read; of more the work is a matter of minutes.
const ADMITTED: usize = 8;

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn check_error(file: &str, text: &str, error: &DocumentError) {
    assert_eq!(error.file, file, "{error}");
    let lines = text.matches('\n').count() + 1;
    assert!((1..=lines).contains(&error.line), "{error}: {lines} lines");
    assert!(!error.message.is_empty(), "{error}");
}

/// A scenario.
pub fn scenario(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let file = format!("{FOLDER}/fuzz.toml");
    let scenario = match Scenario::parse(&file, text, &[]) {
        Ok(scenario) => scenario,
        Err(error) => return check_error(&file, text, &error),
    };
    assert!(!scenario.cases.is_empty());
    for case in &scenario.cases {
        let workload = &case.workload;
        assert!((1..=64).contains(&workload.cpus));
        assert!(workload.duration_s.is_finite() && workload.duration_s > 0.0);
        for class in &workload.classes {
            assert!(WEIGHTS.contains(&class.weight) || class.weight == DEFAULT_WEIGHT);
            assert!(class.path.matches('/').count() <= MAX_DEPTH);
            assert!(workload.share_asked(&class.path).is_finite());
        }
        for program in &workload.programs {
            let class = &program.class;
            let known = workload.classes.iter().any(|known| known.path == *class);
            assert!(known || class == "/", "{class} is no class of {text}");
        }
    }
}

/// A `paper.toml`. Scenarios that it names there are none of.
pub fn paper(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let folder = Path::new(FOLDER);
    if let Err(error) = andante_paper::check(folder, text) {
        check_error(&format!("{FOLDER}/paper.toml"), text, &error);
    }
}

/// A file for `andante admit`, and what admission says to the first of its contracts.
pub fn admission(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let request = match andante_admission::file::parse("admit.toml", text) {
        Ok(request) => request,
        Err(error) => return check_error("admit.toml", text, &error),
    };
    let Ok(mut system) = System::new(request.machine, request.policy) else {
        return;
    };
    for contract in request.contracts.iter().take(ADMITTED) {
        assert_eq!(contract.check(request.machine.cpus), Ok(()), "{contract:?}");
        let would = system.would_admit(contract);
        let before = system.held().count();
        let answer = system.admit(contract.clone());
        let held = system.held().count() - before;
        assert_eq!(
            held == 1,
            matches!(would, Ok(Some(_))),
            "{contract:?}: {answer:?}"
        );
    }
}

/// `/etc/andante.toml`.
pub fn config(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let said = match Choices::parse("andante.toml", text) {
        Ok(said) => said,
        Err(error) => return check_error("andante.toml", text, &error),
    };
    let within = |value: Option<u32>, range: std::ops::RangeInclusive<u32>| {
        value.is_none_or(|value| range.contains(&value))
    };
    assert!(within(said.slice_us, choices::SLICE_US));
    assert!(within(said.learn_percent, choices::LEARN_PERCENT));
    assert!(within(said.leave_percent, choices::LEAVE_PERCENT));
    assert!(within(said.user_quota_percent, choices::USER_QUOTA_PERCENT));
    assert!(within(said.domain_cpus, choices::DOMAIN_CPUS));
    assert_eq!(said.clone().or(Choices::default()), said);
}
