//! Writing to the terminal: colours only where they are wanted, and no complaint when the reader
//! of a pipe has seen enough.

use std::borrow::Cow;
use std::io::{self, Write};

use andante_sched::text::{is_unseen, shown};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;

use crate::journal::{Level, for_the_journal};

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

/// Writes text to standard output. Whatever a terminal obeys, and is no style of ours, becomes visible: names
/// are escaped where they are put into a text, and this is for those that were forgotten.
pub fn print(text: &str) -> Result<()> {
    let text = plain(text);
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
    print(&format!("{}\n", json(data)?))
}

/// Data as JSON of which a terminal obeys nothing: JSON itself escapes the first 32 characters only.
fn json(data: &impl Serialize) -> Result<String> {
    let mut text = String::new();
    for c in serde_json::to_string_pretty(data)?.chars() {
        if c != '\n' && is_unseen(c) {
            // All of them are of the first plane.
            text += &format!("\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    Ok(text)
}

/// Text with styles, line breaks and tabs, and nothing else that is not to be seen.
fn plain(text: &str) -> Cow<'_, str> {
    let kept = |c: char| !is_unseen(c) || c == '\n' || c == '\t';
    if text.chars().all(kept) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = style_length(rest);
        let (this, after) = rest.split_at(style.unwrap_or(c.len_utf8()));
        if style.is_some() || kept(c) {
            plain.push_str(this);
        } else {
            plain.push_str(&shown(this));
        }
        rest = after;
    }
    Cow::Owned(plain)
}

/// The length of the style that the text begins with: `ESC [ numbers m` [ECMA-48, SGR].
fn style_length(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// Width of the terminal [columns]; of what is no terminal a usual one.
pub fn width() -> usize {
    const USUAL: u16 = 100;
    terminal_size::terminal_size()
        .map_or(USUAL, |(width, _)| width.0)
        .into()
}

/// Width of the terminal that standard output goes to [columns]; none: it goes elsewhere, where lines may be of any length.
pub fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

/// A line of at most `width` columns; what is more is cut, which is shown.
pub fn cut(line: &str, width: usize) -> Cow<'_, str> {
    match line.char_indices().nth(width) {
        None => Cow::Borrowed(line),
        Some(_) => {
            let kept: String = line.chars().take(width.saturating_sub(1)).collect();
            Cow::Owned(format!("{}…", kept.trim_end()))
        }
    }
}

/// Reports why the command failed.
pub fn error(error: &anyhow::Error) {
    tell(Level::Error, BAD, &format!("{error:#}"));
}

/// Tells something beside the command's output.
pub fn note(text: &str) {
    tell(Level::Notice, BOLD, text);
}

/// Tells that somebody gets less than he may think.
pub fn warn(text: &str) {
    tell(Level::Warning, BOLD, text);
}

fn tell(level: Level, style: Style, text: &str) {
    let text = plain(text);
    let line = for_the_journal(level, &text)
        .unwrap_or_else(|| format!("{} {text}\n", paint(style, "andante:")));
    // Standard error may be closed; there is nobody left to tell then.
    let _ = anstream::stderr().write_all(line.as_bytes());
}

/// Writes text to standard error.
pub fn complain(text: &str) {
    let _ = anstream::stderr().write_all(plain(text).as_bytes());
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
    fn lines_are_cut_where_the_terminal_ends() {
        assert_eq!(cut("größe", 5), "größe");
        assert_eq!(cut("größe m", 6), "größe…");
        assert_eq!(cut("größer", 5), "größ…");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn nothing_but_styles_reaches_the_terminal() {
        let ours = format!("{}\tb\n", paint(BAD, "a"));
        assert_eq!(plain(&ours), ours);
        for (theirs, seen) in [
            ("\x1b[2J", "\\x1b[2J"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("\x1b", "\\x1b"),
            ("\x1b[", "\\x1b["),
            ("\x1b[1;1H", "\\x1b[1;1H"),
            ("a\rb", "a\\x0db"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("größe\u{202e}", "größe\\u{202e}"),
        ] {
            assert_eq!(plain(theirs), seen);
        }
    }

    #[test]
    fn json_is_the_same_data_and_obeyed_by_no_terminal() {
        let name = "\x1b[2J\u{9b}\u{7f}\u{202e}ö";
        let text = json(&[name]).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !is_unseen(c)), "{text:?}");
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, [name]);
    }

    #[test]
    fn cpu_times_choose_their_unit() {
        assert_eq!(seconds(1_234_000_000), "1.23 s");
        assert_eq!(seconds(600_000_000_000), "10.0 min");
        assert_eq!(seconds(36_000_000_000_000), "10.0 h");
    }
}
