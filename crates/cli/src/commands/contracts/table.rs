// SPDX-License-Identifier: GPL-2.0
//! Contracts as a table: what was promised, and what came of it.

use andante_admission::{Duration, Placement, Promise};
use andante_daemon::{Kept, LearntSeen, List, Listed};
use andante_sched::text::shown;
use andante_terminal::output::{self, BAD, BOLD, DIM, MEND, paint, percent, seconds};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::super::net::Budget;
use crate::network;

const COLUMNS: usize = 8;
const TITLES: [&str; COLUMNS] = [
    "CONTRACT",
    "HOLDER",
    "PROMISED",
    "CPU",
    "USED",
    "JOBS",
    "MISSED",
    "EXHAUSTED",
];

/// A contract, and what it used between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// As it is now.
    #[serde(flatten)]
    pub contract: Listed,
    /// C/T [ratio of a CPU].
    pub share_promised: f64,
    /// CPU time under the contract between the looks [ratio of a CPU]; none after one look only.
    pub share_used: Option<f64>,
}

/// Rows of the contracts there are, with what they used since `before`.
pub fn between(before: Option<&List>, after: &List) -> Vec<Row> {
    let row = |contract: &Listed| {
        let terms = contract.terms;
        let earlier = before.and_then(|before| service(before, contract));
        let now = contract.kept.map(|kept| kept.service_ns);
        let length_ns = before.map_or(0, |before| after.now_ns.saturating_sub(before.now_ns));
        let used = |(now, earlier): (u64, u64)| now.saturating_sub(earlier) as f64;
        Row {
            contract: contract.clone(),
            share_promised: terms.budget_ns as f64 / terms.period_ns as f64,
            share_used: now
                .zip(earlier)
                .filter(|_| length_ns > 0)
                .map(|both| used(both) / length_ns as f64),
        }
    };
    after.contracts.iter().map(row).collect()
}

/// What the same contract had used then; one that is new since: nothing.
fn service(list: &List, contract: &Listed) -> Option<u64> {
    let found = list.contracts.iter().find(|listed| {
        listed.name == contract.name && listed.holder.holder == contract.holder.holder
    });
    Some(
        found
            .and_then(|found| found.kept)
            .map_or(0, |kept| kept.service_ns),
    )
}

/// A learnt contract, and what it used between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearntRow {
    /// As it is now.
    #[serde(flatten)]
    pub learnt: LearntSeen,
    /// CPU time under the contract between the looks [ratio of a CPU]; none after one look only.
    pub share_used: Option<f64>,
}

/// Rows of the learnt contracts there are, with what they used since `before`: who used most comes first.
pub fn learnt_between(
    before: Option<(u64, &[LearntSeen])>,
    (now_ns, after): (u64, &[LearntSeen]),
) -> Vec<LearntRow> {
    let row = |learnt: &LearntSeen| {
        let share_used = before.and_then(|(then_ns, before)| {
            let length_ns = now_ns
                .checked_sub(then_ns)
                .filter(|length_ns| *length_ns > 0)?;
            // One of the same thread that has used more by then was another one.
            let earlier = before.iter().find(|earlier| earlier.tid == learnt.tid);
            let earlier_ns = earlier.map_or(0, |earlier| earlier.kept.service_ns);
            let used_ns = learnt.kept.service_ns.checked_sub(earlier_ns);
            Some(used_ns.unwrap_or(learnt.kept.service_ns) as f64 / length_ns as f64)
        });
        LearntRow {
            learnt: learnt.clone(),
            share_used,
        }
    };
    let mut rows: Vec<_> = after.iter().map(row).collect();
    // In the order of their threads where they used the same.
    rows.sort_by(|one, other| {
        let used = |row: &LearntRow| row.share_used.unwrap_or(0.0);
        used(other).total_cmp(&used(one))
    });
    rows
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    cells: [String; COLUMNS],
    /// It has no place on any CPU.
    pub unplaced: bool,
    missed: bool,
}

/// Lines of promised contracts.
pub fn lines(rows: &[Row]) -> Vec<Line> {
    let line = |row| Line {
        cells: cells(row),
        unplaced: row.contract.placement.is_none(),
        missed: row.contract.kept.is_some_and(|kept| kept.misses > 0),
    };
    rows.iter().map(line).collect()
}

