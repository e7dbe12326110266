// SPDX-License-Identifier: GPL-2.0
//! The former state, in files: written before something is changed, and put back whatever becomes of this process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{MemoryError, file};

/// Reads what was written; nothing, if there is no such file.
pub fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, MemoryError> {
    match fs::read(path) {
        // One that was written half is none: it is renamed when it is whole.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(file(path)(error)),
    }
}

/// Writes what was and what will be, before the one becomes the other: a process that is killed meanwhile leaves what puts
/// both back.
pub fn write_both<K, V>(
    path: &Path,
    before: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
) -> Result<(), MemoryError>
where
    K: Ord + Clone + Serialize,
    V: Clone + PartialEq + Serialize,
{
    let mut both = before.clone();
    both.extend(now.clone());
    write(path, &both)
}

/// Writes it; of nothing there is no file.
pub fn write<T: Serialize + Default + PartialEq>(path: &Path, kept: &T) -> Result<(), MemoryError> {
    if *kept == T::default() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file(path)(error)),
            _ => Ok(()),
        };
    }
    let new = path.with_extension("new");
    let written = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut opened = fs::File::create(&new)?;
        opened.write_all(&serde_json::to_vec(kept).expect("plain data"))?;
        fs::rename(&new, path)
    };
    written().map_err(file(path))
}
