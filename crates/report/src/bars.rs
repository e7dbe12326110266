//! Figures as lengths: the share each class asked and received, and the latencies of programs.

use andante_result::figures::{asked_in_words, number};
use andante_result::title::scheduler_title;
use andante_result::units::time_text;
use andante_result::{RunResult, SchedulerResult, Spread};
use maud::{Markup, html};

use super::Page;
use super::svg::{Axis, percent};

/// A mark at most so far behind the end of a bar stands before the bar's figure, not under it [part of the
/// width].
const NEAR: f64 = 0.06;
const BAR_PX: f64 = 10.0;
const BAR_STEP_PX: f64 = 15.0;

/// Asked against received for every class, and the latencies; each only if there are any.
pub(super) fn section(page: &Page, result: &RunResult) -> Markup {
    html! { (class_bars(page, result)) (latencies(page, result)) }
}

/// Something measured under each scheduler, drawn below its own label. That is no part of the picture: a
/// long one goes on in a second line.
struct Group<'a, T> {
    label: String,
    /// The share asked, where shares are measured [%].
    asked: Option<f64>,
    bars: Vec<(&'a SchedulerResult, T)>,
}

impl<T> Group<'_, T> {
    fn height_px(&self) -> f64 {
        self.bars.len() as f64 * BAR_STEP_PX
    }

    /// The group with `bars` drawn; `says` is what the picture shows of it.
    fn draw(&self, says: &str, bars: Markup) -> Markup {
        html! {
            div.bar-label { (self.label) }
            svg.bars role="img" width="100%" height=(self.height_px()) {
                title { (says) ": " (self.label) }
                (bars)
            }
        }
    }
}

/// Where `value` of `axis` lies, for SVG attributes.
fn place(axis: &Axis, value: f64) -> String {
    percent(axis.at(value))
}

/// The classes of `result` and the share each scheduler gave them [%].
fn class_groups(result: &RunResult) -> Vec<Group<'_, f64>> {
    let mut groups: Vec<Group<f64>> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for class in result.schedulers.iter().flat_map(|s| &s.classes) {
        if known.contains(&class.path.as_str()) {
            continue;
        }
        known.push(&class.path);
        let (path, asked) = (&class.path, class.share_due() * 100.0);
        let label = format!(
            "{path} · weight {} · {}",
            class.weight,
            asked_in_words(class)
        );
        let received = |s: &SchedulerResult| {
            s.classes
                .iter()
                .find(|c| c.path == *path)
                .map(|c| c.share_received * 100.0)
        };
        let bars = result
            .schedulers
            .iter()
            .filter_map(|s| Some((s, received(s)?)))
            .collect();
        groups.push(Group {
            label,
            asked: Some(asked),
            bars,
        });
    }
    groups
}

fn class_bars(page: &Page, result: &RunResult) -> Markup {
    let groups = class_groups(result);
    if groups.is_empty() {
        return html! {};
    }
    let values = groups
        .iter()
        .flat_map(|g| g.bars.iter().map(|bar| bar.1).chain(g.asked));
    let axis = Axis::linear(0.0, values.fold(1.0, f64::max), 5);
    html! {
        section {
            h2 { "Asked and received" }
            figure {
                (page.legend(result.schedulers.iter()))
                div.room { @for group in &groups {
                    (group.draw("Share of the CPUs received", class_bar(page, &axis, group)))
                } }
                figcaption {
                    "CPU time received, as part of all CPU time of the machine. The stroke across the \
                     bars is the share asked: what the weights give a class while all of its siblings \
                     want to run, and what its tasks can use. A class that wants less gets less, and leaves \
                     the rest to the others."
                }
            }
        }
    }
}

