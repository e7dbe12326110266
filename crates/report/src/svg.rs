//! Plots as inline SVG whose type and strokes keep their size at any width.
//!
//! The picture has no `viewBox`: heights are pixels, horizontal places are per cent of the width
//! the page gives it. So a plot fills a phone or a desktop, and its labels stay readable in both.
//! Only the geometry, drawn with [`Path`], lies in a stretched inner picture, with strokes that do
//! not scale. Labels of the axes hang outside the plot area; the style sheet leaves room for them.

use std::fmt::Write as _;

use andante_result::figures::number;
use maud::{Markup, html};

/// Width of the stretched inner picture, in its own units.
const INNER_WIDTH: f64 = 1000.0;

/// How values are laid along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// One axis: the values it spans and those it names.
#[derive(Debug, Clone)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// The values named on the axis, and how.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From `low` to at least `high`, with about `wanted` round ticks.
    pub fn linear(low: f64, high: f64, wanted: usize) -> Self {
        let step = round_step((high - low).max(f64::MIN_POSITIVE) / wanted.max(1) as f64);
        let last = ((high - low) / step - 1e-9).ceil() as usize;
        // Long figures would run out of the page: thousands and millions are counted instead.
        let (unit, suffix) = match high {
            high if high >= 1e6 => (1e6, " M"),
            high if high >= 1e5 => (1e3, " k"),
            _ => (1.0, ""),
        };
        let decimals = (-(step / unit).log10().floor()).max(0.0) as usize;
        let name = |value: f64| format!("{}{suffix}", number(value / unit, decimals));
        let ticks = (0..=last).map(|i| low + i as f64 * step);
        let ticks: Vec<_> = ticks.map(|value| (value, name(value))).collect();
        let high = ticks.last().map_or(high, |tick| tick.0.max(high));
        Self {
            scale: Scale::Linear,
            low,
            high,
            ticks,
        }
    }

    /// From `low` to `high` exactly, with the ticks of [`Axis::linear`] that fit.
    pub fn linear_exact(low: f64, high: f64, wanted: usize) -> Self {
        let mut axis = Self::linear(low, high, wanted);
        axis.ticks.retain(|tick| tick.0 <= high * (1.0 + 1e-9));
        Self { high, ..axis }
    }

    /// Logarithmic from `low` to at least `high` (both above 0), with ticks at 1, 2 and 5 of each
    /// power of ten, or at the powers alone if there are many.
    pub fn log(low: f64, high: f64) -> Self {
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let mantissas: &[f64] = if (high / low).log10() > 3.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let values = decades.flat_map(|d| mantissas.iter().map(move |m| m * 10f64.powi(d)));
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for value in values.filter(|v| *v >= low * (1.0 - 1e-9)) {
            let decimals = (-value.log10().floor()).max(0.0) as usize;
            ticks.push((value, number(value, decimals)));
            if value >= high * (1.0 - 1e-9) {
                break;
            }
        }
        let high = ticks.last().map_or(high, |tick| tick.0.max(high));
        Self {
            scale: Scale::Log,
            low,
            high,
            ticks,
        }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high one; values beyond lie at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let at = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) }
    }

    /// The lowest value of the axis.
    pub fn low(&self) -> f64 {
        self.low
    }
}

/// `step` rounded up to 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let mantissa = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|m| m * power >= step * (1.0 - 1e-9));
    mantissa.unwrap_or(10.0) * power
}

/// The frame of a plot: axes, grid, and the words that a screen reader speaks.
pub struct Plot<'a> {
    /// What is shown.
    pub title: &'a str,
    /// What is to be seen, for those who do not see it.
    pub description: &'a str,
    /// From left to right.
    pub x: &'a Axis,
    /// From the bottom to the top.
    pub y: &'a Axis,
    /// Empty where a neighbour says it.
    pub x_label: &'a str,
    /// Empty where a neighbour says it.
    pub y_label: &'a str,
    /// Without labels.
    pub height_px: f64,
}