impl LearntRow {
    /// Its line: nothing is promised, so a job that was late is no alarm.
    pub fn line(&self) -> Line {
        let LearntRow { learnt, share_used } = self;
        let holder = match learnt.tid == learnt.pid {
            true => format!("{} ({})", shown(&learnt.command), learnt.tid),
            false => format!("{} (thread {})", shown(&learnt.command), learnt.tid),
        };
        let sort = if learnt.awaited {
            "learnt"
        } else {
            "learnt, nobody waits"
        };
        Line {
            cells: [
                sort.to_owned(),
                holder,
                format!(
                    "up to {}/{} by {}",
                    rounded(learnt.budget_ns),
                    rounded(learnt.period_ns),
                    rounded(learnt.deadline_ns)
                ),
                learnt.kept.cpu.to_string(),
                used(*share_used, &learnt.kept),
                ended(&learnt.kept, learnt.kept.deadlines),
                ended(&learnt.kept, learnt.kept.misses),
                learnt.kept.exhaustions.to_string(),
            ],
            unplaced: false,
            missed: false,
        }
    }
}

/// Lines of the network's contracts: they have no CPU and no jobs.
pub fn network_lines(contracts: &[network::Contract]) -> Vec<Line> {
    let nothing = || "–".to_owned();
    let line = |contract: &network::Contract| {
        let holder = match contract.until {
            Some(process) => network::program(process),
            None => shown(contract.class.as_deref().unwrap_or(network::GONE)).into_owned(),
        };
        Line {
            cells: [
                shown(&contract.name).into_owned(),
                holder,
                Budget(contract.promised).to_string(),
                nothing(),
                match contract.sent_rate {
                    Some(sent) => network::rate(sent),
                    None => network::amount(contract.sent_bytes),
                },
                nothing(),
                nothing(),
                nothing(),
            ],
            unplaced: false,
            missed: false,
        }
    };
    contracts.iter().map(line).collect()
}

/// The network's contracts without any of a CPU; nothing, where there are none.
pub fn network_alone(contracts: &network::Contracts) -> String {
    let lines = network_lines(contracts.all());
    let table = match lines.is_empty() {
        true => String::new(),
        false => table(&lines, output::columns()),
    };
    table + &contracts.why_unseen()
}

/// The table, with its title line. Beyond so many columns, if any, the names of a line stand above it.
pub fn table(lines: &[Line], most: Option<usize>) -> String {
    let layout = Layout::of(lines, most);
    let mut text = format!("{}\n", paint(DIM, layout.titles()));
    for line in lines {
        let painted = |(column, cell): (usize, String)| match column {
            0 => paint(BOLD, cell),
            3 if line.unplaced => paint(BAD, cell),
            6 if line.missed => paint(MEND, cell),
            _ => cell,
        };
        for row in layout.rows(line) {
            let row: String = row.into_iter().map(painted).collect();
            text += &format!("{}\n", row.trim_end());
        }
    }
    text
}

/// The title without colours.
pub fn plain_titles(lines: &[Line], most: usize) -> String {
    Layout::of(lines, Some(most)).titles()
}

/// The same without colours: of each line what stands above another.
pub fn plain(lines: &[Line], most: usize) -> Vec<Vec<String>> {
    let layout = Layout::of(lines, Some(most));
    let plain = |row: Cells| {
        let cells: String = row.into_iter().map(|(_, cell)| cell).collect();
        cells.trim_end().to_owned()
    };
    let of = |line| layout.rows(line).into_iter().map(plain).collect();
    lines.iter().map(of).collect()
}

/// Of the columns so many are texts; the others are figures.
const TEXTS: usize = 3;
/// Between two columns.
const GAP: usize = 2;

/// Cells as wide as they are printed, with the numbers of their columns.
type Cells = Vec<(usize, String)>;

/// How a table is set [columns of the terminal].
struct Layout {
    /// How wide its columns are.
    widths: [usize; COLUMNS],
    /// Where what was promised begins if it stands below the names.
    below: usize,
}

impl Layout {
    /// Figures have the room that they need. Texts share what is left: lines that do not fit beside those before them
    /// have their names above.
    fn of(lines: &[Line], most: Option<usize>) -> Self {
        let mut widths = TITLES.map(UnicodeWidthStr::width);
        for line in lines {
            widen(&mut widths[TEXTS..], &line.cells[TEXTS..]);
        }
        let figures: usize = widths[TEXTS..].iter().sum();
        let room = most.map_or(usize::MAX, |most| {
            most.saturating_sub(figures + GAP * (COLUMNS - 1))
        });
        for line in lines {
            let mut wider = widths;
            widen(&mut wider[..TEXTS], &line.cells[..TEXTS]);
            if wider[..TEXTS].iter().sum::<usize>() <= room {
                widths = wider;
            }
        }
        let mut layout = Self { widths, below: GAP };
        let above = lines.iter().filter(|line| !layout.fits(line));
        let terms = above.map(|line| line.cells[TEXTS - 1].width());
        // Below the names it has the room of all texts.
        let room = room.saturating_add(GAP * (TEXTS - 1));
        let widest = terms.filter(|terms| GAP + terms <= room).max().unwrap_or(0);
        let missing = (GAP + widest).saturating_sub(layout.before_figures());
        layout.widths[TEXTS - 1] += missing;
        // Below its title, if all of it fits there.
        let title = widths[0] + widths[1] + 2 * GAP;
        layout.below = title.min(layout.before_figures() - widest);
        layout
    }

