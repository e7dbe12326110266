//! The results of a laboratory run, as `out/SCENARIO/result.json` carries them; what can be measured in them
//! ([`measures`], [`figures`]), and why a frame in one was late ([`why`]). Whoever reads results needs no more
//! than this: neither a scenario nor the laboratory.
//!
//! One [`RunResult`] holds every scheduler that one scenario was run under, in the same image.
//! Everything a report, a test or a person needs is in here; the report adds no figure of its own.
//! Units stand at the end of every name; a `share` is a ratio between 0 and 1 of all the CPUs.
//! `docs/result-schema.md` describes the same for readers of the JSON.

use serde::{Deserialize, Serialize};

pub mod cases;
pub mod figures;
pub mod measures;
pub mod title;
pub mod units;
pub mod why;

/// The name every result file carries in `schema`.
pub const SCHEMA: &str = "andante-result";
/// Raised when a field changes meaning or goes; new optional fields do not raise it.
pub const VERSION: u32 = 1;

/// One scenario, run once under each scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] for files this build writes.
    pub version: u32,
    /// The scenario's key: its file name without `.toml`.
    pub scenario: String,
    /// Which of the scenario's cases this is. Absent when it has none: such a scenario has one
    /// file, one with cases has a file for each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<String>,
    /// Whether some of the scenario's cases were asked for by name, and the others left out.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub cases_chosen: bool,
    /// Lines of TOML that were laid over the scenario, e.g. `cpus = 4`, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set: Vec<String>,
    /// `SEED/NUMBER` of the perturbation that it ran under; absent: as the scenario stands.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub perturbation: Option<String>,
    /// One line for people.
    pub title: String,
    /// Where it ran: `vm` (a kernel in virtual time), `sim` (the simulator), `parallel` (a kernel in
    /// the host's time) or `host`.
    pub on: String,
    /// `uname -r` of the kernel that scheduled; of the simulator its version.
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Memory of the machine [MiB].
    pub memory_mib: u32,
    /// Length of the measurement [s]; virtual seconds when `on` is `vm`.
    pub duration_s: f64,
    /// One entry per scheduler, in the order asked for.
    pub schedulers: Vec<SchedulerResult>,
    /// What the scenario demands of this case, judged. Kept with the figures, so that a result
    /// says by itself whether it is a good one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub expectations: Vec<Judgement>,
}

impl Default for RunResult {
    /// Of no scenario, in the format of this build.
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            scenario: String::new(),
            case: None,
            cases_chosen: false,
            set: Vec::new(),
            perturbation: None,
            title: String::new(),
            on: String::new(),
            kernel: String::new(),
            cpus: 1,
            memory_mib: 0,
            duration_s: 0.0,
            schedulers: Vec::new(),
            expectations: Vec::new(),
        }
    }
}

/// One expectation of the scenario, judged for one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The expectation in words, e.g. `andante: share_received of /a within 1 % of 0.0625`.
    pub expectation: String,
    /// The measure that it is about, e.g. `late_share`; absent in a comparison of two results.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measure: Option<String>,
    /// The program that it is about; absent if it is about a class or the machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Whether it passes although the figure is beyond the bound: it is within what the scenario says of
    /// the worst perturbation.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub tail: bool,
    /// The figure that was compared, in the measure's own unit (or a ratio); absent if there was
    /// none to compare.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measured: Option<f64>,
    /// Why it was not judged, or could not be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl Judgement {
    /// The figure that was compared, for people; a time with its unit.
    pub fn measured_text(&self) -> Option<String> {
        let text = |figure| figures::of_expectation(&self.expectation, figure);
        self.measured.map(text)
    }
}

/// Whether an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not, or the figure it asks for does not exist.
    Fail,
    /// Its scheduler was left out of this run on purpose.
    NotJudged,
}

/// What was found in a run in the host's time that should not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclocked {
    /// Lines in which the kernel complained on its console, as far as they begin a complaint.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub complaints: Vec<String>,
    /// Programs that got no CPU in the whole measurement, though they wanted some.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub never_ran: Vec<String>,
    /// Programs that had been told to end, and had not a minute later.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hung: Vec<String>,
    /// What there was more of at the end than before the programs came, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left: Vec<String>,
}

