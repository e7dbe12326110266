//! What Andante has learnt of a program that runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

use andante_admission::Size;
use andante_daemon::MemoryListed;
use andante_net::{Delay, Promised, Seen};
use andante_sched::class::{ClassPath, Tree};
use andante_sched::explained::{Explained, Under, time};
use andante_sched::text::shown;
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, BOLD, DIM, GOOD, paint};
use anyhow::Result;
use serde::Serialize;

use super::super::contracts;
use super::super::net::Budget;
use crate::live;
use crate::network::{Look, count, time_us};

/// Tells it of a process, or of one thread.
pub(super) fn run(pid: i32, json: bool) -> Result<Status> {
    let Some(told) = live::explained(pid)? else {
        return Err(Refusal::new(
            Status::NoProcess,
            format!("there is no process {pid}: it may have ended"),
        )
        .into());
    };
    if told.is_empty() {
        return Err(Refusal::new(
            Status::NoProcess,
            format!(
                "{pid} is not scheduled by Andante: its policy is a real-time one, or it has ended"
            ),
        )
        .into());
    }
    let look = Look::now();
    let packets = |thread: &Explained| match &look {
        Some(look) => packets_of(look, thread.tid),
        None => Ok(Vec::new()),
    };
    if json {
        let told: Result<Vec<_>> = told
            .iter()
            .map(|thread| {
                let (packets, memory) = (packets(thread)?, memory_of(pid));
                Ok(Told {
                    thread,
                    packets,
                    memory,
                })
            })
            .collect();
        output::print_json(&told?)?;
        return Ok(Status::Ok);
    }
    let mut text = text(&told);
    let mut classes: Vec<Packets> = Vec::new();
    for thread in &told {
        classes.extend(packets(thread)?);
    }
    classes.sort_by(|a, b| (&a.class, &a.device).cmp(&(&b.class, &b.device)));
    classes.dedup();
    classes.iter().for_each(|of| text += &of.line());
    text += &memory_of(pid).map_or_else(String::new, |of| of.line());
    output::print(&text)?;
    Ok(Status::Ok)
}

/// The JSON of a thread.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    thread: &'a Explained,
    /// The traffic of sockets that are opened in its class, by each device that is attached; for root alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packets: Vec<Packets>,
    /// The memory reserved for its class, or one above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

/// Memory of the class of a process.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Memory {
    #[serde(flatten)]
    reserved: MemoryListed,
    /// The most that all that is learnt may have together [1/1000 of all].
    learnt_per_mille: u32,
}

/// The reservation of the class of a process, or of the nearest above it; none: there is none, or nobody can be asked.
fn memory_of(pid: i32) -> Option<Memory> {
    let class = Tree::open().ok()?.class_of(pid)?;
    let seen = contracts::list()?.memory?;
    let mut above: Vec<_> = class.ancestry().collect();
    above.reverse();
    let all = &seen.reservations;
    let of = |class: &ClassPath| all.iter().find(|one| one.class == class.to_text());
    Some(Memory {
        reserved: above.iter().find_map(of)?.clone(),
        learnt_per_mille: seen.learnt_per_mille,
    })
}

impl Memory {
    fn line(&self) -> String {
        let one = &self.reserved;
        let class = shown(&one.class);
        let why = match one.learnt {
            Some(pid) => format!(
                "learnt of process {pid}, which has behaved as a film, a game or a call does; all that is learnt may \
                 have {:.0} % of memory",
                f64::from(self.learnt_per_mille) / 10.0
            ),
            None => format!("asked for by user {}", one.uid),
        };
        format!(
            "memory of {class}: {} reserved ({why}); it needs {} and has {}, {} held that others have read first, {} in \
             the swap; it has waited {:.1} s for memory\n",
            Size(one.bytes),
            Size(one.found.needed),
            Size(one.found.used),
            Size(one.found.shared),
            Size(one.found.swapped),
            one.found.stalled_us as f64 / 1e6
        )
    }
}

/// Packets of a class, since its device was attached.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Packets {
    device: String,
    class: String,
    packets: u64,
    delay: Option<Delay>,
    promised: Option<Promised>,
}

