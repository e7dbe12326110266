//! Instants of a run.

use andante_document::{DocumentError, Section};

/// An instant of the run [s], from `least_s` to an hour.
pub(super) fn time(
    section: &mut Section<'_>,
    key: &'static str,
    least_s: f64,
) -> Result<Option<f64>, DocumentError> {
    match section.get::<f64>(key)? {
        None => Ok(None),
        Some(_) => section.number(key, 0.0, least_s..=3600.0).map(Some),
    }
}
