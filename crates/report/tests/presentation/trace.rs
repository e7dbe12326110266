//! The trace holds what the result holds, read back by a decoder of its own.
//!
//! It walks the protobuf wire format by field numbers alone and shares no message declaration
//! with the writer, so a wrong number in those does not go unseen.

use andante_report::trace::perfetto;

use crate::fixture;

/// The field of a message: its number and its content.
#[derive(Debug, Clone, PartialEq)]
enum Value<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// The fields of `message`, in order.
fn fields(mut message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut message)),
            1 => {
                let (double, rest) = message.split_at(8);
                message = rest;
                Value::Double(f64::from_le_bytes(double.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Value::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message)
        .into_iter()
        .find_map(|(at, value)| match value {
            Value::Number(number) if at == field => Some(number),
            _ => None,
        })
}

fn bytes(message: &[u8], field: u64) -> Option<&[u8]> {
    fields(message)
        .into_iter()
        .find_map(|(at, value)| match value {
            Value::Bytes(bytes) if at == field => Some(bytes),
            _ => None,
        })
}

fn text(message: &[u8], field: u64) -> Option<&str> {
    bytes(message, field).map(|bytes| std::str::from_utf8(bytes).unwrap())
}

/// The packets of a trace: field 1 of `perfetto.protos.Trace`.
fn packets(trace: &[u8]) -> Vec<&[u8]> {
    let packet = |(field, value)| match (field, value) {
        (1, Value::Bytes(packet)) => packet,
        other => panic!("not a packet: {other:?}"),
    };
    fields(trace).into_iter().map(packet).collect()
}

/// (track, type, time [ns], name) of every event: `TracePacket.track_event`, field 11.
fn events(trace: &[u8]) -> Vec<(u64, u64, u64, String)> {
    let event = |packet: &&[u8]| {
        let event = bytes(packet, 11)?;
        let name = text(event, 23).unwrap_or_default().to_owned();
        Some((
            number(event, 11)?,
            number(event, 9)?,
            number(packet, 8)?,
            name,
        ))
    };
    packets(trace).iter().filter_map(event).collect()
}

/// The id of the track called `name`: `TracePacket.track_descriptor`, field 60.
fn track(trace: &[u8], name: &str) -> Option<u64> {
    packets(trace).into_iter().find_map(|packet| {
        let track = bytes(packet, 60)?;
        (text(track, 2) == Some(name)).then(|| number(track, 1))?
    })
}

#[test]
fn every_scheduler_is_a_process() {
    let trace = perfetto(&fixture::film());
    let process = |packet: &&[u8]| {
        let process = bytes(bytes(packet, 60)?, 3)?;
        Some((number(process, 1)?, text(process, 6)?.to_owned()))
    };
    let processes: Vec<_> = packets(&trace).iter().filter_map(process).collect();
    let names = ["Andante", "stock scheduler, same weights", "scx_bpfland"];
    assert_eq!(
        processes,
        [1, 2, 3]
            .into_iter()
            .zip(names.map(String::from))
            .collect::<Vec<_>>()
    );
}

#[test]
fn every_packet_belongs_to_the_one_sequence_and_to_a_known_track() {
    let trace = perfetto(&fixture::film());
    let packets = packets(&trace);
    assert!(packets.iter().all(|packet| number(packet, 10) == Some(1)));
    assert_eq!(
        number(packets[0], 13),
        Some(1),
        "the first clears the state"
    );
    let mut known = std::collections::BTreeSet::from([0]);
    for packet in packets {
        if let Some(track) = bytes(packet, 60) {
            assert!(
                known.contains(&number(track, 5).unwrap_or(0)),
                "parent before child"
            );
            assert!(known.insert(number(track, 1).unwrap()), "an id given twice");
        }
        if let Some(event) = bytes(packet, 11) {
            assert!(known.contains(&number(event, 11).unwrap()));
        }
    }
}

#[test]
fn runs_are_slices_in_the_order_of_time() {
    let trace = perfetto(&fixture::awkward());
    let cpu = track(&trace, "CPU 0").unwrap();
    let runs: Vec<_> = events(&trace)
        .into_iter()
        .filter(|event| event.0 == cpu)
        .collect();
    let expected = [
        (1, 1_000, "cc1"),
        (2, 5_000, ""),
        (1, 5_000, "mpv"),
        (2, 7_000, ""),
    ];
    let expected = expected.map(|(kind, at_ns, name)| (cpu, kind, at_ns, name.to_owned()));
    assert_eq!(runs, expected);
}

#[test]
fn frames_are_instants_and_shares_are_counters() {
    let film = fixture::film();
    let stock = &film.schedulers[1].programs[0];
    let trace = perfetto(&andante_result::RunResult {
        schedulers: vec![film.schedulers[1].clone()],
        ..film.clone()
    });
    let frames = track(&trace, "frames of film").unwrap();
    let count = |name: &str| {
        let events = events(&trace).into_iter();
        events
            .filter(|e| e.0 == frames && e.1 == 3 && e.3 == name)
            .count() as u64
    };
    assert_eq!(
        (Some(count("shown")), Some(count("dropped"))),
        (stock.frames, stock.dropped)
    );

    let share = track(&trace, "share of /build").unwrap();
    let value = packets(&trace).into_iter().find_map(|packet| {
        let event = bytes(packet, 11).filter(|event| number(event, 11) == Some(share))?;
        fields(event)
            .into_iter()
            .find(|(field, _)| *field == 44)
            .map(|(_, value)| value)
    });
    let Some(Value::Double(percent)) = value else {
        panic!("{value:?}")
    };
    assert!((percent - 89.9).abs() < 1e-6, "{percent}");
}

#[test]
fn nothing_makes_an_empty_trace() {
    assert!(perfetto(&fixture::empty()).is_empty());
}
