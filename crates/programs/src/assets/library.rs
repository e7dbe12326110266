//! The file that programs map as a library: so many bytes, which say nothing.

use std::fs;
use std::path::{Path, PathBuf};

use andante_job::LabError;

/// Where a library of this length lies below the folder of assets.
pub fn library_file(assets: &Path, bytes: u64) -> PathBuf {
    assets.join("libraries").join(bytes.to_string())
}

/// Writes it unless it is there.
pub fn make(bytes: u64, assets: &Path) -> Result<(), LabError> {
    let file = library_file(assets, bytes);
    if file.exists() {
        return Ok(());
    }
    let folder = file.parent().expect("it lies in a folder");
    fs::create_dir_all(folder).map_err(|e| LabError::file("create", folder, e))?;
    // Written beside and renamed, so that no other run finds half of one.
    let staged = folder.join(format!(".{}.{bytes}", std::process::id()));
    fs::write(&staged, content(bytes)).map_err(|e| LabError::file("write", &staged, e))?;
    fs::rename(&staged, &file).map_err(|e| LabError::file("write", &file, e))
}

/// Each eight bytes say where they are: no page of zeros, which a file system would leave out.
fn content(bytes: u64) -> Vec<u8> {
    let mut content: Vec<u8> = (1..=bytes.div_ceil(8)).flat_map(u64::to_le_bytes).collect();
    content.truncate(bytes as usize);
    content
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_page_has_a_content_of_its_own() {
        let content = super::content((1 << 20) + 3);
        assert_eq!(content.len(), (1 << 20) + 3);
        let mut pages: Vec<&[u8]> = content.chunks(4096).collect();
        let count = pages.len();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), count);
        assert!(pages[0].iter().any(|byte| *byte != 0));
    }
}
