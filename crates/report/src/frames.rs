//! When the frames of a film were shown: every frame, and all of them together.

use andante_result::figures::{Measure, number};
use andante_result::title::scheduler_title;
use andante_result::{ProgramResult, RunResult, SchedulerResult};
use maud::{Markup, html};

use super::Page;
use super::svg::{Axis, Plot};

/// A gap this many times the film's frame time is drawn as a freeze.
const FREEZE_FRAMES: f64 = 1.5;
/// So much of the plot's height at least lies above the film's own frame time: a smooth run shall
/// not be blown up until its jitter fills the page.
const LEAST_TOP_MS: f64 = 200.0;

/// One player under one scheduler.
struct Showing<'a> {
    scheduler: &'a SchedulerResult,
    player: &'a ProgramResult,
    /// Instant of the first frame, shown or dropped [ms since the measurement began].
    start_ms: f64,
}

impl Showing<'_> {
    /// (instant since the first frame [s], time since the frame before [ms]) of each frame shown.
    fn gaps(&self) -> Vec<(f64, f64)> {
        let at = |shown_ms: f64| (shown_ms - self.start_ms) / 1e3;
        self.player
            .shown_ms
            .windows(2)
            .map(|w| (at(w[1]), w[1] - w[0]))
            .collect()
    }

    fn dropped_s(&self) -> impl Iterator<Item = f64> {
        self.player
            .dropped_ms
            .iter()
            .map(|ms| (ms - self.start_ms) / 1e3)
    }

    fn length_s(&self) -> f64 {
        let all = self.player.shown_ms.iter().chain(&self.player.dropped_ms);
        all.map(|ms| (ms - self.start_ms) / 1e3).fold(0.0, f64::max)
    }
}

/// The plots of every player of `result`; nothing if none logged its frames.
pub(super) fn section(page: &Page, result: &RunResult) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for program in result.schedulers.iter().flat_map(|s| &s.programs) {
        if program.shown_ms.len() > 1 && !names.contains(&program.name.as_str()) {
            names.push(&program.name);
        }
    }
    html! { @for name in names { (player(page, result, name)) } }
}

fn player(page: &Page, result: &RunResult, name: &str) -> Markup {
    let showings: Vec<Showing> = result
        .schedulers
        .iter()
        .filter_map(|scheduler| {
            let player = scheduler
                .programs
                .iter()
                .find(|p| p.name == name && p.shown_ms.len() > 1)?;
            let all = player.shown_ms.iter().chain(&player.dropped_ms).copied();
            Some(Showing {
                scheduler,
                player,
                start_ms: all.reduce(f64::min)?,
            })
        })
        .collect();
    let frame_ms = frame_ms(&showings);
    let longest = |s: &Showing| s.gaps().into_iter().map(|gap| gap.1).fold(0.0, f64::max);
    // A quarter more than the longest leaves room for its label.
    let top_ms = showings.iter().map(longest).fold(LEAST_TOP_MS, f64::max) * 1.25;
    let length_s = showings.iter().map(Showing::length_s).fold(0.0, f64::max);
    let x = Axis::linear_exact(0.0, length_s, 6);
    let y = Axis::log((frame_ms / 4.0).max(0.1), top_ms);
    html! {
        section.frames {
            h2 { "Every frame of " (name) }
            figure {
                p.y-label { "time since the frame before [ms], logarithmic" }
                @for (i, showing) in showings.iter().enumerate() {
                    @let x_label = if i + 1 == showings.len() { "time since the first frame [s]" } else { "" };
                    (panel(page, showing, frame_ms, (&x, x_label), &y))
                }
                figcaption {
                    "Each dot is a frame shown: how long after the one before it, over the film's \
                     time. A film at its own pace is one level row at the dashed line ("
                    (number(frame_ms, 1)) " ms, the median of the smoothest run). A filled block is a \
                     freeze: as wide as it lasted, as high as the scale says. \
                     Strokes along the top are frames dropped."
                }
            }
            (cumulative(page, &showings, frame_ms, top_ms))
        }
    }
}

/// The film's own frame time: the median under the scheduler that showed most of its frames, and
/// of those the most evenly.
fn frame_ms(showings: &[Showing]) -> f64 {
    let median = |showing: &Showing| {
        let mut gaps: Vec<f64> = showing.gaps().into_iter().map(|gap| gap.1).collect();
        gaps.sort_by(f64::total_cmp);
        gaps[gaps.len() / 2]
    };
    let jitter_ms = |s: &Showing| s.player.frame_ms.map_or(f64::MAX, |spread| spread.sd);
    let smoothest = showings.iter().max_by(|a, b| {
        let by_count = a.player.shown_ms.len().cmp(&b.player.shown_ms.len());
        by_count.then(jitter_ms(b).total_cmp(&jitter_ms(a)))
    });
    smoothest.map_or(1.0, median).max(0.1)
}

