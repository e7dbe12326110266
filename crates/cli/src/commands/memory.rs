// SPDX-License-Identifier: GPL-2.0
//! Reserved memory on the command line: what is asked, the answers in words, and what there is as a table.

mod keep;
mod render;
mod wake;

use andante_admission::Size;
use andante_daemon::{Holder, MemoryAsk, Reply, Request, USUALLY_LENT_PER_MILLE};
use anyhow::Result;

pub use keep::Keep;
pub use render::{Row, json, lines, notes, refused, reserved, rows, table};
pub use wake::Wake;

#[cfg(test)]
pub use render::tests as samples;

use super::contracts;

/// Of what is reserved and not used, the part that others have until then: 80%.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lend {
    /// [1/1000].
    pub per_mille: u32,
}

impl Default for Lend {
    fn default() -> Self {
        Self {
            per_mille: USUALLY_LENT_PER_MILLE,
        }
    }
}

impl std::str::FromStr for Lend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no part: give 0% to 100%");
        let number = text.trim().trim_end_matches('%').trim_end();
        let percent: f64 = number.parse().map_err(|_| wrong())?;
        match (0.0..=100.0).contains(&percent) {
            true => Ok(Self {
                per_mille: (percent * 10.0).round() as u32,
            }),
            false => Err(wrong()),
        }
    }
}

/// The memory that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// How much.
    pub size: Size,
    /// The part of it that is lent.
    pub lend: Lend,
}

impl Wanted {
    /// The request of it.
    pub fn of(self, holder: Holder, until: Option<i32>) -> MemoryAsk {
        MemoryAsk {
            holder,
            bytes: self.size.0,
            lend_per_mille: self.lend.per_mille,
            until,
        }
    }
}

/// Asks for it, or what would be answered.
///
/// # Errors
/// [`ClientError`](andante_daemon::ClientError).
pub fn ask(ask: MemoryAsk, only_ask: bool) -> Result<Reply> {
    contracts::ask(&match only_ask {
        true => Request::AskMemory(ask),
        false => Request::ReserveMemory(ask),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_percent() {
        let lend = |text: &str| text.parse::<Lend>().map(|lend| lend.per_mille);
        assert_eq!(lend("80%"), Ok(800));
        assert_eq!(lend("0"), Ok(0));
        assert_eq!(lend("99.5 %"), Ok(995));
        for wrong in ["", "%", "101%", "-1%", "nan", "all"] {
            assert!(lend(wrong).unwrap_err().contains("0% to 100%"), "{wrong}");
        }
    }
}
