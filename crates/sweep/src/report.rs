//! A sweep as one HTML file: distributions, every draw by its load, and the worst draws.

use andante_report::beside::{address, prose};
use andante_report::svg::{Axis, Plot};
use andante_report::{colour_of, document};
use andante_result::title::scheduler_title;
use maud::{Markup, html};

use super::measure::{BATCH, MEASURES, Measure};
use super::result::{Distribution, DrawResult, MeasureResult, SweepResult, Worst};
use super::table::{bad, bound, headline, measure_of, percent, range, title, within};

/// The 90th percentile is drawn where at least so many draws are that near each other by their load.
const GROUP_LEAST: usize = 5;
/// Groups of draws, by load, that the percentiles are taken of.
const GROUPS: usize = 24;
/// Heights of the plots [px].
const HEIGHT_PX: f64 = 170.0;
/// Times are shown on a logarithmic axis if the longest is so many times the shortest.
const LOG_FROM: f64 = 20.0;

/// The report's own style, after that of all reports. Many points lie over each other: each is small,
/// and lets through what is below.
const STYLE: &str = "
.geometry .cloud { stroke: var(--c); stroke-width: 4; stroke-linecap: round; stroke-opacity: .5; }
.geometry .p90 { stroke: var(--ink); stroke-width: 1.4; }
.geometry .bound { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 5 4; }
.panels.sweep { grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)); }
.sweep .plot { padding-left: 3.4rem; }
.sweep-table { width: 100%; } .sweep-table .block th { padding-top: .9rem; font-weight: 600; }
.sweep-table tbody th[scope=row] { padding-left: .9rem; white-space: nowrap; }
.by-load tbody th { white-space: nowrap; }
@media (max-width: 36rem) { .sweep-table tbody th[scope=row] { white-space: normal; max-width: 8rem; } }
td.all { color: var(--good); } td.some { color: var(--bad); font-weight: 650; }
.worst td.command { text-align: left; } .worst code { font: .8rem/1.4 var(--mono); white-space: pre-wrap; }
";

/// The report as a whole document; `description` is what the family says of itself.
pub fn html(result: &SweepResult, description: &str) -> String {
    let body = html! {
        header {
            p.kicker { "Andante laboratory · sweep of " (result.family) }
            h1 { (result.title) }
            p.machine { (headline(result)) }
            @if !result.set.is_empty() { p.machine { "with " (result.set.join("; ")) } }
        }
        main {
            @if !description.trim().is_empty() {
                section.description { h2 { "What was drawn" } (prose(description)) }
            }
            (distributions(result))
            (by_load(result))
            (plots(result))
            (worst(result))
            (definitions(result))
            section {
                h2 { "Files of this sweep" }
                p { a href="sweep.json" { "sweep.json" } " has every draw with its figures." }
            }
        }
    };
    document(&result.title, STYLE, body).into_string()
}

fn name(result: &SweepResult, scheduler: &str) -> Markup {
    let class = format!("name {}", colour_of(scheduler, &result.schedulers));
    html! { span class=(class) { (scheduler_title(scheduler)) } }
}

fn share(share: Option<f64>) -> Markup {
    html! {
        @match share {
            None => td {},
            Some(share) => td class=(if share < 1.0 { "some" } else { "all" }) { (percent(share)) },
        }
    }
}

fn distributions(result: &SweepResult) -> Markup {
    html! {
        section {
            h2 { "Over all draws" }
            div.scroll tabindex="0" role="region" aria-label="Over all draws" {
                table.sweep-table {
                    thead { tr {
                        td {}
                        @for head in ["draws", "min", "p50", "p90", "p99", "max", "in bound", "as good as the reference"] {
                            th scope="col" { (head) }
                        }
                    } }
                    @for one in &result.measures {
                        @let measure = measure_of(one);
                        tbody {
                            tr.block {
                                th scope="rowgroup" colspan="7" { span.stays { (measure.title) } }
                                td.quiet { (bound(one)) }
                                td.quiet { (within(one)) }
                            }
                            @for of in &one.schedulers { (row(result, measure, of)) }
                        }
                    }
                }
            }
        }
    }
}

fn row(result: &SweepResult, measure: &Measure, of: &Distribution) -> Markup {
    html! {
        tr {
            th scope="row" { (name(result, &of.scheduler)) }
            td { (of.n) }
            @for figure in [of.min, of.p50, of.p90, of.p99, of.max] { td { (measure.show_with_unit(figure)) } }
            (share(of.share_in_bound))
            (share(of.share_near_reference))
        }
    }
}

