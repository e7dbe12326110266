// SPDX-License-Identifier: GPL-2.0
//! The traffic of the classes of each device, as a table that fits 80 columns.

use andante_net::{Delay, Rate};
use andante_sched::text::shown;
use andante_terminal::output::{BOLD, DIM, paint};
use unicode_width::UnicodeWidthStr;

use super::{Budget, Device, Row, receive};
use crate::network::{amount, count, program, time_us};

/// The figures beside a name take 62 columns.
const NAME_MAX: usize = 18;

/// All devices, and those whose packets are placed.
pub fn render(devices: &[Device], placed: &[receive::Placed]) -> String {
    if devices.is_empty() && placed.is_empty() {
        return "Andante is on no network device: sudo andante net attach DEVICE\n".to_owned();
    }
    let mut tables: Vec<_> = devices.iter().map(table).collect();
    tables.extend(receive::render(placed));
    tables.join("\n")
}

fn table(device: &Device) -> String {
    let seen = &device.seen;
    let mut text = paint(BOLD, shown(&seen.device));
    if seen.queues == 0 {
        let again =
            "somebody has taken Andante off by other means; `andante net detach` restores the rest";
        return format!("{text}: {again}\n");
    }
    text += &match seen.rate_bits.and_then(|bits| Rate::of_bytes(bits / 8)) {
        Some(rate) => format!(": {rate} at most"),
        None => ": as fast as its driver can".to_owned(),
    };
    if seen.queues > 1 {
        text += &format!(", {} queues", seen.queues);
    }
    text += &match seen.waiting {
        1 => ", 1 packet waits\n".to_owned(),
        waiting => format!(", {waiting} packets wait\n"),
    };
    let names: Vec<_> = device.classes.iter().map(name).collect();
    let widths = names.iter().map(|name| name.width());
    let width = widths.max().unwrap_or(0).clamp(5, NAME_MAX);
    let head = format!(
        "{:width$} WEIGHT PACKETS    SENT  WAIT      P50      P99   LATE CROWDED",
        "CLASS"
    );
    text += &format!("{}\n", paint(DIM, head));
    for (row, name) in device.classes.iter().zip(names) {
        text += &line(row, &name, width);
        for note in notes(row) {
            text += &format!("  {}\n", paint(DIM, note));
        }
    }
    text
}

fn name(row: &Row) -> String {
    shown(row.class.as_deref().unwrap_or("(gone)")).into_owned()
}

/// A name that is too long for its column has a line of its own.
fn line(row: &Row, name: &str, width: usize) -> String {
    let pad = match name.width() {
        fits if fits <= width => " ".repeat(width - fits),
        _ => format!("\n{}", " ".repeat(width)),
    };
    let seen = &row.seen;
    let [p50, p99] = delays(seen.delay);
    format!(
        "{name}{pad} {:>6} {:>7} {:>7} {:>5} {p50:>8} {p99:>8} {:>6} {:>7}\n",
        weight(row),
        count(seen.packets),
        amount(seen.bytes),
        count(seen.waiting),
        count(seen.dropped_late),
        count(seen.dropped_crowded),
    )
}

/// Lines about things that most classes do not have.
fn notes(row: &Row) -> Vec<String> {
    let seen = &row.seen;
    let mut notes = Vec::new();
    if let Some(promised) = seen.promised {
        let sent = amount(seen.promised_bytes);
        notes.push(format!(
            "promised {}; {sent} were sent by that",
            Budget(promised)
        ));
        // Beside the rest it would not fit, with the longest name of a program.
        if let Some(process) = seen.promised_until {
            notes.push(format!("until {} ends", program(process)));
        }
    }
    notes
}

/// The root has no siblings.
fn weight(row: &Row) -> String {
    match (row.seen.cgroup_id, row.seen.weight) {
        (0, _) | (_, None) => "-".to_owned(),
        (_, Some(0)) => "idle".to_owned(),
        (_, Some(weight)) if row.seen.own_weight => format!("{weight}*"),
        (_, Some(weight)) => weight.to_string(),
    }
}

fn delays(delay: Option<Delay>) -> [String; 2] {
    match delay {
        None => ["-", "-"].map(str::to_owned),
        Some(delay) => {
            [delay.p50_below_us, delay.p99_below_us].map(|us| format!("<{}", time_us(us)))
        }
    }
}
