//! The course of a measurement: what happens when.
//!
//! All of it is done by this one thread, which runs above every program of the scenario
//! (SCHED_FIFO), so that signals are sent and samples are read at their instant, not when the
//! scheduler under test gets round to it. It sleeps in between.

use std::time::Duration;

use andante_job::LabError;
use andante_job::progress::At;
use andante_scenario::Kind;
use andante_scenario::choice::Choice;
use nix::sys::signal::Signal;

use super::contracts::Contracts;
use super::instance::Instance;
use super::memory::Counted;
use super::prepared::Prepared;
use super::scheduler::InCharge;
use super::tracer::Tracer;
use super::{clock, real, stop};

/// How long programs may take to write their samples after SIGTERM [s].
const STOP_TIMEOUT_S: f64 = 10.0;
/// The same where virtual CPUs wait for one another on the host: twice the watchdog's time, so that
/// whoever has not ended by then is lost [s].
const PARALLEL_STOP_TIMEOUT_S: f64 = 60.0;
/// The measurement may begin so much later than it should [ns].
const BEGIN_LATE_NS: u64 = 100_000_000;
/// Time between two messages of progress [s].
const SAY_S: f64 = 1.0;

/// Something that happens at an instant. At the same instant the order is as written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sample,
    EndTrace,
    /// A class, and which of its later quotas it has from then on.
    Limit(usize, usize),
    Start(usize),
    Suspend(usize),
    Resume(usize),
    Stop(usize),
    /// A film, and what its user does: goes elsewhere in it, goes on with it, pauses it.
    Seek(usize),
    GoOn(usize),
    Pause(usize),
    Say,
}

/// What was read during the measurement.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// When the measurement began [ns of CLOCK_MONOTONIC].
    pub begin_ns: u64,
    /// Length as measured [ns].
    pub length_ns: u64,
    /// Instants of the samples [ns since it began].
    pub sample_ns: Vec<u64>,
    /// Per class of the workload: CPU time at the samples [ns since it began].
    pub class_cpu_ns: Vec<Vec<u64>>,
    /// Per class of the workload: what the kernel counted of its memory at the samples since it began, where that is
    /// looked at.
    pub class_memory: Vec<Vec<Counted>>,
    /// Time that CPUs idled [ns].
    pub idle_ns: u64,
    /// Why the scheduler left, if it did.
    pub ejected: Option<String>,
}

pub(super) struct Timeline<'a> {
    prepared: &'a Prepared<'a>,
    instances: Vec<Instance<'a>>,
    events: Vec<(u64, Event)>,
    begin_ns: u64,
    end_ns: u64,
    tracer: Option<Tracer>,
    contracts: Contracts,
}

impl<'a> Timeline<'a> {
    /// Plans the measurement of these instances, which begins at `begin_ns`.
    pub fn new(
        prepared: &'a Prepared<'a>,
        instances: Vec<Instance<'a>>,
        begin_ns: u64,
    ) -> Result<Self, LabError> {
        let workload = prepared.workload;
        let at = |s: f64| (begin_ns as f64 + s * clock::NS_PER_S) as u64;
        let end_ns = at(workload.duration_s);
        let now_ns = clock::now_ns();
        let mut events = Vec::new();
        for (index, instance) in instances.iter().enumerate() {
            let program = instance.program;
            let start_s = match program.kind {
                Kind::Server if instance.loads_ahead() => {
                    -super::lead_s(workload) - super::SERVERS_AHEAD_S
                }
                _ => program.start_s.unwrap_or(-workload.warmup_s) + instance.later_s(),
            };
            events.push((at(start_s), Event::Start(index)));
            let later = [
                (program.suspend_s, Event::Suspend(index)),
                (program.resume_s, Event::Resume(index)),
                (program.stop_s, Event::Stop(index)),
            ];
            events.extend(
                later
                    .iter()
                    .filter_map(|(s, event)| s.map(|s| (at(s), *event))),
            );
            if let Kind::Mpv { pause, seek, .. } = &program.kind {
                // The film is later by as much.
                let at = |s: f64| at(s + instance.later_s());
                events.extend(seek.map(|seek| (at(seek.at_s), Event::Seek(index))));
                let pauses = pause.iter().flat_map(|pause| {
                    let goes_on_s = pause.at_s + pause.for_s;
                    [
                        (at(pause.at_s), Event::Pause(index)),
                        (at(goes_on_s), Event::GoOn(index)),
                    ]
                });
                events.extend(pauses);
            }
        }
        for (index, class) in workload.classes.iter().enumerate() {
            let later = class.limits.later.iter().enumerate();
            events.extend(later.map(|(k, (ns, _))| (begin_ns + ns, Event::Limit(index, k))));
        }
        let sample_s = workload.sample_ms / 1e3;
        let samples = (workload.duration_s / sample_s - 1e-9).ceil() as u64;
        events.extend((0..samples).map(|k| (at(k as f64 * sample_s), Event::Sample)));
        events.push((end_ns, Event::Sample));
        let says = (0..).map(|k| now_ns + (f64::from(k) * SAY_S * clock::NS_PER_S) as u64);
        events.extend(
            says.take_while(|at| *at < end_ns)
                .map(|at| (at, Event::Say)),
        );
        let tracer = (workload.trace_s > 0.0).then(Tracer::prepare).transpose()?;
        if tracer.is_some() {
            events.push((
                at(workload.trace_s.min(workload.duration_s)),
                Event::EndTrace,
            ));
        }
        events.sort_unstable();
        Ok(Self {
            prepared,
            instances,
            events,
            begin_ns,
            end_ns,
            tracer,
            contracts: Contracts::new(prepared.choice, workload, begin_ns),
        })
    }

