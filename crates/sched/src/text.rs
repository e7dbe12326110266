// SPDX-License-Identifier: GPL-2.0
//! Names that others have chosen: of processes, cgroups, contracts. They are bytes, and may hold anything.

use std::borrow::Cow;
use std::fmt::Write;

/// Bytes as text: what is UTF-8 stays as it is, any other byte becomes `\xNN`. The kernel cuts the name
/// of a process after 15 bytes, also within a character.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes that [`from_bytes`] made this of; none if it is text as it is. Only bytes that are no ASCII are
/// taken back: they are all that it writes so.
pub fn to_bytes(text: &str) -> Option<Vec<u8>> {
    let byte = |rest: &str| {
        let digits = rest.strip_prefix("\\x")?.get(..2)?;
        u8::from_str_radix(digits, 16)
            .ok()
            .filter(|byte| *byte >= 0x80)
    };
    let (mut bytes, mut rest, mut changed) = (Vec::new(), text, false);
    while let Some(c) = rest.chars().next() {
        let length = match byte(rest) {
            Some(byte) => {
                changed = true;
                bytes.push(byte);
                4
            }
            None => {
                bytes.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    changed.then_some(bytes)
}

/// Text for a terminal: what would move its cursor, change its colours or the order of its letters becomes
/// visible, as `\x1b` or `\u{202e}`. A backslash stays one: systemd's names of units are full of them.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match u32::from(c) {
            _ if !is_unseen(c) => shown.push(c),
            code @ 0..=0x7f => {
                let _ = write!(shown, "\\x{code:02x}");
            }
            code => {
                let _ = write!(shown, "\\u{{{code:x}}}");
            }
        }
    }
    Cow::Owned(shown)
}

/// Whether the character is not one to be seen: control characters of both sets, those that end lines, and
/// those that change the direction of text [Unicode, UAX #9].
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_kept_visible() {
        assert_eq!(from_bytes(b"mpv"), "mpv");
        // As the kernel cuts it: the last byte begins a character.
        assert_eq!(from_bytes(&"größe".as_bytes()[..3]), "gr\\xc3");
        assert_eq!(from_bytes("größe".as_bytes()), "größe");
        assert_eq!(from_bytes(b"\xff\xfea"), "\\xff\\xfea");
    }

    #[test]
    fn bytes_come_back() {
        for bytes in [&b"gr\xc3/\xff"[..], b"a\x80b"] {
            assert_eq!(to_bytes(&from_bytes(bytes)).unwrap(), bytes);
        }
        for text in ["film", "app-a\\x2db.scope", "\\x", "\\xg1", "größe"] {
            assert_eq!(to_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(shown("mpv (x)"), "mpv (x)");
        assert_eq!(shown("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
        assert_eq!(shown("a\u{9b}2Jb\u{202e}c"), "a\\u{9b}2Jb\\u{202e}c");
        assert_eq!(shown("app-a\\x2db.scope"), "app-a\\x2db.scope");
        assert!(matches!(shown("größe"), Cow::Borrowed(_)));
    }
}
