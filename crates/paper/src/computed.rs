//! Exhibits that no scenario brings: functions of the core and its crates, called by name.
//!
//! A paper names one in `[[computed]]`. A function takes nothing, depends on nothing but itself,
//! and returns what a table or figure would: published beside measured, judged
//! ([`compare`](super::cell::compare)). To add one, write it in a module of its own below this one
//! and list it in [`FUNCTIONS`].

mod fairness;

mod edf_wm;

use super::result::{Check, Content};

/// What a function returns: the exhibit's content and what was demanded of it as a whole.
pub(crate) type Output = (Content, Vec<Check>);

/// A function of the registry; an error is a sentence.
pub(crate) type Function = fn() -> Result<Output, String>;

/// All functions by name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("edf-wm-curves", edf_wm::curves),
    ("edf-wm-overview", edf_wm::overview),
    ("edf-wm-reference", edf_wm::reference),
    ("edf-wm-samples", edf_wm::samples),
    ("sfq-fairness", fairness::table),
];

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<Function> {
    let known = FUNCTIONS.iter().find(|(known, _)| *known == name);
    known.map(|(_, function)| *function)
}

/// The names of all functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}
