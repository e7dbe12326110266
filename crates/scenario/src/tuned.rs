//! `[programs.NAME.tuned]`: what an expert would do for a program by hand under the stock scheduler.

use andante_document::{DocumentError, FromNode, Node, Section};

use super::WEIGHTS;

/// Settings for the schedulers `eevdf-nice`, `eevdf-weight`, `eevdf-fifo`, `eevdf-deadline` and
/// `eevdf-deadline-max`, each of which takes its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuned {
    /// Nice value.
    pub nice: i32,
    /// `cpu.weight` of a control group of its own.
    pub weight: u32,
    /// Priority under SCHED_FIFO.
    pub fifo: i32,
    /// For SCHED_DEADLINE; none: it cannot be run under it.
    pub deadline: Option<Reserved>,
}

/// A reservation of SCHED_DEADLINE, whose deadline is its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// Budget that suffices on average [ns].
    pub mean_ns: u64,
    /// Budget that suffices always [ns].
    pub max_ns: u64,
    /// Period [ns].
    pub period_ns: u64,
}

/// Reads the table at `path`.
pub(super) fn read(node: &Node, path: &str) -> Result<Tuned, DocumentError> {
    let mut section = Section::new(node, path)?;
    let tuned = Tuned {
        nice: section.number("nice", -10.0, -20.0..=19.0)? as i32,
        weight: match section.node("weight") {
            None => 1000,
            Some(node) => u32::from_node(node)
                .filter(|weight| WEIGHTS.contains(weight))
                .ok_or_else(|| section.error("weight", "give a whole number from 1 to 10000"))?,
        },
        fifo: section.number("fifo", 50.0, 1.0..=98.0)? as i32,
        deadline: match section.node("period_ms") {
            None => None,
            Some(_) => Some(read_reserved(&mut section)?),
        },
    };
    section.finish()?;
    Ok(tuned)
}

fn read_reserved(section: &mut Section<'_>) -> Result<Reserved, DocumentError> {
    // The kernel's bounds are finer than a tenth of a millisecond and wider than 4 s.
    let mut time_ns = |key| {
        section.need::<f64>(key)?;
        let ms = section.number(key, 0.0, 0.1..=4000.0)?;
        Ok::<u64, DocumentError>((ms * 1e6).round() as u64)
    };
    let reserved = Reserved {
        mean_ns: time_ns("budget_ms")?,
        max_ns: time_ns("budget_max_ms")?,
        period_ns: time_ns("period_ms")?,
    };
    if reserved.mean_ns > reserved.max_ns || reserved.max_ns > reserved.period_ns {
        let message = "a reservation needs budget_ms <= budget_max_ms <= period_ms";
        return Err(section.error("budget_ms", message));
    }
    Ok(reserved)
}
