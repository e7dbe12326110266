//! When a figure was measured, of what, and on what.

use std::collections::BTreeMap;
use std::process::Command;

use andante_job::LabError;
use serde::{Deserialize, Serialize};

/// What of the repository a figure can depend on.
const MEASURED: [&str; 7] = [
    "bpf",
    "core",
    "crates",
    "scenarios",
    "papers",
    "Cargo.toml",
    "Cargo.lock",
];

/// What entries have in common that were recorded together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// Year, month and day, UTC.
    pub date: String,
    /// Of the repository.
    pub commit: String,
    /// Whether there were changes that the commit does not have.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub changed: bool,
    /// SHA-256 of each BPF object.
    pub objects: BTreeMap<String, String>,
    /// `uname -r`; absent where no kernel was needed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
    /// Version of QEMU; absent where none was needed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub qemu: Option<String>,
}

impl Recording {
    /// Of this moment and this build, without a machine.
    ///
    /// # Errors
    /// If git does not tell the commit.
    pub fn now() -> Result<Self, LabError> {
        let commit = git(&["rev-parse", "HEAD"])?;
        let status = ["status", "--porcelain", "--"];
        let changed = !git(&[&status[..], &MEASURED[..]].concat())?.is_empty();
        let object = |(name, hash): &(&str, &str)| ((*name).to_owned(), (*hash).to_owned());
        Ok(Self {
            date: chrono::Utc::now().format("%Y-%m-%d").to_string(),
            commit,
            changed,
            objects: andante_sched::OBJECTS.iter().map(object).collect(),
            kernel: None,
            qemu: None,
        })
    }

    /// The same with the machine that has so many CPUs. `kernel` is what the run says, if it does.
    ///
    /// # Errors
    /// If there is no emulator or no kernel.
    pub fn in_machine(mut self, kernel: Option<String>, cpus: u32) -> Result<Self, LabError> {
        let cache = andante_vm::Cache::open()?;
        let quiet = |_: &str| {};
        let (major, minor) = andante_vm::find_qemu(&cache, cpus, &quiet)?.version;
        self.qemu = Some(format!("{major}.{minor}"));
        let search = andante_vm::KernelSearch {
            kfuncs: andante_sched::NEEDED_KFUNCS,
            ..Default::default()
        };
        self.kernel = Some(match kernel {
            Some(kernel) => kernel,
            None => search.find(&cache, &quiet)?.release,
        });
        Ok(self)
    }
}

/// What git says, without the line's end.
fn git(arguments: &[&str]) -> Result<String, LabError> {
    let doing =
        "ask git for the commit that figures are of; record them in a clone, with git installed";
    let output = Command::new("git")
        .args(arguments)
        .output()
        .map_err(|error| LabError::io(doing, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(LabError::io(doing, std::io::Error::other(said)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
