//! The instances of a scenario's programs: their command lines, files and folders.

use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_programs::session::Asked;
use andante_programs::{Order, assets};
use andante_scenario::{Kind, Program};

use super::prepared::Prepared;
use super::process::Process;
use super::{Setup, clock, real, web};

/// One instance of a program.
pub(super) struct Instance<'a> {
    pub program: &'a Program,
    /// The program's name, numbered if there are several instances.
    pub name: String,
    /// From 1.
    pub number: u32,
    /// Among the instances of all programs, from 0.
    place: u32,
    /// Where it works and writes.
    pub folder: PathBuf,
    /// None until it is started.
    pub process: Option<Process>,
    /// When it was started [ns of CLOCK_MONOTONIC].
    pub started_ns: u64,
    /// Whether the run's end found it alive.
    pub told_to_end: bool,
    /// CPU time when the measurement began, and when it ended [ns].
    pub cpu_ns: [u64; 2],
    /// Whether it slept when the measurement ended: it wanted no CPU then.
    pub asleep: bool,
    /// Objects built, or xruns that a sound server told of, when the measurement began and when it
    /// ended.
    pub counted: [u64; 2],
    /// Page faults for which something had to be read, likewise, where memory is looked at.
    pub major_faults: [u64; 2],
    /// The commands that a film has been given.
    pub told: Vec<real::Told>,
}

impl<'a> Instance<'a> {
    /// All instances of the workload's programs.
    pub fn all(prepared: &Prepared<'a>) -> Vec<Self> {
        let programs = prepared.workload.programs.iter();
        let instances = programs.flat_map(|program| {
            (1..=program.count).map(move |number| match program.count {
                1 => (program, number, program.name.clone()),
                _ => (program, number, format!("{}.{number}", program.name)),
            })
        });
        (0..)
            .zip(instances)
            .map(|(place, (program, number, name))| Self {
                program,
                number,
                place,
                folder: prepared.setup.folder.join(&name),
                name,
                process: None,
                started_ns: 0,
                told_to_end: false,
                cpu_ns: [0; 2],
                asleep: false,
                counted: [0; 2],
                major_faults: [0; 2],
                told: Vec::new(),
            })
            .collect()
    }

    /// By how much it starts later than its program says [s].
    pub fn later_s(&self) -> f64 {
        self.program.later_s(self.number)
    }

    /// By how much its beats begin after the measurement [ns].
    pub fn beats_later_ns(&self) -> u64 {
        match self.program.kind.beat_s() {
            Some(_) => (self.later_s() * clock::NS_PER_S) as u64,
            None => 0,
        }
    }

    /// Whether it is loaded before the warm-up begins: a synthetic program that starts with that, so
    /// that all of them start at the same instant. One that is loaded while others compete takes long:
    /// of a hundred that start one after the other the last would do so after many seconds.
    pub fn loads_ahead(&self) -> bool {
        self.program.start_s.is_none() && !self.program.kind.is_real()
    }

    /// Loads it. A real program starts with that, a synthetic one waits for its order.
    pub fn load(&mut self, prepared: &Prepared<'_>) -> Result<(), LabError> {
        let command = real::command(prepared, self.program, &self.name, &self.folder)
            .unwrap_or_else(|| {
                let lab = prepared.setup.lab.display().to_string();
                vec![lab, "program".to_owned()].into()
            });
        self.started_ns = clock::now_ns();
        self.process = Some(prepared.spawn(self.program, command, &self.folder)?);
        Ok(())
    }

    /// Gives the order that it waits for to a synthetic program, which has been loaded: to start, and to
    /// measure from `begin_ns` to `end_ns`.
    pub fn order(
        &mut self,
        prepared: &Prepared<'_>,
        begin_ns: u64,
        end_ns: u64,
    ) -> Result<(), LabError> {
        if self.program.kind.is_real() {
            return Ok(());
        }
        let order = Order {
            name: self.name.clone(),
            number: self.place,
            kind: self.program.kind.clone(),
            // Of what has a beat the first whole one counts.
            begin_ns: begin_ns + self.beats_later_ns(),
            end_ns,
            steps_per_ms: prepared.steps_per_ms,
            out: self.samples_file(),
            server: self.server_socket(prepared.setup),
            session: asked(self.program),
            url: match &self.program.kind {
                Kind::WebClient { server, .. } | Kind::Curl { server } => {
                    Some(web::url(prepared, server))
                }
                _ => None,
            },
            peer: prepared.networks.peer_of(self.program),
            library: (self.program.kind.library_bytes())
                .map(|bytes| assets::library_file(&prepared.setup.assets, bytes)),
            disk: prepared.disk.map(Path::to_owned),
            lock: self.program.lock,
        };
        let order = serde_json::to_string(&order).expect("orders are plain data") + "\n";
        self.started_ns = clock::now_ns();
        let process = self.process.as_mut().expect("it has been loaded");
        process
            .order(&order)
            .map_err(|error| LabError::ProgramFailed {
                name: self.name.clone(),
                reason: format!("ended before it was told what to do: {error}"),
            })
    }

    /// Has the film do what its user wants.
    ///
    /// # Errors
    /// If it is not there yet, or not any more.
    pub fn tell(&mut self, command: real::Command) -> Result<(), LabError> {
        let told = real::Told::give(command, &self.program.kind, &self.folder);
        let told = told.map_err(|error| LabError::ProgramFailed {
            name: self.name.clone(),
            reason: format!("takes no commands ({error}): pause or seek while it plays"),
        });
        self.told.push(told?);
        Ok(())
    }

    /// Where a synthetic program leaves its samples.
    pub fn samples_file(&self) -> PathBuf {
        self.folder.join("samples.json")
    }

    /// The socket of the server that it is, or asks.
    fn server_socket(&self, setup: &Setup) -> Option<PathBuf> {
        let folder = match &self.program.kind {
            Kind::Server => self.folder.clone(),
            // Servers are single programs, so that their folders have their names.
            kind => setup.folder.join(kind.server()?),
        };
        Some(folder.join("socket"))
    }

    /// Notes CPU time, and what is counted, at the beginning (0) or the end (1) of the measurement.
    pub fn note(&mut self, edge: usize) {
        let has_children = self.program.kind.has_children();
        let cpu_ns = |process: &Process| process.cpu_ns(has_children);
        self.cpu_ns[edge] = self.process.as_ref().map_or(0, cpu_ns);
        self.asleep = self.process.as_ref().is_some_and(Process::is_asleep);
        self.counted[edge] = match (&self.program.kind, &self.process) {
            (Kind::Make { .. }, _) => assets::count_objects(&self.folder),
            (Kind::Jack { .. }, Some(process)) => real::count_xruns(&process.output),
            _ => 0,
        };
    }

    /// Notes the page faults at the beginning (0) or the end (1) of the measurement.
    pub fn note_faults(&mut self, edge: usize) {
        self.major_faults[edge] = self.process.as_ref().map_or(0, Process::major_faults);
    }
}

/// What the program is to say in a session.
fn asked(program: &Program) -> Option<Asked> {
    let ns = |s: f64| (s * clock::NS_PER_S).round() as u64;
    let cycle = program.kind.cycle().filter(|_| program.session)?;
    let promise = program.contract.as_ref().filter(|c| c.in_session);
    Some(Asked {
        cycle: andante::Cycle {
            period_ns: cycle.period_s.map(ns),
            deadline_ns: None,
            budget_ns: cycle.budget_s.map(ns),
        },
        promise: promise.map(|c| (c.promise.budget_ns, c.promise.period_ns)),
    })
}