    /// Carries the plan out.
    pub fn run(
        &mut self,
        scheduler: &mut Option<InCharge>,
        say: &mut dyn FnMut(At),
    ) -> Result<Measured, LabError> {
        let loaded = self.instances.iter().filter(|i| i.process.is_some());
        for instance in loaded {
            self.contracts.reserve(instance, self.prepared.classes)?;
        }
        let _above = AboveAll::enter()?;
        let mut measured = Measured {
            begin_ns: self.begin_ns,
            ..Measured::default()
        };
        let mut base = Reading::default();
        for (at_ns, event) in self.events.clone() {
            while clock::now_ns() < at_ns && !stop::requested() {
                clock::sleep_until(at_ns);
            }
            if stop::requested() {
                return Err(LabError::Interrupted);
            }
            match event {
                Event::Sample => {
                    self.sample(&mut base, &mut measured)?;
                    if measured.ejected.is_none() {
                        measured.ejected = scheduler.as_mut().and_then(InCharge::ejected);
                    }
                }
                Event::EndTrace => self.tracer.as_ref().map_or(Ok(()), Tracer::stop)?,
                Event::Start(index) => {
                    let instance = &mut self.instances[index];
                    if instance.process.is_none() {
                        instance.load(self.prepared)?;
                        self.contracts.reserve(instance, self.prepared.classes)?;
                    }
                    instance.order(self.prepared, self.begin_ns, self.end_ns)?;
                }
                Event::Limit(index, later) => {
                    let class = &self.prepared.workload.classes[index];
                    // With nothing configured there is no quota either.
                    if *self.prepared.choice != Choice::Stock {
                        let bandwidth = &class.limits.later[later].1;
                        self.prepared.classes.limit(&class.path, bandwidth)?;
                    }
                }
                Event::Suspend(index) => self.signal(index, Signal::SIGSTOP),
                Event::Resume(index) => self.signal(index, Signal::SIGCONT),
                Event::Stop(index) => self.signal(index, Signal::SIGTERM),
                Event::Pause(index) => self.instances[index].tell(real::Command::Pause)?,
                Event::GoOn(index) => self.instances[index].tell(real::Command::GoOn)?,
                Event::Seek(index) => self.instances[index].tell(real::Command::Seek)?,
                Event::Say => say(self.progress()),
            }
        }
        self.contracts.end(measured.ejected.is_some())?;
        self.await_films(say)?;
        Ok(measured)
    }

    fn progress(&self) -> At {
        let at_s = (clock::now_ns() as f64 - self.begin_ns as f64) / clock::NS_PER_S;
        let phase = if at_s < 0.0 {
            "warming up"
        } else {
            "measuring"
        };
        At {
            phase: phase.to_owned(),
            at_s: Some(at_s),
        }
    }

    fn signal(&self, index: usize, signal: Signal) {
        if let Some(process) = &self.instances[index].process {
            process.signal(signal);
        }
    }

    /// Reads all classes; at the first and the last sample the programs too.
    fn sample(&mut self, base: &mut Reading, measured: &mut Measured) -> Result<(), LabError> {
        let now = Reading::take(self.prepared)?;
        let first = measured.sample_ns.is_empty();
        if first {
            let late_ns = now.at_ns.saturating_sub(self.begin_ns);
            if late_ns > BEGIN_LATE_NS && !self.prepared.setup.parallel {
                return Err(LabError::BeganLate {
                    late_s: late_ns as f64 / clock::NS_PER_S,
                });
            }
            measured.class_cpu_ns = vec![Vec::new(); now.class_cpu_ns.len()];
            measured.class_memory = vec![Vec::new(); now.class_memory.len()];
            // The trace begins with the measurement.
            self.tracer.as_ref().map_or(Ok(()), Tracer::start)?;
            *base = now.clone();
        }
        // Whoever ended is noticed here, while its end is still fresh.
        for process in self.instances.iter_mut().filter_map(|i| i.process.as_mut()) {
            process.reap();
        }
        measured
            .sample_ns
            .push(now.at_ns.saturating_sub(self.begin_ns));
        for (list, (now, base)) in measured
            .class_cpu_ns
            .iter_mut()
            .zip(now.class_cpu_ns.iter().zip(&base.class_cpu_ns))
        {
            list.push(now - base);
        }
        let last = now.at_ns >= self.end_ns;
        if last {
            measured.length_ns = now.at_ns - base.at_ns;
            measured.idle_ns = now.idle_ns - base.idle_ns;
        }
        if first || last {
            self.instances
                .iter_mut()
                .for_each(|instance| instance.note(usize::from(last)));
            if self.prepared.workload.memory.is_some() {
                self.instances
                    .iter_mut()
                    .for_each(|instance| instance.note_faults(usize::from(last)));
            }
        }
        for (list, (now, base)) in measured
            .class_memory
            .iter_mut()
            .zip(now.class_memory.iter().zip(&base.class_memory))
        {
            list.push(now.since(*base));
        }
        Ok(())
    }

