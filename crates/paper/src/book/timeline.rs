//! Who ran when: slots as strips, published above measured; what has no slots as a row for each.

use andante_report::series_colour as colour;
use andante_report::svg::{Axis, percent};
use maud::{Markup, html};

use crate::result::{Exhibit, Lane, Slot, Timeline};

const STRIP_PX: f64 = 26.0;
const ROW_PX: f64 = 16.0;
const GAP_PX: f64 = 4.0;
const AXIS_PX: f64 = 24.0;
/// More slots than this are too narrow for letters.
const MOST_LETTERS: usize = 64;
/// Labels that are nobody's.
const NOBODY: [&str; 3] = ["", "·", "?"];

/// One line of a lane.
struct Strip<'a> {
    name: &'a str,
    slots: Vec<&'a Slot>,
    letters: bool,
    /// Whether slots that are not as published are to be set apart.
    compared: bool,
}

/// The strips of every lane.
pub(super) fn draw(timeline: &Timeline, exhibit: &Exhibit) -> Markup {
    let labels = labels(timeline);
    let in_slots = timeline.slot_ms.is_some();
    html! {
        div.chart {
            @if in_slots {
                ul.legend {
                    @for (place, label) in labels.iter().enumerate() {
                        li { span class=(format!("swatch {}", colour(place))) {} (label) }
                    }
                }
            }
            @for lane in &timeline.lanes {
                @let strips = match in_slots {
                    true => slots(lane, &exhibit.says),
                    false => rows(lane, &labels),
                };
                (draw_lane(lane, &strips, &labels, if in_slots { STRIP_PX } else { ROW_PX }))
            }
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

/// A strip of what was measured, below one of what was published, if anything was.
fn slots<'a>(lane: &'a Lane, says: &'a str) -> Vec<Strip<'a>> {
    let strip = |name, slots: &'a [Slot], compared| Strip {
        name,
        slots: slots.iter().collect(),
        letters: slots.len() <= MOST_LETTERS,
        compared,
    };
    let compared = !lane.published.is_empty();
    let published = compared.then(|| strip(says, &lane.published, false));
    let measured = strip("measured", &lane.measured, compared);
    published.into_iter().chain([measured]).collect()
}

/// A row for each label that ran in the lane.
fn rows<'a>(lane: &'a Lane, labels: &[&'a str]) -> Vec<Strip<'a>> {
    let row = |label: &&'a str| Strip {
        name: label,
        slots: lane
            .measured
            .iter()
            .filter(|slot| slot.label == **label)
            .collect(),
        letters: false,
        compared: false,
    };
    let mut rows: Vec<Strip<'a>> = labels.iter().map(row).collect();
    rows.retain(|row| !row.slots.is_empty());
    rows
}

fn draw_lane(lane: &Lane, strips: &[Strip<'_>], labels: &[&str], strip_px: f64) -> Markup {
    let axis = Axis::linear_exact(lane.from_ms, lane.to_ms, 10);
    let step_px = strip_px + GAP_PX;
    let height_px = strips.len() as f64 * step_px;
    html! {
        div.lane {
            h4 { (lane.title) }
            div.strips {
                div.names {
                    @for strip in strips { span style=(format!("height:{step_px}px")) { (strip.name) } }
                }
                svg role="img" width="100%" height=(height_px + AXIS_PX) {
                    title { "Who ran when: " (lane.title) }
                    desc { (spoken(strips)) }
                    @for (row, strip) in strips.iter().enumerate() {
                        @let top_px = row as f64 * step_px;
                        @for (place, slot) in strip.slots.iter().enumerate() {
                            @let differs = strip.compared && differs(lane, place, slot);
                            @let class = class(slot, labels, differs);
                            (draw_slot(slot, &axis, &class, (top_px, strip_px), strip.letters))
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

fn class(slot: &Slot, labels: &[&str], differs: bool) -> String {
    let class = match labels.iter().position(|label| *label == slot.label) {
        Some(place) => colour(place),
        None => "nobody".to_owned(),
    };
    format!("slot {class}{}", if differs { " differs" } else { "" })
}

fn draw_slot(
    slot: &Slot,
    axis: &Axis,
    class: &str,
    (top_px, strip_px): (f64, f64),
    letters: bool,
) -> Markup {
    let (from, to) = (
        axis.at(slot.start_ms),
        axis.at(slot.start_ms + slot.length_ms),
    );
    let label = format!("{}{}", slot.label, if slot.marked { "*" } else { "" });
    let class = match letters {
        true => class.to_owned(),
        false => format!("{class} solid"),
    };
    html! {
        g class=(class) {
            rect x=(percent(from)) y=(top_px) width=(percent(to - from)) height=(strip_px) {
                title { (label) }
            }
            @if letters {
                text x=(percent((from + to) / 2.0)) y=(top_px + strip_px / 2.0 + 4.0)
                    text-anchor="middle" { (label) }
            }
        }
    }
}

/// The strip that was measured, or the names of the rows, for those who do not see it.
fn spoken(strips: &[Strip<'_>]) -> String {
    let names: Vec<&str> = match strips.last() {
        Some(strip) if strip.letters => {
            strip.slots.iter().map(|slot| slot.label.as_str()).collect()
        }
        _ => strips.iter().map(|strip| strip.name).collect(),
    };
    names.join(" ")
}
