//! The terms by which a sweep is judged, and how a draw of it is run again.

use andante_job::{LabError, quoted};
use andante_scenario::choice::Choice;

use super::SweepOptions;
use super::family::{Drawn, Family};
use super::measure::{Figures, MEASURES, Measure};
use super::requirement::Requirement;
use super::result::DrawResult;

/// The terms by which a sweep is judged.
pub(super) struct Terms<'a> {
    pub family: &'a Family,
    pub options: &'a SweepOptions,
    pub choices: &'a [Choice],
    /// Place of the reference.
    pub reference: usize,
    pub bounds: Figures,
    pub within: Figures,
    pub requirements: Vec<Requirement>,
}

impl Terms<'_> {
    /// Whether every bound holds.
    pub fn keeps(&self, figures: &Figures) -> bool {
        let each = MEASURES.iter().zip(figures.iter().zip(&self.bounds));
        let keeps = |(measure, (figure, bound)): (&Measure, (&Option<f64>, &Option<f64>))| {
            figure
                .zip(*bound)
                .is_none_or(|(figure, bound)| measure.keeps(figure, bound))
        };
        each.into_iter().all(keeps)
    }

    /// The command that runs a draw again, under the schedulers of the sweep. The CPUs of a virtual
    /// machine share the speed of one, so that all work is that much shorter there.
    pub fn replay(&self, draw: &DrawResult, on: &str) -> String {
        let mut schedulers: Vec<String> = self
            .choices
            .iter()
            .map(|choice| match choice {
                Choice::Policy(kind) if on == "vm" => Choice::of_kernel(*kind).name(),
                choice => choice.name(),
            })
            .collect();
        schedulers.dedup();
        let schedulers = schedulers.join(",");
        let family = &self.options.family;
        let mut words = vec![
            "andante", "lab", "run", family, "--draw", &draw.draw, "--on", on,
        ];
        words.extend(["--scheduler", &schedulers]);
        for line in &self.options.set {
            words.extend(["--set", line]);
        }
        let scale = draw.work_scale / f64::from(draw.cpus);
        let scale = format!("work_scale = {scale}");
        if on == "vm" && draw.cpus > 1 {
            words.extend(["--set", &scale]);
        }
        words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// The error, with the command that runs the draw again.
    pub fn wrap(&self, error: LabError, drawn: &Drawn, choice: &Choice) -> LabError {
        let draw = drawn.id.to_string();
        LabError::Draw {
            cause: Box::new(error),
            replay: self.replay(&drawn.result(), "sim"),
            scheduler: choice.name(),
            draw,
        }
    }
}
