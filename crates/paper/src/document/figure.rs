//! `[[figure]]`: what is drawn.

use andante_document::{DocumentError, FromNode, Node, Section, Value, suggest};
use andante_result::measures::{self, MeasureKind};
use andante_scenario::expectation::check_in_case;
use andante_scenario::{Figure, Subject};

use super::keys::Keys;
use super::list::{MAX_LANES, MAX_SLOTS, list};
use super::scenarios::Scenarios;
use super::table::TableSpec;
use crate::source::{At, RunKey};

/// A figure to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FigureSpec {
    /// Columns of a table as curves, or as bars.
    Chart(ChartSpec),
    /// Who ran when.
    Timeline(TimelineSpec),
    /// Columns of a table over its baseline.
    ValueContour(ContourSpec),
    /// Values over time.
    Samples(SamplesSpec),
}

/// Columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartSpec {
    pub bars: bool,
    /// The table's id.
    pub table: String,
    /// Places of the columns.
    pub columns: Vec<usize>,
    pub x_label: String,
    pub y_label: String,
    pub log_y: bool,
}

/// Who ran when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimelineSpec {
    pub slot_ms: Option<f64>,
    /// (instance's name, what it is called here); others keep their names.
    pub labels: Vec<(String, String)>,
    /// Slots chosen by one of these rules are set apart.
    pub marked_rules: Vec<String>,
    pub lanes: Vec<LaneSpec>,
}

/// One CPU of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaneSpec {
    pub title: String,
    pub run: RunKey,
    pub cpu: u32,
    pub from_ms: f64,
    pub to_ms: f64,
    /// Labels, with whether the slot is set apart.
    pub published: Vec<(String, bool)>,
    pub why: String,
    pub explained: String,
}

/// Quality over a baseline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContourSpec {
    /// The table's id.
    pub table: String,
    /// Place of the row that others are compared with.
    pub baseline: usize,
    /// Name, and (measure, place of the column) of each bar.
    pub applications: Vec<(String, Vec<(String, usize)>)>,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SamplesSpec {
    pub quantity: Quantity,
    pub window_s: f64,
    pub y_label: String,
    pub series: Vec<SeriesSpec>,
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Part of all CPU time a class had since the sample before [%].
    Share,
    /// CPU time a class had so far [s].
    CpuS,
    /// Frames a program showed in the window that ends there [1/s].
    FrameRate,
    /// Priority of a program among all, under schedulers that have priorities.
    Priority,
}

impl Quantity {
    const ALL: [(&str, Self); 4] = [
        ("share", Self::Share),
        ("cpu_s", Self::CpuS),
        ("frame_rate", Self::FrameRate),
        ("priority", Self::Priority),
    ];
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeriesSpec {
    pub title: String,
    pub run: RunKey,
    pub subject: Subject,
    pub published: Vec<(f64, f64)>,
}

/// Reads the figure whose keys `section` holds; `tables` are those before it, by id.
pub(super) fn read(
    mut section: Section<'_>,
    tables: &[(String, TableSpec)],
    scenarios: &Scenarios<'_>,
) -> Result<FigureSpec, DocumentError> {
    const KINDS: [&str; 5] = ["lines", "bars", "timeline", "value-contour", "samples"];
    let kind: String = section.need("kind")?;
    let figure = match kind.as_str() {
        "lines" => FigureSpec::Chart(read_chart(&mut section, tables, false)?),
        "bars" => FigureSpec::Chart(read_chart(&mut section, tables, true)?),
        "timeline" => FigureSpec::Timeline(read_timeline(&mut section, scenarios)?),
        "value-contour" => FigureSpec::ValueContour(read_contour(&mut section, tables)?),
        "samples" => FigureSpec::Samples(read_samples(&mut section, scenarios)?),
        wrong => {
            let hint = suggest(wrong, KINDS.into_iter());
            return Err(section.error("kind", format!("unknown kind `{wrong}`{hint}")));
        }
    };
    section.finish()?;
    Ok(figure)
}

/// The table that `table` names.
fn table_of<'a>(
    section: &mut Section<'_>,
    tables: &'a [(String, TableSpec)],
) -> Result<&'a (String, TableSpec), DocumentError> {
    let id: String = section.need("table")?;
    tables
        .iter()
        .find(|(known, _)| *known == id)
        .ok_or_else(|| {
            let hint = suggest(&id, tables.iter().map(|(known, _)| known.as_str()));
            section.error("table", format!("no table above is called `{id}`{hint}"))
        })
}

fn column_of(
    title: &str,
    table: &TableSpec,
    section: &Section<'_>,
    key: &str,
) -> Result<usize, DocumentError> {
    let titles = || table.columns.iter().map(|c| c.column.title.as_str());
    titles().position(|known| known == title).ok_or_else(|| {
        let hint = suggest(title, titles());
        section.error(key, format!("the table has no column `{title}`{hint}"))
    })
}

