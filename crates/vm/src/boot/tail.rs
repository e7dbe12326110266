//! Following a file while another process writes it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{BootError, io_error};

/// Hands out a growing file's lines as they are completed.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end has not been written yet.
    pending: Vec<u8>,
}

impl Tail {
    pub(super) fn open(path: &Path) -> Result<Self, BootError> {
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path).map_err(io_error(path))?,
            pending: Vec::new(),
        })
    }

    /// Passes on the lines completed since the last call, without their line ends.
    pub(super) fn lines(&mut self, pass_on: &mut dyn FnMut(&str)) -> Result<(), BootError> {
        self.file
            .read_to_end(&mut self.pending)
            .map_err(io_error(&self.path))?;
        let complete = match self.pending.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => self.pending.drain(..=last).collect::<Vec<u8>>(),
            None => return Ok(()),
        };
        for line in String::from_utf8_lossy(&complete).lines() {
            pass_on(line.trim_end_matches('\r'));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_passed_on_once_and_only_when_complete() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = Tail::open(file.path()).unwrap();
        let mut seen = Vec::new();
        for part in ["one\r\ntw", "o\n", "", "three"] {
            file.write_all(part.as_bytes()).unwrap();
            tail.lines(&mut |line| seen.push(line.to_owned())).unwrap();
        }
        assert_eq!(seen, ["one", "two"]);
    }
}
