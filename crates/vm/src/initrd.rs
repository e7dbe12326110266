//! The initial RAM disk: a "newc" cpio archive, as the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst lays it down.
//!
//! Inode numbers count up, times are zero and everything belongs to root, so that the same tree
//! makes the same archive. It is not compressed: unpacking would take virtual time.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::tree::{Node, Tree, TreeError};

const FOLDER: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

/// Packs the tree, see [`Tree::in_order`].
pub(crate) fn pack(tree: &Tree, layout: Option<u64>) -> Result<Vec<u8>, TreeError> {
    let mut archive = Vec::new();
    for (inode, (path, node)) in (1..).zip(tree.in_order(layout)) {
        let name = path.strip_prefix("/").unwrap_or(path);
        match node {
            Node::Folder => member(&mut archive, inode, name, FOLDER, &[]),
            Node::Link { target } => {
                member(
                    &mut archive,
                    inode,
                    name,
                    LINK,
                    target.as_os_str().as_bytes(),
                );
            }
            Node::File { content, mode } => {
                member(&mut archive, inode, name, REGULAR | mode, &content.read()?);
            }
        }
    }
    member(&mut archive, 0, Path::new("TRAILER!!!"), 0, &[]);
    Ok(archive)
}

fn member(archive: &mut Vec<u8>, inode: u32, name: &Path, mode: u32, content: &[u8]) {
    let name = name.as_os_str().as_bytes();
    let links = if mode & 0o170_000 == FOLDER & 0o170_000 {
        2
    } else {
        1
    };
    let (no_owner, no_time, no_device) = (0, 0, 0);
    let header = [
        inode,
        mode,
        no_owner,
        no_owner,
        links,
        no_time,
        content.len() as u32,
        no_device,
        no_device,
        no_device,
        no_device,
        name.len() as u32 + 1,
        0, // the checksum, unused in this format
    ];
    archive.extend_from_slice(b"070701");
    for field in header {
        archive.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    archive.extend_from_slice(name);
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(content);
    pad(archive);
}

/// Headers and contents begin at multiples of four bytes.
fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Content;

    fn sample() -> Vec<u8> {
        let mut tree = Tree::default();
        tree.file("/init", Content::Bytes(b"#!/bin/sh\n".to_vec()), 0o755);
        tree.link("/bin/sh", "busybox");
        pack(&tree, None).unwrap()
    }

    #[test]
    fn the_archive_is_laid_out_as_the_kernel_wants() {
        let archive = sample();
        let text = String::from_utf8_lossy(&archive);
        assert!(text.starts_with("070701"));
        assert!(text.contains("000081ED"), "a regular file with mode 0755");
        assert!(text.contains("0000A1FF"), "a link");
        assert_eq!(archive.len() % 4, 0);
        let positions: Vec<_> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(positions.len(), 4, "bin, bin/sh, init, the trailer");
        assert!(positions.iter().all(|at| at % 4 == 0));
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn the_same_tree_makes_the_same_archive() {
        assert_eq!(sample(), sample());
    }
}