fn by_load(result: &SweepResult) -> Markup {
    html! {
        section {
            h2 { "Draws that keep every bound, by load" }
            p.quiet { "The load is the CPU time that films with their drawing, keys and sound ask for, over what "
                "the machine has; batch jobs take what is left." }
            div.scroll tabindex="0" role="region" aria-label="By load" {
                table.by-load {
                    thead { tr {
                        th scope="col" { "load" } th scope="col" { "draws" }
                        @for scheduler in &result.schedulers { th scope="col" { (name(result, scheduler)) } }
                    } }
                    tbody { @for load in &result.by_load { tr {
                        th scope="row" { (range(load)) }
                        td { (load.n) }
                        @for good in &load.good { (share(Some(*good as f64 / load.n as f64))) }
                    } } }
                }
            }
        }
    }
}

fn plots(result: &SweepResult) -> Markup {
    html! {
        section {
            h2 { "Every draw by its load" }
            p.quiet { "A point for each draw; nine of ten draws of about the same load lie on the good side of the "
                "dark line. The dashed line is the bound." }
            @for one in &result.measures {
                figure {
                    h3 { (title(measure_of(one))) }
                    @match all_or_nothing(result, one) {
                        Some(words) => ul.said { @for line in words { li { (line) } } },
                        None => div.panels.small.sweep {
                            @for of in shown(result, one) { (panel(result, one, &of.scheduler)) }
                        },
                    }
                }
            }
        }
    }
}

/// In words, where no draw has another figure than none or all (a share of 0 or 1): dots along two edges are
/// no picture.
fn all_or_nothing(result: &SweepResult, one: &MeasureResult) -> Option<Vec<String>> {
    let measure = measure_of(one);
    let all = measure.scale;
    let line = |of: &Distribution| {
        let at = result.place_of(&of.scheduler)?;
        let figures: Vec<f64> = points(&result.draws, measure, at)
            .into_iter()
            .map(|(_, figure)| figure)
            .collect();
        let full = figures.iter().filter(|figure| **figure == all).count();
        let rest = figures
            .iter()
            .all(|figure| *figure == 0.0 || *figure == all);
        rest.then(|| {
            format!(
                "{}: {} in {} of {} draws, {} in {full}",
                scheduler_title(&of.scheduler),
                measure.show_with_unit(0.0),
                figures.len() - full,
                figures.len(),
                measure.show_with_unit(1.0)
            )
        })
    };
    let share = measure.unit == "%";
    share.then(|| shown(result, one).map(line).collect())?
}

/// Whose points are worth showing: a ratio to the reference says nothing about that itself.
fn shown<'a>(
    result: &'a SweepResult,
    one: &'a MeasureResult,
) -> impl Iterator<Item = &'a Distribution> {
    let ratio = one.name == MEASURES[BATCH].name && result.schedulers.len() > 1;
    let said = move |of: &&Distribution| !ratio || of.scheduler != result.reference;
    one.schedulers.iter().filter(said)
}

