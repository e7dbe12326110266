//! What a simulated run leaves, as a real one would have left it.

use andante_programs::{Samples, player};
use andante_result::{ClassResult, ProgramResult};
use andante_runner::collect;
use andante_scenario::{Kind, Workload};
use andante_sim::{NS_PER_S, Ns, Record, Simulation, Usage};

use super::{DHRYSTONE_NS, Instance, LOOP_NS, ns};

/// What was used when.
pub(super) struct Measured {
    pub begin_ns: Ns,
    pub end_ns: Ns,
    pub before: Usage,
    /// At instants since the measurement began; the last is its end.
    pub samples: Vec<(Ns, Usage)>,
    /// The priority of each instance at these instants.
    pub levels: Vec<Vec<u32>>,
}

impl Measured {
    pub fn after(&self) -> &Usage {
        &self.samples.last().expect("a measurement has an end").1
    }

    pub fn class(
        &self,
        workload: &Workload,
        instances: &[Instance<'_>],
        path: &str,
    ) -> ClassResult {
        let below = |class: &str| {
            class == path
                || class
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let members: Vec<usize> = instances
            .iter()
            .filter(|instance| below(&instance.program.class))
            .map(|instance| instance.id.0 as usize)
            .collect();
        let used = |usage: &Usage| {
            members
                .iter()
                .map(|index| usage.instances[*index])
                .sum::<Ns>()
        };
        let before_ns = used(&self.before);
        let samples: Vec<Ns> = self
            .samples
            .iter()
            .map(|(_, usage)| used(usage) - before_ns)
            .collect();
        let cpu_ns = used(self.after()) - before_ns;
        let class = workload.classes.iter().find(|class| class.path == path);
        ClassResult {
            path: path.to_owned(),
            weight: class.expect("asked for a class of the workload").weight,
            share_asked: workload.share_asked(path),
            share_usable: workload.share_usable(path, workload.cpus),
            share_received: cpu_ns as f64
                / ((self.end_ns - self.begin_ns) * Ns::from(workload.cpus)) as f64,
            cpu_ns,
            samples,
            swapped_in: None,
            swapped_out: Vec::new(),
            refaults: None,
        }
    }

    pub fn program(
        &self,
        machine: &dyn Simulation,
        instance: &Instance<'_>,
        place: usize,
    ) -> ProgramResult {
        let index = instance.id.0 as usize;
        let cpu_ns = self.after().instances[index] - self.before.instances[index];
        let work_ns = self.after().work[index] - self.before.work[index];
        let levels: Vec<u32> = self.levels.iter().map(|all| all[place]).collect();
        let kind = &instance.program.kind;
        let mut result = ProgramResult {
            name: instance.name.clone(),
            class: instance.program.class.clone(),
            kind: kind.name().to_owned(),
            cpu_ns,
            // Most schedulers have none: then there is nothing to tell.
            levels: match levels.iter().any(|level| *level > 0) {
                true => levels,
                false => Vec::new(),
            },
            ..ProgramResult::default()
        };
        let record = machine.record(instance.id);
        let samples = self.samples_of(instance, record, work_ns);
        collect::take_samples(kind, &samples, &mut result);
        result
    }

    /// Frames or periods, of which there are `per_s` a second, that lie wholly in the measurement.
    fn due(&self, instance: &Instance<'_>, per_s: f64) -> u64 {
        let program = instance.program;
        let first = (program.start_s.unwrap_or(0.0) * per_s - 1e-6).ceil() as i64;
        let length_ns = self.end_ns - self.begin_ns;
        let until_ns = program.stop_s.map_or(length_ns, ns).min(length_ns);
        player::frames_due(first, per_s, until_ns.saturating_sub(instance.later_ns))
    }

    /// What the program would have left on a kernel: `programs/`.
    fn samples_of(&self, instance: &Instance<'_>, record: &Record, work_ns: Ns) -> Samples {
        let kind = &instance.program.kind;
        // Of what has a beat the first whole one counts.
        let from_ns = self.begin_ns + instance.later_ns;
        let measures = |at_ns: Ns| (from_ns..self.end_ns).contains(&at_ns);
        let inside = |list: &[Ns]| -> Vec<Ns> {
            let measured = list.iter().filter(|at_ns| measures(**at_ns));
            measured.map(|at_ns| at_ns - self.begin_ns).collect()
        };
        let latency_ns: Vec<f64> = record
            .latency_ns
            .iter()
            .filter(|(at_ns, _)| measures(*at_ns))
            .map(|(_, latency_ns)| *latency_ns as f64)
            .collect();
        let finished = inside(&record.finished_ns).len() as u64;
        let mut samples = Samples::default();
        match kind {
            Kind::Player { fps, .. }
            | Kind::Game { fps, .. }
            | Kind::Sink {
                events_per_s: fps, ..
            } => {
                let frames = record.shown_ns.iter().zip(&record.released_ns);
                let measured = || {
                    frames
                        .clone()
                        .filter(|(_, released_ns)| measures(**released_ns))
                };
                samples.shown_ns = measured().map(|(at_ns, _)| at_ns - self.begin_ns).collect();
                samples.released_ns = measured().map(|(_, at_ns)| at_ns - self.begin_ns).collect();
                samples.dropped_ns = inside(&record.dropped_ns);
                let period_ns = NS_PER_S as f64 / fps;
                let late = |(at_ns, released_ns): &(&Ns, &Ns)| {
                    (**at_ns - **released_ns) as f64 > period_ns
                };
                let frames = !matches!(kind, Kind::Sink { .. });
                samples.due = frames.then(|| self.due(instance, *fps));
                samples.late = Some(measured().filter(late).count() as u64);
            }
            Kind::Audio {
                frames, rate_hz, ..
            } => {
                let per_s = Kind::periods_per_s(*frames, *rate_hz);
                let period_ns = NS_PER_S as f64 / per_s;
                let in_time = |(at_ns, latency_ns): &&(Ns, Ns)| {
                    let due = (at_ns + period_ns as Ns) <= self.end_ns;
                    measures(*at_ns) && due && *latency_ns as f64 <= period_ns
                };
                let in_time = record.latency_ns.iter().filter(in_time).count() as u64;
                samples.xruns = Some(self.due(instance, per_s).saturating_sub(in_time));
                samples.iterations = Some(latency_ns.len() as u64);
            }
            Kind::Typist { .. } | Kind::Waker { .. } => {
                samples.iterations = Some(latency_ns.len() as u64)
            }
            Kind::Loop => samples.iterations = Some(work_ns / LOOP_NS),
            Kind::Dhrystone => samples.iterations = Some(work_ns / DHRYSTONE_NS),
            _ => samples.iterations = Some(finished),
        }
        match kind {
            Kind::Batch { .. } | Kind::Disk { .. } => samples.iteration_ns = latency_ns,
            _ => samples.latency_ns = latency_ns,
        }
        samples
    }
}
