// SPDX-License-Identifier: GPL-2.0
//! Every target, on its kept inputs and on some thousand random changes to them, always the same: so
//! that neither the targets nor what they have found can be forgotten. `make fuzz` searches further.

use andante_fuzz::mutate::{Random, mutate};
use andante_fuzz::target;

fn smoke(name: &str, runs: u64) {
    let target = target(name).expect("it is a target");
    let read = |path| std::fs::read(path).expect("it was listed");
    let inputs: Vec<Vec<u8>> = target.inputs().into_iter().map(read).collect();
    assert!(!inputs.is_empty(), "{name} begins with something");
    for input in &inputs {
        (target.run)(input);
    }
    for run in 0..runs {
        let mut random = Random(run);
        let text = &inputs[random.below(inputs.len())];
        let other = &inputs[random.below(inputs.len())];
        let input = mutate(&mut random, text, other);
        let passes = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(
            passes.is_ok(),
            "{name}, random input {run}, does not pass:\n{}",
            String::from_utf8_lossy(&input)
        );
    }
}

#[test]
fn daemon() {
    smoke("daemon", 600);
}

#[test]
fn scenario() {
    smoke("scenario", 3000);
}

#[test]
fn paper() {
    smoke("paper", 300);
}

#[test]
fn admission() {
    smoke("admission", 1000);
}

#[test]
fn config() {
    smoke("config", 5000);
}
