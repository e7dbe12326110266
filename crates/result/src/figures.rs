//! The figures of a result, arranged as rows with one cell per scheduler.
//!
//! The terminal table and the HTML report show the same figures, so both are laid out here, once:
//! which measures there are, what they mean, how they are rounded, and how the instances of a
//! repeated program are taken together.

use crate::cases::base_name;
use crate::measures;
use crate::units::{Scale, exact_text, seconds_of, seconds_of_measure, time_text, with_unit};
use crate::{ClassResult, ProgramResult, RunResult, SchedulerResult};

/// Which direction of a measure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
    Neither,
}

/// How the instances of a repeated program become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Sum,
    Largest,
    Smallest,
}

/// How much to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The figures that decide; instances taken together.
    Brief,
    /// Every figure of every instance.
    Full,
}

/// One thing that is measured of a program.
pub struct Measure {
    /// As a row is labelled.
    pub name: &'static str,
    /// Unit, empty for counts.
    pub unit: &'static str,
    /// What it means, for readers.
    pub meaning: &'static str,
    detail: Detail,
    better: Better,
    join: Join,
    decimals: usize,
    of: fn(&ProgramResult) -> Option<f64>,
}

impl Measure {
    /// The figure of one scheduler over `programs`, the instances of one program.
    pub fn of(&self, programs: &[&ProgramResult]) -> Option<f64> {
        let join = match self.join {
            Join::Sum => |a: f64, b: f64| a + b,
            Join::Largest => f64::max,
            Join::Smallest => f64::min,
        };
        programs.iter().filter_map(|p| (self.of)(p)).reduce(join)
    }

    /// The measure called `name` in [`MEASURES`].
    pub fn named(name: &str) -> &'static Measure {
        MEASURES
            .iter()
            .find(|m| m.name == name)
            .expect("a measure of the list")
    }

    /// `value` as this measure is written alone, with its unit.
    pub fn format(&self, value: f64) -> String {
        match seconds_of(self.unit) {
            Some(length_s) => time_text(value * length_s),
            None => with_unit(&number(value, self.decimals), self.unit),
        }
    }
}

/// Frames shown per second between the first and the last; none for fewer than two.
pub fn frame_rate(program: &ProgramResult) -> Option<f64> {
    let (frames, span_s) = (program.frames?, program.span_s?);
    (frames > 1 && span_s > 0.0).then(|| (frames - 1) as f64 / span_s)
}

/// Fewest frames shown in any whole second between the first frame and the last [1/s]; none if no
/// whole second lies there.
pub(crate) fn least_frame_rate(program: &ProgramResult) -> Option<f64> {
    let (first_ms, last_ms) = (*program.shown_ms.first()?, *program.shown_ms.last()?);
    let seconds = (first_ms / 1e3).ceil() as usize..(last_ms / 1e3).floor() as usize;
    let mut shown = vec![0_u32; seconds.len()];
    for at_ms in &program.shown_ms {
        let second = (at_ms / 1e3).floor() as usize;
        if seconds.contains(&second) {
            shown[second - seconds.start] += 1;
        }
    }
    shown.into_iter().min().map(f64::from)
}

/// Frames that were not shown in time (late, dropped, or never come to), and frames due.
pub fn not_in_time(program: &ProgramResult) -> Option<(u64, u64)> {
    let (due, frames, late) = (program.due?, program.frames?, program.late?);
    // One frame more may be in time than is due: that of a deadline just after the end.
    Some((due.saturating_sub(frames - late.min(frames)), due))
}

/// The part of the frames due that was not shown in time [ratio].
pub fn late_share(program: &ProgramResult) -> Option<f64> {
    let (missed, due) = not_in_time(program)?;
    (due > 0).then(|| missed as f64 / due as f64)
}

macro_rules! measures {
    ($($name:literal $unit:literal $detail:ident $better:ident $join:ident $decimals:literal
       $of:expr, $meaning:literal;)*) => {
        &[$(Measure {
            name: $name, unit: $unit, meaning: $meaning, detail: Detail::$detail,
            better: Better::$better, join: Join::$join, decimals: $decimals, of: $of,
        }),*]
    };
}

