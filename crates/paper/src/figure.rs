//! Makes figures from runs and from the tables before them.

use andante_result::{Run, SchedulerResult};
use andante_scenario::Subject;

use super::cell::failed;
use super::document::{
    ChartSpec, ContourSpec, FigureSpec, LaneSpec, Quantity, SamplesSpec, SeriesSpec, TimelineSpec,
};
use super::result::{
    Application, Chart, Check, Content, Curve, Exhibit, Lane, Mark, Published, Samples, Series,
    Setting, Slot, Table, Timeline, Value, ValueContour, quality,
};
use super::runs::Runs;

/// Times closer than this are the same [ms]: slots are laid from instants in ns.
const SAME_MS: f64 = 1e-6;

/// The figure, and what was demanded of it. `before` are the exhibits above it.
pub(super) fn draw(spec: &FigureSpec, runs: &Runs, before: &[Exhibit]) -> (Content, Vec<Check>) {
    match spec {
        FigureSpec::Chart(spec) => (chart(spec, table(&spec.table, before)), Vec::new()),
        FigureSpec::ValueContour(spec) => {
            let (table, baseline) = (table(&spec.table, before), spec.baseline);
            let contour = value_contour(spec, table, baseline);
            (Content::ValueContour(contour), Vec::new())
        }
        FigureSpec::Timeline(spec) => timeline(spec, runs),
        FigureSpec::Samples(spec) => (Content::Samples(samples(spec, runs)), Vec::new()),
    }
}

fn table<'a>(id: &str, before: &'a [Exhibit]) -> &'a Table {
    let exhibit = before.iter().find(|exhibit| exhibit.id == id);
    match exhibit.map(|exhibit| &exhibit.content) {
        Some(Content::Table(table)) => table,
        _ => unreachable!("checked when it was read"),
    }
}

fn number(published: Option<Published>) -> Option<f64> {
    match published {
        Some(Published::Number(number)) => Some(number),
        Some(Published::Starved) | None => None,
    }
}

fn chart(spec: &ChartSpec, table: &Table) -> Content {
    let rows = table.rows.iter().enumerate();
    let series = spec.columns.iter().map(|&place| {
        let cells = || table.rows.iter().map(move |row| &row.cells[place]);
        Series {
            title: table.columns[place].title.clone(),
            published: cells().map(|cell| number(cell.published)).collect(),
            measured: cells().map(|cell| cell.measured).collect(),
        }
    });
    let chart = Chart {
        x_label: spec.x_label.clone(),
        y_label: spec.y_label.clone(),
        log_y: spec.log_y,
        rows: rows
            .map(|(place, row)| (row.title.clone(), row.x.unwrap_or(place as f64)))
            .collect(),
        series: series.collect(),
    };
    match spec.bars {
        true => Content::Bars(chart),
        false => Content::Lines(chart),
    }
}

/// The quality of every row but the baseline.
fn value_contour(spec: &ContourSpec, table: &Table, baseline: usize) -> ValueContour {
    let base = &table.rows[baseline];
    let value = |row: usize, column: usize| {
        let (base, cell) = (&base.cells[column], &table.rows[row].cells[column]);
        Value {
            published: quality(
                number(base.published),
                number(cell.published),
                cell.published == Some(Published::Starved),
            ),
            measured: quality(base.measured, cell.measured, cell.missing.is_some()),
        }
    };
    let settings = (0..table.rows.len())
        .filter(|row| *row != baseline)
        .map(|row| Setting {
            title: table.rows[row].title.clone(),
            values: spec
                .applications
                .iter()
                .map(|(_, bars)| bars.iter().map(|(_, column)| value(row, *column)).collect())
                .collect(),
        });
    ValueContour {
        settings: settings.collect(),
        applications: spec
            .applications
            .iter()
            .map(|(title, bars)| Application {
                title: title.clone(),
                measures: bars.iter().map(|(name, _)| name.clone()).collect(),
            })
            .collect(),
    }
}