/// The traffic of the class of a thread. Packets are of the nearest class that has the cpu controller.
fn packets_of(look: &Look, tid: i32) -> Result<Vec<Packets>> {
    let tree = Tree::open()?;
    let mut class = tree.class_of(tid);
    while let Some(at) = &class
        && !at.is_root()
        && !tree.directory(at).join("cpu.weight").exists()
    {
        class = at.parent();
    }
    let Some(class) = class else {
        return Ok(Vec::new()); // it has ended meanwhile
    };
    let id = match class.is_root() {
        true => Some(0),
        false => fs::metadata(tree.directory(&class)).ok().map(|of| of.ino()),
    };
    let of = |device: &Seen| {
        let sent = (device.classes.iter()).find(|seen| Some(seen.cgroup_id) == id)?;
        Some(Packets {
            device: device.device.clone(),
            class: class.to_text(),
            packets: sent.packets,
            delay: sent.delay,
            promised: sent.promised,
        })
    };
    Ok(look.devices.iter().filter_map(of).collect())
}

impl Packets {
    fn line(&self) -> String {
        let (class, device) = (shown(&self.class), shown(&self.device));
        let mut text = format!("packets of {class} by {device}: ");
        text += &match self.delay {
            None => "none was sent".to_owned(),
            Some(delay) => format!(
                "{} sent, half of which waited for less than {}, and 99 of 100 for less than {}",
                count(self.packets),
                time_us(delay.p50_below_us),
                time_us(delay.p99_below_us)
            ),
        };
        if let Some(promised) = self.promised {
            text += &format!("; promised {}", Budget(promised));
        }
        text + "\n"
    }
}

/// The rhythm that a thread wakes in by itself, if there is one, as part of a sentence.
fn rhythm(of: &Explained) -> String {
    match of.rhythm_ns {
        Some(beat_ns) => format!(" (by itself in a rhythm of {})", time(beat_ns)),
        None => String::new(),
    }
}

fn text(threads: &[Explained]) -> String {
    let mut text = String::new();
    for one in threads {
        let Explained { tid, name, .. } = one;
        text += &format!("{tid:>8}  {}\n", paint(BOLD, shown(name)));
        let mut line = |said: String| text += &format!("          {said}\n");
        line(match one.jobs_seen {
            0 => "has not been seen to wake".to_owned(),
            _ => format!(
                "wakes every {}{} and works for {}, {} at most lately: {} of a CPU",
                time(one.wakes_every_ns),
                rhythm(one),
                time(one.works_ns),
                time(one.works_at_most_ns),
                percent(one.cpu_part)
            ),
        });
        if one.works_now_ns > one.works_at_most_ns {
            let now = time(one.works_now_ns);
            line(format!("has worked for {now} or more since it woke last"));
        }
        if let Some(class) = &one.works_for {
            line(format!("works for a client in {class} at present"));
        }
        match (&one.contract, &one.no_contract_because) {
            (Some(contract), _) => line(promised(contract)),
            (None, Some(because)) => line(paint(DIM, format!("no contract: {because}"))),
            (None, None) => {}
        }
    }
    text
}