    /// Lets films that still play come to their end, up to the workload's overtime.
    fn await_films(&mut self, say: &mut dyn FnMut(At)) -> Result<(), LabError> {
        let overtime_ns = (self.prepared.workload.overtime_s * clock::NS_PER_S) as u64;
        let mut next_ns = clock::now_ns();
        while clock::now_ns() < self.end_ns + overtime_ns {
            let plays = |instance: &mut Instance<'_>| {
                instance.program.kind.ends_by_itself()
                    && instance
                        .process
                        .as_mut()
                        .is_some_and(|process| !process.reap())
            };
            if !self.instances.iter_mut().any(plays) {
                break;
            }
            say(At {
                phase: "waiting for the film".to_owned(),
                ..self.progress()
            });
            next_ns += (SAY_S * clock::NS_PER_S) as u64;
            clock::sleep_until(next_ns);
            if stop::requested() {
                return Err(LabError::Interrupted);
            }
        }
        Ok(())
    }

    /// Ends all programs, giving the synthetic ones time to write their samples.
    pub fn stop(mut self) -> (Vec<Instance<'a>>, Option<Tracer>, Contracts) {
        for instance in &mut self.instances {
            let Some(process) = &mut instance.process else {
                continue;
            };
            instance.told_to_end = !process.reap();
            process.signal(Signal::SIGTERM);
            // A suspended program hears of it only when it runs.
            process.signal(Signal::SIGCONT);
        }
        let timeout_s = match self.prepared.setup.parallel {
            true => PARALLEL_STOP_TIMEOUT_S,
            false => STOP_TIMEOUT_S,
        };
        let timeout_ns = clock::now_ns() + (timeout_s * clock::NS_PER_S) as u64;
        let mut processes: Vec<_> = self
            .instances
            .iter_mut()
            .filter_map(|i| i.process.as_mut())
            .collect();
        while !processes.iter_mut().all(|process| process.reap()) && clock::now_ns() < timeout_ns {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Whoever is left is killed with the classes.
        (self.instances, self.tracer, self.contracts)
    }
}

/// The machine's counters at one instant.
#[derive(Debug, Clone, Default)]
struct Reading {
    at_ns: u64,
    class_cpu_ns: Vec<u64>,
    /// Empty where memory is not looked at.
    class_memory: Vec<Counted>,
    idle_ns: u64,
}

impl Reading {
    fn take(prepared: &Prepared<'_>) -> Result<Self, LabError> {
        let classes = prepared.workload.classes.iter();
        Ok(Self {
            at_ns: clock::now_ns(),
            class_cpu_ns: classes
                .map(|class| prepared.classes.cpu_ns(&class.path))
                .collect::<Result<_, _>>()?,
            class_memory: match prepared.workload.memory {
                Some(_) => classes_memory(prepared),
                None => Vec::new(),
            },
            idle_ns: idle_ns()?,
        })
    }
}

fn classes_memory(prepared: &Prepared<'_>) -> Vec<Counted> {
    let classes = prepared.workload.classes.iter();
    classes
        .map(|class| prepared.classes.memory(&class.path))
        .collect()
}

/// Time that all CPUs together have idled since boot [ns].
fn idle_ns() -> Result<u64, LabError> {
    /// `USER_HZ` is 100 on every Linux.
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string("/proc/stat");
    let stat = stat.map_err(|e| LabError::file("read", "/proc/stat", e))?;
    // cpu  user nice system idle iowait …
    let fields = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(4)
        .take(2);
    Ok(fields
        .filter_map(|field| field.parse::<u64>().ok())
        .sum::<u64>()
        * TICK_NS)
}

/// Runs the calling thread above all others but those of SCHED_DEADLINE while it lives; its children
/// are ordinary.
struct AboveAll;

/// Of SCHED_FIFO on every Linux.
const PRIORITY_MAX: libc::c_int = 99;

impl AboveAll {
    fn enter() -> Result<Self, LabError> {
        Self::set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, PRIORITY_MAX)
            .map(|()| Self)
            .map_err(|e| LabError::io("raise the priority of the measuring thread", e))
    }

    fn set(policy: libc::c_int, priority: libc::c_int) -> std::io::Result<()> {
        // SAFETY: all-zero is a valid sched_param.
        let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
        parameter.sched_priority = priority;
        // SAFETY: the pointer is to a live variable.
        match unsafe { libc::sched_setscheduler(0, policy, &parameter) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

impl Drop for AboveAll {
    fn drop(&mut self) {
        // Lowering one's own priority is always allowed.
        let _ = Self::set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
    }
}
