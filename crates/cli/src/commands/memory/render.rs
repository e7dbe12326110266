// SPDX-License-Identifier: GPL-2.0
//! Reserved memory in words.

use andante_admission::Size;
use andante_admission::memory::{MemoryLimit, MemoryRefusal};
use andante_daemon::{MemoryListed, MemoryReserved, MemorySeen};
use andante_sched::text::shown;
use andante_terminal::output::{BAD, BOLD, DIM, GOOD, MEND, paint, percent};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// A reservation that was made, or would be.
pub fn reserved(answer: &MemoryReserved) -> String {
    let mut text = format!(
        "{} {}  {} of memory, {} of what is unused lent\n",
        paint(GOOD, "✓"),
        paint(BOLD, shown(&answer.class)),
        Size(answer.bytes),
        part(answer.lend_per_mille),
    );
    for note in &answer.notes {
        text += &format!("    {}\n", paint(MEND, note));
    }
    text
}

/// One that cannot be made, and what could.
pub fn refused(answer: &MemoryRefusal) -> String {
    let asked = Size(answer.asked);
    let mut text = format!("{} {asked} of memory  no\n", paint(BAD, "✗"));
    text += &format!("    {}\n", limit(answer));
    for holder in answer.holders.iter().take(5) {
        text += &format!("    {} holds {}\n", shown(&holder.name), Size(holder.bytes));
    }
    if answer.holders.len() > 5 {
        text += &format!("    and {} more\n", answer.holders.len() - 5);
    }
    match answer.most {
        Some(most) => text += &format!("    {} would do: {}\n", paint(GOOD, "→"), whole(most)),
        None if answer.limit == MemoryLimit::Below => {}
        None => {
            text += "    nothing would do: release some first, with `andante reserve --release`\n"
        }
    }
    text
}

/// An amount that can be asked for: no more than that.
fn whole(bytes: u64) -> String {
    match bytes >> 20 {
        0 => Size(bytes).to_string(),
        mib => format!("{mib}M"),
    }
}

fn limit(answer: &MemoryRefusal) -> String {
    match &answer.limit {
        MemoryLimit::Machine(memory) => {
            let mut taken = vec![format!(
                "{} are the kernel's and locked",
                Size(memory.kept_by_kernel)
            )];
            if memory.protected_by_others > 0 {
                taken.push(format!(
                    "{} are protected by others",
                    Size(memory.protected_by_others)
                ));
            }
            taken.push(format!(
                "{} are left to everybody else",
                Size(memory.left_for_others())
            ));
            format!(
                "of {} of memory {}: {} can be reserved",
                Size(memory.total),
                taken.join(", "),
                Size(memory.reservable())
            )
        }
        MemoryLimit::Above { name, bytes } => {
            format!(
                "it would be a part of the {} of {}",
                Size(*bytes),
                shown(name)
            )
        }
        MemoryLimit::Below => "classes below it have more than that".to_owned(),
        MemoryLimit::Quota { all_users, bytes } => match all_users {
            false => format!(
                "a user may reserve {}, more than that root and members of the group andante",
                Size(*bytes)
            ),
            true => format!(
                "all users together may reserve {}; root and members of the group andante are not bound by that",
                Size(*bytes)
            ),
        },
        MemoryLimit::Most { name, bytes } => {
            format!("memory.max of {} is {}", shown(name), Size(*bytes))
        }
    }
}

/// A reservation, and what happened to it between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// As it is now.
    #[serde(flatten)]
    pub listed: MemoryListed,
    /// Pages that were needed again between the looks.
    pub refaults_since: Option<u64>,
    /// Accesses that waited for a disk between the looks.
    pub major_faults_since: Option<u64>,
    /// Of the time between the looks, the part in which some program of it waited for memory.
    pub stalled: Option<f64>,
}

