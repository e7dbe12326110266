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

/// How a place is sought. The default is EDF-WM with first fit in the given order, and a warning
/// where DWCS's condition promises nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Policy {
    /// Which CPU first.
    pub fit: Fit,
    /// Which contract first.
    pub order: Order,
    /// What if none fits.
    pub splitting: Splitting,
    /// Whether a contract that DWCS's condition admits without a promise is refused instead.
    pub only_proved: bool,
}

impl Policy {
    /// Partitioned EDF.
    pub const fn partitioned(fit: Fit, order: Order) -> Self {
        Self {
            fit,
            order,
            splitting: Splitting::None,
            only_proved: true,
        }
    }

    /// EDF-WM (Kato, Yamasaki, Ishikawa, ECRTS 2009).
    pub const fn edf_wm(fit: Fit, order: Order) -> Self {
        Self {
            fit,
            order,
            splitting: Splitting::EqualWindows(Excess::Last),
            only_proved: true,
        }
    }
}
