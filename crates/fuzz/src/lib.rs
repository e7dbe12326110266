// SPDX-License-Identifier: GPL-2.0
//! Fuzz targets: whatever reads bytes from elsewhere is given any bytes.
//!
//! A target is a function of bytes that panics where something does not hold. libFuzzer calls it
//! (`make fuzz`, `src/main.rs`), and so do tests, with the inputs in `inputs/` and random ones that a
//! seed brings back (`tests/smoke.rs`). The targets of the policy core are in `core/fuzz`; those of
//! the kernel's side will be targets here too: a line in [`TARGETS`].

mod daemon;
pub mod mutate;
mod toml;

use std::path::{Path, PathBuf};

/// A target.
#[derive(Clone, Copy)]
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Looks at the bytes. Panics where something does not hold.
    pub run: fn(&[u8]),
    /// Where inputs lie besides `inputs/NAME`, from the root of the repository: a folder, of which
    /// the files with this ending are taken.
    pub seeds: Option<(&'static str, &'static str)>,
}

/// All targets.
pub const TARGETS: [Target; 5] = [
    Target {
        name: "daemon",
        run: daemon::run,
        seeds: None,
    },
    Target {
        name: "scenario",
        run: toml::scenario,
        seeds: Some(("scenarios", "toml")),
    },
    Target {
        name: "paper",
        run: toml::paper,
        seeds: Some(("papers", "paper.toml")),
    },
    Target {
        name: "admission",
        run: toml::admission,
        seeds: None,
    },
    Target {
        name: "config",
        run: toml::config,
        seeds: Some(("dist", "toml")),
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

impl Target {
    /// The files that its runs begin with, in the order of their names.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        collect(&here.join("inputs").join(self.name), "", &mut files);
        if let Some((folder, ending)) = self.seeds {
            collect(&here.join("../..").join(folder), ending, &mut files);
        }
        files.sort();
        files
    }
}

fn collect(folder: &Path, ending: &str, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, ending, files);
        } else if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
}