/// Every measure of a program, in the order shown.
#[rustfmt::skip]
pub const MEASURES: &[Measure] = measures! {
    "frames shown" "" Brief Higher Sum 0 |p| p.frames.map(|n| n as f64),
        "Frames the player put on the screen.";
    "frames late" "" Brief Lower Sum 0 |p| p.late.map(|n| n as f64),
        "Frames shown, but after the time the film has for them.";
    "frames dropped" "" Brief Lower Sum 0 |p| p.dropped.map(|n| n as f64),
        "Frames the player gave up: decoded too late, never shown.";
    "frames not in time" "%" Brief Lower Largest 2 |p| late_share(p).map(|share| share * 100.0),
        "Of the frames due, the part that was late, dropped, or never come to.";
    "longest freeze" "ms" Brief Lower Largest 1 |p| p.longest_freeze_ms,
        "The longest time the picture stood still: between two frames shown one after the other.";
    "going on after a pause" "ms" Brief Lower Largest 1 |p| p.resume_ms,
        "From the last frame before its user's pause to the first one after it, the pause included.";
    "gaps over 100 ms" "" Full Lower Sum 0 |p| p.gaps_over_100ms.map(|n| n as f64),
        "How often the picture stood still for more than 100 ms, which everybody sees.";
    "frame rate" "/s" Brief Higher Smallest 2 frame_rate,
        "Frames shown, less one, over the time from the first to the last.";
    "span" "s" Full Neither Largest 3 |p| p.span_s,
        "From the first frame shown to the last; a starved player stretches it.";
    "frame time, mean" "ms" Full Neither Largest 2 |p| p.frame_ms.map(|s| s.mean),
        "The time between a frame shown and the one before it: arithmetic mean.";
    "frame time, sd" "ms" Full Lower Largest 2 |p| p.frame_ms.map(|s| s.sd),
        "Standard deviation of the frame time: its jitter.";
    "frame time, median" "ms" Full Neither Largest 2 |p| p.frame_ms.map(|s| s.p50),
        "Half of the frame times are at most this.";
    "frame time, p99" "ms" Brief Lower Largest 2 |p| p.frame_ms.map(|s| s.p99),
        "99 of 100 frame times are at most this.";
    "frame time, max" "ms" Full Lower Largest 2 |p| p.frame_ms.map(|s| s.max),
        "The longest frame time.";
    "xruns" "" Brief Lower Sum 0 |p| p.xruns.map(|n| n as f64),
        "Periods of the sound card for which sound did not come in time.";
    "latency, mean" "µs" Brief Lower Largest 2 |p| p.latency_us.map(|s| s.mean),
        "From an event to the response of the program waiting for it, or one round trip: mean.";
    "latency, sd" "µs" Full Lower Largest 1 |p| p.latency_us.map(|s| s.sd),
        "Standard deviation of the latency.";
    "latency, median" "µs" Full Lower Largest 1 |p| p.latency_us.map(|s| s.p50),
        "Half of the latencies are at most this.";
    "latency, p99" "µs" Brief Lower Largest 1 |p| p.latency_us.map(|s| s.p99),
        "99 of 100 latencies are at most this.";
    "latency, max" "µs" Full Lower Largest 1 |p| p.latency_us.map(|s| s.max),
        "The longest latency.";
    "deadlines missed" "" Brief Lower Sum 0 |p| p.missed.map(|n| n as f64),
        "Jobs under a contract that ended too late, or periods that went by unserved.";
    "violations" "" Brief Lower Sum 0 |p| p.violations.map(|n| n as f64),
        "Misses that the contract's window of tolerated losses did not allow.";
    "received" "kB" Brief Neither Sum 1 |p| p.received_bytes.map(|n| n as f64 / 1e3),
        "What arrived at the other end of the cable, or of pages, without headers.";
    "part of what arrived" "%" Brief Neither Sum 2 |p| p.goodput_share.map(|share| share * 100.0),
        "Of all that arrived for those of its network, the part that is its own.";
    "datagrams lost" "" Brief Lower Sum 0 |p| p.lost.map(|n| n as f64),
        "Sent in the measurement, and never arrived.";
    "reads skipped" "" Brief Lower Sum 0 |p| p.skipped.map(|n| n as f64),
        "Reads from the disk that were due while another was late, and never begun.";
    "read from the disk" "MB/s" Brief Higher Sum 2 |p| p.read_bytes_per_s.map(|n| n / 1e6),
        "What it read from the disk in a second.";
    "first touch of its memory" "ms" Brief Lower Largest 1 |p| p.first_touch_ms,
        "The time until it had all memory of its own.";
    "first reading of its library" "ms" Full Lower Largest 1 |p| p.first_read_ms,
        "The time until it had read all of the file that it maps as a library.";
    "major page faults" "" Brief Lower Sum 0 |p| p.major_faults.map(|n| n as f64),
        "Page faults for which something had to be read from a device.";
    "iterations" "" Brief Neither Sum 0 |p| p.iterations.map(|n| n as f64),
        "Units of work finished: loops, Dhrystones, jobs, round trips, objects built.";
    "CPU time" "s" Full Neither Sum 3 |p| Some(p.cpu_ns as f64 / 1e9),
        "CPU time of the program and of the children it waited for.";
};