fn panel(
    page: &Page,
    showing: &Showing,
    frame_ms: f64,
    (x, x_label): (&Axis, &str),
    y: &Axis,
) -> Markup {
    let name = &showing.scheduler.name;
    let facts = facts(showing.player);
    let plot = Plot {
        title: &format!("Time between frames under {}", scheduler_title(name)),
        description: &facts,
        x,
        y,
        x_label,
        y_label: "",
        height_px: 170.0,
    };
    html! {
        div class=(format!("panel {}", page.colour(name))) {
            h3 { (page.name(name)) span.facts { (facts) } }
            (plot.draw(frames(&plot, showing, frame_ms), labels(&plot, showing, frame_ms)))
        }
    }
}

/// The frames as dots and the freezes as blocks.
fn frames(plot: &Plot, showing: &Showing, frame_ms: f64) -> Markup {
    let gaps = showing.gaps();
    let mut dots = plot.path();
    for (at, gap) in &gaps {
        dots.dot(*at, *gap);
    }
    html! {
        @for (at, gap) in gaps.iter().filter(|gap| gap.1 > FREEZE_FRAMES * frame_ms) {
            path.freeze d=(plot.path().bar(at - gap / 1e3, *at, *gap).data()) {
                title { (number(*gap, 1)) " ms without a new frame, until " (number(*at, 2)) " s" }
            }
        }
        path.reference d=(plot.path().move_to(0.0, frame_ms).line_to(f64::MAX, frame_ms).data()) {}
        path.dots d=(dots.data()) {}
    }
}

/// The drops along the top and the words in the plot.
fn labels(plot: &Plot, showing: &Showing, frame_ms: f64) -> Markup {
    let longest = showing
        .gaps()
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1));
    html! {
        text.tick x="100%" y=(plot.y(frame_ms)) dx="6" dy="4" { (number(frame_ms, 1)) }
        @if !showing.player.dropped_ms.is_empty() {
            g.drops {
                text x="0" dx="-8" y="-10" text-anchor="end" { "dropped" }
                @for at in showing.dropped_s() {
                    line x1=(plot.x(at)) x2=(plot.x(at)) y1="-18" y2="-9" {}
                }
            }
        }
        @if let Some(longest) = longest.filter(|gap| gap.1 > FREEZE_FRAMES * frame_ms) {
            (freeze_label(plot, longest))
        }
    }
}

/// Names the longest freeze above its block, kept off the edges of the plot.
fn freeze_label(plot: &Plot, (at_s, gap_ms): (f64, f64)) -> Markup {
    let middle_s = at_s - gap_ms / 2e3;
    let anchor = match plot.x.at(middle_s) {
        near if near < 0.06 => "start",
        near if near > 0.94 => "end",
        _ => "middle",
    };
    html! {
        text.callout x=(plot.x(middle_s)) y=(plot.y(gap_ms)) dy="-6" text-anchor=(anchor) {
            (number(gap_ms, 0)) " ms"
        }
    }
}

/// What a player's figures say, in words.
fn facts(player: &ProgramResult) -> String {
    let mut facts = Vec::new();
    let mut say = |name: &str, text: fn(String) -> String| {
        let measure = Measure::named(name);
        facts.extend(
            measure
                .of(&[player])
                .map(|value| text(measure.format(value))),
        );
    };
    say("frames shown", |n| format!("{n} shown"));
    say("frames late", |n| format!("{n} late"));
    say("frames dropped", |n| format!("{n} dropped"));
    say("longest freeze", |time| format!("longest freeze {time}"));
    facts.join(", ")
}

/// How many of the frame times are at most so long: one line per scheduler.
fn cumulative(page: &Page, showings: &[Showing], frame_ms: f64, top_ms: f64) -> Markup {
    let x = Axis::log((frame_ms / 4.0).max(0.1), top_ms);
    let y = Axis::linear_exact(0.0, 100.0, 5);
    let plot = Plot {
        title: "Cumulative histogram of the times between frames",
        description: "One line per scheduler; a steep line is a steady film.",
        x: &x,
        y: &y,
        x_label: "time between frames [ms], logarithmic",
        y_label: "frames that came within this time of the one before [%]",
        height_px: 190.0,
    };
    let geometry = html! {
        path.reference d=(plot.path().move_to(frame_ms, 0.0).line_to(frame_ms, 100.0).data()) {}
        @for showing in showings {
            path class=(format!("curve {}", page.colour(&showing.scheduler.name))) d=(steps(&plot, showing)) {}
        }
    };
    html! {
        figure {
            h3 { "How long the picture stood" }
            (page.legend(showings.iter().map(|s| s.scheduler)))
            (plot.draw(geometry, html! {}))
            figcaption {
                "Cumulative histogram: the part of all frames that came at most so long after the \
                 one before. The dashed line is the film's own frame time."
            }
        }
    }
}

fn steps(plot: &Plot, showing: &Showing) -> String {
    let mut gaps: Vec<f64> = showing.gaps().into_iter().map(|gap| gap.1).collect();
    gaps.sort_by(f64::total_cmp);
    let share = |count: usize| count as f64 / gaps.len() as f64 * 100.0;
    let mut path = plot.path();
    path.move_to(plot.x.low(), 0.0);
    for (i, gap) in gaps.iter().enumerate() {
        path.line_to(*gap, share(i)).line_to(*gap, share(i + 1));
    }
    path.line_to(f64::MAX, 100.0);
    path.data().to_owned()
}