impl Plot<'_> {
    /// `value` of the x axis as a place for SVG attributes, e.g. `12.5%`.
    pub fn x(&self, value: f64) -> String {
        percent(self.x.at(value))
    }

    /// `value` of the y axis in pixels from the top.
    pub fn y(&self, value: f64) -> f64 {
        ((1.0 - self.y.at(value)) * self.height_px * 10.0).round() / 10.0
    }

    /// A path that takes values of both axes.
    pub fn path(&self) -> Path<'_> {
        Path {
            plot: self,
            data: String::new(),
        }
    }

    /// The plot with `geometry` (paths) stretched into it and `labels` over it.
    pub fn draw(&self, geometry: Markup, labels: Markup) -> Markup {
        let height = self.height_px;
        let view = format!("0 0 {INNER_WIDTH} {height}");
        html! {
            div.plot {
                @if !self.y_label.is_empty() { div.y-label aria-hidden="true" { (self.y_label) } }
                svg role="img" width="100%" height=(height) {
                    title { (self.title) }
                    desc { (self.description) }
                    @for (value, name) in &self.y.ticks {
                        line.grid x1="0" x2="100%" y1=(self.y(*value)) y2=(self.y(*value)) {}
                        text.tick x="0" y=(self.y(*value)) dx="-8" dy="4" text-anchor="end" { (name) }
                    }
                    @for (value, name) in &self.x.ticks {
                        line.tick-mark x1=(self.x(*value)) x2=(self.x(*value)) y1=(height) y2=(height + 4.0) {}
                        text.tick x=(self.x(*value)) y=(height + 18.0) text-anchor="middle" { (name) }
                    }
                    svg.geometry width="100%" height=(height) viewBox=(view) preserveAspectRatio="none" {
                        (geometry)
                    }
                    (labels)
                }
                @if !self.x_label.is_empty() { div.x-label aria-hidden="true" { (self.x_label) } }
            }
        }
    }
}

/// `ratio` of the width as a place for SVG attributes.
pub fn percent(ratio: f64) -> String {
    format!("{}%", (ratio * 1e4).round() / 1e2)
}

/// Path data in the values of a plot's axes.
pub struct Path<'a> {
    plot: &'a Plot<'a>,
    data: String,
}

impl Path<'_> {
    /// Starts a line at the point.
    pub fn move_to(&mut self, x: f64, y: f64) -> &mut Self {
        self.push('M', x, y)
    }

    /// Draws a line to the point.
    pub fn line_to(&mut self, x: f64, y: f64) -> &mut Self {
        self.push('L', x, y)
    }

    /// A line of no length: a dot where the stroke has round ends.
    pub fn dot(&mut self, x: f64, y: f64) -> &mut Self {
        self.push('M', x, y);
        self.data.push_str("h0");
        self
    }

    /// A filled bar from the bottom of the plot up to `y`.
    pub fn bar(&mut self, from_x: f64, to_x: f64, y: f64) -> &mut Self {
        let low = self.plot.y.low();
        self.move_to(from_x, low)
            .line_to(from_x, y)
            .line_to(to_x, y)
            .line_to(to_x, low)
            .close()
    }

    /// Closes the outline.
    pub fn close(&mut self) -> &mut Self {
        self.data.push('Z');
        self
    }

    /// The value of a path's `d`.
    pub fn data(&self) -> &str {
        &self.data
    }

    fn push(&mut self, command: char, x: f64, y: f64) -> &mut Self {
        let x = (self.plot.x.at(x) * INNER_WIDTH * 100.0).round() / 100.0;
        let y = self.plot.y(y);
        write!(self.data, "{command}{x} {y}").expect("a String takes all that is written to it");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(
            names(&Axis::linear(0.0, 11.9, 6)),
            ["0", "2", "4", "6", "8", "10", "12"]
        );
        assert_eq!(
            names(&Axis::linear(0.0, 0.25, 3)),
            ["0.0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(
            names(&Axis::linear_exact(0.0, 11.9, 6)),
            ["0", "2", "4", "6", "8", "10"]
        );
        assert_eq!(names(&Axis::linear(0.0, 9e6, 2)), ["0 M", "5 M", "10 M"]);
        assert_eq!(
            names(&Axis::log(10.0, 275.0)),
            ["10", "20", "50", "100", "200", "500"]
        );
        assert_eq!(
            names(&Axis::log(1.0, 20_000.0)),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
    }

    #[test]
    fn values_beyond_an_axis_lie_at_its_ends() {
        let axis = Axis::log(10.0, 1000.0);
        assert_eq!(axis.at(1.0), 0.0);
        assert!((axis.at(100.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.at(1e9), 1.0);
        assert_eq!(Axis::linear(0.0, 0.0, 4).at(f64::NAN), 0.0);
    }

    #[test]
    fn a_path_is_written_in_the_units_of_the_picture() {
        let (x, y) = (Axis::linear(0.0, 10.0, 5), Axis::linear(0.0, 1.0, 2));
        let plot = Plot {
            title: "",
            description: "",
            x: &x,
            y: &y,
            x_label: "",
            y_label: "",
            height_px: 100.0,
        };
        let mut path = plot.path();
        path.bar(0.0, 5.0, 1.0).dot(10.0, 0.5);
        assert_eq!(path.data(), "M0 100L0 0L500 0L500 100ZM1000 50h0");
    }
}