    /// Room before the figures and their gap.
    fn before_figures(&self) -> usize {
        self.widths[..TEXTS].iter().sum::<usize>() + GAP * (TEXTS - 1)
    }

    fn fits(&self, line: &Line) -> bool {
        (0..TEXTS).all(|column| line.cells[column].width() <= self.widths[column])
    }

    fn titles(&self) -> String {
        let title = |column: usize| self.padded(TITLES[column], column);
        let titles: String = (0..COLUMNS).map(title).collect();
        titles.trim_end().to_owned()
    }

    /// A line is one row if its texts fit. Else what was promised stands below the names, and the figures below that
    /// if they have no room beside it.
    fn rows(&self, line: &Line) -> Vec<Cells> {
        let cells = |columns: std::ops::Range<usize>| -> Cells {
            let cell = |column: usize| (column, self.padded(&line.cells[column], column));
            columns.map(cell).collect()
        };
        if self.fits(line) {
            return vec![cells(0..COLUMNS)];
        }
        let [name, holder, terms] = [0, 1, 2].map(|column| &line.cells[column]);
        let names = vec![(0, name.clone()), (1, format!("  {holder}"))];
        let room = self.before_figures();
        let shifted = format!("{}{terms}", " ".repeat(self.below));
        let pad = room.saturating_sub(shifted.width());
        let figures = cells(TEXTS..COLUMNS).into_iter();
        if shifted.width() <= room {
            let terms = (TEXTS - 1, format!("{shifted}{}", " ".repeat(pad + GAP)));
            return vec![names, [terms].into_iter().chain(figures).collect()];
        }
        let below = (TEXTS - 1, " ".repeat(room + GAP));
        vec![
            names,
            vec![(TEXTS - 1, shifted)],
            [below].into_iter().chain(figures).collect(),
        ]
    }

    /// Text to the left, numbers to the right.
    fn padded(&self, cell: &str, column: usize) -> String {
        let pad = " ".repeat(self.widths[column].saturating_sub(cell.width()));
        let gap = " ".repeat(GAP);
        match column <= TEXTS {
            true => format!("{cell}{pad}{gap}"),
            false => format!("{pad}{cell}{gap}"),
        }
    }
}

/// Columns become as wide as these cells at least.
fn widen(widths: &mut [usize], cells: &[String]) {
    for (width, cell) in widths.iter_mut().zip(cells) {
        *width = (*width).max(cell.width());
    }
}

/// A time in three digits, as nobody has chosen it to be round.
fn rounded(ns: u64) -> String {
    let unit = 10_u64.pow(ns.max(1).ilog10().saturating_sub(2));
    Duration(ns - ns % unit).to_string().replace(' ', "")
}

/// A count of jobs; none of a task that has run and never slept, so that no job of it has ended.
fn ended(kept: &Kept, count: u64) -> String {
    match kept.deadlines == 0 && kept.service_ns > 0 {
        true => "–".to_owned(),
        false => count.to_string(),
    }
}

/// What it used between the looks, or else in sum.
fn used(share: Option<f64>, kept: &Kept) -> String {
    match share {
        Some(used) => percent(used).trim_start().to_owned(),
        None => seconds(kept.service_ns),
    }
}

fn cells(row: &Row) -> [String; COLUMNS] {
    let contract = &row.contract;
    let kept = contract.kept.unwrap_or_default();
    [
        shown(&contract.name).into_owned(),
        contract.holder.to_string(),
        promised(row),
        place(contract, &kept),
        used(row.share_used, &kept),
        ended(&kept, kept.deadlines),
        ended(&kept, kept.misses),
        kept.exhaustions.to_string(),
    ]
}

fn promised(row: &Row) -> String {
    let terms = row.contract.terms;
    let time = |ns| Duration(ns).to_string().replace(' ', "");
    let mut text = format!("{}/{}", time(terms.budget_ns), time(terms.period_ns));
    if let Some(deadline_ns) = terms.deadline_ns {
        text += &format!(" by {}", time(deadline_ns));
    }
    if terms.tolerance.window > 0 {
        text += &format!(" but {}", terms.tolerance);
    }
    if terms.flexible {
        text += " flexible";
    }
    if terms.soft {
        text += " soft";
    }
    let share = percent(row.share_promised);
    text += &format!(" = {}", share.trim_start());
    match row.contract.promise {
        Some(Promise::Nothing(_)) => text + ", unproved",
        _ => text,
    }
}