fn promised(of: &Under) -> String {
    let kind = match of {
        Under { learnt: true, .. } => "learnt contract",
        Under { of_class: true, .. } => "contract of its class",
        _ => "contract",
    };
    let mut text = format!(
        "{} on CPU {}: up to {} in {}, within {} of waking",
        paint(GOOD, kind),
        of.cpu,
        time(of.budget_ns),
        time(of.period_ns),
        time(of.deadline_ns)
    );
    match (of.awaited, of.sure_part) {
        (Some(false), _) => text += "; sure of nothing, for nobody seems to wait for it",
        (_, Some(sure)) => text += &format!("; sure of {} of it", percent(sure)),
        (_, None) => {}
    }
    text
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_core_sys::{Learner, Rhythm};
    use andante_sched::watched::{Held, Watched};

    fn film() -> Watched {
        Watched {
            tid: 17,
            name: "mpv".to_owned(),
            of_kernel: false,
            for_event: true,
            background: false,
            seen: Learner {
                jobs: 16,
                distance_ns: 33_300_000,
                mean_ns: 7_200_000,
                largest_ns: 16_100_000,
                rhythm: Rhythm {
                    beats: 16,
                    beat_ns: 33_300_000,
                    ..Rhythm::default()
                },
                ..Learner::default()
            },
            bound: 512,
            contract: Some(Held {
                learnt: true,
                of_class: false,
                budget_ns: 32_200_000,
                period_ns: 64_400_000,
                deadline_ns: 42_000_000,
                cpu: 1,
                awaited: true,
                sure: 249,
            }),
            works_for: None,
        }
    }

    fn said(thread: &Watched) -> String {
        anstream::adapter::strip_str(&text(&[Explained::of(thread)])).to_string()
    }

    #[test]
    fn a_learnt_contract_is_explained() {
        assert_eq!(
            said(&film()),
            "      17  mpv\n\
             \x20         wakes every 33.3 ms (by itself in a rhythm of 33.3 ms) and works for 7.2 ms, \
             16.1 ms at most lately: 22 % of a CPU\n\
             \x20         learnt contract on CPU 1: up to 32.2 ms in 64.4 ms, within 42.0 ms of waking; \
             sure of 24 % of it\n"
        );
    }

    #[test]
    fn packets_of_the_class_have_waited_for_so_long() {
        let mut of = Packets {
            device: "eth0".into(),
            class: "/film".into(),
            packets: 12_345,
            delay: Some(Delay {
                p50_below_us: 512,
                p99_below_us: 4096,
            }),
            promised: Some(Promised {
                bytes: 2500,
                period_ns: 10_000_000,
            }),
        };
        assert_eq!(
            of.line(),
            "packets of /film by eth0: 12.3k sent, half of which waited for less than 512 µs, and 99 of 100 for \
             less than 4.10 ms; promised 2mbit/10ms\n"
        );
        (of.delay, of.promised) = (None, None);
        assert_eq!(of.line(), "packets of /film by eth0: none was sent\n");
    }

    #[test]
    fn learnt_memory_is_explained() {
        let listed = super::super::super::memory::samples::listed("/film");
        let mut of = Memory {
            reserved: listed,
            learnt_per_mille: 250,
        };
        let asked = of.line();
        assert!(
            asked.contains("200M reserved (asked for by user 0); it needs 75M"),
            "{asked}"
        );
        of.reserved.learnt = Some(7);
        let learnt = of.line();
        assert!(learnt.contains("learnt of process 7"), "{learnt}");
        assert!(learnt.contains("may have 25 % of memory"), "{learnt}");
    }

    #[test]
    fn so_is_that_the_class_holds_one() {
        let mut thread = film();
        thread.contract = thread.contract.map(|held| Held {
            learnt: false,
            of_class: true,
            ..held
        });
        let told = said(&thread);
        assert!(
            told.contains("contract of its class on CPU 1: up to"),
            "{told}"
        );
        assert!(!told.contains("sure of"), "{told}");
    }

    #[test]
    fn so_is_that_nobody_seems_to_wait() {
        let mut thread = film();
        thread.contract = thread.contract.map(|held| Held {
            awaited: false,
            sure: 0,
            ..held
        });
        assert!(said(&thread).contains("; sure of nothing, for nobody seems to wait for it"));
    }

    #[test]
    fn so_is_that_there_is_none() {
        let without = |change: fn(&mut Watched)| {
            let mut thread = film();
            thread.contract = None;
            change(&mut thread);
            said(&thread)
        };
        assert!(without(|_| {}).contains("no room on any CPU"));
        assert!(without(|t| t.of_kernel = true).contains("threads of the kernel"));
        assert!(without(|t| t.bound = 0).contains("--learn 0"));
        assert!(without(|t| t.seen.distance_ns = 90_000).contains("too often"));
        assert!(without(|t| t.seen.long_ns = 55_000_000).contains("55.0 ms on end"));
        assert!(without(|t| t.seen.mean_ns = 20_000_000).contains("50 % of a CPU"));
        assert!(without(|t| t.seen.jobs = 3).contains("not been seen"));
        let talks = |thread: &mut Watched| {
            thread.for_event = false;
            thread.seen.mean_ns = 20_000;
        };
        assert!(without(talks).contains("no event from outside"));
        let busy = without(|t| t.seen.service_ns = 2_000_000_000);
        assert!(busy.contains("has worked for 2.0 s or more"), "{busy}");
        let typist = without(|t| t.seen.rhythm.uneven_ns = 20_000_000);
        assert!(typist.contains("wakes every 33.3 ms and works"), "{typist}");
        let client = without(|t| t.works_for = Some("/player".to_owned()));
        assert!(client.contains("a client in /player"));
    }
}
