// SPDX-License-Identifier: GPL-2.0
//! How a place is sought: which CPU first, which contract first, and how one is split.

use serde::Serialize;

/// Which CPUs are tried first for a whole contract; ties go to the lower number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The one of the lowest number.
    #[default]
    First,
    /// The fullest.
    Best,
    /// The emptiest.
    Worst,
}

/// In which order several contracts are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As given.
    #[default]
    Given,
    /// By decreasing utilisation C / T; those bound to a CPU first, since they have no choice.
    Decreasing,
}

/// Who is cut where the pieces found could carry more than the contract's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// The last piece; if that is not enough, those before it too.
    #[default]
    Last,
    /// Every piece alike.
    Fair,
}

/// How a contract that fits on no CPU is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Splitting {
    /// Not at all: partitioned EDF.
    None,
    /// Into pieces of equal windows D/s: EDF-WM.
    EqualWindows(Excess),
    /// Into first pieces that fill their windows and a last one that has the rest of the time: C=D.
    ZeroLaxity,
}

impl Default for Splitting {
    fn default() -> Self {
        Self::EqualWindows(Excess::default())
    }
}

/// How a place is sought. The default is EDF-WM with first fit in the given order, no piece below
/// [`DEFAULT_LEAST_PIECE_NS`], and a warning where DWCS's condition promises nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// Which CPU first.
    pub fit: Fit,
    /// Which contract first.
    pub order: Order,
    /// What if none fits.
    pub splitting: Splitting,
    /// The least budget of a piece [ns], 1 or more: less is not worth a migration.
    /// Papers have no such bound.
    pub least_piece_ns: u64,
    /// Whether a contract that DWCS's condition admits without a promise is refused instead.
    pub only_proved: bool,
}

/// The least budget of a piece, unless a policy says otherwise [ns]: some times the cost of the
/// migration that it takes.
pub const DEFAULT_LEAST_PIECE_NS: u64 = 50_000;

impl Default for Policy {
    fn default() -> Self {
        Self {
            fit: Fit::default(),
            order: Order::default(),
            splitting: Splitting::default(),
            least_piece_ns: DEFAULT_LEAST_PIECE_NS,
            only_proved: false,
        }
    }
}

impl Policy {
    /// Partitioned EDF.
    pub const fn partitioned(fit: Fit, order: Order) -> Self {
        Self {
            fit,
            order,
            splitting: Splitting::None,
            least_piece_ns: 1,
            only_proved: true,
        }
    }

    /// EDF-WM (Kato, Yamasaki, Ishikawa, ECRTS 2009).
    pub const fn edf_wm(fit: Fit, order: Order) -> Self {
        Self {
            fit,
            order,
            splitting: Splitting::EqualWindows(Excess::Last),
            least_piece_ns: 1,
            only_proved: true,
        }
    }
}
