// SPDX-License-Identifier: GPL-2.0
//! Devices whose packets are placed, as others than the process that has placed them see it.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;

use super::error::{ReceiveError, refused};
use super::state::{self, Placed};
use super::{Hook, Order};

/// Packets to sockets of one cgroup that were dropped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The cgroup's id: the number of its folder's inode.
    pub cgroup_id: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

/// A device whose packets are placed, or were by a process that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Its name then.
    pub device: String,
    /// The class: the folder of its cgroup.
    pub folder: std::path::PathBuf,
    /// When the class does the work.
    pub order: Order,
    /// Where packets are dropped early.
    pub hook: Hook,
    /// The process that has placed them.
    pub pid: u32,
    /// Whether that process lives. If not, threads are in the class still, until [`super::restore`].
    pub lives: bool,
    /// Packets that were dropped early, by cgroup, the least id first.
    pub drops: Vec<Drops>,
}

/// All devices of this network namespace whose packets are placed.
///
/// # Errors
///
/// [`ReceiveError`].
pub fn seen() -> Result<Vec<Seen>, ReceiveError> {
    crate::attach::root().map_err(|_| ReceiveError::NotRoot)?;
    let mut all = Vec::new();
    for found in state::found() {
        let placed = found.placed.unwrap_or(Placed {
            // It was killed, or is being placed.
            class: Default::default(),
            order: Order::Equal,
            hook: Hook::Nowhere,
            dropped: None,
            pid: 0,
        });
        // It ends with the process.
        let map = placed.dropped.filter(|_| found.lives);
        let map = map.and_then(|id| MapHandle::from_map_id(id).ok());
        all.push(Seen {
            device: found.state.device,
            folder: placed.class,
            order: placed.order,
            hook: placed.hook,
            pid: placed.pid,
            lives: found.lives,
            drops: map.map_or(Ok(Vec::new()), |map| drops(&map))?,
        });
    }
    all.sort_by(|one, other| one.device.cmp(&other.device));
    Ok(all)
}

/// The counts of the map, of all CPUs together.
pub(super) fn drops(map: &impl MapCore) -> Result<Vec<Drops>, ReceiveError> {
    let mut all = Vec::new();
    for key in map.keys() {
        let found = map
            .lookup_percpu(&key, MapFlags::ANY)
            .map_err(refused("tell the counts of"))?;
        // One that has made room for another meanwhile.
        let Some(of_cpus) = found else { continue };
        let sum = |at: usize| of_cpus.iter().map(|counts| number(&counts[at..])).sum();
        all.push(Drops {
            cgroup_id: number(&key),
            packets: sum(0),
            bytes: sum(8),
        });
    }
    all.sort_by_key(|drops| drops.cgroup_id);
    Ok(all)
}

/// The number that begins there.
fn number(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    u64::from_ne_bytes(first)
}
