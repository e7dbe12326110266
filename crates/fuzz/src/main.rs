// SPDX-License-Identifier: GPL-2.0
//! One target under libFuzzer: `ANDANTE_FUZZ=TARGET andante-fuzz [LIBFUZZER'S ARGUMENTS]`, with a file
//! to run that once again.
#![no_main]

use std::sync::LazyLock;

use andante_fuzz::mutate::{Random, mutate};
use andante_fuzz::{TARGETS, Target, target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("ANDANTE_FUZZ").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names = TARGETS.map(|target| target.name).join(", ");
        eprintln!("andante-fuzz: set ANDANTE_FUZZ to one of {names}, not `{name}`");
        std::process::exit(1)
    })
});

/// What lines and words are taken from: the inputs that the target begins with.
static OTHERS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let inputs = TARGET.inputs();
    inputs.iter().flat_map(std::fs::read).collect()
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));

// Every other time libFuzzer's own changes, else ours.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random(u64::from(seed));
    if OTHERS.is_empty() || random.below(2) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let other = &OTHERS[random.below(OTHERS.len())];
    let changed = mutate(&mut random, &data[..size], other);
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
});
