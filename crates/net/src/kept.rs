// SPDX-License-Identifier: GPL-2.0
//! What is kept of a device while the discipline is on it: what was there before, and the states of its
//! links. Both are maps, pinned in a folder of the device; they end when they are unpinned, or the kernel does.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::sys::statfs::{FsType, statfs};
use serde::{Deserialize, Serialize};

use crate::Rate;
use crate::device::name_of;
use crate::error::{NetError, file, refused};
use crate::netlink::Gso;
use crate::seen;

/// Where the kernel keeps what is pinned.
const BPF_FS: &str = "/sys/fs/bpf";
/// Ours in there; each network namespace has devices of its own, by whose numbers the folders are called
/// (names of devices may have a dot, which none of these may).
const FOLDER: &str = "/sys/fs/bpf/andante/net";
/// `BPF_FS_MAGIC` of `include/uapi/linux/magic.h`.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// Of what is written as text into the map [bytes]: several times what it takes.
const ROOM: usize = 1024;

/// What was on a device before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// What it was told to send, at most.
    pub rate: Option<Rate>,
    /// The discipline that somebody had put there; none: the kernel's own.
    pub kind: Option<String>,
    /// Its segments: what they were, and what they were bounded to.
    pub gso: Option<(Gso, Gso)>,
}

/// The folder of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub ifindex: u32,
    folder: PathBuf,
}

impl Kept {
    /// Where what belongs to a device is kept, whether or not anything is.
    pub fn of(ifindex: u32) -> Result<Self, NetError> {
        let folder = Path::new(FOLDER).join(format!("{}-{ifindex}", namespace()?));
        Ok(Self { ifindex, folder })
    }

    /// Of all devices of this network namespace for which anything is.
    pub fn all() -> Result<Vec<Self>, NetError> {
        let here = namespace()?;
        let everywhere = Self::everywhere()?.into_iter();
        let ours = everywhere.filter_map(|(namespace, kept)| (namespace == here).then_some(kept));
        Ok(ours.collect())
    }

    /// Of those of others too, with the number of the namespace.
    fn everywhere() -> Result<Vec<(u64, Self)>, NetError> {
        let entries = match fs::read_dir(FOLDER) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(file(Path::new(FOLDER))(error)),
        };
        let kept = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let (namespace, ifindex) = name.to_str()?.split_once('-')?;
            let (namespace, ifindex) = (namespace.parse().ok()?, ifindex.parse().ok()?);
            let folder = entry.path();
            Some((namespace, Self { ifindex, folder }))
        };
        let mut all: Vec<_> = entries.flatten().filter_map(kept).collect();
        all.sort_by_key(|(namespace, kept)| (*namespace, kept.ifindex));
        Ok(all)
    }

    /// With a device its discipline has gone; what was kept for it goes too. Devices of other namespaces cannot be
    /// asked for: there it is enough that no link is in use.
    pub fn forget_those_that_are_gone() -> Result<(), NetError> {
        let here = namespace()?;
        for (namespace, kept) in Self::everywhere()? {
            let gone = match namespace == here {
                true => name_of(kept.ifindex).is_none(),
                false => !seen::in_use(&kept),
            };
            if gone {
                kept.end()?;
            }
        }
        Ok(())
    }

    /// Whether anything can be kept on this machine.
    pub fn is_possible() -> Result<(), NetError> {
        let found = statfs(BPF_FS).is_ok_and(|fs| fs.filesystem_type() == FsType(BPF_FS_MAGIC));
        found.then_some(()).ok_or(NetError::NoBpfFs(BPF_FS))
    }

    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// What was there before; none if whoever was to write it was interrupted.
    pub fn former(&self) -> Option<Former> {
        let map = MapHandle::from_pinned_path(self.folder.join("former")).ok()?;
        let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        serde_json::from_slice(&bytes[..end]).ok()
    }

    /// Keeps what was there before.
    pub fn begin(&self, former: &Former) -> Result<(), NetError> {
        fs::create_dir_all(&self.folder).map_err(file(&self.folder))?;
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let name = Some("andante_former");
        let mut map = MapHandle::create(MapType::Array, name, 4, ROOM as u32, 1, &options)
            .map_err(refused("keep what was there before"))?;
        let mut bytes = serde_json::to_vec(former).expect("plain data");
        bytes.resize(ROOM, 0);
        map.update(&0u32.to_ne_bytes(), &bytes, MapFlags::ANY)
            .and_then(|()| map.pin(self.folder.join("former")))
            .map_err(refused("keep what was there before"))
    }

    /// Where the states of the links are.
    pub fn links(&self) -> PathBuf {
        self.folder.join("links")
    }

    /// Where what classes are promised is.
    pub fn promises(&self) -> PathBuf {
        self.folder.join("promises")
    }

    /// Where weights are that classes have here alone.
    pub fn weights(&self) -> PathBuf {
        self.folder.join("weights")
    }

    /// Nothing is kept of the device any more.
    pub fn end(&self) -> Result<(), NetError> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file(&self.folder)(error));
            }
            _ => {}
        }
        // Those above stay as long as there is anything in them.
        for folder in Path::new(FOLDER).ancestors().take(2) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// The number of this network namespace.
pub(crate) fn namespace() -> Result<u64, NetError> {
    let path = Path::new("/proc/self/ns/net");
    Ok(fs::metadata(path).map_err(file(path))?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_fits_into_its_map() {
        let gso = Gso {
            max_size: u32::MAX,
            ipv4_max_size: u32::MAX,
        };
        let former = Former {
            rate: Rate::of_bytes(u64::MAX),
            kind: Some("\\".repeat(libc::IF_NAMESIZE)),
            gso: Some((gso, gso)),
        };
        assert!(serde_json::to_vec(&former).unwrap().len() < ROOM / 2);
    }
}