fn read_chart(
    section: &mut Section<'_>,
    tables: &[(String, TableSpec)],
    bars: bool,
) -> Result<ChartSpec, DocumentError> {
    let (id, table) = table_of(section, tables)?;
    let columns = match section.get::<Vec<String>>("columns")? {
        None => (0..table.columns.len()).collect(),
        Some(titles) => titles
            .iter()
            .map(|title| column_of(title, table, section, "columns"))
            .collect::<Result<_, _>>()?,
    };
    if !bars && table.rows.iter().any(|row| row.x.is_none()) {
        let message = "curves need an `x` at every row of the table";
        return Err(section.error("table", message));
    }
    Ok(ChartSpec {
        bars,
        table: id.clone(),
        columns,
        x_label: section
            .get("x_label")?
            .unwrap_or_else(|| table.row_title.clone()),
        y_label: section.get("y_label")?.unwrap_or_default(),
        log_y: section.get("log_y")?.unwrap_or(false),
    })
}

fn read_contour(
    section: &mut Section<'_>,
    tables: &[(String, TableSpec)],
) -> Result<ContourSpec, DocumentError> {
    let (id, table) = table_of(section, tables)?;
    let Some(baseline) = table.baseline else {
        return Err(section.error("table", "needs a table with a `baseline`"));
    };
    let mut applications = Vec::new();
    for node in list(
        section.node("application"),
        "figure.application",
        MAX_LANES,
        section,
    )? {
        const PATH: &str = "figure.application";
        let mut application = Section::new(node, PATH)?;
        let title: String = application.need("title")?;
        let mut bars = Vec::new();
        if let Some(measures) = application.node("measures") {
            for (name, path, column) in Section::new(measures, PATH)?.entries() {
                let title = String::from_node(column)
                    .ok_or_else(|| column.origin.error(&path, "give the title of a column"))?;
                let place = column_of(&title, table, &application, "measures")?;
                bars.push((name.to_owned(), place));
            }
        }
        if bars.is_empty() {
            let message = "give e.g. `measures = { mean = \"COLUMN\", sd = \"COLUMN\" }`";
            return Err(application.error("measures", message));
        }
        application.finish()?;
        applications.push((title, bars));
    }
    Ok(ContourSpec {
        table: id.clone(),
        baseline,
        applications,
    })
}

fn read_timeline(
    section: &mut Section<'_>,
    scenarios: &Scenarios<'_>,
) -> Result<TimelineSpec, DocumentError> {
    let slot_ms = match section.get::<f64>("slot_ms")? {
        None => None,
        Some(_) => Some(section.number("slot_ms", 0.0, 0.001..=60_000.0)?),
    };
    let mut labels = Vec::new();
    if let Some(node) = section.node("labels") {
        for (name, path, label) in Section::new(node, "figure.labels")?.entries() {
            let label = String::from_node(label)
                .ok_or_else(|| label.origin.error(&path, "expected a string"))?;
            labels.push((name.to_owned(), label));
        }
    }
    let marked_rules = section.get("marked_rules")?.unwrap_or_default();
    let outer = Keys::read_figure(section)?;
    let mut lanes = Vec::new();
    for node in list(section.node("lane"), "figure.lane", MAX_LANES, section)? {
        lanes.push(read_lane(node, &outer, slot_ms, scenarios)?);
    }
    Ok(TimelineSpec {
        slot_ms,
        labels,
        marked_rules,
        lanes,
    })
}

fn read_lane(
    node: &Node,
    outer: &Keys,
    slot_ms: Option<f64>,
    scenarios: &Scenarios<'_>,
) -> Result<LaneSpec, DocumentError> {
    const PATH: &str = "figure.lane";
    let at = At::of(node, PATH);
    let mut section = Section::new(node, PATH)?;
    let title = section.need("title")?;
    let from_ms = section.number("from_ms", 0.0, 0.0..=60_000.0)?;
    let cpu: u32 = section.get("cpu")?.unwrap_or(0);
    let slots = section.get::<String>("published")?.unwrap_or_default();
    let published: Vec<(String, bool)> = slots
        .split_whitespace()
        .map(|slot| match slot.strip_suffix('*') {
            Some(label) => (label.to_owned(), true),
            None => (slot.to_owned(), false),
        })
        .collect();
    let to_ms = match (section.get::<f64>("to_ms")?, slot_ms) {
        (None, Some(slot_ms)) if !published.is_empty() => {
            from_ms + slot_ms * published.len() as f64
        }
        (None, _) => return Err(section.error("to_ms", "`to_ms` is missing: give a number")),
        (Some(to_ms), _) => to_ms,
    };
    if to_ms <= from_ms {
        return Err(section.error("to_ms", format!("must come after {from_ms}")));
    }
    if slot_ms.is_some_and(|slot_ms| (to_ms - from_ms) / slot_ms > MAX_SLOTS as f64) {
        return Err(section.error("to_ms", format!("more than {MAX_SLOTS} slots")));
    }
    if slot_ms.is_none() && !published.is_empty() {
        return Err(section.error("published", "slots need `slot_ms`, their length"));
    }
    let keys = Keys::read(&mut section, PATH)?;
    let run = keys.or(outer).run(scenarios, at)?;
    let (cpus, trace_s) = scenarios.with_case(&run.scenario, run.case.as_deref(), at, |case| {
        (case.workload.cpus, case.workload.trace_s)
    })?;
    if cpu >= cpus {
        return Err(section.error("cpu", format!("CPU {cpu} does not exist: `cpus` is {cpus}")));
    }
    if to_ms > trace_s * 1e3 {
        let message = format!("the scenario traces {trace_s} s only: see its `trace_s`");
        return Err(section.error("to_ms", message));
    }
    if !published.is_empty() && keys.why.is_none() {
        return Err(at.error("slots that are compared need `why`: why they must be equal"));
    }
    section.finish()?;
    Ok(LaneSpec {
        title,
        run,
        cpu,
        from_ms,
        to_ms,
        published,
        why: keys.why.unwrap_or_default(),
        explained: keys.explained.unwrap_or_default(),
    })
}