/// What one scheduler did with the scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulerResult {
    /// `andante`, `eevdf`, `stock`, `eevdf-fifo` and the like, or the file name of the binary that was
    /// run.
    pub name: String,
    /// From starting the scheduler to its being in charge [ms]; none for the stock scheduler.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_ms: Option<f64>,
    /// Why the scheduler left before the end, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ejected: Option<String>,
    /// Time no CPU was used for anything [ns], summed over CPUs.
    pub idle_ns: u64,
    /// Instants at which the classes' CPU time was read [ns since the measurement began].
    pub sample_ns: Vec<u64>,
    /// Classes in the scenario's order.
    pub classes: Vec<ClassResult>,
    /// Programs in the scenario's order; one entry per instance.
    pub programs: Vec<ProgramResult>,
    /// What was found that should not be, in a parallel run; absent in others.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unclocked: Option<Box<Unclocked>>,
    /// Who ran when, if the scenario asked for a trace; drawn in the trace file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<Run>,
}

/// One class of the scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Path below the scenario's root class, e.g. `/film`.
    pub path: String,
    /// Weight relative to the siblings (`cpu.weight`).
    pub weight: u32,
    /// What the weights give it while all of its siblings want to run [ratio].
    pub share_asked: f64,
    /// The share that its tasks can use at most, one CPU each, where that is less than `share_asked` [ratio].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share_usable: Option<f64>,
    /// CPU time received over all CPU time of the machine in the measurement [ratio].
    pub share_received: f64,
    /// CPU time received in the measurement, descendants included [ns].
    pub cpu_ns: u64,
    /// The same at every instant of `sample_ns`, cumulative [ns].
    pub samples: Vec<u64>,
    /// Pages that were read from swap for it and its descendants in the measurement, those that the kernel read ahead
    /// included (on a kernel that tells, where the scenario has `[memory]`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub swapped_in: Option<u64>,
    /// Pages that were written to swap of it and its descendants, at every instant of `sample_ns`, cumulative (likewise).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub swapped_out: Vec<u64>,
    /// Pages, of its memory and of files, that were brought back in the measurement after they had been taken from it
    /// (likewise).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refaults: Option<u64>,
}

impl ClassResult {
    /// The share that the weights give it, as far as its tasks can use it [ratio].
    pub fn share_due(&self) -> f64 {
        self.share_asked.min(self.share_usable.unwrap_or(1.0))
    }
}