/// Rows of the reservations there are, with what happened since `before`, so long ago [ns].
pub fn rows(before: Option<(&MemorySeen, u64)>, after: &MemorySeen) -> Vec<Row> {
    let row = |listed: &MemoryListed| {
        let earlier = before.and_then(|(seen, ns)| {
            let mut all = seen.reservations.iter();
            all.find(|earlier| earlier.class == listed.class)
                .zip(Some(ns))
        });
        let earlier = earlier.filter(|(_, ns)| *ns > 0);
        Row {
            listed: listed.clone(),
            refaults_since: earlier
                .map(|(then, _)| listed.found.refaults.saturating_sub(then.found.refaults)),
            major_faults_since: earlier.map(|(then, _)| {
                listed
                    .found
                    .major_faults
                    .saturating_sub(then.found.major_faults)
            }),
            stalled: earlier.map(|(then, ns)| {
                listed
                    .found
                    .stalled_us
                    .saturating_sub(then.found.stalled_us) as f64
                    * 1000.0
                    / ns as f64
            }),
        }
    };
    after.reservations.iter().map(row).collect()
}

const TITLES: [&str; 10] = [
    "MEMORY OF",
    "RESERVED",
    "USED",
    "PRIVATE",
    "SHARED",
    "ANON",
    "SWAPPED",
    "FREE",
    "LENT",
    "WAITED",
];

/// The reservations, with a line of titles; nothing, where there are none.
pub fn table(rows: &[Row], most: Option<usize>) -> String {
    let lines = lines(rows, most);
    let Some((titles, lines)) = lines.split_first() else {
        return String::new();
    };
    let mut text = paint(DIM, titles) + "\n";
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

/// The same without colours: the titles, and a line or two of each.
pub fn lines(rows: &[Row], most: Option<usize>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let all: Vec<[String; TITLES.len()]> = rows.iter().map(cells).collect();
    let mut widths = TITLES.map(UnicodeWidthStr::width);
    for line in &all {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.width());
        }
    }
    // A long name stands above its figures.
    let figures: usize = widths[1..].iter().map(|width| width + 2).sum();
    let room = most.map_or(usize::MAX, |most| most.saturating_sub(figures));
    let name = widths[0].min(room.max(TITLES[0].len()));
    let behind = |cells: &[String; TITLES.len()], name: &str, room: usize| {
        let figures: String = (cells[1..].iter().zip(&widths[1..]))
            .map(|(cell, width)| format!("  {}{cell}", " ".repeat(width - cell.width())))
            .collect();
        format!("{name}{}{figures}", " ".repeat(room - name.width()))
    };
    let titles = TITLES.map(str::to_owned);
    let mut lines = vec![behind(&titles, &titles[0], name)];
    for cells in &all {
        match cells[0].width() <= name {
            true => lines.push(behind(cells, &cells[0], name)),
            false => lines.extend([cells[0].clone(), behind(cells, "", name)]),
        }
    }
    lines
}

/// All of it for programs.
///
/// # Errors
/// None: it is plain data.
pub fn json(seen: &MemorySeen, rows: &[Row]) -> serde_json::Result<serde_json::Value> {
    let mut json = serde_json::to_value(seen)?;
    json["reservations"] = serde_json::to_value(rows)?;
    Ok(json)
}

fn cells(row: &Row) -> [String; TITLES.len()] {
    let listed = &row.listed;
    let size = |bytes: u64| match bytes {
        0 => "–".to_owned(),
        bytes => Size(bytes).to_string(),
    };
    let name = match listed.learnt {
        Some(pid) => format!("{} (learnt of {pid})", shown(&listed.class)),
        None => shown(&listed.class).into_owned(),
    };
    [
        name,
        size(listed.bytes),
        size(listed.found.used),
        size(listed.found.private),
        size(listed.found.shared),
        size(listed.found.anonymous),
        size(listed.found.swapped),
        size(listed.found.kept_free),
        size(listed.found.lent),
        match row.stalled {
            Some(part) => percent(part).trim_start().to_owned(),
            None => format!("{:.1} s", listed.found.stalled_us as f64 / 1e6),
        },
    ]
}

