// SPDX-License-Identifier: GPL-2.0
//! Weights that classes have on a device other than those that they have of the CPU.
//!
//! As contracts they are in a map that is pinned, which the discipline reads as packets come. So they hold until
//! the device is detached, whoever has ended meanwhile.

use std::collections::HashMap;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use crate::attach::{alone, root};
use crate::contract::kept;
use crate::error::{NetError, refused};
use crate::kept::Kept;

/// Gives a class a weight of its own on a device; none: that of the CPU holds again. Those of cgroups that are gone,
/// which are not in `paths`, are forgotten.
///
/// # Errors
///
/// [`NetError`].
pub fn weigh<V>(
    device: &str,
    cgroup_id: u64,
    weight: Option<u32>,
    paths: &HashMap<u64, V>,
) -> Result<(), NetError> {
    root()?;
    let _alone = alone()?;
    let (kept, _) = kept(device)?;
    let map = map(&kept, device)?;
    let gone = all(&map)?;
    for id in gone.keys().filter(|id| !paths.contains_key(id)) {
        end(&map, *id)?;
    }
    match weight {
        None => end(&map, cgroup_id),
        Some(weight) => map
            .update(
                &cgroup_id.to_ne_bytes(),
                &weight.to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(refused("tell a weight to")),
    }
}

/// Own weights, by cgroups.
pub(crate) fn own(kept: &Kept, device: &str) -> Result<HashMap<u64, u32>, NetError> {
    all(&map(kept, device)?)
}

fn map(kept: &Kept, device: &str) -> Result<MapHandle, NetError> {
    MapHandle::from_pinned_path(kept.weights()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => NetError::OtherBuild(device.to_owned()),
        _ => refused("show the weights of")(error),
    })
}

fn all(map: &MapHandle) -> Result<HashMap<u64, u32>, NetError> {
    let mut all = HashMap::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        let value = value.map_err(refused("show the weights of"))?;
        let id = key.as_slice().try_into().map(u64::from_ne_bytes);
        let weight = value.and_then(|value| value.try_into().ok());
        if let (Ok(id), Some(weight)) = (id, weight) {
            all.insert(id, u32::from_ne_bytes(weight));
        }
    }
    Ok(all)
}

fn end(map: &MapHandle, cgroup_id: u64) -> Result<(), NetError> {
    match map.delete(&cgroup_id.to_ne_bytes()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(refused("tell a weight to")(error))
        }
        _ => Ok(()),
    }
}