fn place(contract: &Listed, kept: &Kept) -> String {
    match &contract.placement {
        None => "none".to_owned(),
        Some(Placement::Whole { cpu }) => cpu.to_string(),
        Some(Placement::Split { pieces }) => {
            let cpus: Vec<_> = pieces.iter().map(|piece| piece.cpu.to_string()).collect();
            format!("{} now {}", cpus.join("+"), kept.cpu)
        }
    }
}

#[cfg(test)]
pub mod tests {
    use andante_daemon::{DoorSeen, Holder, HolderSeen, MachineSeen, Terms};

    use super::*;
    use crate::network::tests::look;

    /// A list of one film that has used so much.
    pub fn list(now_ns: u64, service_ns: u64) -> List {
        let contract = Listed {
            name: "mpv-7".into(),
            holder: HolderSeen {
                holder: Holder::Process(7),
                command: "mpv".into(),
            },
            uid: 0,
            terms: Terms::new(9_000_000, 30_000_000),
            placement: Some(Placement::Whole { cpu: 2 }),
            promise: Some(Promise::EveryDeadline),
            kept: Some(Kept {
                service_ns,
                deadlines: 30,
                misses: 1,
                ..Kept::default()
            }),
        };
        List {
            sessions: Vec::new(),
            now_ns,
            machine: MachineSeen {
                cpus: vec![0, 2],
                left_for_others_per_mille: 200,
                user_quota_per_mille: 100,
                users_quota_per_mille: 400,
                session_quota_per_mille: 400,
            },
            contracts: vec![contract],
            door: DoorSeen::default(),
            memory: None,
        }
    }

    /// The table as it stands on a terminal of so many columns.
    fn flat(lines: &[Line], most: usize) -> Vec<String> {
        let rows = plain(lines, most).into_iter().flatten();
        [plain_titles(lines, most)]
            .into_iter()
            .chain(rows)
            .collect()
    }

