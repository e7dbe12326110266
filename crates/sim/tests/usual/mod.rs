//! The scheduler as users have it, without options.

use andante_sim::{InCharge, NS_PER_MS, Settings};

pub const ANDANTE: InCharge = InCharge::Andante(Settings {
    quantum_ns: 2 * NS_PER_MS,
    in_class_wake_ns: 200_000,
    contract_bound: 819,
    learn_bound: 819,
    bindings: true,
    events: None,
});