/// All of them together, in whole sentences.
pub fn notes(seen: &MemorySeen) -> String {
    let mut text = format!(
        "{} of {} that can be reserved are; {} are free, {} held for reservations\n",
        Size(seen.reserved),
        Size(seen.reservable),
        Size(seen.free),
        Size(seen.held),
    );
    if seen.reservations.is_empty() {
        return text;
    }
    if let Some(limit) = seen.limit {
        text += &format!(
            "memory may become short: whoever else wants more than {} gives pages of its own for that\n",
            Size(limit)
        );
    }
    if !seen.looked_after {
        text += &format!(
            "{}\n",
            paint(
                MEND,
                "nobody keeps free what is not lent: the process that does is being started again"
            )
        );
    }
    if seen.reserved > seen.reservable {
        text += &format!(
            "{}\n",
            paint(
                MEND,
                "more is reserved than can be now: others have locked or protected memory since"
            )
        );
    }
    text
}

fn part(per_mille: u32) -> String {
    percent(f64::from(per_mille) / 1000.0)
        .trim_start()
        .to_owned()
}

#[cfg(test)]
pub mod tests {
    use andante_admission::memory::{Memory, MemoryHeld};
    use andante_memory::words::Found;

    use super::*;

    const MIB: u64 = 1 << 20;

    pub fn listed(class: &str) -> MemoryListed {
        MemoryListed {
            class: class.into(),
            uid: 0,
            bytes: 200 * MIB,
            lend_per_mille: 800,
            until: None,
            learnt: None,
            found: Found {
                used: 60 * MIB,
                private: 10 * MIB,
                shared: 15 * MIB,
                anonymous: 50 * MIB,
                swapped: 0,
                kept_free: 25 * MIB,
                lent: 100 * MIB,
                needed: 75 * MIB,
                taken: 0,
                asked_ahead: 0,
                refaults: 7,
                major_faults: 3,
                stalled_us: 1_500_000,
                killed: 0,
            },
        }
    }

    fn seen(all: Vec<MemoryListed>) -> MemorySeen {
        MemorySeen {
            memory: Memory::default(),
            reservable: 700 * MIB,
            reserved: 200 * MIB,
            user_quota_per_mille: 100,
            learnt_per_mille: 250,
            free: 30 * MIB,
            swap: 0,
            held: 15 * MIB,
            taken: 0,
            limit: None,
            looked_after: true,
            reservations: all,
        }
    }

    #[test]
    fn a_refusal_says_what_would_do() {
        let refusal = MemoryRefusal {
            asked: 500 * MIB,
            most: Some(300 * MIB + 4096),
            limit: MemoryLimit::Machine(Memory {
                total: 1000 * MIB,
                kept_by_kernel: 100 * MIB,
                protected_by_others: 0,
                left_for_others_per_mille: 200,
            }),
            holders: vec![MemoryHeld {
                name: "/film".into(),
                bytes: 400 * MIB,
            }],
        };
        let text = refused(&refusal);
        for part in [
            "500M of memory  no",
            "of 1000M of memory 100M are",
            "700M can be",
            "/film holds 400M",
            "300M\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn rows_have_what_happened_between_two_looks() {
        let before = seen(vec![listed("/film")]);
        let mut after = before.clone();
        after.reservations[0].found.refaults += 5;
        after.reservations[0].found.stalled_us += 250_000;
        let rows = rows(Some((&before, 1_000_000_000)), &after);
        assert_eq!(
            (rows[0].refaults_since, rows[0].stalled),
            (Some(5), Some(0.25))
        );
        assert_eq!(super::rows(None, &after)[0].stalled, None);
    }

    #[test]
    fn a_limit_of_others_is_told_while_there_is_one() {
        let mut seen = seen(vec![listed("/film")]);
        assert!(!notes(&seen).contains("short"));
        seen.limit = Some(300 * MIB);
        let text = notes(&seen);
        let line = text.lines().nth(1);
        assert_eq!(
            line,
            Some(
                "memory may become short: whoever else wants more than 300M gives pages of its own for that"
            )
        );
    }

    #[test]
    fn the_table_fits_a_terminal() {
        assert_eq!(table(&[], None), "");
        let long = format!("/user.slice/{}", "a".repeat(90));
        let rows = rows(None, &seen(vec![listed("/film"), listed(&long)]));
        let text = table(&rows, Some(100));
        let figures: Vec<_> = text.lines().filter(|line| line.contains("200M")).collect();
        assert_eq!(figures.len(), 2, "{text}");
        assert!(figures.iter().all(|line| line.width() <= 100), "{text}");
        assert!(text.contains("1.5 s"), "{text}");
    }
}
