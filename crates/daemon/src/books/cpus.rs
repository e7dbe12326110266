// SPDX-License-Identifier: GPL-2.0
//! Numbers of CPUs: admission counts those that are online from 0, the machine may have gaps.

use andante_admission::{Admission, Nearest, Offer, Placement};

use crate::host::CpuMask;

/// A placement in the machine's numbers.
pub fn to_machine(placement: &Placement, online: &[u32]) -> Placement {
    renumbered(placement, |cpu| online.get(cpu as usize).copied())
        .unwrap_or(Placement::Whole { cpu: 0 })
}

/// A placement in admission's numbers; none if one of its CPUs is not online.
pub fn to_admission(placement: &Placement, online: &[u32]) -> Option<Placement> {
    let place_of = |cpu| online.iter().position(|&known| known == cpu);
    renumbered(placement, |cpu| place_of(cpu).map(|at| at as u32))
}

/// An offer in the machine's numbers.
pub fn offers_to_machine(nearest: Nearest, online: &[u32]) -> Nearest {
    let offer = |mut offer: Offer| {
        // Where it is bound to one CPU, that was for the question's sake.
        offer.contract.cpu = None;
        let placement = to_machine(&offer.admission.placement, online);
        offer.admission = Admission {
            placement,
            ..offer.admission
        };
        offer
    };
    Nearest {
        largest_budget: nearest.largest_budget.map(offer),
        shortest_period: nearest.shortest_period.map(offer),
    }
}

/// The CPUs of a placement.
pub fn mask(placement: &Placement) -> CpuMask {
    match placement {
        Placement::Whole { cpu } => bit(*cpu),
        Placement::Split { pieces } => pieces.iter().fold(0, |mask, piece| mask | bit(piece.cpu)),
    }
}

/// One CPU as a mask.
pub fn bit(cpu: u32) -> CpuMask {
    1_u64.checked_shl(cpu).unwrap_or(0)
}

fn renumbered(placement: &Placement, number: impl Fn(u32) -> Option<u32>) -> Option<Placement> {
    Some(match placement {
        Placement::Whole { cpu } => Placement::Whole { cpu: number(*cpu)? },
        Placement::Split { pieces } => {
            let mut pieces = pieces.clone();
            for piece in &mut pieces {
                piece.cpu = number(piece.cpu)?;
            }
            Placement::Split { pieces }
        }
    })
}
