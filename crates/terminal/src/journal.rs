//! Lines for the journal say how bad they are: each begins with `<N>`, a level of sd-daemon(3).

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::sync::LazyLock;

/// How bad it is, as syslog(3) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The command failed.
    Error = 3,
    /// Somebody gets less than he may think.
    Warning = 4,
    /// All is as it should be.
    Notice = 5,
}

/// Whether standard error is read by the journal.
static READ: LazyLock<bool> = LazyLock::new(|| {
    let said = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let this = fs::metadata("/proc/self/fd/2");
    this.is_ok_and(|file| is_that(&said, file.st_dev(), file.st_ino()))
});

/// systemd.exec(5): device and inode, in decimal. A program that redirects standard error inherits the variable
/// all the same.
fn is_that(said: &str, device: u64, inode: u64) -> bool {
    said == format!("{device}:{inode}")
}

/// The text as the journal takes it; none where standard error is something else.
pub fn for_the_journal(level: Level, text: &str) -> Option<String> {
    READ.then(|| lines(level, text))
}

fn lines(level: Level, text: &str) -> String {
    let line = |line| format!("<{}>{line}\n", level as u8);
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_level() {
        assert_eq!(lines(Level::Error, "one\ntwo"), "<3>one\n<3>two\n");
        assert_eq!(lines(Level::Warning, "less"), "<4>less\n");
    }

    #[test]
    fn a_stream_that_was_redirected_is_not_the_journal() {
        assert!(is_that("9:1234", 9, 1234));
        for other in ["", "9:1235", "8:1234", "9"] {
            assert!(!is_that(other, 9, 1234), "{other}");
        }
    }
}
