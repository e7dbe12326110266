//! Who ran when, as strips.

use maud::{Markup, html};

use super::colour;
use crate::paper::result::{Exhibit, Lane, Slot, Timeline};
use crate::report::svg::{Axis, percent};

const STRIP_PX: f64 = 26.0;
const GAP_PX: f64 = 4.0;
const AXIS_PX: f64 = 24.0;
/// More slots than this are too narrow for letters.
const MOST_LETTERS: usize = 64;
/// Labels that are nobody's.
const NOBODY: [&str; 2] = ["", "·"];

/// A strip for each lane, and one above it for what was published.
pub(super) fn draw(timeline: &Timeline, exhibit: &Exhibit) -> Markup {
    let labels = labels(timeline);
    html! {
        div.chart {
            ul.legend {
                @for (place, label) in labels.iter().enumerate() {
                    li { span class=(format!("swatch {}", colour(place))) {} (label) }
                }
            }
            @for lane in &timeline.lanes { (draw_lane(lane, &labels, &exhibit.says)) }
        }
    }
}

/// Everybody's label, in the order of appearance.
fn labels(timeline: &Timeline) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    let lanes = timeline.lanes.iter();
    for slot in lanes.flat_map(|lane| lane.published.iter().chain(&lane.measured)) {
        let label = slot.label.as_str();
        if !NOBODY.contains(&label) && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

fn draw_lane(lane: &Lane, labels: &[&str], says: &str) -> Markup {
    let axis = Axis::linear_exact(lane.from_ms, lane.to_ms, 10);
    let strips: Vec<(&str, &[Slot])> = match lane.published.is_empty() {
        true => vec![("measured", &lane.measured)],
        false => vec![(says, &lane.published), ("measured", &lane.measured)],
    };
    let height_px = strips.len() as f64 * (STRIP_PX + GAP_PX);
    let compared = !lane.published.is_empty();
    html! {
        div.lane {
            h4 { (lane.title) }
            div.strips {
                div.names { @for (name, _) in &strips { span { (name) } } }
                svg role="img" width="100%" height=(height_px + AXIS_PX) {
                    title { "Who ran when: " (lane.title) }
                    desc { (spoken(&lane.measured)) }
                    @for (row, (_, slots)) in strips.iter().enumerate() {
                        @let top_px = row as f64 * (STRIP_PX + GAP_PX);
                        @for (place, slot) in slots.iter().enumerate() {
                            @let differs = compared && row == 1 && differs(lane, place, slot);
                            (draw_slot(slot, &axis, labels, top_px, (slots.len(), differs)))
                        }
                    }
                    @for (value, name) in &axis.ticks {
                        @let x = percent(axis.at(*value));
                        line.tick-mark x1=(x) x2=(x) y1=(height_px) y2=(height_px + 4.0) {}
                        text.tick x=(x) y=(height_px + 17.0) text-anchor="middle" { (name) }
                    }
                }
            }
            p.key { "time [ms]" }
        }
    }
}

fn differs(lane: &Lane, place: usize, measured: &Slot) -> bool {
    let same = |slot: &Slot| slot.label == measured.label && slot.marked == measured.marked;
    !lane.published.get(place).is_some_and(same)
}

fn draw_slot(
    slot: &Slot,
    axis: &Axis,
    labels: &[&str],
    top_px: f64,
    (count, differs): (usize, bool),
) -> Markup {
    let (from, to) = (
        axis.at(slot.start_ms),
        axis.at(slot.start_ms + slot.length_ms),
    );
    let class = match labels.iter().position(|label| *label == slot.label) {
        Some(place) => colour(place),
        None => "nobody".to_owned(),
    };
    let label = format!("{}{}", slot.label, if slot.marked { "*" } else { "" });
    html! {
        g class=(format!("slot {class}{}", if differs { " differs" } else { "" })) {
            rect x=(percent(from)) y=(top_px) width=(percent(to - from)) height=(STRIP_PX) {
                title { (label) }
            }
            @if count <= MOST_LETTERS {
                text x=(percent((from + to) / 2.0)) y=(top_px + STRIP_PX / 2.0 + 4.0)
                    text-anchor="middle" { (label) }
            }
        }
    }
}

/// The strip for those who do not see it.
fn spoken(slots: &[Slot]) -> String {
    let names: Vec<&str> = slots.iter().map(|slot| slot.label.as_str()).collect();
    names.join(" ")
}
