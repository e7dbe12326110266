// SPDX-License-Identifier: GPL-2.0
//! A note of what people want to know of a device, and the kernel does not keep: written for them alone. Nothing is done by it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where what this crate writes is kept, as long as the machine runs.
pub const RUN: &str = "/run/andante/disk";

/// Of a device, how it is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The file or disk that it is attached to.
    pub backing: PathBuf,
    /// The name of its order.
    pub order: String,
    /// Requests that are served at once.
    pub depth: u32,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    /// By which one that is out of date is told: another device had that number.
    identity: u64,
    #[serde(flatten)]
    note: Note,
}

fn path(device: u32) -> PathBuf {
    Path::new(RUN).join(format!("ublkb{device}.json"))
}

/// Without it nothing is worse than that people are told less.
pub(crate) fn write(device: u32, identity: u64, note: &Note) {
    let note = note.clone();
    let bytes = serde_json::to_vec(&Kept { identity, note }).expect("plain data");
    let _ = fs::create_dir_all(RUN).and_then(|()| fs::write(path(device), bytes));
}

pub(crate) fn read(device: u32, identity: u64) -> Option<Note> {
    let kept: Kept = serde_json::from_slice(&fs::read(path(device)).ok()?).ok()?;
    (kept.identity == identity).then_some(kept.note)
}

pub(crate) fn remove(device: u32) {
    let _ = fs::remove_file(path(device));
}