/// One instance of one program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// The scenario's name for it; instances of a repeated program are `name.1`, `name.2`, …
    pub name: String,
    /// Path of its class.
    pub class: String,
    /// `player`, `typist`, `audio`, `server`, `client`, `sink`, `sender`, `loop`, `batch`, `dhrystone`, `pingpong`,
    /// `waker`, `memory-player`, `memory-hog`, `memory-reader`, `mpv`, `xvfb`, `jack`, `jack-client`, `film-server`, `rtp-server`, `web-server`, `web-client`, `iperf3`,
    /// `ping`, `curl`, `film-player`, `reader`, `make` or `command`.
    pub kind: String,
    /// Frames shown (players).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frames: Option<u64>,
    /// Frames that were to be shown in the measurement (players): of a synthetic one those whose
    /// deadline lies in it; of mpv all of the clip. Reads that were due in it (periodic reader).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due: Option<u64>,
    /// Frames shown after their time (players); reads done after the next was due (periodic reader).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late: Option<u64>,
    /// How long after its deadline each frame was shown, 0 if in time (synthetic players) [µs].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lateness_us: Option<Spread>,
    /// Frames never shown (players).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dropped: Option<u64>,
    /// Times between frames shown (players) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frame_ms: Option<Spread>,
    /// Periods of the sound card, wholly in the measurement, for which sound did not come in time (audio); times
    /// that jackd told of such (jack).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub xruns: Option<u64>,
    /// From the event to the response (typist, waker, audio) per round trip (pingpong), or from the begin of a read, or when it
    /// was due, to its end (reader) [µs].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_us: Option<Spread>,
    /// Time per child, from before the fork to the end of the wait (batch) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iteration_ms: Option<Spread>,
    /// Units of work done: loops, Dhrystones, batch jobs, round trips, requests, objects built.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub iterations: Option<u64>,
    /// Payload that arrived at the other end of the cable (sender, iperf3), or in pages (web-client, curl) [bytes].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub received_bytes: Option<u64>,
    /// Its part of all that, of those of its network [ratio].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub goodput_share: Option<f64>,
    /// Datagrams that were sent in the measurement and never arrived (sender, iperf3); of ping, answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost: Option<u64>,
    /// Read from the disk (reader) [bytes/s].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read_bytes_per_s: Option<f64>,
    /// Reads that were due while another was late, and never begun (periodic reader).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub skipped: Option<u64>,
    /// Page faults in the measurement for which something had to be read (where the scenario has `[memory]`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub major_faults: Option<u64>,
    /// The time until it had all memory of its own, whenever that was (memory-player) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_touch_ms: Option<f64>,
    /// The time until it had read its library, whenever that was (memory-player, memory-reader) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_read_ms: Option<f64>,
    /// From the last frame before its user's pause to the first one after it (mpv) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resume_ms: Option<f64>,
    /// CPU time of the program and the children it waited for [ns].
    pub cpu_ns: u64,
    /// Under a contract: jobs that ended, or periods that counted; absent of a task that never slept, and so
    /// had no job that ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadlines: Option<u64>,
    /// Of those too late, or unserved; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub missed: Option<u64>,
    /// Misses that the contract's window did not allow.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub violations: Option<u64>,
    /// Times the contract's budget ran out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exhaustions: Option<u64>,
    /// Under a contract: events whose sink it is (simulator).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<u64>,
    /// Of those, for how many it ran in the place of another (simulator).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub swaps: Option<u64>,
    /// The longest time without a new frame (players) [ms].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub longest_freeze_ms: Option<f64>,
    /// Number of gaps between frames above 100 ms (players).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gaps_over_100ms: Option<u64>,
    /// First frame to last frame (players) [s].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span_s: Option<f64>,
    /// Instants at which frames were shown [ms since the measurement began] (players).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shown_ms: Vec<f64>,
    /// When the frames of `shown_ms` were released, to be decoded and shown before the next one's
    /// release [ms since the measurement began] (synthetic players).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub released_ms: Vec<f64>,
    /// Instants at which frames were dropped [ms since the measurement began] (players).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dropped_ms: Vec<f64>,
    /// Its priority among all tasks at every instant of `sample_ns`, more being served first
    /// (simulator, under schedulers that have priorities).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub levels: Vec<u32>,
    /// How it ended, when it ended before the measurement did and should not have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
}

/// Mean, standard deviation and tail of a set of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of samples.
    pub n: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the population.
    pub sd: f64,
    /// Median (nearest rank).
    pub p50: f64,
    /// 99th percentile (nearest rank).
    pub p99: f64,
    /// Largest sample.
    pub max: f64,
}

impl Spread {
    /// The spread of `samples`; none if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let variance = sorted.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Nearest rank: the smallest sample with at least `q` of all samples at or below it.
        let rank = |q: f64| sorted[((q * n as f64).ceil() as usize).clamp(1, n) - 1];
        Some(Self {
            n: n as u64,
            mean,
            sd: variance.sqrt(),
            p50: rank(0.50),
            p99: rank(0.99),
            max: sorted[n - 1],
        })
    }
}

/// One task running on one CPU without interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// CPU number.
    pub cpu: u32,
    /// Thread id.
    pub tid: u32,
    /// The thread's name.
    pub comm: String,
    /// Start [ns since the measurement began].
    pub start_ns: u64,
    /// Length [ns].
    pub length_ns: u64,
    /// By which rule the task was chosen (simulator only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
}
