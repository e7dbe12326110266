// SPDX-License-Identifier: GPL-2.0
//! Where a contract runs: whole on one CPU, or in pieces, one after the other on several.

use serde::{Deserialize, Serialize};

use crate::task::Task;

/// One piece of a split contract: a sporadic task of its own on its CPU.
///
/// Of a job released at r it is released at r + `offset_ns` and due at r + `offset_ns` +
/// `window_ns`. The job moves on to the next piece's CPU when that one is released, by timer, not
/// when the budget ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// CPU it runs on.
    pub cpu: u32,
    /// CPU time per job [ns].
    pub budget_ns: u64,
    /// Its release, after the job's [ns].
    pub offset_ns: u64,
    /// Its deadline, after its own release [ns].
    pub window_ns: u64,
}

impl Piece {
    pub(crate) fn task(&self, period_ns: u64) -> Task {
        Task {
            budget_ns: self.budget_ns,
            deadline_ns: self.window_ns,
            period_ns,
        }
    }
}

/// Where a contract runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On one CPU.
    Whole {
        /// The CPU.
        cpu: u32,
    },
    /// In pieces, in the order they run in; under EDF-WM that is the order of CPUs too.
    Split {
        /// Two or more pieces.
        pieces: Vec<Piece>,
    },
}

/// What is wrong with a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// One piece, or none.
    #[error("a split needs two pieces or more")]
    TooFewPieces,
    /// The pieces' budgets are not the contract's.
    #[error("the budgets of the pieces do not add up to the contract's")]
    BudgetSum,
    /// A piece has no budget, or more than its window.
    #[error("the budget of a piece is 0 or longer than its window")]
    BudgetOfPiece,
    /// A piece is released before the one before it is due.
    #[error("a piece is released before the one before it is due")]
    Overlap,
    /// The last piece is due after the contract.
    #[error("the last piece is due after the contract's deadline")]
    TooLate,
    /// Two pieces share a CPU.
    #[error("two pieces are on the same CPU")]
    SameCpu,
}

impl Placement {
    /// The pieces of `task`; a whole one counts as one piece.
    pub fn pieces(&self, task: &Task) -> Vec<Piece> {
        match self {
            Self::Whole { cpu } => vec![Piece {
                cpu: *cpu,
                budget_ns: task.budget_ns,
                offset_ns: 0,
                window_ns: task.deadline_ns,
            }],
            Self::Split { pieces } => pieces.clone(),
        }
    }

    /// Whether it is split.
    pub fn is_split(&self) -> bool {
        matches!(self, Self::Split { .. })
    }

    /// Whether the pieces make up `task` and can follow one another: what the LITMUS^RT port of
    /// EDF-WM checks before it takes a task.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn check(&self, task: &Task) -> Result<(), PlacementError> {
        let Self::Split { pieces } = self else {
            return Ok(());
        };
        if pieces.len() < 2 {
            return Err(PlacementError::TooFewPieces);
        }
        let mut due_ns = 0;
        for (i, piece) in pieces.iter().enumerate() {
            if piece.budget_ns == 0 || piece.budget_ns > piece.window_ns {
                return Err(PlacementError::BudgetOfPiece);
            }
            if piece.offset_ns < due_ns {
                return Err(PlacementError::Overlap);
            }
            if pieces[..i].iter().any(|before| before.cpu == piece.cpu) {
                return Err(PlacementError::SameCpu);
            }
            due_ns = piece.offset_ns + piece.window_ns;
        }
        if due_ns > task.deadline_ns {
            return Err(PlacementError::TooLate);
        }
        let budgets_ns: u64 = pieces.iter().map(|piece| piece.budget_ns).sum();
        if budgets_ns != task.budget_ns {
            return Err(PlacementError::BudgetSum);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(cpu: u32, budget_ns: u64, offset_ns: u64, window_ns: u64) -> Piece {
        Piece {
            cpu,
            budget_ns,
            offset_ns,
            window_ns,
        }
    }

    #[test]
    fn every_rule_of_a_split_is_checked() {
        let task = Task::new(6, 10, 12).unwrap();
        let check = |pieces: &[Piece]| {
            let pieces = pieces.to_vec();
            Placement::Split { pieces }.check(&task)
        };
        let (a, b) = (piece(0, 3, 0, 5), piece(2, 3, 5, 5));
        assert_eq!(check(&[a, b]), Ok(()));
        assert_eq!(check(&[a]), Err(PlacementError::TooFewPieces));
        assert_eq!(
            check(&[a, piece(2, 2, 5, 5)]),
            Err(PlacementError::BudgetSum)
        );
        assert_eq!(
            check(&[a, piece(2, 3, 5, 2)]),
            Err(PlacementError::BudgetOfPiece)
        );
        assert_eq!(
            check(&[a, piece(2, 0, 5, 5)]),
            Err(PlacementError::BudgetOfPiece)
        );
        assert_eq!(check(&[a, piece(2, 3, 4, 5)]), Err(PlacementError::Overlap));
        assert_eq!(check(&[a, piece(2, 3, 5, 6)]), Err(PlacementError::TooLate));
        assert_eq!(check(&[a, piece(0, 3, 5, 5)]), Err(PlacementError::SameCpu));
    }
}
