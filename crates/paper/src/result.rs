//! What a paper's run brings: every exhibit with the published figures beside the measured ones.
//!
//! These are plain data, written as they are by `andante paper --json`. The terminal tables and the
//! book draw them and compute nothing of their own.

use serde::Serialize;

pub use andante_report::contour::{Application, Setting, Value, ValueContour, quality};

/// A paper, run again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperResult {
    /// Name of its folder, e.g. `qlinux00`.
    pub key: String,
    /// The paper's own title.
    pub title: String,
    /// In the paper's order.
    pub authors: Vec<String>,
    /// Where it appeared.
    pub venue: String,
    /// When.
    pub year: u32,
    /// What it claims, in our words.
    pub claim: String,
    /// What here is not as it was there, and why.
    pub departures: Vec<Departure>,
    /// In the order of the paper.
    pub exhibits: Vec<Exhibit>,
    /// Explanations of deviations that do not show: to be taken back.
    pub stale: Vec<String>,
}

/// Something that is not as it was in the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Departure {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// One table or figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exhibit {
    /// As the paper numbers it, e.g. `Table 2`; ours where it does not.
    pub id: String,
    /// One line.
    pub title: String,
    /// What is to be seen, and how it came about; may be empty.
    pub caption: String,
    /// What the figures beside ours are called: `published`, `claimed` …
    pub says: String,
    /// What is shown.
    pub content: Content,
    /// What was demanded of several figures together.
    pub checks: Vec<Check>,
}

/// What an exhibit shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// Figures in rows and columns.
    Table(Table),
    /// Curves over a number.
    Lines(Chart),
    /// Bars, a group for each row.
    Bars(Chart),
    /// Who ran when.
    Timeline(Timeline),
    /// Quality against a baseline, a bar for each application and measure.
    ValueContour(ValueContour),
    /// Values over time.
    Samples(Samples),
}

/// Figures in rows and columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// What the rows are.
    pub row_title: String,
    /// Titles of the columns of words that stand before the figures.
    pub label_titles: Vec<String>,
    /// From left to right.
    pub columns: Vec<Column>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// The book shows it only to those who open it: a figure tells the same.
    pub fold: bool,
}

/// What a column of a table holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Unique in the table.
    pub title: String,
    /// Empty for counts and ratios.
    pub unit: String,
    /// Digits after the point; none: four significant digits.
    pub decimals: Option<usize>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Unique in the table.
    pub title: String,
    /// Its place on the axis of a figure.
    pub x: Option<f64>,
    /// Words, one for each of the table's label titles.
    pub labels: Vec<String>,
    /// One for each column.
    pub cells: Vec<Cell>,
}

/// One figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What the paper says, if anything.
    pub published: Option<Published>,
    /// What came out, if anything did.
    pub measured: Option<f64>,
    /// Why nothing came out.
    pub missing: Option<String>,
    /// Whether the two agree.
    pub mark: Mark,
    /// What was demanded, in words; empty if nothing was.
    pub demand: String,
    /// Why so much was demanded; empty if nothing was.
    pub why: String,
    /// Why it deviates, where that is known; empty if it does not, or is not.
    pub explained: String,
}

/// The demand of a cell whose published figure is a bound that the measured one may reach.
pub(crate) const AT_MOST: &str = "at most that";
/// The same from below.
pub(crate) const AT_LEAST: &str = "at least that";

impl Cell {
    /// What is written before the published figure where it is a bound.
    pub(crate) fn bound(&self) -> &'static str {
        match self.demand.as_str() {
            AT_MOST => "≤ ",
            AT_LEAST => "≥ ",
            _ => "",
        }
    }
}

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Number(f64),
    /// A dash: the work was never completed.
    #[serde(serialize_with = "dash")]
    Starved,
}

/// How the paper writes what never completed.
pub(crate) const STARVED: &str = "-";

fn dash<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(STARVED)
}

/// Whether a figure is as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Nothing was demanded.
    #[default]
    Shown,
    /// As demanded.
    Pass,
    /// Not as demanded, for a reason that the paper's folder gives.
    Explained,
    /// Not as demanded, and nobody knows why.
    Deviation,
}

/// Something demanded of several figures together, e.g. their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was demanded, and what came out.
    pub text: String,
    /// Whether it holds.
    pub mark: Mark,
    /// Why so much was demanded.
    pub why: String,
    /// Why it does not hold, where that is known.
    pub explained: String,
}

/// Series of points over one axis, published beside measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// The axis from left to right.
    pub x_label: String,
    /// The axis from the bottom up.
    pub y_label: String,
    /// Whether that axis is logarithmic.
    pub log_y: bool,
    /// Title and place of each row.
    pub rows: Vec<(String, f64)>,
    /// One curve, or one bar in every group, each.
    pub series: Vec<Series>,
}

/// One curve, or one bar in every group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What it shows.
    pub title: String,
    /// One for each row of the chart; only those that are numbers can be drawn.
    pub published: Vec<Option<f64>>,
    /// The same.
    pub measured: Vec<Option<f64>>,
}

/// Who ran when, in slots of equal length or as it came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of a slot [ms]; none: as it came.
    pub slot_ms: Option<f64>,
    /// From top to bottom.
    pub lanes: Vec<Lane>,
}

/// Who ran when on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lane {
    /// What it shows.
    pub title: String,
    /// Where it begins [ms].
    pub from_ms: f64,
    /// Where it ends [ms].
    pub to_ms: f64,
    /// The published order, one for each slot, from the first; empty if there is none.
    pub published: Vec<Slot>,
    /// What was measured.
    pub measured: Vec<Slot>,
}

/// Somebody having a CPU for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Slot {
    /// Who; empty: nobody.
    pub label: String,
    /// Set apart, e.g. a slot that an event decided.
    pub marked: bool,
    /// From when [ms].
    pub start_ms: f64,
    /// How long [ms].
    pub length_ms: f64,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Samples {
    /// The axis from the bottom up.
    pub y_label: String,
    /// One curve each.
    pub series: Vec<Curve>,
}

/// Points in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What it shows.
    pub title: String,
    /// (instant [s], value) as published.
    pub published: Vec<(f64, f64)>,
    /// (instant [s], value) as measured.
    pub measured: Vec<(f64, f64)>,
}

/// How many figures and checks came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// As demanded.
    pub passed: usize,
    /// Not as demanded, for a reason given.
    pub explained: usize,
    /// Not as demanded.
    pub deviations: usize,
}

impl Tally {
    /// All that was judged.
    pub fn judged(&self) -> usize {
        self.passed + self.explained + self.deviations
    }

    fn add(&mut self, mark: Mark) {
        match mark {
            Mark::Shown => {}
            Mark::Pass => self.passed += 1,
            Mark::Explained => self.explained += 1,
            Mark::Deviation => self.deviations += 1,
        }
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            explained: self.explained + other.explained,
            deviations: self.deviations + other.deviations,
        }
    }
}

impl Exhibit {
    /// How many of its figures and checks came out how.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for cell in self.cells() {
            tally.add(cell.mark);
        }
        for check in &self.checks {
            tally.add(check.mark);
        }
        tally
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        let rows = match &self.content {
            Content::Table(table) => &table.rows[..],
            _ => &[],
        };
        rows.iter().flat_map(|row| &row.cells)
    }
}

impl PaperResult {
    /// How many figures and checks of all exhibits came out how.
    pub fn tally(&self) -> Tally {
        let all = self.exhibits.iter().map(Exhibit::tally);
        all.fold(Tally::default(), |sum, one| sum + one)
    }
}
