//! From a packed kernel (`vmlinuz`, a bzImage) to the ELF file inside it, and to its BTF.
//!
//! The layout is the kernel's Documentation/arch/x86/boot.rst: a real-mode part of
//! `setup_sects` + 1 sectors, then the protected-mode part, in which `payload_offset` and
//! `payload_length` delimit the compressed ELF file.

use std::io;

use object::{Object, ObjectSection};

use crate::decompress::expand;

/// Offset of the number of real-mode sectors.
const SETUP_SECTS: usize = 0x1f1;
/// Offset of the magic number "HdrS".
const HEADER_MAGIC: usize = 0x202;
/// Offset of the boot protocol's version; the payload fields exist from 2.08 on.
const VERSION: usize = 0x206;
/// Offset of the payload's position in the protected-mode part; its length follows.
const PAYLOAD: usize = 0x248;
const SECTOR_BYTES: usize = 512;

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn u32_at(image: &[u8], offset: usize) -> io::Result<usize> {
    image
        .get(offset..offset + 4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize)
        .ok_or_else(|| malformed("the kernel image ends before its header does"))
}

/// The uncompressed kernel, an ELF file, out of a bzImage.
pub(crate) fn unpack(image: &[u8]) -> io::Result<Vec<u8>> {
    if image.get(HEADER_MAGIC..HEADER_MAGIC + 4) != Some(b"HdrS") {
        return Err(malformed("not an x86 kernel image"));
    }
    if u32_at(image, VERSION)? & 0xffff < 0x208 {
        return Err(malformed("a boot protocol older than 2.08"));
    }
    let sectors = match image[SETUP_SECTS] {
        0 => 4, // the boot protocol's rule for very old images
        n => usize::from(n),
    };
    let start = (sectors + 1) * SECTOR_BYTES + u32_at(image, PAYLOAD)?;
    let end = start + u32_at(image, PAYLOAD + 4)?;
    let payload = image
        .get(start..end)
        .ok_or_else(|| malformed("the kernel image ends before its payload does"))?;
    let elf = expand(payload)?;
    if !elf.starts_with(b"\x7fELF") {
        return Err(malformed("the kernel is packed in an unknown format"));
    }
    Ok(elf)
}

/// The `.BTF` section of an uncompressed kernel; `None` if it was built without one.
pub(crate) fn btf(vmlinux: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let elf = object::File::parse(vmlinux).map_err(io::Error::other)?;
    elf.section_by_name(".BTF")
        .map(|section| section.data().map(<[u8]>::to_vec))
        .transpose()
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage of one real-mode sector whose payload, an unpacked "ELF file", starts at 16.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR_BYTES + 16];
        image[SETUP_SECTS] = 1;
        image[HEADER_MAGIC..HEADER_MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[PAYLOAD..PAYLOAD + 4].copy_from_slice(&16_u32.to_le_bytes());
        let length = payload.len() as u32;
        image[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn the_payload_is_found_by_the_boot_header() {
        assert_eq!(unpack(&image(b"\x7fELF, say")).unwrap(), b"\x7fELF, say");
    }

    #[test]
    fn damaged_images_are_refused() {
        assert!(unpack(b"").is_err());
        assert!(unpack(&image(b"no kernel")).is_err());
        let mut torn = image(b"\x7fELF, say");
        torn.pop();
        assert!(unpack(&torn).is_err());
    }
}
