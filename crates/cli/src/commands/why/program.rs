//! What Andante has learnt of a program that runs.

use andante_core_sys::Obstacle;
use andante_sched::text::shown;
use andante_sched::watched::{Held, Watched, watched};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, BOLD, DIM, GOOD, paint};
use anyhow::Result;
use serde::Serialize;

/// Tells it of a process, or of one thread.
pub(super) fn run(pid: i32, json: bool) -> Result<Status> {
    let Some(threads) = watched(pid)? else {
        return Err(Refusal::new(
            Status::NoProcess,
            format!("there is no process {pid}: it may have ended"),
        )
        .into());
    };
    if threads.is_empty() {
        return Err(Refusal::new(
            Status::NoProcess,
            format!(
                "{pid} is not scheduled by Andante: its policy is a real-time one, or it has ended"
            ),
        )
        .into());
    }
    let told: Vec<Told> = threads.iter().map(Told::of).collect();
    if json {
        output::print_json(&told)?;
    } else {
        output::print(&text(&told))?;
    }
    Ok(Status::Ok)
}

/// One thread, as it is told; all times in ns, all parts of a CPU from 0 to 1.
#[derive(Serialize)]
struct Told {
    tid: i32,
    name: String,
    jobs_seen: u32,
    wakes_every_ns: u32,
    rhythm_ns: Option<u32>,
    works_ns: u32,
    works_at_most_ns: u32,
    works_now_ns: u32,
    cpu_part: f64,
    contract: Option<Contract>,
    no_contract_because: Option<String>,
    works_for: Option<String>,
}

#[derive(Serialize)]
struct Contract {
    learnt: bool,
    of_class: bool,
    cpu: u32,
    budget_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    awaited: Option<bool>,
    sure_part: Option<f64>,
}

impl Told {
    fn of(thread: &Watched) -> Self {
        let seen = &thread.seen;
        Self {
            tid: thread.tid,
            name: thread.name.clone(),
            jobs_seen: seen.jobs,
            wakes_every_ns: seen.distance_ns,
            rhythm_ns: seen.rhythm.steady_ns(),
            works_ns: seen.mean_ns,
            works_at_most_ns: seen.largest_ns,
            works_now_ns: seen.service_ns,
            cpu_part: part(seen.part()),
            contract: thread.contract.map(Contract::of),
            no_contract_because: match thread.contract {
                Some(_) => None,
                None => Some(obstacle(thread)),
            },
            works_for: thread.works_for.clone(),
        }
    }
}

impl Told {
    /// The rhythm that it wakes in by itself, if there is one, as part of a sentence.
    fn rhythm(&self) -> String {
        match self.rhythm_ns {
            Some(beat_ns) => format!(" (by itself in a rhythm of {})", time(beat_ns)),
            None => String::new(),
        }
    }
}

impl Contract {
    fn of(held: Held) -> Self {
        Self {
            learnt: held.learnt,
            of_class: held.of_class,
            cpu: held.cpu,
            budget_ns: held.budget_ns,
            period_ns: held.period_ns,
            deadline_ns: held.deadline_ns,
            awaited: held.learnt.then_some(held.awaited),
            sure_part: held.learnt.then(|| part(held.sure)),
        }
    }
}

/// Why it holds none: which of the rules of core/learn.h speaks against it.
fn obstacle(thread: &Watched) -> String {
    if thread.of_kernel {
        return "threads of the kernel are given none".to_owned();
    }
    if thread.bound == 0 {
        return "none is learnt: `andante run` was told so, by --learn 0 or learn_percent = 0"
            .to_owned();
    }
    if thread.background {
        return "it is niced, or under SCHED_IDLE, and gets what others leave".to_owned();
    }
    // That tells more than the jobs before it.
    if thread.seen.goes_on() {
        return "it goes on without waiting for anything".to_owned();
    }
    match thread.seen.obstacle(thread.bound) {
        Some(Obstacle::Talks) => "it wakes too often to be waiting for anything".to_owned(),
        Some(Obstacle::Long) => {
            let most = time(thread.seen.long_ns);
            format!(
                "it has worked for {most} on end not long ago, and nobody waits for an answer so long"
            )
        }
        Some(Obstacle::Much) => format!(
            "it uses more on average than all may have that is learnt, {} of a CPU",
            percent(part(thread.bound))
        ),
        Some(Obstacle::New) => {
            "it has not been seen to wait for long enough; for its own children does not count"
                .to_owned()
        }
        None if !thread.for_event => "no event from outside has woken it, nor another thread that works for one of \
                                      the last second, and what it does is too short to be a late frame"
            .to_owned(),
        None => "there was no room on any CPU when it woke last".to_owned(),
    }
}

fn text(threads: &[Told]) -> String {
    let mut text = String::new();
    for one in threads {
        let Told { tid, name, .. } = one;
        text += &format!("{tid:>8}  {}\n", paint(BOLD, shown(name)));
        let mut line = |said: String| text += &format!("          {said}\n");
        line(match one.jobs_seen {
            0 => "has not been seen to wake".to_owned(),
            _ => format!(
                "wakes every {}{} and works for {}, {} at most lately: {} of a CPU",
                time(one.wakes_every_ns),
                one.rhythm(),
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
            (Some(contract), _) => line(contract.text()),
            (None, Some(because)) => line(paint(DIM, format!("no contract: {because}"))),
            (None, None) => {}
        }
    }
    text
}

impl Contract {
    fn text(&self) -> String {
        let kind = match self {
            Self { learnt: true, .. } => "learnt contract",
            Self { of_class: true, .. } => "contract of its class",
            _ => "contract",
        };
        let mut text = format!(
            "{} on CPU {}: up to {} in {}, within {} of waking",
            paint(GOOD, kind),
            self.cpu,
            time(self.budget_ns),
            time(self.period_ns),
            time(self.deadline_ns)
        );
        match (self.awaited, self.sure_part) {
            (Some(false), _) => text += "; sure of nothing, for nobody seems to wait for it",
            (_, Some(sure)) => text += &format!("; sure of {} of it", percent(sure)),
            (_, None) => {}
        }
        text
    }
}

fn part(of_1024: u32) -> f64 {
    f64::from(of_1024) / 1024.0
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A time in the unit that suits it.
fn time(ns: impl Into<u64>) -> String {
    let ns = ns.into() as f64;
    match ns {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_core_sys::{Learner, Rhythm};

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
        anstream::adapter::strip_str(&text(&[Told::of(thread)])).to_string()
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