fn read_samples(
    section: &mut Section<'_>,
    scenarios: &Scenarios<'_>,
) -> Result<SamplesSpec, DocumentError> {
    let name: String = section.need("quantity")?;
    let known = Quantity::ALL.into_iter().find(|(known, _)| *known == name);
    let Some((_, quantity)) = known else {
        let hint = suggest(&name, Quantity::ALL.into_iter().map(|(known, _)| known));
        return Err(section.error("quantity", format!("unknown quantity `{name}`{hint}")));
    };
    let window_s = section.number("window_s", 1.0, 0.01..=600.0)?;
    let y_label = section.get("y_label")?.unwrap_or_else(|| match quantity {
        Quantity::Share => "of all CPU time [%]".to_owned(),
        Quantity::CpuS => "CPU time [s]".to_owned(),
        Quantity::FrameRate => "frames per second".to_owned(),
        Quantity::Priority => "priority".to_owned(),
    });
    let outer = Keys::read_figure(section)?;
    let mut series = Vec::new();
    for node in list(section.node("series"), "figure.series", MAX_LANES, section)? {
        series.push(read_series(node, &outer, quantity, scenarios)?);
    }
    Ok(SamplesSpec {
        quantity,
        window_s,
        y_label,
        series,
    })
}

fn read_series(
    node: &Node,
    outer: &Keys,
    quantity: Quantity,
    scenarios: &Scenarios<'_>,
) -> Result<SeriesSpec, DocumentError> {
    const PATH: &str = "figure.series";
    let at = At::of(node, PATH);
    let mut section = Section::new(node, PATH)?;
    let title = section.need("title")?;
    let published = match section.node("published") {
        None => Vec::new(),
        Some(node) => read_points(node)?,
    };
    let keys = Keys::read_figure(&mut section)?.or(outer);
    let run = keys.run(scenarios, at)?;
    // Checked as the figure that it is a series of.
    let measure = match quantity {
        Quantity::Share | Quantity::CpuS => "class_cpu_s",
        Quantity::FrameRate => "frames",
        Quantity::Priority => "cpu_s",
    };
    let subject = keys.subject.clone().unwrap_or(Subject::Machine);
    let of_kind = match measures::kind(measure) {
        Some(MeasureKind::Class) => matches!(subject, Subject::Class(_)),
        _ => matches!(subject, Subject::Program(_)),
    };
    if !of_kind {
        return Err(at.error(match quantity {
            Quantity::Share | Quantity::CpuS => "is of a class: give `class = \"/…\"`",
            Quantity::FrameRate | Quantity::Priority => "is of a program: give `program = \"…\"`",
        }));
    }
    let figure = Figure {
        measure: measure.to_owned(),
        subject: subject.clone(),
        scheduler: run.scheduler.clone(),
        at_s: None,
    };
    scenarios.with_case(&run.scenario, run.case.as_deref(), at, |case| {
        check_in_case(case, &figure).map_err(|message| at.error(message))
    })??;
    section.finish()?;
    Ok(SeriesSpec {
        title,
        run,
        subject,
        published,
    })
}

/// Pairs of an instant [s] and a value.
fn read_points(node: &Node) -> Result<Vec<(f64, f64)>, DocumentError> {
    let pair = |node: &Node| match Vec::<f64>::from_node(node).as_deref() {
        Some([at_s, value]) => Some((*at_s, *value)),
        _ => None,
    };
    let points = match &node.value {
        Value::List(items) => items.iter().map(pair).collect(),
        _ => None,
    };
    points.ok_or_else(|| {
        node.origin
            .error("figure.series.published", "give pairs of [instant, value]")
    })
}