fn timeline(spec: &TimelineSpec, runs: &Runs) -> (Content, Vec<Check>) {
    let mut checks = Vec::new();
    let mut lanes = Vec::new();
    for lane in &spec.lanes {
        let ran = ran(spec, lane, &runs.scheduler(&lane.run).runs);
        let measured = match spec.slot_ms {
            Some(slot_ms) => slots(&ran, lane.from_ms, lane.to_ms, slot_ms),
            None => ran,
        };
        let published: Vec<Slot> = lane
            .published
            .iter()
            .enumerate()
            .map(|(place, (label, marked))| Slot {
                label: label.clone(),
                marked: *marked,
                start_ms: lane.from_ms + place as f64 * spec.slot_ms.unwrap_or(0.0),
                length_ms: spec.slot_ms.unwrap_or(0.0),
            })
            .collect();
        if !published.is_empty() {
            checks.push(compare(lane, &published, &measured));
        }
        lanes.push(Lane {
            title: lane.title.clone(),
            from_ms: lane.from_ms,
            to_ms: lane.to_ms,
            published,
            measured,
        });
    }
    let slot_ms = spec.slot_ms;
    (Content::Timeline(Timeline { slot_ms, lanes }), checks)
}

/// Who had the lane's CPU when, cut to its stretch of time, neighbours of one label put together.
fn ran(spec: &TimelineSpec, lane: &LaneSpec, runs: &[Run]) -> Vec<Slot> {
    let mut ran: Vec<Slot> = Vec::new();
    let mut here: Vec<&Run> = runs.iter().filter(|run| run.cpu == lane.cpu).collect();
    here.sort_by_key(|run| run.start_ns);
    for run in here {
        let start_ms = (run.start_ns as f64 / 1e6).max(lane.from_ms);
        let end_ms = ((run.start_ns + run.length_ns) as f64 / 1e6).min(lane.to_ms);
        if end_ms <= start_ms {
            continue;
        }
        let renamed = spec.labels.iter().find(|(name, _)| *name == run.comm);
        let label = renamed.map_or(&run.comm, |(_, label)| label).clone();
        let marked = run
            .rule
            .as_ref()
            .is_some_and(|rule| spec.marked_rules.contains(rule));
        match ran.last_mut() {
            Some(last)
                if last.label == label
                    && last.marked == marked
                    && (start_ms - last.start_ms - last.length_ms).abs() < SAME_MS =>
            {
                last.length_ms = end_ms - last.start_ms;
            }
            _ => ran.push(Slot {
                label,
                marked,
                start_ms,
                length_ms: end_ms - start_ms,
            }),
        }
    }
    ran
}

/// What is written where nobody, or more than one, had a slot.
const NOBODY: &str = "·";
const SEVERAL: &str = "?";

/// Slots of equal length: a slot belongs to who had all of it.
fn slots(ran: &[Slot], from_ms: f64, to_ms: f64, slot_ms: f64) -> Vec<Slot> {
    let count = ((to_ms - from_ms) / slot_ms).round() as usize;
    let slot = |place: usize| {
        let start_ms = from_ms + place as f64 * slot_ms;
        let end_ms = start_ms + slot_ms;
        let inside: Vec<&Slot> = ran
            .iter()
            .filter(|run| {
                run.start_ms < end_ms - SAME_MS && run.start_ms + run.length_ms > start_ms + SAME_MS
            })
            .collect();
        let whole = |run: &Slot| {
            run.start_ms <= start_ms + SAME_MS && run.start_ms + run.length_ms >= end_ms - SAME_MS
        };
        let (label, marked) = match inside[..] {
            [] => (NOBODY, false),
            [one] if whole(one) => (one.label.as_str(), one.marked),
            _ => (SEVERAL, false),
        };
        Slot {
            label: label.to_owned(),
            marked,
            start_ms,
            length_ms: slot_ms,
        }
    };
    (0..count).map(slot).collect()
}

