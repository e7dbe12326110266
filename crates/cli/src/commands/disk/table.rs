// SPDX-License-Identifier: GPL-2.0
//! Attached disks, as a table.

use andante_disk::Found;
use andante_sched::text::shown;
use andante_terminal::output::{DIM, paint};
use unicode_width::UnicodeWidthStr;

/// A line for each device.
pub fn render(all: &[Found]) -> String {
    if all.is_empty() {
        return "Nothing is attached: `andante disk attach FILE|DEVICE` serves a file or a disk.\n"
            .to_owned();
    }
    let head = ["DEVICE", "SIZE", "ORDER", "AT ONCE", "SERVER", "BACKING"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].width())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<_> = (0..6)
            .map(|at| {
                let pad = " ".repeat(widths[at] - row[at].width());
                match at {
                    // Numbers end where they end.
                    1 | 3 | 4 => format!("{pad}{}", row[at]),
                    // Nothing comes after it.
                    5 => row[at].clone(),
                    _ => format!("{}{pad}", row[at]),
                }
            })
            .collect();
        cells.join("  ")
    };
    let mut text = format!("{}\n", paint(DIM, line(&rows[0])));
    for row in &rows[1..] {
        text += &format!("{}\n", line(row));
    }
    text
}

fn row(one: &Found) -> [String; 6] {
    let unknown = || "-".to_owned();
    let note = one.note.as_ref();
    [
        one.device.clone(),
        size(one.bytes),
        note.map_or_else(unknown, |note| note.order.clone()),
        note.map_or_else(unknown, |note| note.depth.to_string()),
        one.server.map_or_else(unknown, |pid| pid.to_string()),
        note.map_or_else(unknown, |note| {
            shown(&note.backing.display().to_string()).into_owned()
        }),
    ]
}

/// In the largest unit of which there is one.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for next in units {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    match scaled.fract() == 0.0 {
        true => format!("{scaled} {unit}"),
        false => format!("{scaled:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use andante_disk::Note;

    use super::*;

    #[test]
    fn devices_are_told_with_or_without_what_was_written_down() {
        let known = Found {
            device: "/dev/ublkb0".into(),
            bytes: 3 << 29,
            requests: 1023,
            server: Some(4711),
            note: Some(Note {
                backing: "/dev/sdb".into(),
                order: "fifo".into(),
                depth: 32,
            }),
        };
        let waits = Found {
            device: "/dev/ublkb12".into(),
            bytes: 1 << 40,
            server: None,
            note: None,
            ..known.clone()
        };
        let text = anstream::adapter::strip_str(&render(&[known.clone(), waits])).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "DEVICE           SIZE  ORDER  AT ONCE  SERVER  BACKING"
        );
        assert_eq!(
            lines[1],
            "/dev/ublkb0   1.5 GiB  fifo        32    4711  /dev/sdb"
        );
        assert_eq!(lines[2], "/dev/ublkb12    1 TiB  -            -       -  -");
        let json = serde_json::to_value([known]).unwrap();
        assert_eq!(json[0]["backing"], "/dev/sdb");
        assert_eq!(json[0]["server"], 4711);
        assert!(render(&[]).contains("andante disk attach"));
    }
}
