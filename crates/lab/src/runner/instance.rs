//! The instances of a scenario's programs: their command lines, files and folders.

use std::fs;
use std::path::{Path, PathBuf};

use super::classes::Classes;
use super::process::{Process, Start, last_line};
use super::scheduler::Choice;
use super::tuning::Scheduling;
use super::{Setup, clock, stop};
use crate::assets;
use crate::error::LabError;
use crate::programs::Order;
use crate::scenario::{Clip, Kind, Program, Workload};

/// A warm-up playback that takes longer than this has hung [s].
const WARM_UP_TIMEOUT_S: f64 = 120.0;

/// A machine made ready for a workload.
pub(super) struct Prepared<'a> {
    pub workload: &'a Workload,
    pub choice: &'a Choice,
    pub setup: &'a Setup,
    pub classes: &'a Classes,
    /// See [`crate::programs::work`].
    pub steps_per_ms: f64,
}

/// One instance of a program.
pub(super) struct Instance<'a> {
    pub program: &'a Program,
    /// The program's name, numbered if there are several instances.
    pub name: String,
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
    /// Objects built when the measurement began, and when it ended.
    pub objects: [u64; 2],
}

impl<'a> Instance<'a> {
    /// All instances of the workload's programs.
    pub fn all(prepared: &Prepared<'a>) -> Vec<Self> {
        let programs = prepared.workload.programs.iter();
        let instances = programs.flat_map(|program| {
            (1..=program.count).map(move |number| match program.count {
                1 => (program, program.name.clone()),
                _ => (program, format!("{}.{number}", program.name)),
            })
        });
        instances
            .map(|(program, name)| Self {
                program,
                folder: prepared.setup.folder.join(&name),
                name,
                process: None,
                started_ns: 0,
                told_to_end: false,
                cpu_ns: [0; 2],
                objects: [0; 2],
            })
            .collect()
    }

    /// Starts it, to measure from `begin_ns` to `end_ns`.
    pub fn start(
        &mut self,
        prepared: &Prepared<'_>,
        begin_ns: u64,
        end_ns: u64,
    ) -> Result<(), LabError> {
        let argv = match &self.program.kind {
            Kind::Mpv { clip, .. } => {
                let stats = format!("--dump-stats={}", self.stats_file().display());
                mpv(prepared.setup, clip, &[&stats])
            }
            Kind::Make { jobs } => assets::make_command(&prepared.setup.assets, *jobs),
            Kind::Command { argv } => argv.clone(),
            kind => {
                let order = Order {
                    name: self.name.clone(),
                    kind: kind.clone(),
                    begin_ns,
                    end_ns,
                    steps_per_ms: prepared.steps_per_ms,
                    out: self.samples_file(),
                    server: self.server_socket(prepared.setup),
                };
                let order = serde_json::to_string(&order).expect("orders are plain data");
                let andante = prepared.setup.andante.display().to_string();
                [andante, "lab".to_owned(), "program".to_owned(), order].into()
            }
        };
        self.started_ns = clock::now_ns();
        self.process = Some(prepared.spawn(self.program, argv, &self.folder)?);
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

    /// Where mpv leaves its frame log.
    pub fn stats_file(&self) -> PathBuf {
        self.folder.join("stats")
    }

    /// Notes CPU time and objects at the beginning (0) or the end (1) of the measurement.
    pub fn note(&mut self, edge: usize) {
        self.cpu_ns[edge] = self.process.as_ref().map_or(0, Process::cpu_ns);
        if matches!(self.program.kind, Kind::Make { .. }) {
            self.objects[edge] = assets::count_objects(&self.folder);
        }
    }
}

impl Prepared<'_> {
    fn spawn(
        &self,
        program: &Program,
        argv: Vec<String>,
        folder: &Path,
    ) -> Result<Process, LabError> {
        let procs_file = self.classes.procs_file_of(program);
        Process::start(&Start {
            argv,
            program,
            scheduling: Scheduling::of(self.choice, program),
            procs_file,
            folder: folder.to_owned(),
        })
    }

    /// Plays the beginning of every film once, so that no measured playback reads a file.
    pub fn warm_up(&self) -> Result<(), LabError> {
        for program in self
            .workload
            .programs
            .iter()
            .filter(|program| program.count > 0)
        {
            let Kind::Mpv { clip, warm_up_s } = &program.kind else {
                continue;
            };
            if *warm_up_s == 0.0 {
                continue;
            }
            let folder = self.setup.folder.join(format!("{}.warm-up", program.name));
            let argv = mpv(self.setup, clip, &[&format!("--length={warm_up_s}")]);
            let mut process = self.spawn(program, argv, &folder)?;
            let timeout_ns = clock::now_ns() + (WARM_UP_TIMEOUT_S * clock::NS_PER_S) as u64;
            while !process.reap() && clock::now_ns() < timeout_ns && !stop::requested() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            match &process.ended {
                Some(ended) if ended.success => {}
                Some(ended) => {
                    let words = last_line(&process.output).unwrap_or_default();
                    let reason = format!("the warm-up ended {}: {words}", ended.how);
                    return Err(LabError::ProgramFailed {
                        name: program.name.clone(),
                        reason,
                    });
                }
                None if stop::requested() => return Err(LabError::Interrupted),
                None => {
                    let reason = format!("the warm-up took more than {WARM_UP_TIMEOUT_S} s");
                    return Err(LabError::ProgramFailed {
                        name: program.name.clone(),
                        reason,
                    });
                }
            }
            // Later readers of this folder look for what was measured.
            let _ = fs::remove_dir_all(&folder);
        }
        Ok(())
    }
}

/// mpv as a user would start it, but with sound and picture going nowhere: the output is paced by
/// the clock just the same.
fn mpv(setup: &Setup, clip: &Clip, extra: &[&str]) -> Vec<String> {
    let fixed = [
        "mpv",
        "--no-config",
        "--vo=null",
        "--ao=null",
        "--no-input-terminal",
    ];
    let file = assets::clip_file(&setup.assets, clip).display().to_string();
    let words = fixed
        .iter()
        .chain(&["--term-osd=no"])
        .chain(extra)
        .map(|word| (*word).to_owned());
    words.chain([file]).collect()
}
