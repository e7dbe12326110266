//! Quotations: figures between markers that are comments of Markdown.
//!
//! ```text
//! the longest freeze is <!--fig:film-loops.freeze-->38.4 ms<!--/-->, and
//!
//! <!--figures: film-loops shares-->
//! | | measured | command |
//! …
//! <!--/figures-->
//! ```
//! The first is a value (or with `fig:film-loops` an entry's whole sentence), the second a table of entries.
//! A line of Markdown that begins with a comment is HTML to its end: only the second kind may begin one.

use std::path::Path;

use andante_document::suggest;
use andante_job::Difference;

use super::declaration::{Declaration, Source};
use super::file::Recorded;
use super::{AGAIN, ANEW, FILE, pages};

const INLINE: &str = "<!--fig:";
const INLINE_END: &str = "<!--/-->";
const TABLE: &str = "<!--figures:";
const TABLE_END: &str = "<!--/figures-->";
const CLOSE: &str = "-->";

/// A marker, and what stands between it and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quotation<'a> {
    table: bool,
    /// What it names.
    names: &'a str,
    /// Where what it says begins and ends [bytes].
    says: (usize, usize),
    /// Where the marker begins [byte].
    begin: usize,
}

/// The page `text` as it should be, what is wrong with it as it is, one difference a marker at most.
pub(crate) fn quote(
    file: &Path,
    text: &str,
    declaration: &Declaration,
    recorded: &Recorded,
) -> (String, Vec<Difference>) {
    let (mut written, mut differences, mut at) = (String::new(), Vec::new(), 0);
    let mut differs = |begin: usize, message: String| {
        differences.push(Difference {
            file: file.to_owned(),
            line: 1 + text[..begin].matches('\n').count(),
            message,
        });
    };
    let (quotations, unclosed) = quotations(text);
    for quotation in quotations {
        let (begin, end) = quotation.says;
        let says = &text[begin..end];
        match quotation.should_say(declaration, recorded) {
            Ok(should) => {
                if let Some(message) = quotation.misplaced(text) {
                    differs(quotation.begin, message);
                } else if says != should {
                    differs(quotation.begin, quotation.difference(says, &should));
                }
                written += &text[at..begin];
                written += &should;
            }
            Err(message) => {
                differs(quotation.begin, message);
                written += &text[at..end];
            }
        }
        at = end;
    }
    if let Some((begin, message)) = unclosed {
        differs(begin, message);
    }
    (written + &text[at..], differences)
}

/// How many quotations there are.
pub(crate) fn count(text: &str) -> usize {
    quotations(text).0.len()
}

/// All that are well formed up to the first that is not; where that one begins, and what is wrong with it.
fn quotations(text: &str) -> (Vec<Quotation<'_>>, Option<(usize, String)>) {
    let (mut found, mut at) = (Vec::new(), 0);
    let next = |from: usize, what: &str| text[from..].find(what).map(|offset| from + offset);
    loop {
        let (inline, table) = (next(at, INLINE), next(at, TABLE));
        let (begin, is_table) = match (inline, table) {
            (None, None) => return (found, None),
            (Some(inline), Some(table)) if inline < table => (inline, false),
            (_, Some(table)) => (table, true),
            (Some(inline), None) => (inline, false),
        };
        let (opening, ending) = match is_table {
            true => (TABLE, TABLE_END),
            false => (INLINE, INLINE_END),
        };
        let names = begin + opening.len();
        let closed = next(names, CLOSE).and_then(|close| {
            let says = close + CLOSE.len();
            Some((close, says, next(says, ending)?))
        });
        let another = |end: usize| text[names..end].contains("<!--fig");
        let Some((close, says, end)) = closed.filter(|(_, _, end)| !another(*end)) else {
            let message = format!("the marker `{opening}…` has no end: write {ending} after it");
            return (found, Some((begin, message)));
        };
        found.push(Quotation {
            table: is_table,
            names: text[names..close].trim(),
            says: (says, end),
            begin,
        });
        at = end + ending.len();
    }
}

impl Quotation<'_> {
    /// What belongs between the markers.
    ///
    /// # Errors
    /// If what it names is not declared, or has not been recorded.
    fn should_say(&self, declaration: &Declaration, recorded: &Recorded) -> Result<String, String> {
        if !self.table {
            return value(self.names, declaration, recorded);
        }
        let entries = self.names.split_whitespace().map(|name| {
            // Also what is wrong with it is said.
            value(name, declaration, recorded)?;
            let entry = declaration.entry(name).ok_or_else(|| {
                format!("`{name}` is one value: a table has entries, each with all its values")
            })?;
            Ok((entry, recorded.entry(name)))
        });
        let entries: Vec<_> = entries.collect::<Result<_, String>>()?;
        if entries.is_empty() {
            return Err("the table has no entries: name some of figures.toml".to_owned());
        }
        Ok(format!("\n{}", pages::table(&entries)))
    }

    /// What is wrong with its place.
    fn misplaced(&self, text: &str) -> Option<String> {
        let line = text[..self.begin].rfind('\n').map_or(0, |at| at + 1);
        let alone = text[line..self.begin].trim().is_empty();
        match (self.table, alone) {
            (true, true) | (false, false) => None,
            (true, false) => Some("the marker of a table needs a line of its own".to_owned()),
            (false, true) => Some(format!(
                "the marker of {} begins its line, which Markdown takes for HTML then: put a word before it",
                self.names
            )),
        }
    }

    fn difference(&self, says: &str, should: &str) -> String {
        let mend = format!("run `{AGAIN}`, or `{ANEW}` to measure anew");
        if !self.table {
            return format!(
                "{} says \"{says}\", {FILE} has \"{should}\": {mend}",
                self.names
            );
        }
        let rows = says.lines().zip(should.lines());
        match rows.clone().find(|(says, should)| says != should) {
            Some((says, should)) => {
                format!("a row says \"{says}\", by {FILE} it is \"{should}\": {mend}")
            }
            None => format!("the table has other rows than it names: {mend}"),
        }
    }
}

/// What `ENTRY` or `ENTRY.VALUE` says.
fn value(name: &str, declaration: &Declaration, recorded: &Recorded) -> Result<String, String> {
    let (entry_name, value_name) = match name.split_once('.') {
        None => (name, None),
        Some((entry, value)) => (entry, Some(value)),
    };
    let names = declaration.entries.iter().map(|entry| entry.name.as_str());
    let entry = declaration.entry(entry_name).ok_or_else(|| {
        format!(
            "unknown figure `{entry_name}`{}",
            suggest(entry_name, names)
        )
    })?;
    let known = recorded.entry(entry_name);
    if let Some(value) = value_name
        && entry.value(value).is_none()
    {
        let values = entry.values.iter().map(|value| value.name.as_str());
        let hint = suggest(value, values);
        return Err(format!("`{entry_name}` has no value `{value}`{hint}"));
    }
    let text = match (&entry.source, value_name) {
        (Source::Asserted(_), _) | (_, None) => pages::said(entry, known),
        (_, Some(value)) => known.and_then(|known| known.text(value)).map(str::to_owned),
    };
    text.ok_or_else(|| {
        format!("`{name}` has not been recorded: run `{ANEW} ONLY={entry_name}`, or leave it out")
    })
}
