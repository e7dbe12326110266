//! Value contours: the quality of each application, 1 being as good as alone.

use maud::{Markup, html};
use serde::Serialize;

use super::series_colour;
use super::svg::percent;

/// Height of quality 1 [px].
const UNIT_PX: f64 = 110.0;
/// Quality at the top of a panel; more is cut off there, with its figure.
const TOP: f64 = 1.15;
const LABELS_PX: f64 = 36.0;

/// Quality of several applications under several settings: a baseline over what was measured, so
/// that 1 is as good as the application alone and 0 is not at all (Nieh et al. 1993, figure 2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueContour {
    /// The applications, from left to right, and what is measured of each.
    pub applications: Vec<Application>,
    /// One picture each.
    pub settings: Vec<Setting>,
}

/// An application whose quality is judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Application {
    /// Its name.
    pub title: String,
    /// What is measured, one bar each, e.g. `mean` and `sd`.
    pub measures: Vec<String>,
}

/// One setting: the quality of every application.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Its name.
    pub title: String,
    /// For each application the value of each of its measures.
    pub values: Vec<Vec<Value>>,
}

/// What a program needs alone over what it needs beside others; of what never completed, 0 (Nieh et al.
/// 1993, section 4.1). None: not known, or there is nothing to compare with.
pub fn quality(alone: Option<f64>, beside: Option<f64>, starved: bool) -> Option<f64> {
    match (alone?, beside) {
        (alone, Some(beside)) if beside > 0.0 => Some(alone / beside),
        (_, None) if starved => Some(0.0),
        _ => None,
    }
}

/// Quality, published and measured: 0 where nothing was completed, none where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Value {
    /// The published baseline over the published figure.
    pub published: Option<f64>,
    /// Ours over ours.
    pub measured: Option<f64>,
}

/// A panel for each setting. `says`: what published figures are called, if there are any.
pub fn draw(contour: &ValueContour, says: Option<&str>) -> Markup {
    let measures = contour
        .applications
        .first()
        .map_or(&[][..], |a| &a.measures);
    html! {
        ul.legend {
            @for (place, measure) in measures.iter().enumerate() {
                li { span class=(format!("name {}", series_colour(place))) { (measure) } }
            }
            @if let Some(says) = says { li.quiet { "filled: measured, outlined: " (says) } }
        }
        div.contours { @for setting in &contour.settings { (panel(contour, setting, says.is_some())) } }
    }
}

fn panel(contour: &ValueContour, setting: &Setting, compared: bool) -> Markup {
    let height_px = UNIT_PX * TOP;
    let groups = contour.applications.len().max(1) as f64;
    let y = |value: f64| height_px - value.min(TOP) * UNIT_PX;
    html! {
        div.contour {
            h4 { (setting.title) }
            svg role="img" width="100%" height=(height_px + LABELS_PX) {
                title { "Quality under " (setting.title) }
                desc { (spoken(contour, setting)) }
                line.baseline x1="0" x2="100%" y1=(y(1.0)) y2=(y(1.0)) {}
                @for (place, application) in contour.applications.iter().enumerate() {
                    @let from = place as f64 / groups;
                    @for (bar, value) in setting.values[place].iter().enumerate() {
                        @let width = 0.8 / groups / application.measures.len().max(1) as f64;
                        @let left = from + 0.1 / groups + bar as f64 * width;
                        g class=(series_colour(bar)) {
                            @if compared { (bars(value, left, width, &y, height_px)) }
                            @else if let Some(quality) = value.measured {
                                (single(quality, left, width, &y, height_px))
                            }
                        }
                    }
                    text.tick x=(percent(from + 0.5 / groups)) y=(height_px + 15.0) text-anchor="middle" {
                        (application.title)
                    }
                }
                line.axis x1="0" x2="100%" y1=(height_px) y2=(height_px) {}
            }
        }
    }
}

/// Measured filled, published outlined beside it.
fn bars(value: &Value, left: f64, width: f64, y: &dyn Fn(f64) -> f64, height_px: f64) -> Markup {
    let bar = |quality: f64, from: f64| {
        let top_px = y(quality);
        (percent(from), top_px, height_px - top_px)
    };
    html! {
        @if let Some(quality) = value.published {
            @let (x, top_px, tall_px) = bar(quality, left);
            rect.published x=(x) y=(top_px) width=(percent(width * 0.42)) height=(tall_px) {
                title { (figure(quality)) }
            }
        }
        @if let Some(quality) = value.measured {
            @let (x, top_px, tall_px) = bar(quality, left + width * 0.46);
            rect.measured x=(x) y=(top_px) width=(percent(width * 0.42)) height=(tall_px) {
                title { (figure(quality)) }
            }
        }
    }
}

/// One bar with its figure over it.
fn single(quality: f64, left: f64, width: f64, y: &dyn Fn(f64) -> f64, height_px: f64) -> Markup {
    let top_px = y(quality);
    html! {
        rect.measured x=(percent(left + width * 0.06)) y=(top_px) width=(percent(width * 0.88))
            height=(height_px - top_px) {}
        text.tick x=(percent(left + width * 0.5)) y=(top_px - 4.0) text-anchor="middle" { (figure(quality)) }
    }
}

/// Quality with the digits that Nieh's text gives.
fn figure(quality: f64) -> String {
    format!("{quality:.2}")
}

/// The panel for those who do not see it.
fn spoken(contour: &ValueContour, setting: &Setting) -> String {
    let mut words = Vec::new();
    for (application, values) in contour.applications.iter().zip(&setting.values) {
        for (measure, value) in application.measures.iter().zip(values) {
            if let Some(measured) = value.measured {
                words.push(format!(
                    "{} {measure} {}",
                    application.title,
                    figure(measured)
                ));
            }
        }
    }
    words.join(", ")
}
