//! The trace of a run, for Perfetto's viewer (ui.perfetto.dev, or a local copy of it).
//!
//! # Format
//! Perfetto's native protobuf trace: a `Trace` message of `TracePacket`s that carry
//! `TrackDescriptor`s and `TrackEvent`s, the part of the format its authors keep stable. Every
//! scheduler is a process of its own and all begin at time 0, so the same instant of the scenario
//! stands in one line however many schedulers were run. Under each process:
//!
//! * one track per CPU: who ran there and for how long ([`SchedulerResult::runs`]);
//! * one counter per class: its share of all CPUs between two samples [%];
//! * one track per player: an instant for each frame shown, and one for each frame dropped.
//!
//! The messages below are declared field by field with the numbers of Perfetto's `.proto` files;
//! fields that are not needed are not declared.

use andante_result::title::scheduler_title;
use andante_result::{ClassResult, ProgramResult, RunResult, SchedulerResult};
use prost::Message;

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
/// Child tracks stand in the order of their ranks.
const ORDER_EXPLICIT: i32 = 3;
/// Tells the viewer that no earlier packet of this sequence is missing.
const SEQUENCE_STARTS: u32 = 1;
/// All packets come from this one writer.
const SEQUENCE: u32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    /// [ns]
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<Annotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Counter {
    #[prost(string, optional, tag = "6")]
    unit_name: Option<String>,
}

/// The trace of `result` in Perfetto's protobuf format: the bytes of a `.perfetto-trace` file.
pub fn perfetto(result: &RunResult) -> Vec<u8> {
    let mut writer = Writer::default();
    for scheduler in &result.schedulers {
        writer.scheduler(scheduler, result.cpus);
    }
    if let Some(first) = writer.trace.packet.first_mut() {
        first.sequence_flags = Some(SEQUENCE_STARTS);
    }
    writer.trace.encode_to_vec()
}

/// Collects packets and hands out track ids.
#[derive(Default)]
struct Writer {
    trace: Trace,
    /// The last track id given out; ids only need to differ.
    last_uuid: u64,
}

impl Writer {
    fn scheduler(&mut self, scheduler: &SchedulerResult, cpus: u32) {
        let pid = 1 + self.trace.packet.iter().filter(|p| is_process(p)).count() as i32;
        let process_name = Some(scheduler_title(&scheduler.name));
        let process = self.track(TrackDescriptor {
            process: Some(Process {
                pid: Some(pid),
                process_name,
            }),
            child_ordering: Some(ORDER_EXPLICIT),
            ..Default::default()
        });
        let mut rank = 0..;
        let mut child = |name: String, counter| TrackDescriptor {
            name: Some(name),
            parent_uuid: Some(process),
            sibling_order_rank: rank.next(),
            counter,
            ..Default::default()
        };
        for program in scheduler.programs.iter().filter(|p| has_frames(p)) {
            let track = self.track(child(format!("frames of {}", program.name), None));
            self.frames(track, program);
        }
        if !scheduler.runs.is_empty() {
            for cpu in 0..cpus {
                let track = self.track(child(format!("CPU {cpu}"), None));
                self.runs(track, scheduler, cpu);
            }
        }
        for class in scheduler.classes.iter().filter(|c| !c.samples.is_empty()) {
            let unit = Counter {
                unit_name: Some("%".into()),
            };
            let track = self.track(child(format!("share of {}", class.path), Some(unit)));
            self.shares(track, class, &scheduler.sample_ns, cpus);
        }
    }

    /// One slice per run: a run ends before the next on its CPU begins, so they never nest.
    fn runs(&mut self, track: u64, scheduler: &SchedulerResult, cpu: u32) {
        let mut runs: Vec<_> = scheduler.runs.iter().filter(|run| run.cpu == cpu).collect();
        runs.sort_by_key(|run| run.start_ns);
        for run in runs {
            let tid = Annotation {
                name: Some("tid".into()),
                uint_value: Some(u64::from(run.tid)),
                ..Default::default()
            };
            let rule = run.rule.as_ref().map(|rule| Annotation {
                name: Some("rule".into()),
                string_value: Some(rule.clone()),
                ..Default::default()
            });
            let begin = TrackEvent {
                name: Some(run.comm.clone()),
                debug_annotations: [tid].into_iter().chain(rule).collect(),
                ..event(track, SLICE_BEGIN)
            };
            self.event(run.start_ns, begin);
            self.event(run.start_ns + run.length_ns, event(track, SLICE_END));
        }
    }

    fn frames(&mut self, track: u64, program: &ProgramResult) {
        let shown = program.shown_ms.iter().map(|&at| (at, "shown"));
        let dropped = program.dropped_ms.iter().map(|&at| (at, "dropped"));
        let mut frames: Vec<_> = shown.chain(dropped).collect();
        frames.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at_ms, what) in frames {
            let instant = TrackEvent {
                name: Some(what.into()),
                ..event(track, INSTANT)
            };
            self.event((at_ms.max(0.0) * 1e6).round() as u64, instant);
        }
    }

    /// A counter holds its value until the next, so each share is written where its window begins.
    fn shares(&mut self, track: u64, class: &ClassResult, sample_ns: &[u64], cpus: u32) {
        let (mut since_ns, mut had_ns) = (0, 0);
        for (&at_ns, &cpu_ns) in sample_ns.iter().zip(&class.samples) {
            if at_ns > since_ns {
                let window_ns = (at_ns - since_ns) as f64 * f64::from(cpus.max(1));
                let percent = cpu_ns.saturating_sub(had_ns) as f64 / window_ns * 100.0;
                let value = TrackEvent {
                    double_counter_value: Some(percent),
                    ..event(track, COUNTER)
                };
                self.event(since_ns, value);
            }
            (since_ns, had_ns) = (at_ns, cpu_ns);
        }
    }

    fn track(&mut self, descriptor: TrackDescriptor) -> u64 {
        self.last_uuid += 1;
        let track_descriptor = Some(TrackDescriptor {
            uuid: Some(self.last_uuid),
            ..descriptor
        });
        self.push(Packet {
            track_descriptor,
            ..Default::default()
        });
        self.last_uuid
    }

    fn event(&mut self, timestamp_ns: u64, event: TrackEvent) {
        self.push(Packet {
            timestamp: Some(timestamp_ns),
            track_event: Some(event),
            ..Default::default()
        });
    }

    fn push(&mut self, packet: Packet) {
        self.trace.packet.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..packet
        });
    }
}

fn event(track: u64, kind: i32) -> TrackEvent {
    TrackEvent {
        track_uuid: Some(track),
        r#type: Some(kind),
        ..Default::default()
    }
}

fn is_process(packet: &Packet) -> bool {
    packet
        .track_descriptor
        .as_ref()
        .is_some_and(|track| track.process.is_some())
}

fn has_frames(program: &ProgramResult) -> bool {
    !program.shown_ms.is_empty() || !program.dropped_ms.is_empty()
}
