//! Curves and bars: measured filled, published hollow.

use andante_report::series_colour as colour;
use andante_report::svg::{Axis, Plot, percent};
use andante_result::figures::significant;
use maud::{Markup, html};

use crate::result::{Chart, Exhibit, Samples};

/// Height of a plot of curves [px].
const HEIGHT_PX: f64 = 240.0;
/// Part of a bar chart's width that the longest bar takes; the rest is for its figure.
const BARS_WIDTH: f64 = 0.82;
const LABEL_PX: f64 = 22.0;
const BAR_PX: f64 = 11.0;
const BAR_STEP_PX: f64 = 16.0;
const GROUP_GAP_PX: f64 = 12.0;

/// Points in the order of the x axis.
type Points = Vec<(f64, f64)>;

/// One curve with its published points.
struct Curve<'a> {
    title: &'a str,
    measured: Points,
    published: Points,
}

/// Columns of a table over its rows' x.
pub(super) fn lines(chart: &Chart, exhibit: &Exhibit) -> Markup {
    let points = |values: &[Option<f64>]| -> Points {
        let rows = chart.rows.iter().zip(values);
        let mut points: Points = rows
            .filter_map(|((_, x), value)| Some((*x, (*value)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let curves: Vec<Curve<'_>> = chart
        .series
        .iter()
        .map(|series| Curve {
            title: &series.title,
            measured: points(&series.measured),
            published: points(&series.published),
        })
        .collect();
    let places = || chart.rows.iter().map(|(_, x)| *x);
    let (low, high) = (
        places().fold(f64::MAX, f64::min),
        places().fold(f64::MIN, f64::max),
    );
    let mut x = Axis::linear_exact(low, high, 8);
    x.ticks = places().map(|x| (x, significant(x))).collect();
    let y = y_axis(&curves, chart.log_y);
    draw(
        &curves,
        (&x, &chart.x_label),
        (&y, &chart.y_label),
        true,
        exhibit,
    )
}

/// Values over time.
pub(super) fn samples(samples: &Samples, exhibit: &Exhibit) -> Markup {
    let curves: Vec<Curve<'_>> = samples
        .series
        .iter()
        .map(|series| Curve {
            title: &series.title,
            measured: series.measured.clone(),
            published: series.published.clone(),
        })
        .collect();
    let all = || {
        curves
            .iter()
            .flat_map(|c| c.measured.iter().chain(&c.published))
    };
    let x = Axis::linear_exact(0.0, all().map(|point| point.0).fold(0.0, f64::max), 10);
    let y = y_axis(&curves, false);
    draw(
        &curves,
        (&x, "time [s]"),
        (&y, &samples.y_label),
        false,
        exhibit,
    )
}

fn y_axis(curves: &[Curve<'_>], log: bool) -> Axis {
    let all = || {
        let points = curves
            .iter()
            .flat_map(|c| c.measured.iter().chain(&c.published));
        points.map(|point| point.1)
    };
    let top = all().fold(0.0, f64::max);
    let least = all().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
    match log && least < top {
        true => Axis::log(10f64.powf(least.log10().floor()), top),
        false => Axis::linear(0.0, if top > 0.0 { top } else { 1.0 }, 5),
    }
}

fn draw(
    curves: &[Curve<'_>],
    (x, x_label): (&Axis, &str),
    (y, y_label): (&Axis, &str),
    dots: bool,
    exhibit: &Exhibit,
) -> Markup {
    let plot = Plot {
        title: &exhibit.title,
        description: &format!("{y_label} by {x_label}: {}", titles(curves)),
        x,
        y,
        x_label,
        y_label,
        height_px: HEIGHT_PX,
    };
    let line = |points: &Points| {
        let mut path = plot.path();
        for (place, (x, y)) in points.iter().enumerate() {
            match place {
                0 => path.move_to(*x, *y),
                _ => path.line_to(*x, *y),
            };
        }
        path.data().to_owned()
    };
    let geometry = html! {
        @for (place, curve) in curves.iter().enumerate() {
            g class=(colour(place)) {
                @if dots && !curve.published.is_empty() {
                    path.published d=(line(&curve.published)) {}
                }
                path.curve d=(line(&curve.measured)) {}
            }
        }
    };
    let labels = html! {
        @for (place, curve) in curves.iter().enumerate() {
            g class=(colour(place)) {
                @if dots { @for (x, y) in &curve.measured {
                    circle.measured cx=(plot.x(*x)) cy=(plot.y(*y)) r="3.6" {}
                } }
                @for (x, y) in &curve.published {
                    circle.published cx=(plot.x(*x)) cy=(plot.y(*y)) r="6" {}
                }
            }
        }
    };
    html! {
        div.chart {
            (legend(curves.iter().map(|c| (c.title, !c.published.is_empty())), &exhibit.says))
            (plot.draw(geometry, labels))
        }
    }
}

fn titles(curves: &[Curve<'_>]) -> String {
    let titles: Vec<&str> = curves.iter().map(|curve| curve.title).collect();
    titles.join(", ")
}

/// The names of series in their colours, and how published and measured are told apart.
fn legend<'a>(series: impl Iterator<Item = (&'a str, bool)>, says: &str) -> Markup {
    let series: Vec<_> = series.collect();
    let any_published = series.iter().any(|(_, published)| *published);
    html! {
        ul.legend {
            @for (place, (title, _)) in series.iter().enumerate() {
                li { span class=(format!("name {}", colour(place))) { (title) } }
            }
            @if any_published { li.quiet { "● measured  ○ " (says) } }
        }
    }
}

/// A group of bars for each row, one for each column; a stroke across a bar is what was published.
pub(super) fn bars(chart: &Chart, exhibit: &Exhibit) -> Markup {
    let values = || {
        let values = chart
            .series
            .iter()
            .flat_map(|s| s.measured.iter().chain(&s.published));
        values.flatten().copied()
    };
    let top = values().fold(0.0, f64::max);
    let least = values()
        .filter(|value| *value > 0.0)
        .fold(f64::MAX, f64::min);
    let axis = match chart.log_y && least < top {
        true => Axis::log(10f64.powf((least / 2.0).log10().floor()), top),
        false => Axis::linear(0.0, if top > 0.0 { top } else { 1.0 }, 5),
    };
    let at = |value: f64| percent(axis.at(value) * BARS_WIDTH);
    let group_px = LABEL_PX + chart.series.len() as f64 * BAR_STEP_PX + GROUP_GAP_PX;
    let height_px = group_px * chart.rows.len() as f64;
    html! {
        div.chart {
            (legend(
                chart.series.iter().map(|s| (s.title.as_str(), s.published.iter().any(Option::is_some))),
                &exhibit.says,
            ))
            svg.bars role="img" width="100%" height=(height_px + 20.0) {
                title { (exhibit.title) }
                desc { (chart.y_label) ", a bar for each of several series; the ring is what was " (exhibit.says) }
                @for (value, name) in &axis.ticks {
                    line.grid x1=(at(*value)) x2=(at(*value)) y1="0" y2=(height_px) {}
                    text.tick x=(at(*value)) y=(height_px + 14.0) text-anchor="middle" { (name) }
                }
                @for (row, (title, _)) in chart.rows.iter().enumerate() {
                    @let top_px = row as f64 * group_px;
                    text.label x="0" y=(top_px + 15.0) { (title) }
                    @for (place, series) in chart.series.iter().enumerate() {
                        @let y_px = top_px + LABEL_PX + place as f64 * BAR_STEP_PX;
                        g class=(colour(place)) {
                            @if let Some(value) = series.measured[row] {
                                rect x="0" y=(y_px) width=(at(value)) height=(BAR_PX) {}
                                text.value x=(at(behind(value, series.published[row], &axis))) dx="10"
                                    y=(y_px + 9.5) { (significant(value)) }
                            }
                            @if let Some(value) = series.published[row] {
                                circle.published cx=(at(value)) cy=(y_px + BAR_PX / 2.0) r="5" {}
                            }
                        }
                    }
                }
            }
            @if !chart.y_label.is_empty() { p.key { (chart.y_label) } }
        }
    }
}

/// Where a bar's figure goes: behind its end, or behind the ring if that is in the way.
fn behind(value: f64, published: Option<f64>, axis: &Axis) -> f64 {
    /// Width of a figure, as part of the axis.
    const FIGURE: f64 = 0.12;
    match published {
        Some(ring) if ring > value && axis.at(ring) - axis.at(value) < FIGURE => ring,
        _ => value,
    }
}
