//! How the figures go over the cases of a scenario.

use andante_result::cases::base_name;
use andante_result::figures::{Measure, number};
use andante_result::title::scheduler_title;
use andante_result::units::{Scale, seconds_of, with_unit};
use andante_result::{ProgramResult, SchedulerResult};
use maud::{Markup, html};

use super::Page;
use super::svg::{Axis, Plot, percent};

/// The measures worth a plot; the others are in the tables.
const PLOTTED: [&str; 6] = [
    "frame rate",
    "frames dropped",
    "longest freeze",
    "latency, mean",
    "latency, p99",
    "iterations",
];
/// So many characters fit side by side under an axis, a space behind each label included.
const LABEL_ROOM: usize = 42;
/// Labels longer than this do not fit under an axis; every other one may be left out.
const LONGEST_LABEL: usize = 8;
/// More classes than this are left to the tables.
const MOST_CLASSES: usize = 6;
/// More cases than this that go by names are left to the tables: a chart of them would fill pages.
const MOST_ROWS: usize = 40;
/// So many characters of a case's name fit over its row.
const LONGEST_NAME: usize = 38;
/// Height of a row of dots, and of the names of its axis [px].
const ROW_PX: f64 = 33.0;
const AXIS_PX: f64 = 20.0;

/// One figure over all cases: a curve per scheduler, or dots where the cases have no order.
struct Sweep {
    /// The figure's name, without a unit.
    title: String,
    /// (scheduler, its figure in each case).
    curves: Vec<(String, Vec<Option<f64>>)>,
    /// What was asked in each case, if the figure is a share.
    asked: Option<Vec<Option<f64>>>,
    /// Of a program; none: a class's share [%].
    measure: Option<&'static Measure>,
}

impl Sweep {
    /// Whether there is anything to compare.
    fn has_curve(&self) -> bool {
        self.curves
            .iter()
            .any(|(_, values)| values.iter().flatten().count() > 1)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let curves = self.curves.iter().flat_map(|curve| &curve.1);
        curves.flatten().copied()
    }

    /// The highest of what is drawn.
    fn top(&self) -> f64 {
        let asked = self.asked.iter().flatten().flatten().copied();
        self.values().chain(asked).fold(0.0, f64::max)
    }

    fn unit(&self) -> &'static str {
        self.measure.map_or("%", |measure| measure.unit)
    }

    /// A figure with its unit.
    fn text(&self, value: f64) -> String {
        match self.measure {
            Some(measure) => measure.format(value),
            None => with_unit(&number(value, 2), "%"),
        }
    }

    /// The title with the unit in which it is drawn, and what a figure is multiplied by for that.
    fn scale(&self) -> (String, f64) {
        let (unit, factor) = match seconds_of(self.unit()) {
            Some(length_s) => {
                let scale = Scale::of(std::iter::once(self.top() * length_s));
                (scale.unit, length_s * scale.per_s())
            }
            None => (self.unit(), 1.0),
        };
        (format!("{}{}", self.title, in_brackets(unit)), factor)
    }

    /// In words, where a chart would show a level line, or ones among zeros.
    fn in_words(&self, page: &Page) -> Option<String> {
        let first = self.values().next()?;
        if self
            .values()
            .all(|value| self.text(value) == self.text(first))
            && self.asked.is_none()
        {
            let under = match self.curves.len() {
                1 => "",
                _ => ", under every scheduler",
            };
            let where_any = match self
                .curves
                .iter()
                .all(|curve| curve.1.iter().all(Option::is_some))
            {
                true => "in every case",
                false => "in every case that has it",
            };
            return Some(format!(
                "{}: {} {where_any}{under}.",
                self.title,
                self.text(first)
            ));
        }
        let yes_or_no = |value: f64| value == 0.0 || value == 1.0;
        if !self.unit().is_empty() || !self.values().all(yes_or_no) {
            return None;
        }
        let of = |(name, values): &(String, Vec<Option<f64>>)| {
            let ones = values
                .iter()
                .enumerate()
                .filter(|(_, value)| **value == Some(1.0));
            let ones: Vec<String> = ones.map(|(place, _)| page.cases.title(place)).collect();
            let name = scheduler_title(name);
            match ones.len() {
                0 => format!("{name} 0 in every case"),
                count if count == values.iter().flatten().count() => {
                    format!("{name} 1 in every case")
                }
                _ => format!("{name} 1 in {}, else 0", ones.join(" and ")),
            }
        };
        let all: Vec<String> = self.curves.iter().map(of).collect();
        Some(format!("{}: {}.", self.title, all.join("; ")))
    }
}

