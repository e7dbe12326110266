//! The compression formats in which kernels and their modules come.

use std::io::{self, Read};

use ruzstd::decoding::StreamingDecoder;

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0x00];
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Expands the first zstd frame, xz stream or gzip member of `packed`, told apart by their magic
/// numbers; whatever follows it is ignored. Data in none of these formats is handed back as it is.
pub(crate) fn expand(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    if packed.starts_with(ZSTD) {
        // Kernels are packed with a window of up to 128 MiB, above the decoder's default limit.
        const LARGEST_WINDOW_BYTES: u64 = 1 << 31;
        StreamingDecoder::new_with_max_window_size(packed, LARGEST_WINDOW_BYTES)
            .map_err(io::Error::other)?
            .read_to_end(&mut plain)?;
    } else if packed.starts_with(XZ) {
        lzma_rust2::XzReader::new(packed, false).read_to_end(&mut plain)?;
    } else if packed.starts_with(GZIP) {
        flate2::bufread::GzDecoder::new(packed).read_to_end(&mut plain)?;
    } else {
        plain.extend_from_slice(packed);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn gzip_is_expanded_and_what_follows_is_ignored() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(b"adagio").unwrap();
        let mut packed = packer.finish().unwrap();
        packed.extend_from_slice(b"trailer");
        assert_eq!(expand(&packed).unwrap(), b"adagio");
    }

    #[test]
    fn zstd_is_expanded() {
        // A frame with one raw block: `printf adagio | zstd --no-check`.
        let packed = [
            0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x06, 0x31, 0x00, 0x00, b'a', b'd', b'a', b'g', b'i',
            b'o',
        ];
        assert_eq!(expand(&packed).unwrap(), b"adagio");
    }

    #[test]
    fn plain_data_is_left_alone_and_a_torn_stream_is_an_error() {
        assert_eq!(expand(b"\x7fELF").unwrap(), b"\x7fELF");
        assert!(expand(&[0x28, 0xb5, 0x2f, 0xfd, 0x20]).is_err());
    }
}
