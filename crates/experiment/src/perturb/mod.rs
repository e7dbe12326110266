//! A scenario under many perturbations ([`andante_scenario::perturb`]): carried out, and judged over all of
//! them.

mod result;
mod run;
mod table;
#[cfg(test)]
mod tests;

pub use result::{
    CaseResult, Distribution, Exception, Figures, PerturbedResult, SCHEMA, VERSION, Worst,
};
pub(crate) use run::jobs;
pub use run::{PerturbOptions, run, verdict};
pub use table::text;