    #[test]
    fn what_is_used_is_a_part_of_one_cpu() {
        let rows = between(Some(&list(1_000, 500)), &list(2_000, 750));
        assert_eq!(rows[0].share_used, Some(0.25));
        assert_eq!(rows[0].share_promised, 0.3);
        let text = anstream::adapter::strip_str(&table(&lines(&rows), None)).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with("CONTRACT  HOLDER   PROMISED "),
            "{text}"
        );
        assert!(
            lines[1].contains("mpv (7)  9ms/30ms = 30.0 %  2    25.0 %    30       1"),
            "{text}"
        );
    }

    #[test]
    fn contracts_of_the_network_stand_in_the_same_columns() {
        let (before, after) = (look(0, 1000), look(1_000_000_000, 1_001_000));
        let path = |_| Some("/film".to_owned());
        let mut contracts = after.contracts(Some(&before), path);
        contracts.extend(after.contracts(None, path));
        contracts[1].until = Some(andante_net::Process {
            pid: u32::MAX,
            started: 0,
        });
        let mut all = lines(&between(None, &list(1_000, 500)));
        all.extend(network_lines(&contracts));
        let text = flat(&all, usize::MAX);
        assert!(
            text[2].starts_with("eth0:/film  /film       2mbit/10ms"),
            "{text:?}"
        );
        assert!(text[2].contains(" 800kbit "), "{text:?}");
        assert!(
            text[3].starts_with("eth0:/film  4294967295  2mbit"),
            "{text:?}"
        );
        assert!(text[3].contains(" 100 kB "), "{text:?}");
        assert_eq!(text[1].find("9ms"), text[2].find("2mbit"), "{text:?}");
    }

    #[test]
    fn a_table_keeps_to_the_terminal() {
        let mut of_cpu = list(1_000, 500);
        of_cpu.contracts.push(of_cpu.contracts[0].clone());
        let terms = &mut of_cpu.contracts[1].terms;
        (terms.flexible, terms.soft) = (true, true);
        terms.deadline_ns = Some(20_000_000);
        of_cpu.contracts[1].promise = None;
        let mut all = lines(&between(None, &of_cpu));
        let path = |_| Some("/user.slice/user-1000.slice/call".to_owned());
        let mut of_network = look(0, 1000).contracts(None, path);
        of_network.extend(look(0, 1000).contracts(None, |_| Some("/a".to_owned())));
        all.extend(network_lines(&of_network));
        let mut one = LearntRow {
            learnt: learnt(4_194_304, 0),
            share_used: Some(0.123),
        };
        one.learnt.command = "sound, in fifteen".into();
        one.learnt.awaited = false;
        all.push(one.line());
        let text = flat(&all, 80);
        let widths: Vec<_> = text.iter().map(|line| line.width()).collect();
        assert!(widths.iter().all(|width| *width <= 80), "{text:#?}");
        // Those that fit are one line each, and the figures of all end below their title.
        assert_eq!(text.len(), 1 + 1 + 2 + 2 + 1 + 2, "{text:#?}");
        assert!(
            text[1].starts_with("mpv-7 ") && text[1].ends_with(" 0"),
            "{text:#?}"
        );
        assert_eq!(text[2], "mpv-7  mpv (7)");
        let end = |line: &str, what: &str| {
            let at = line
                .rfind(what)
                .unwrap_or_else(|| panic!("{what} in {text:#?}"));
            line[..at + what.len()].width()
        };
        let used = end(&text[0], " USED");
        for (line, what) in [(1, "0.00 s"), (5, " 100 B"), (6, " 100 B"), (8, " 12.3 %")] {
            assert_eq!(end(&text[line], what), used, "{text:#?}");
        }
        assert_eq!(
            text[4],
            "eth0:/user.slice/user-1000.slice/call  /user.slice/user-1000.slice/call"
        );
        // Elsewhere every contract is one line, for whoever searches them.
        assert_eq!(flat(&all, usize::MAX).len(), 1 + all.len());
    }

    /// A loop ends no job, and so has missed none: a 0 would say that it kept every deadline.
    #[test]
    fn what_never_sleeps_has_no_jobs() {
        let mut kept = Kept {
            service_ns: 1,
            ..Kept::default()
        };
        assert_eq!(ended(&kept, kept.misses), "–");
        kept.deadlines = 2;
        assert_eq!(ended(&kept, kept.misses), "0");
        assert_eq!(ended(&Kept::default(), 0), "0", "it has not run yet");
    }

    #[test]
    fn names_are_shown_escaped_and_the_columns_stay_straight() {
        let mut list = list(1_000, 500);
        list.contracts.push(list.contracts[0].clone());
        list.contracts[0].name = "/a\x1b[31mred".into();
        list.contracts[0].holder.command = "\u{9b}2J\u{202e}".into();
        let lines = flat(&lines(&between(None, &list)), usize::MAX);
        assert!(
            lines[1].starts_with("/a\\x1b[31mred  \\u{9b}2J\\u{202e} (7)"),
            "{lines:?}"
        );
        assert_eq!(lines[1].find("9ms"), lines[2].find("9ms"), "{lines:?}");
    }

    /// A learnt contract of a thread that has used so much.
    pub fn learnt(tid: i32, service_ns: u64) -> LearntSeen {
        LearntSeen {
            tid,
            pid: 7,
            uid: 1000,
            command: "mpv".into(),
            budget_ns: 16_123_000,
            period_ns: 33_333_333,
            deadline_ns: 20_050_000,
            awaited: true,
            kept: Kept {
                service_ns,
                ..Kept::default()
            },
        }
    }

    #[test]
    fn learnt_contracts_come_by_what_they_use() {
        let (before, after) = (
            [learnt(7, 400), learnt(8, 500)],
            [learnt(7, 500), learnt(8, 750)],
        );
        let rows = learnt_between(Some((1_000, &before)), (2_000, &after));
        assert_eq!([rows[0].learnt.tid, rows[1].learnt.tid], [8, 7]);
        assert_eq!(rows[0].share_used, Some(0.25));
        let text = flat(
            &rows.iter().map(LearntRow::line).collect::<Vec<_>>(),
            usize::MAX,
        );
        assert!(
            text[1]
                .starts_with("learnt    mpv (thread 8)  up to 16.1ms/33.3ms by 20ms  0    25.0 %"),
            "{text:?}"
        );
        // A thread whose contract has ended, and which was given another one.
        let anew = learnt_between(Some((1_000, &before)), (2_000, &[learnt(8, 100)]));
        assert_eq!(anew[0].share_used, Some(0.1));
    }

    #[test]
    fn after_one_look_there_is_only_a_sum() {
        let rows = between(None, &list(2_000, 750));
        assert_eq!(rows[0].share_used, None);
        // Between two looks at the same instant nothing can be used.
        let at_once = between(Some(&list(5, 0)), &list(5, 9));
        assert_eq!(at_once[0].share_used, None);
    }
}