/// One figure of one scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Rounded, with its unit; empty if there is none. All times of a row are in one unit.
    pub text: String,
    /// The best of its row, where one is better than another.
    pub best: bool,
}

/// One row: a figure of every scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What is shown.
    pub label: String,
    /// One per scheduler.
    pub cells: Vec<Cell>,
    /// The cells say in words what went wrong.
    pub trouble: bool,
}

/// The rows that belong to one program, to the classes, or to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Name of the program, or what the rows have in common.
    pub title: String,
    /// Whatever else to know of it: kind and class.
    pub note: String,
    /// Never empty.
    pub rows: Vec<Row>,
}

/// All blocks of `result` with one cell for each of `schedulers`; those without data are left out.
pub fn blocks(result: &RunResult, schedulers: &[String], detail: Detail) -> Vec<Block> {
    let columns: Vec<Option<&SchedulerResult>> = schedulers
        .iter()
        .map(|name| result.schedulers.iter().find(|s| s.name == *name))
        .collect();
    let mut blocks = program_blocks(&columns, detail);
    blocks.push(class_block(&columns));
    let counted: [(_, InClass); 3] = [
        ("read from swap", |class| class.swapped_in),
        ("written to swap", |class| class.swapped_out.last().copied()),
        ("that came back", |class| class.refaults),
    ];
    let counted = counted.iter().take(match detail {
        Detail::Brief => 1,
        Detail::Full => 3,
    });
    blocks.extend(counted.map(|(note, of)| page_block(&columns, note, *of)));
    blocks.push(machine_block(&columns, result, detail));
    blocks.retain(|block| !block.rows.is_empty());
    blocks
}

/// The name a block of programs goes by: that of the instance, or of all instances.
fn block_name(program: &ProgramResult, detail: Detail) -> &str {
    if detail == Detail::Full {
        &program.name
    } else {
        base_name(program)
    }
}