fn compare(lane: &LaneSpec, published: &[Slot], measured: &[Slot]) -> Check {
    let same = |(a, b): (&Slot, &Slot)| a.label == b.label && a.marked == b.marked;
    let pairs = || published.iter().zip(measured);
    let equal = pairs().filter(|pair| same(*pair)).count();
    let first = pairs().position(|pair| !same(pair));
    let name = |slot: &Slot| format!("{}{}", slot.label, if slot.marked { "*" } else { "" });
    let title = &lane.title;
    let (text, holds) = match first {
        None if equal == published.len() => (format!("{title}: all {equal} slots"), true),
        None => (
            format!(
                "{title}: {equal} of {} slots were measured",
                published.len()
            ),
            false,
        ),
        Some(place) => (
            format!(
                "{title}: {equal} of {} slots; the first that differs is slot {place}: {} instead of {}",
                published.len(),
                name(&measured[place]),
                name(&published[place])
            ),
            false,
        ),
    };
    Check {
        text,
        mark: if holds {
            Mark::Pass
        } else {
            failed(&lane.explained)
        },
        why: lane.why.clone(),
        explained: match holds {
            true => String::new(),
            false => lane.explained.clone(),
        },
    }
}

fn samples(spec: &SamplesSpec, runs: &Runs) -> Samples {
    let curve = |series: &SeriesSpec| {
        let run = runs.get(&series.run);
        let scheduler = runs.scheduler(&series.run);
        let cpus = f64::from(run.cpus);
        Curve {
            title: series.title.clone(),
            published: series.published.clone(),
            measured: match (&series.subject, spec.quantity) {
                (Subject::Class(path), Quantity::Share) => shares(path, scheduler, cpus),
                (Subject::Class(path), _) => cpu_s(path, scheduler),
                (Subject::Program(name), Quantity::Priority) => priorities(name, scheduler),
                (Subject::Program(name), _) => {
                    frame_rates(name, scheduler, spec.window_s, run.duration_s)
                }
                (Subject::Machine, _) => unreachable!("checked when it was read"),
            },
        }
    };
    Samples {
        y_label: spec.y_label.clone(),
        series: spec.series.iter().map(curve).collect(),
    }
}

/// (instant [s], CPU time so far [s]) of a class, from 0.
fn cpu_s(path: &str, scheduler: &SchedulerResult) -> Vec<(f64, f64)> {
    let class = scheduler.classes.iter().find(|class| class.path == path);
    let samples = class.map_or(&[][..], |class| &class.samples);
    let points = scheduler.sample_ns.iter().zip(samples);
    let points = points.map(|(at_ns, cpu_ns)| (*at_ns as f64 / 1e9, *cpu_ns as f64 / 1e9));
    std::iter::once((0.0, 0.0)).chain(points).collect()
}

/// (middle of the time between two samples [s], part of all CPU time in it [%]) of a class.
fn shares(path: &str, scheduler: &SchedulerResult, cpus: f64) -> Vec<(f64, f64)> {
    let points = cpu_s(path, scheduler);
    let step = |pair: &[(f64, f64)]| {
        let length_s = pair[1].0 - pair[0].0;
        let share = (pair[1].1 - pair[0].1) / (length_s * cpus);
        (pair[0].0 + length_s / 2.0, share * 100.0)
    };
    points.windows(2).map(step).collect()
}

/// (instant [s], priority) of a program's first instance.
fn priorities(name: &str, scheduler: &SchedulerResult) -> Vec<(f64, f64)> {
    let mut programs = scheduler.programs.iter();
    let program = programs.find(|program| andante_result::cases::base_name(program) == name);
    let levels = program.map_or(&[][..], |program| &program.levels);
    let points = scheduler.sample_ns.iter().zip(levels);
    points
        .map(|(at_ns, level)| (*at_ns as f64 / 1e9, f64::from(*level)))
        .collect()
}

/// (end of a window [s], frames shown in it [1/s]) of a program, all instances together.
fn frame_rates(
    name: &str,
    scheduler: &SchedulerResult,
    window_s: f64,
    duration_s: f64,
) -> Vec<(f64, f64)> {
    let programs = scheduler
        .programs
        .iter()
        .filter(|program| andante_result::cases::base_name(program) == name);
    let mut counts = vec![0_u32; (duration_s / window_s + 1e-9) as usize];
    for at_ms in programs.flat_map(|program| &program.shown_ms) {
        if let Some(count) = counts.get_mut((at_ms / 1e3 / window_s) as usize) {
            *count += 1;
        }
    }
    let point = |(place, count): (usize, &u32)| {
        ((place + 1) as f64 * window_s, f64::from(*count) / window_s)
    };
    counts.iter().enumerate().map(point).collect()
}
