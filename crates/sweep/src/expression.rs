//! Numbers that follow from others: `"= 1000 / fps * load"`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = number | name | "-" factor | "(" sum ")" | ("min" | "max") "(" sum "," sum ")"
//! ```
//!
//! Four operations, brackets, `min` and `max` are all that families need. The libraries for this bring
//! functions without end and a regular expression engine, and the binary goes into the virtual
//! machine's memory.

use std::iter::Peekable;
use std::str::Chars;

/// The deepest nesting of brackets and signs; each level is a few frames of the stack.
const DEPTH_MAX: usize = 32;

/// The name, if the expression is nothing else.
pub(super) fn single_name(text: &str) -> Option<&str> {
    let name = text.trim();
    let mut chars = name.chars();
    let first = chars.next()?;
    (begins_name(first) && chars.all(goes_on)).then_some(name)
}

/// The value of the expression; `value` says what a name stands for, or why it does not.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn evaluate(
    text: &str,
    value: &dyn Fn(&str) -> Result<f64, String>,
) -> Result<f64, String> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        value,
        depth: 0,
    };
    let result = reader.sum()?;
    match reader.peek() {
        Some(left) => Err(format!("`{left}` is not expected there")),
        None if result.is_finite() => Ok(result),
        None => Err("divides by zero, or has no finite value".to_owned()),
    }
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn goes_on(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit()
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    value: &'a dyn Fn(&str) -> Result<f64, String>,
    depth: usize,
}

impl Reader<'_> {
    /// What comes next, blanks aside.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.rest.next().is_some()
    }

    fn need(&mut self, wanted: char) -> Result<(), String> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(match self.peek() {
                Some(found) => format!("expected `{wanted}`, found `{found}`"),
                None => format!("ends where `{wanted}` is expected"),
            }),
        }
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value += self.product()?;
            } else if self.take('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.take('*') {
                value *= self.factor()?;
            } else if self.take('/') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("has more than {DEPTH_MAX} brackets in each other"));
        }
        let value = match self.peek() {
            Some('-') => {
                self.take('-');
                -self.factor()?
            }
            Some('(') => {
                self.take('(');
                let value = self.sum()?;
                self.need(')')?;
                value
            }
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let digits = self.word(|c| c.is_ascii_digit() || c == '.');
                let wrong = |_| format!("`{digits}` is not a number");
                digits.parse().map_err(wrong)?
            }
            Some(c) if begins_name(c) => {
                let name = self.word(goes_on);
                match name.as_str() {
                    "min" => self.pair(f64::min)?,
                    "max" => self.pair(f64::max)?,
                    name => (self.value)(name)?,
                }
            }
            Some(found) => return Err(format!("expected a number or a name, found `{found}`")),
            None => return Err("ends where a number or a name is expected".to_owned()),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn pair(&mut self, of: fn(f64, f64) -> f64) -> Result<f64, String> {
        self.need('(')?;
        let one = self.sum()?;
        self.need(',')?;
        let other = self.sum()?;
        self.need(')')?;
        Ok(of(one, other))
    }

    fn word(&mut self, belongs: fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.rest.next_if(|c| belongs(*c)) {
            word.push(c);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<f64, String> {
        evaluate(text, &|name| match name {
            "fps" => Ok(25.0),
            _ => Err(format!("no {name}")),
        })
    }

    #[test]
    fn products_bind_closer_than_sums() {
        assert_eq!(of("1 + 2 * 3 - 4 / 2"), Ok(5.0));
        assert_eq!(of("-(1+2)*-3"), Ok(9.0));
        assert_eq!(of("8 / 4 / 2 - 1 - 1"), Ok(-1.0), "from the left");
        assert_eq!(of(" 1000/fps*0.5 "), Ok(20.0));
        assert_eq!(of("max(1, min(fps, 3) + 1)"), Ok(4.0));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, said) in [
            ("1 +", "ends where a number"),
            ("(1", "ends where `)`"),
            ("min(1)", "expected `,`, found `)`"),
            ("1 2", "`2` is not expected"),
            ("1.2.3", "`1.2.3` is not a number"),
            ("1 / (fps - 25)", "divides by zero"),
            ("fsp", "no fsp"),
            ("$fps", "found `$`"),
            ("", "ends where"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        let deep = "(".repeat(10_000) + "1" + &")".repeat(10_000);
        assert!(of(&deep).unwrap_err().contains("brackets"));
    }

    #[test]
    fn a_name_alone_is_told_from_an_expression() {
        assert_eq!(single_name(" fps "), Some("fps"));
        for other in ["", "2", "fps * 2", "fps-2", "a b"] {
            assert_eq!(single_name(other), None, "{other}");
        }
    }
}