fn program_blocks(columns: &[Option<&SchedulerResult>], detail: Detail) -> Vec<Block> {
    let mut keys: Vec<(&str, &str, &str)> = Vec::new();
    for program in columns.iter().flatten().flat_map(|s| &s.programs) {
        let key = (
            block_name(program, detail),
            program.class.as_str(),
            program.kind.as_str(),
        );
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter()
        .map(|key| program_block(columns, detail, key))
        .collect()
}

fn program_block(
    columns: &[Option<&SchedulerResult>],
    detail: Detail,
    (name, class, kind): (&str, &str, &str),
) -> Block {
    let instances: Vec<Vec<&ProgramResult>> = columns
        .iter()
        .map(|column| {
            let programs = column.map_or(&[][..], |s| &s.programs).iter();
            let same = |p: &&ProgramResult| {
                block_name(p, detail) == name && p.class == class && p.kind == kind
            };
            programs.filter(same).collect()
        })
        .collect();
    let shown = MEASURES
        .iter()
        .filter(|m| detail == Detail::Full || m.detail == Detail::Brief);
    let mut rows: Vec<Row> = shown
        .filter_map(|measure| {
            let values: Vec<_> = instances
                .iter()
                .map(|programs| measure.of(programs))
                .collect();
            figure_row(
                measure.name,
                measure.unit,
                measure.better,
                measure.decimals,
                &values,
            )
        })
        .collect();
    let failed = |programs: &Vec<&ProgramResult>| programs.iter().find_map(|p| p.failed.clone());
    rows.extend(trouble_row("ended early", instances.iter().map(failed)));
    let count = instances.iter().map(Vec::len).max().unwrap_or(0);
    let kind = if kind == name {
        String::new()
    } else {
        format!("{kind} ")
    };
    let times = if count > 1 {
        format!("{count} × ")
    } else {
        String::new()
    };
    Block {
        title: name.into(),
        note: format!("{times}{kind}in {class}"),
        rows,
    }
}

/// `asked 75.00 %`, and what its tasks can use of it if that is less.
pub fn asked_in_words(class: &ClassResult) -> String {
    let percent = |share: f64| with_unit(&number(share * 100.0, 2), "%");
    let asked = format!("asked {}", percent(class.share_asked));
    match class.share_usable {
        Some(usable) => format!("{asked}, can use {}", percent(usable)),
        None => asked,
    }
}

fn class_block(columns: &[Option<&SchedulerResult>]) -> Block {
    let mut known: Vec<&ClassResult> = Vec::new();
    for class in columns.iter().flatten().flat_map(|s| &s.classes) {
        if known.iter().all(|other| other.path != class.path) {
            known.push(class);
        }
    }
    let row = |class: &ClassResult| {
        let path = &class.path;
        let received = |s: &SchedulerResult| {
            s.classes
                .iter()
                .find(|c| c.path == *path)
                .map(|c| c.share_received * 100.0)
        };
        let values: Vec<_> = columns.iter().map(|s| s.and_then(received)).collect();
        let label = format!("{path} ({})", asked_in_words(class));
        figure_row(&label, "%", Better::Neither, 2, &values)
    };
    let rows = known.into_iter().filter_map(row).collect();
    Block {
        title: "share of the CPUs".into(),
        note: "received".into(),
        rows,
    }
}

/// The kernel's counts of a class's memory.
type InClass = fn(&ClassResult) -> Option<u64>;

/// Pages of each class.
fn page_block(columns: &[Option<&SchedulerResult>], note: &str, of: InClass) -> Block {
    let classes = columns.iter().flatten().next();
    let paths = classes.map_or(&[][..], |s| &s.classes).iter();
    let row = |class: &ClassResult| {
        let same = |s: &SchedulerResult| {
            let mut classes = s.classes.iter();
            of(classes.find(|other| other.path == class.path)?)
        };
        let values: Vec<_> = columns
            .iter()
            .map(|s| s.and_then(same).map(|pages| pages as f64))
            .collect();
        figure_row(&class.path, "", Better::Lower, 0, &values)
    };
    Block {
        title: "pages".into(),
        note: note.into(),
        rows: paths.filter_map(row).collect(),
    }
}

fn machine_block(
    columns: &[Option<&SchedulerResult>],
    result: &RunResult,
    detail: Detail,
) -> Block {
    let cpu_ns = f64::from(result.cpus) * result.duration_s * 1e9;
    let mut rows = Vec::new();
    if detail == Detail::Full {
        let idle = |s: &SchedulerResult| (cpu_ns > 0.0).then(|| s.idle_ns as f64 / cpu_ns * 100.0);
        let idle: Vec<_> = columns.iter().map(|s| s.and_then(idle)).collect();
        rows.extend(figure_row("CPUs idle", "%", Better::Neither, 2, &idle));
        let load: Vec<_> = columns.iter().map(|s| s.and_then(|s| s.load_ms)).collect();
        rows.extend(figure_row(
            "start of the scheduler",
            "ms",
            Better::Neither,
            1,
            &load,
        ));
    }
    let left = |s: &Option<&SchedulerResult>| s.and_then(|s| s.ejected.clone());
    rows.extend(trouble_row("left before the end", columns.iter().map(left)));
    Block {
        title: "scheduler".into(),
        note: String::new(),
        rows,
    }
}

/// A row of figures, or none if no scheduler has one.
fn figure_row(
    label: &str,
    unit: &'static str,
    better: Better,
    decimals: usize,
    values: &[Option<f64>],
) -> Option<Row> {
    let known = || values.iter().flatten().copied();
    let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let length_s = seconds_of(unit);
    let scale = length_s.map(|length_s| (length_s, Scale::of(known().map(|v| v * length_s))));
    let text = |value: f64| match scale {
        Some((length_s, scale)) => scale.write(value * length_s),
        None => with_unit(&number(value, decimals), unit),
    };
    let texts: Vec<_> = values
        .iter()
        .map(|v| v.map_or(String::new(), text))
        .collect();
    let best = match better {
        Better::Lower => text(least),
        Better::Higher => text(most),
        Better::Neither => String::new(),
    };
    // Nothing is best where all are equal.
    let differ = text(least) != text(most);
    let cell = |text: String| Cell {
        best: differ && !text.is_empty() && text == best,
        text,
    };
    let cells = texts.into_iter().map(cell).collect();
    Some(Row {
        label: label.into(),
        cells,
        trouble: false,
    })
}

fn trouble_row(label: &str, reasons: impl Iterator<Item = Option<String>>) -> Option<Row> {
    let cell = |reason: Option<String>| Cell {
        text: reason.unwrap_or_default(),
        best: false,
    };
    let cells: Vec<_> = reasons.map(cell).collect();
    let some = cells.iter().any(|cell| !cell.text.is_empty());
    some.then(|| Row {
        label: label.into(),
        cells,
        trouble: true,
    })
}

/// `value` with `decimals` digits after the point and its thousands set apart.
pub fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (sign, digits) = plain
        .strip_prefix('-')
        .map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// A bound of the measure of this name, as it was given; a time with a unit of its size.
pub fn bound_of_measure(measure: &str, value: f64) -> String {
    match seconds_of_measure(measure) {
        Some(length_s) => exact_text(value * length_s),
        None => value.to_string(),
    }
}

/// A figure of the measure of this name: a time with a unit of its size, others with four significant digits.
pub fn of_measure(measure: &str, value: f64) -> String {
    match seconds_of_measure(measure) {
        Some(length_s) => time_text(value * length_s),
        None => significant(value),
    }
}

/// A figure that an expectation is about, which is told in words: a quotient of two times is none.
pub fn of_expectation(words: &str, value: f64) -> String {
    let mut measures = words
        .split(' ')
        .filter(|word| measures::kind(word).is_some());
    match measures.next() {
        Some(measure) if !words.contains(" over ") => of_measure(measure, value),
        _ => significant(value),
    }
}

/// `value` with four significant digits, for figures whose measure is not known.
pub fn significant(value: f64) -> String {
    let magnitude = if value == 0.0 {
        0.0
    } else {
        value.abs().log10().floor()
    };
    let text = number(value, (3.0 - magnitude).clamp(0.0, 9.0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Where and on what it ran, e.g. `virtual machine, virtual time · Linux 7.2.13 · 1 CPU · 512 MiB · 12 s`.
pub fn machine_line(result: &RunResult) -> String {
    let on = match result.on.as_str() {
        "vm" => "virtual machine, virtual time · Linux",
        "parallel" => "virtual machine, parallel, no times · Linux",
        "sim" => "simulation · Andante",
        _ => "this machine · Linux",
    };
    let cpus = if result.cpus == 1 {
        "1 CPU".into()
    } else {
        format!("{} CPUs", result.cpus)
    };
    let (kernel, memory, duration) = (&result.kernel, result.memory_mib, result.duration_s);
    format!("{on} {kernel} · {cpus} · {memory} MiB · {duration} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rate_counts_whole_seconds_only() {
        let mut program = ProgramResult::default();
        assert_eq!(least_frame_rate(&program), None);
        // From 0.9 to 3.5 s: the seconds from 1 and from 2.
        program.shown_ms = vec![900.0, 1000.0, 1400.0, 1900.0, 2000.0, 2500.0, 3500.0];
        assert_eq!(least_frame_rate(&program), Some(2.0));
    }

    #[test]
    fn frames_never_come_to_are_not_in_time() {
        let player = |due, frames, late| {
            late_share(&ProgramResult {
                due: Some(due),
                frames: Some(frames),
                late: Some(late),
                ..Default::default()
            })
        };
        assert_eq!(player(270, 270, 0), Some(0.0));
        assert_eq!(player(270, 271, 0), Some(0.0));
        // Two late, seven dropped: they are not shown.
        assert_eq!(player(90, 83, 2), Some(0.1));
        // Stuck in its third frame, which it neither shows nor drops.
        assert_eq!(player(200, 2, 0), Some(0.99));
        assert_eq!(player(0, 0, 0), None);
        assert_eq!(late_share(&ProgramResult::default()), None);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(number(1_234_567.0, 0), "1,234,567");
        assert_eq!(number(-1234.5, 1), "-1,234.5");
        assert_eq!(number(999.96, 1), "1,000.0");
        assert_eq!(number(0.0, 2), "0.00");
        assert_eq!(significant(0.749_89), "0.7499");
        assert_eq!(significant(12_345.6), "12,346");
        assert_eq!(significant(360.0), "360");
        assert_eq!(significant(0.0), "0");
    }

    #[test]
    fn pages_are_shown_where_they_are_counted() {
        let result = |swapped_in| RunResult {
            schedulers: vec![SchedulerResult {
                name: "stock".into(),
                classes: vec![ClassResult {
                    path: "/film".into(),
                    swapped_in,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let pages = |swapped_in, detail| {
            let blocks = blocks(&result(swapped_in), &["stock".into()], detail);
            let pages = blocks.into_iter().find(|block| block.title == "pages");
            pages.map(|block| {
                (
                    block.rows[0].label.clone(),
                    block.rows[0].cells[0].text.clone(),
                )
            })
        };
        let row = ("/film".to_owned(), "5,217".to_owned());
        assert_eq!(pages(Some(5217), Detail::Brief), Some(row));
        assert_eq!(pages(None, Detail::Full), None);
    }

    #[test]
    fn the_best_of_a_row_is_marked_unless_all_are_equal() {
        let row = figure_row("x", "", Better::Lower, 1, &[Some(2.0), Some(1.0), None]).unwrap();
        assert_eq!(
            row.cells.iter().map(|c| c.best).collect::<Vec<_>>(),
            [false, true, false]
        );
        let equal = figure_row("x", "", Better::Lower, 1, &[Some(1.01), Some(1.0)]).unwrap();
        assert!(equal.cells.iter().all(|c| !c.best));
        assert_eq!(figure_row("x", "", Better::Lower, 1, &[None]), None);
    }

    #[test]
    fn a_figure_of_an_expectation_has_the_unit_of_its_measure() {
        let text = |words, value| of_expectation(words, value).replace('\u{a0}', " ");
        assert_eq!(
            text("andante: latency_us.p99 of typing at most 10 ms", 6440.0),
            "6.44 ms"
        );
        assert_eq!(
            text("andante: all of latency_us.max of keys at most 1 s", 12.0),
            "12 µs"
        );
        assert_eq!(
            text("andante: cpu_s of a over that of b at least 0.9", 0.95),
            "0.95"
        );
        assert_eq!(text("andante: late_share of film at most 0.01", 0.5), "0.5");
        assert_eq!(text("nothing that is known", 0.5), "0.5");
    }

    #[test]
    fn what_is_asked_and_cannot_be_used_is_marked() {
        let mut class = ClassResult {
            share_asked: 0.75,
            ..Default::default()
        };
        let words = |class: &ClassResult| asked_in_words(class).replace('\u{a0}', " ");
        assert_eq!(
            (words(&class).as_str(), class.share_due()),
            ("asked 75.00 %", 0.75)
        );
        class.share_usable = Some(0.25);
        assert_eq!(words(&class), "asked 75.00 %, can use 25.00 %");
        assert_eq!(class.share_due(), 0.25);
    }

    #[test]
    fn a_frame_rate_needs_two_frames() {
        let player = |frames, span_s| ProgramResult {
            frames,
            span_s,
            ..Default::default()
        };
        assert_eq!(frame_rate(&player(Some(361), Some(12.0))), Some(30.0));
        assert_eq!(frame_rate(&player(Some(1), Some(0.0))), None);
        assert_eq!(frame_rate(&player(Some(10), None)), None);
    }
}
