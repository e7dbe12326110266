//! Writing to the terminal: colours only where they are wanted, and no complaint when the reader
//! of a pipe has seen enough.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;

/// Column titles and other things in the background.
pub const DIM: Style = Style::new().dimmed();
/// Names that matter.
pub const BOLD: Style = Style::new().bold();
/// All is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Something is missing.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What to do about it.
pub const MEND: Style = AnsiColor::Yellow.on_default();
/// Bars.
pub const BAR: Style = AnsiColor::Cyan.on_default();

/// `text` in `style`; [`print`] takes the style away again where it cannot be shown.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes text to standard output.
pub fn print(text: &str) -> Result<()> {
    match anstream::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| anstream::stdout().flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Writes data as JSON to standard output.
pub fn print_json(data: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(data)?))
}

/// Reports why the command failed.
pub fn error(error: &anyhow::Error) {
    // Standard error may be closed; there is nobody left to tell then.
    let _ = writeln!(anstream::stderr(), "{} {error:#}", paint(BAD, "andante:"));
}

/// Tells something beside the command's output.
pub fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{} {text}", paint(BOLD, "andante:"));
}

/// Writes text to standard error.
pub fn complain(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// A share as a percentage with one decimal, seven columns wide.
pub fn percent(share: f64) -> String {
    format!("{:5.1} %", share * 100.0)
}

/// A CPU time for people.
pub fn seconds(ns: u64) -> String {
    let s = ns as f64 / 1e9;
    if s < 100.0 {
        format!("{s:.2} s")
    } else if s < 6000.0 {
        format!("{:.1} min", s / 60.0)
    } else {
        format!("{:.1} h", s / 3600.0)
    }
}

/// A horizontal bar of `width` cells for a share of 0 to 1, in eighths of a cell.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_exact_to_an_eighth_of_a_cell() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(1.0 / 32.0, 4), "▏");
        assert_eq!(bar(7.0, 4), "████", "more than everything is everything");
    }

    #[test]
    fn cpu_times_choose_their_unit() {
        assert_eq!(seconds(1_234_000_000), "1.23 s");
        assert_eq!(seconds(600_000_000_000), "10.0 min");
        assert_eq!(seconds(36_000_000_000_000), "10.0 h");
    }
}