/// One small plot per figure; nothing if the cases are few and have no order.
pub(super) fn section(page: &Page) -> Markup {
    let count = page.results.len();
    if count < 2 || (!page.cases.numeric && (count == 2 || count > MOST_ROWS)) {
        return html! {};
    }
    let sweeps = program_sweeps(page).into_iter().chain(class_sweeps(page));
    let sweeps: Vec<Sweep> = sweeps.filter(Sweep::has_curve).collect();
    let (said, drawn): (Vec<_>, Vec<_>) = sweeps
        .iter()
        .map(|sweep| (sweep, sweep.in_words(page)))
        .partition(|(_, words)| words.is_some());
    html! {
        @if !sweeps.is_empty() {
            section {
                h2 { "By " (page.cases.parameter) }
                @if !said.is_empty() {
                    ul.said { @for (_, words) in &said { li { (words.as_deref().unwrap_or_default()) } } }
                }
                @if !drawn.is_empty() { (charts(page, &drawn)) }
            }
        }
    }
}

fn charts(page: &Page, drawn: &[(&Sweep, Option<String>)]) -> Markup {
    html! {
        figure {
            (page.legend(first_of_each(page).into_iter()))
            div.panels.small {
                @for (sweep, _) in drawn {
                    @if page.cases.numeric { (panel(page, sweep)) } @else { (rows(page, sweep)) }
                }
            }
            figcaption {
                (page.results.len()) " cases of one scenario, each with every scheduler"
                @if let Some(second) = &page.cases.second {
                    "; a line for each " (second) ": " (listed(&page.cases.second_values()))
                }
                "."
                @if !page.cases.numeric {
                    " The cases have no order: each has a row, with a dot for the first scheduler and a ring \
                     for every other."
                }
            }
        }
    }
}

fn listed(values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(f64::to_string).collect();
    values.join(", ")
}

fn first_of_each<'a>(page: &Page<'a>) -> Vec<&'a SchedulerResult> {
    let all = || page.results.iter().flat_map(|r| &r.schedulers);
    page.schedulers
        .iter()
        .filter_map(|name| all().find(|s| s.name == *name))
        .collect()
}

/// The curves of `figure`, which reads one scheduler's run of one case.
fn curves(
    page: &Page,
    figure: impl Fn(&SchedulerResult) -> Option<f64>,
) -> Vec<(String, Vec<Option<f64>>)> {
    let curve = |name: &String| {
        let values = page.results.iter().map(|result| {
            result
                .schedulers
                .iter()
                .find(|s| s.name == *name)
                .and_then(&figure)
        });
        (name.clone(), values.collect())
    };
    page.schedulers.iter().map(curve).collect()
}

fn program_sweeps(page: &Page) -> Vec<Sweep> {
    let programs = || {
        page.results
            .iter()
            .flat_map(|r| &r.schedulers)
            .flat_map(|s| &s.programs)
    };
    let mut names: Vec<&str> = Vec::new();
    for program in programs() {
        if !names.contains(&base_name(program)) {
            names.push(base_name(program));
        }
    }
    let sweep = |name: &str, measure: &'static Measure| Sweep {
        title: format!("{name}: {}", measure.name),
        curves: curves(page, |scheduler| {
            let same = |p: &&ProgramResult| base_name(p) == name;
            measure.of(&scheduler.programs.iter().filter(same).collect::<Vec<_>>())
        }),
        asked: None,
        measure: Some(measure),
    };
    let mut sweeps = Vec::new();
    for name in names {
        let waits = programs().any(|p| base_name(p) == name && p.latency_us.is_some());
        for measure in PLOTTED {
            // How often a latency was measured is no result.
            if measure != "iterations" || !waits {
                sweeps.push(sweep(name, Measure::named(measure)));
            }
        }
    }
    sweeps
}

fn in_brackets(unit: &str) -> String {
    if unit.is_empty() {
        String::new()
    } else {
        format!(" [{unit}]")
    }
}

/// The classes' shares, unless there are frames or latencies: then shares are not the question.
fn class_sweeps(page: &Page) -> Vec<Sweep> {
    let all = || page.results.iter().flat_map(|r| &r.schedulers);
    let other = |p: &ProgramResult| p.frames.is_some() || p.latency_us.is_some();
    let mut paths: Vec<&str> = all()
        .flat_map(|s| &s.classes)
        .map(|c| c.path.as_str())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    if all().flat_map(|s| &s.programs).any(other) || paths.len() > MOST_CLASSES {
        return Vec::new();
    }
    let class =
        |s: &SchedulerResult, path: &str| s.classes.iter().find(|c| c.path == path).cloned();
    let asked = |path: &str| {
        let first = page.results.iter().map(|result| result.schedulers.first());
        first
            .map(|s| {
                s.and_then(|s| class(s, path))
                    .map(|c| c.share_due() * 100.0)
            })
            .collect()
    };
    let sweep = |path: &str| Sweep {
        title: format!("{path}: share received"),
        curves: curves(page, |s| class(s, path).map(|c| c.share_received * 100.0)),
        asked: Some(asked(path)),
        measure: None,
    };
    paths.into_iter().map(sweep).collect()
}