fn class_bar(page: &Page, axis: &Axis, group: &Group<f64>) -> Markup {
    let asked = group.asked.unwrap_or(0.0);
    let bar_px = |i: usize| i as f64 * BAR_STEP_PX;
    let to_px = group.height_px() - BAR_STEP_PX + BAR_PX + 3.0;
    html! {
        @for (i, (scheduler, share)) in group.bars.iter().enumerate() {
            rect class=(page.colour(&scheduler.name)) x="0" y=(bar_px(i))
                width=(place(axis, *share)) height=(BAR_PX) {
                title { (scheduler_title(&scheduler.name)) }
            }
        }
        line.asked x1=(place(axis, asked)) x2=(place(axis, asked)) y1="-3" y2=(to_px) {}
        @for (i, (_, share)) in group.bars.iter().enumerate() {
            @let near = axis.at(asked) - axis.at(*share) < NEAR;
            @let end = if near { share.max(asked) } else { *share };
            text.value x=(place(axis, end)) dx="6" y=(bar_px(i) + 9.0) { (number(*share, 2)) " %" }
        }
    }
}

/// The programs of `result` that measure latency, and what they measured under each scheduler.
fn latency_groups(result: &RunResult) -> Vec<Group<'_, Spread>> {
    let mut names: Vec<&str> = Vec::new();
    for program in result.schedulers.iter().flat_map(|s| &s.programs) {
        if program.latency_us.is_some() && !names.contains(&program.name.as_str()) {
            names.push(&program.name);
        }
    }
    let spread = |s: &SchedulerResult, name: &str| {
        s.programs
            .iter()
            .find(|p| p.name == name)
            .and_then(|p| p.latency_us)
    };
    let group = |name: &str| {
        let bars = result
            .schedulers
            .iter()
            .filter_map(|s| Some((s, spread(s, name)?)));
        Group {
            label: name.to_owned(),
            asked: None,
            bars: bars.collect(),
        }
    };
    names.into_iter().map(group).collect()
}

fn latencies(page: &Page, result: &RunResult) -> Markup {
    let groups = latency_groups(result);
    let spreads = || groups.iter().flat_map(|g| g.bars.iter().map(|bar| bar.1));
    let Some(low) = spreads().map(|s| s.p50.max(0.1)).reduce(f64::min) else {
        return html! {};
    };
    // From the power of ten below the least median, so that no dot lies on the edge.
    let low = 10f64.powf((low / 1.5).log10().floor());
    let axis = Axis::log(low, spreads().map(|s| s.max).fold(low * 10.0, f64::max));
    html! {
        section {
            h2 { "Latency" }
            figure {
                (page.legend(result.schedulers.iter()))
                div.room {
                    @for group in &groups {
                        (group.draw("Latency from the median to the longest", ranges(page, &axis, group)))
                    }
                    svg.bars width="100%" height="22" aria-hidden="true" { (names_of(&axis)) }
                }
                figcaption {
                    "Latencies on a logarithmic scale: median (dot), 99th percentile (stroke, with its \
                     value), longest (ring)."
                }
            }
        }
    }
}

/// The times below a logarithmic axis [µs].
fn names_of(axis: &Axis) -> Markup {
    html! {
        @for (value, name) in &axis.ticks {
            @if name.starts_with('1') || axis.ticks.len() < 6 {
                text.tick x=(place(axis, *value)) y="16" text-anchor="middle" { (time_text(value / 1e6)) }
            }
        }
    }
}

fn ranges(page: &Page, axis: &Axis, group: &Group<Spread>) -> Markup {
    html! {
        @for (value, _) in &axis.ticks {
            @let x = place(axis, *value);
            line.grid x1=(x) x2=(x) y1="0" y2=(group.height_px()) {}
        }
        @for (i, (scheduler, spread)) in group.bars.iter().enumerate() {
            @let y = (i as f64 + 0.5) * BAR_STEP_PX;
            (range(axis, spread, y, &page.colour(&scheduler.name)))
        }
    }
}

fn range(axis: &Axis, spread: &Spread, y: f64, colour: &str) -> Markup {
    let at = |value: f64| place(axis, value);
    html! {
        g class=(format!("range {colour}")) {
            line x1=(at(spread.p50)) x2=(at(spread.max)) y1=(y) y2=(y) {}
            circle.median cx=(at(spread.p50)) cy=(y) r="4" {}
            line.p99 x1=(at(spread.p99)) x2=(at(spread.p99)) y1=(y - 5.0) y2=(y + 5.0) {}
            circle.longest cx=(at(spread.max)) cy=(y) r="3.5" {}
            text.value x=(at(spread.max)) dx="10" y=(y + 4.0) { "p99 " (time_text(spread.p99 / 1e6)) }
        }
    }
}
