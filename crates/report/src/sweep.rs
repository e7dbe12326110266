//! How the figures go over the cases of a scenario.

use andante_result::cases::{Case, base_name};
use andante_result::figures::Measure;
use andante_result::{ProgramResult, SchedulerResult};
use maud::{Markup, html};

use super::Page;
use super::svg::{Axis, Plot};

/// The measures worth a plot; the others are in the tables.
const PLOTTED: [&str; 6] = [
    "frame rate",
    "frames dropped",
    "longest freeze",
    "latency, mean",
    "latency, p99",
    "iterations",
];
/// Labels longer than this do not fit under an axis; the cases are numbered instead.
const LONGEST_LABEL: usize = 8;
/// So many characters fit side by side under an axis, a space behind each label included.
const LABEL_ROOM: usize = 42;
/// More classes than this are left to the tables.
const MOST_CLASSES: usize = 6;

/// One figure over all cases: a curve per scheduler.
struct Sweep {
    title: String,
    /// (scheduler, its figure in each case).
    curves: Vec<(String, Vec<Option<f64>>)>,
    /// What was asked in each case, if the figure is a share.
    asked: Option<Vec<Option<f64>>>,
}

impl Sweep {
    /// Whether there is a curve to draw.
    fn has_curve(&self) -> bool {
        self.curves
            .iter()
            .any(|(_, values)| values.iter().flatten().count() > 1)
    }
}

/// One small plot per figure; nothing if the cases are few and have no order.
pub(super) fn section(page: &Page) -> Markup {
    let count = page.results.len();
    if count < 2 || (count == 2 && !page.cases.numeric) {
        return html! {};
    }
    let sweeps: Vec<Sweep> = program_sweeps(page)
        .into_iter()
        .chain(class_sweeps(page))
        .filter(Sweep::has_curve)
        .collect();
    let numbered = are_numbered(page);
    html! {
        @if !sweeps.is_empty() {
            section {
                h2 { "By " (page.cases.parameter) }
                figure {
                    (page.legend(first_of_each(page).into_iter()))
                    div.panels.small { @for sweep in &sweeps { (panel(page, sweep, numbered)) } }
                    figcaption {
                        (count) " cases of one scenario, each with every scheduler"
                        @if let Some(second) = &page.cases.second {
                            "; a line for each " (second) ": " (listed(&page.cases.second_values()))
                        }
                        "."
                        @if numbered {
                            ol.cases { @for case in &page.cases.cases { li { (case.label) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the cases are numbered, because their labels do not fit under an axis.
fn are_numbered(page: &Page) -> bool {
    let lengths = || page.cases.cases.iter().map(|c| c.label.chars().count());
    let room: usize = lengths().map(|length| length + 1).sum();
    lengths().any(|length| length > LONGEST_LABEL) || (!page.cases.numeric && room > LABEL_ROOM)
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
        title: format!("{name}: {}{}", measure.name, in_brackets(measure.unit)),
        curves: curves(page, |scheduler| {
            let same = |p: &&ProgramResult| base_name(p) == name;
            measure.of(&scheduler.programs.iter().filter(same).collect::<Vec<_>>())
        }),
        asked: None,
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
                    .map(|c| c.share_asked * 100.0)
            })
            .collect()
    };
    let sweep = |path: &str| Sweep {
        title: format!("{path}: share received [%]"),
        curves: curves(page, |s| class(s, path).map(|c| c.share_received * 100.0)),
        asked: Some(asked(path)),
    };
    paths.into_iter().map(sweep).collect()
}

fn panel(page: &Page, sweep: &Sweep, numbered: bool) -> Markup {
    let values = || {
        sweep
            .curves
            .iter()
            .flat_map(|curve| &curve.1)
            .chain(sweep.asked.iter().flatten())
    };
    let top = values().flatten().copied().fold(0.0, f64::max);
    let y = Axis::linear(0.0, if top > 0.0 { top * 1.05 } else { 1.0 }, 4);
    let x = x_axis(page, numbered);
    let plot = Plot {
        title: &sweep.title,
        description: &format!(
            "{} by {}, one curve per scheduler",
            sweep.title, page.cases.parameter
        ),
        x: &x,
        y: &y,
        x_label: &page.cases.parameter,
        y_label: "",
        height_px: 150.0,
    };
    let lines = page.cases.lines();
    let points = |values: &[Option<f64>], line: &[usize]| -> Vec<(f64, f64)> {
        let point = |&place: &usize| Some((page.cases.cases[place].x, values[place]?));
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
    html! { div.panel { h3 { (sweep.title) } (plot.draw(geometry, html! {})) } }
}

fn x_axis(page: &Page, numbered: bool) -> Axis {
    let places = || page.cases.cases.iter().map(|case| case.x);
    let (low, high) = (
        places().fold(f64::MAX, f64::min),
        places().fold(f64::MIN, f64::max),
    );
    let mut axis = Axis::linear_exact(low, high, 8);
    let widest = places().count().to_string().len() + 1;
    let step = (places().count() * widest).div_ceil(LABEL_ROOM);
    let tick = |(i, case): (usize, &Case)| match numbered {
        true if i % step > 0 => (case.x, String::new()),
        true => (case.x, (i + 1).to_string()),
        false => (case.x, case.label.clone()),
    };
    axis.ticks = page.cases.cases.iter().enumerate().map(tick).collect();
    axis.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    axis.ticks.dedup();
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