/// A row for each case, which has no place among the others: no line leads from one to the next.
fn rows(page: &Page, sweep: &Sweep) -> Markup {
    let (title, factor) = sweep.scale();
    let axis = Axis::linear(0.0, top_of_axis(sweep, factor), 3);
    // A case without a figure here needs no row.
    let has = |place: &usize| {
        sweep
            .curves
            .iter()
            .any(|(_, values)| values[*place].is_some())
    };
    let places: Vec<usize> = (0..page.results.len()).filter(has).collect();
    let height = places.len() as f64 * ROW_PX;
    let at = |value: f64| percent(axis.at(value * factor));
    html! {
        div.panel {
            h3 { (title) }
            div.rows {
                svg role="img" width="100%" height=(height + AXIS_PX) {
                    title { (title) }
                    desc { "A row for each case, a dot or ring for each scheduler." }
                    @for (value, name) in &axis.ticks {
                        @let x = percent(axis.at(*value));
                        line.grid x1=(x) x2=(x) y1="0" y2=(height) {}
                        text.tick x=(x) y=(height + 14.0) text-anchor="middle" { (name) }
                    }
                    @for (row, &place) in places.iter().enumerate() {
                        @let y = row as f64 * ROW_PX + 22.0;
                        text.label x="0" y=(y - 9.5) { (cut(&page.cases.cases[place].label)) }
                        line.row x1="0" x2="100%" y1=(y) y2=(y) {}
                        @if let Some(asked) = sweep.asked.as_ref().and_then(|asked| asked[place]) {
                            line.asked x1=(at(asked)) x2=(at(asked)) y1=(y - 5.0) y2=(y + 5.0) {}
                        }
                        @for (number, (name, values)) in sweep.curves.iter().enumerate() {
                            @if let Some(value) = values[place] {
                                circle class=(format!("{} {}", mark(number), page.colour(name)))
                                    cx=(at(value)) cy=(y) r=(radius_px(number)) {
                                    title { (scheduler_title(name)) ": " (sweep.text(value)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A name as far as a panel has room for it.
fn cut(name: &str) -> String {
    match name.chars().count() {
        0..=LONGEST_NAME => name.to_owned(),
        _ => name.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
    }
}

/// The first is a dot, and the others are rings about it, so that equal ones are all seen.
fn mark(number: usize) -> &'static str {
    if number == 0 { "dot" } else { "ring" }
}

fn radius_px(number: usize) -> f64 {
    match number {
        0 => 3.5,
        number => (3.5 + 1.75 * number as f64).min(9.0),
    }
}

fn top_of_axis(sweep: &Sweep, factor: f64) -> f64 {
    match sweep.top() {
        top if top > 0.0 => top * factor * 1.05,
        _ => 1.0,
    }
}

fn panel(page: &Page, sweep: &Sweep) -> Markup {
    let (title, factor) = sweep.scale();
    let y = Axis::linear(0.0, top_of_axis(sweep, factor), 4);
    let x = x_axis(page);
    let plot = Plot {
        title: &title,
        description: &format!(
            "{title} by {}, one curve per scheduler",
            page.cases.parameter
        ),
        x: &x,
        y: &y,
        x_label: &page.cases.parameter,
        y_label: "",
        height_px: 150.0,
    };
    let lines = page.cases.lines();
    let points = |values: &[Option<f64>], line: &[usize]| -> Vec<(f64, f64)> {
        let point = |&place: &usize| Some((page.cases.cases[place].x, values[place]? * factor));
        line.iter().filter_map(point).collect()
    };
    let geometry = html! {
        @if let Some(asked) = &sweep.asked {
            @for line in &lines { path.asked d=(path(&plot, &points(asked, line))) {} }
        }
        @for (name, values) in sweep.curves.iter().rev() {
            g class=(page.colour(name)) {
                @for line in &lines {
                    @let points = points(values, line);
                    path.curve d=(path(&plot, &points)) {}
                    path.points d=(dots(&plot, &points)) {}
                }
            }
        }
    };
    html! { div.panel { h3 { (title) } (plot.draw(geometry, html! {})) } }
}

/// Names the cases, or as many of them as fit beside each other.
fn x_axis(page: &Page) -> Axis {
    let cases = &page.cases.cases;
    let places = || cases.iter().map(|case| case.x);
    let (low, high) = (
        places().fold(f64::MAX, f64::min),
        places().fold(f64::MIN, f64::max),
    );
    let mut axis = Axis::linear_exact(low, high, 8);
    let lengths = || cases.iter().map(|case| case.label.chars().count());
    let room: usize = lengths().map(|length| length + 1).sum();
    // Where they do not fit, the axis keeps its round numbers.
    if lengths().all(|length| length <= LONGEST_LABEL) && room <= LABEL_ROOM {
        axis.ticks = cases
            .iter()
            .map(|case| (case.x, case.label.clone()))
            .collect();
        axis.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        axis.ticks.dedup();
    }
    axis
}

fn path(plot: &Plot, points: &[(f64, f64)]) -> String {
    let mut path = plot.path();
    for (i, (x, y)) in points.iter().enumerate() {
        if i == 0 {
            path.move_to(*x, *y)
        } else {
            path.line_to(*x, *y)
        };
    }
    path.data().to_owned()
}

fn dots(plot: &Plot, points: &[(f64, f64)]) -> String {
    let mut path = plot.path();
    for (x, y) in points {
        path.dot(*x, *y);
    }
    path.data().to_owned()
}