/// Load and figure of every draw that has one, by load.
fn points(draws: &[DrawResult], measure: &Measure, scheduler: usize) -> Vec<(f64, f64)> {
    let point = |draw: &DrawResult| {
        let figure = draw.figures.get(scheduler)?.get(measure.name)?;
        Some((draw.load, figure * measure.scale))
    };
    let mut points: Vec<_> = draws.iter().filter_map(point).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

/// The axis that all schedulers' panels of a measure share.
fn y_axis(result: &SweepResult, measure: &Measure, bound: Option<f64>) -> Axis {
    let all = (0..result.schedulers.len()).flat_map(|at| points(&result.draws, measure, at));
    let figures = all.map(|(_, figure)| figure);
    let mut figures: Vec<f64> = figures
        .chain(bound.map(|bound| bound * measure.scale))
        .collect();
    figures.sort_by(f64::total_cmp);
    let high = figures.last().copied().unwrap_or(1.0);
    let low = figures.iter().copied().find(|figure| *figure > 0.0);
    match low {
        Some(low) if measure.unit == "ms" && high / low > LOG_FROM => Axis::log(low, high),
        _ if high > 0.0 => Axis::linear(0.0, high, 4),
        _ => Axis::linear(0.0, 1.0, 4),
    }
}

fn panel(result: &SweepResult, one: &MeasureResult, scheduler: &str) -> Markup {
    let measure = measure_of(one);
    let at = result
        .schedulers
        .iter()
        .position(|name| name == scheduler)
        .unwrap_or(0);
    let points = points(&result.draws, measure, at);
    let highest = result
        .draws
        .iter()
        .map(|draw| draw.load)
        .fold(0.1, f64::max);
    let (x, y) = (
        Axis::linear(0.0, highest, 5),
        y_axis(result, measure, one.bound),
    );
    let plot = Plot {
        title: &format!("{}, {}", title(measure), scheduler_title(scheduler)),
        description: &format!("A point for each of {} draws, by load", points.len()),
        x: &x,
        y: &y,
        x_label: "load",
        y_label: "",
        height_px: HEIGHT_PX,
    };
    let mut cloud = plot.path();
    for (load, figure) in &points {
        cloud.dot(*load, *figure);
    }
    let mut tail = plot.path();
    for (place, (load, figure)) in percentiles(&points, measure).into_iter().enumerate() {
        match place {
            0 => tail.move_to(load, figure),
            _ => tail.line_to(load, figure),
        };
    }
    let mut limit = plot.path();
    if let Some(bound) = one.bound {
        limit
            .move_to(0.0, bound * measure.scale)
            .line_to(f64::MAX, bound * measure.scale);
    }
    let geometry = html! {
        g class=(colour_of(scheduler, &result.schedulers)) { path.cloud d=(cloud.data()) {} }
        path.bound d=(limit.data()) {}
        path.p90 d=(tail.data()) {}
    };
    html! { div.panel { h3 { (name(result, scheduler)) } (plot.draw(geometry, html! {})) } }
}

/// Of groups of draws of about the same load: the middle of the loads, and the figure that nine of ten
/// draws do not exceed (or fall short of, if more is better).
fn percentiles(points: &[(f64, f64)], measure: &Measure) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(GROUPS).max(GROUP_LEAST);
    let groups = points
        .chunks(size)
        .filter(|group| group.len() >= GROUP_LEAST);
    let of = |group: &[(f64, f64)]| {
        let mut figures: Vec<f64> = group.iter().map(|(_, figure)| *figure).collect();
        figures.sort_by(|one, other| measure.worse(*one, *other).total_cmp(&0.0));
        let rank = (0.9 * figures.len() as f64).ceil() as usize - 1;
        let loads = group.iter().map(|(load, _)| load);
        (loads.sum::<f64>() / group.len() as f64, figures[rank])
    };
    groups.map(of).collect()
}

fn worst(result: &SweepResult) -> Markup {
    html! {
        section {
            h2 { "The worst draws" }
            p.quiet { "By how much worse they are than under " (scheduler_title(&result.reference))
                ". Every draw is a scenario of its own: the first command runs it in the simulator, the second on a "
                "real kernel. Those named here also lie in the folder draws beside this file." }
            @for one in &result.measures {
                @for of in one.schedulers.iter().filter(|of| !of.worst.is_empty()) {
                    @let bad = bad(one, of).len();
                    details {
                        summary { (measure_of(one).title) ", " (scheduler_title(&of.scheduler))
                            @if bad == 0 { ": none of them is bad" } }
                        (worst_table(&result.family, measure_of(one), &of.worst))
                    }
                }
            }
        }
    }
}

fn worst_table(family: &str, measure: &Measure, worst: &[Worst]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="The worst draws" {
            table.worst {
                thead { tr { @for head in ["draw", "load", "figure", "reference", ""] { th scope="col" { (head) } } } }
                tbody { @for one in worst { tr {
                    @let file = format!("draws/{family}-{}.toml", one.draw.replace('/', "-"));
                    th scope="row" { a href=(address(&file)) { (one.draw) } }
                    td { (format!("{:.2}", one.load)) }
                    td { (measure.show_with_unit(one.figure)) }
                    td { (one.reference.map_or_else(String::new, |figure| measure.show_with_unit(figure))) }
                    td.command { code { (one.on_sim) br; (one.on_vm) } }
                } } }
            }
        }
    }
}

fn definitions(result: &SweepResult) -> Markup {
    html! {
        section {
            h2 { "What the measures mean" }
            dl.definitions {
                @for one in &result.measures {
                    @let measure = measure_of(one);
                    dt { (measure.title) }
                    dd { (measure.meaning) "." }
                }
            }
        }
    }
}
