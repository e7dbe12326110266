//! From the figures of all draws to what they come to.

use andante_document::{Node, Value};
use andante_scenario::choice::Choice;

use super::judge;
use super::measure::{BATCH, Figures, MEASURES, Outcome};
use super::result::{
    Distribution, DrawResult, LoadResult, MeasureResult, SCHEMA, SweepResult, VERSION, Worst,
};
use super::terms::Terms;

/// So many of the worst draws are named.
const WORST: usize = 10;
/// Width of a range of loads [ratio].
const LOAD_STEP: f64 = 0.1;
/// Loads above this are in one range: nothing can be in time there.
const LOAD_TOP: f64 = 1.5;

/// One draw, simulated under every scheduler.
pub(super) struct Done {
    pub draw: DrawResult,
    pub outcomes: Vec<Outcome>,
}

/// Everything, summed up.
pub(super) fn sum_up(terms: &Terms<'_>, done: Vec<Done>) -> SweepResult {
    let figures: Vec<Vec<Figures>> = done.iter().map(|done| figures(done, terms)).collect();
    let mut draws: Vec<DrawResult> = done.into_iter().map(|done| done.draw).collect();
    for (draw, figures) in draws.iter_mut().zip(&figures) {
        let named = |figures: &Figures| {
            let pairs = MEASURES.iter().zip(figures);
            let given = pairs.filter_map(|(m, figure)| Some((m.name.to_owned(), (*figure)?)));
            given.collect()
        };
        draw.figures = figures.iter().map(named).collect();
    }
    let summary = Summary {
        terms,
        draws: &draws,
        figures: &figures,
    };
    SweepResult {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        family: terms.family.key.clone(),
        title: terms.family.title.clone(),
        simulator: andante_simulated::version(),
        seed: terms.options.seed,
        draws_asked: terms.options.draws,
        set: terms.options.set.clone(),
        schedulers: terms.choices.iter().map(Choice::name).collect(),
        reference: terms.choices[terms.reference].name(),
        measures: (0..MEASURES.len())
            .filter_map(|at| summary.measure(at))
            .collect(),
        by_load: summary.by_load(),
        requirements: judge::judge(terms, &draws, &figures),
        draws,
    }
}

/// The figures of a draw by scheduler, that of the batch work included.
fn figures(done: &Done, terms: &Terms<'_>) -> Vec<Figures> {
    let reference = &done.outcomes[terms.reference];
    let all = done.outcomes.iter().map(|outcome| {
        let mut figures = outcome.figures;
        figures[BATCH] = outcome.work_over(reference);
        figures
    });
    all.collect()
}

struct Summary<'a> {
    terms: &'a Terms<'a>,
    draws: &'a [DrawResult],
    /// By draw, then by scheduler.
    figures: &'a [Vec<Figures>],
}

impl Summary<'_> {
    /// The measure at this place; none if no draw has it.
    fn measure(&self, at: usize) -> Option<MeasureResult> {
        let measure = &MEASURES[at];
        let schedulers: Vec<_> = (0..self.terms.choices.len())
            .filter_map(|scheduler| self.distribution(at, scheduler))
            .collect();
        (!schedulers.is_empty()).then(|| MeasureResult {
            name: measure.name.to_owned(),
            more_is_better: measure.more,
            bound: self.terms.bounds[at],
            within: self.within(at),
            schedulers,
        })
    }

    fn within(&self, at: usize) -> f64 {
        self.terms.within[at].unwrap_or(MEASURES[at].within)
    }

    fn distribution(&self, at: usize, scheduler: usize) -> Option<Distribution> {
        let measure = &MEASURES[at];
        let of = |place: usize| Some((place, self.figures[place][scheduler][at]?));
        let given: Vec<(usize, f64)> = (0..self.draws.len()).filter_map(of).collect();
        let mut sorted: Vec<f64> = given.iter().map(|(_, figure)| *figure).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        // Nearest rank, as everywhere in results.
        let rank = |q: f64| sorted[((q * n as f64).ceil() as usize).clamp(1, n) - 1];
        let share = |good: usize| good as f64 / n as f64;
        let reference = |place: usize| self.figures[place][self.terms.reference][at];
        let near = |(place, figure): &&(usize, f64)| {
            reference(*place).is_none_or(|of| measure.worse(*figure, of) <= self.within(at))
        };
        let is_reference = scheduler == self.terms.reference;
        (n > 0).then(|| Distribution {
            scheduler: self.terms.choices[scheduler].name(),
            n: n as u64,
            min: sorted[0],
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            max: sorted[n - 1],
            share_in_bound: self.terms.bounds[at]
                .map(|bound| share(sorted.iter().filter(|f| measure.keeps(**f, bound)).count())),
            share_near_reference: (!is_reference).then(|| share(given.iter().filter(near).count())),
            worst: self.worst(at, scheduler, given),
        })
    }

    fn worst(&self, at: usize, scheduler: usize, given: Vec<(usize, f64)>) -> Vec<Worst> {
        let measure = &MEASURES[at];
        let reference = |place: usize| {
            let reference = self.terms.reference;
            (scheduler != reference).then(|| self.figures[place][reference][at])?
        };
        let excess = |(place, figure): (usize, f64)| {
            reference(place).map_or(0.0, |of| measure.worse(figure, of))
        };
        let mut worst = given;
        // Stable: of what is alike the first drawn comes first.
        worst.sort_by(|one, other| {
            let by_figure = measure.worse(other.1, one.1);
            let by_excess = excess(*other).total_cmp(&excess(*one));
            by_excess.then(by_figure.total_cmp(&0.0))
        });
        worst.truncate(WORST);
        let told = |(place, figure): (usize, f64)| Worst {
            draw: self.draws[place].draw.clone(),
            load: self.draws[place].load,
            figure,
            reference: reference(place),
            on_sim: self.terms.replay(&self.draws[place], "sim"),
            on_vm: self.terms.replay(&self.draws[place], "vm"),
        };
        worst.into_iter().map(told).collect()
    }

    fn by_load(&self) -> Vec<LoadResult> {
        let place = |load: f64| (load.min(LOAD_TOP) / LOAD_STEP + 1e-9).floor() as usize;
        let highest = self.draws.iter().map(|draw| place(draw.load)).max();
        let range = |at: usize| {
            let inside: Vec<&Vec<Figures>> = (self.draws.iter().zip(self.figures))
                .filter(|(draw, _)| place(draw.load) == at)
                .map(|(_, figures)| figures)
                .collect();
            let good = |scheduler: usize| {
                let keeps = |of: &&&Vec<Figures>| self.terms.keeps(&of[scheduler]);
                inside.iter().filter(keeps).count() as u64
            };
            LoadResult {
                from: round(at as f64 * LOAD_STEP),
                to: (at < place(LOAD_TOP)).then(|| round((at + 1) as f64 * LOAD_STEP)),
                n: inside.len() as u64,
                good: (0..self.terms.choices.len()).map(good).collect(),
            }
        };
        let ranges = (0..highest.map_or(0, |highest| highest + 1)).map(range);
        ranges.filter(|range| range.n > 0).collect()
    }
}

/// To a thousandth: steps of a tenth do not add up to what one would write.
fn round(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

/// What a variable came to.
pub(super) fn to_json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Text(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Number(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Table(entries) => {
            let entry = |(key, node): &(String, Node)| (key.clone(), to_json(node));
            entries.iter().map(entry).collect()
        }
    }
}
