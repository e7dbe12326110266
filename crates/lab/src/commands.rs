//! The laboratory's subcommands.

mod completions;
mod figures;
mod man;
mod paper;
mod sweep;

use std::env;
use std::path::PathBuf;

use andante_costs::CostsOptions;
use andante_experiment::perturb::{self, PerturbOptions};
use andante_job::files::{known_scenarios, none_here};
use andante_job::progress::{self, Many, Progress};
use andante_job::{On, RunOptions};
use andante_report::table;
use andante_result::RunResult;
use andante_scenario::{DrawId, Scenario};
use andante_sweep::{Family, known_families, write_draw};
use andante_terminal::exit::{self, Refusal, Status};
use andante_terminal::output::{self, BOLD, DIM, paint, width};
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;

use crate::frames;

const EXAMPLES: &str = "\
Examples:
  andante lab list
  andante lab run film-make
  andante lab sweep desktop --draws 200";

/// Prove what a scheduler does: run a scenario under several, on a real kernel in virtual time.
///
/// The virtual machine finds a usable kernel through this machine's own apt configuration; nothing
/// is installed, and root is not needed. The same scenario gives the same figures on every run. The
/// newest kernel that will do is taken; ANDANTE_KERNEL=6.18 asks for another version, and ANDANTE_KERNEL_DIR
/// names a folder with the packages of one.
///
/// `andante lab` is this command, and `andante paper` its `paper`.
#[derive(Parser)]
#[command(name = "andante-lab", version, after_help = EXAMPLES, after_long_help = exit::help(EXAMPLES))]
pub(crate) struct Lab {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Run(Run),
    Sweep(sweep::Sweep),
    List(List),
    RecordFrames(RecordFrames),
    Paper(paper::Paper),
    Figures(figures::Figures),
    Costs(Costs),
    Completions(completions::Completions),
    Man(man::Man),
    /// Measure costs inside the virtual machine (started by the laboratory).
    #[command(hide = true)]
    CostsGuest(Order),
    /// Be a synthetic program of a scenario (started by the laboratory).
    #[command(hide = true)]
    Program,
    /// Serve the model of a disk (started by the laboratory).
    #[command(hide = true)]
    ServeDisk(Order),
    /// Carry out a run inside the virtual machine (started by the laboratory).
    #[command(hide = true)]
    Guest(Order),
}

/// Run scenarios under every scheduler named, and judge the results.
///
/// Everything a run leaves lies in DIR/SCENARIO: result.json, report.html (opens offline), and a
/// trace for Perfetto.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  andante lab run film-make
  andante lab run film-loops --scheduler andante,eevdf,/usr/bin/scx_bpfland
  andante lab run shares --set 'duration_s = 60' --json
  andante lab run qlinux-2-suspend --on sim --against out --out out/sim
  andante lab run desktop --draw 1/17 --on sim
  andante lab run desktop --perturb 200 --on sim
  andante lab run audio --perturb 5 --scheduler andante
  andante lab run audio --perturbation 1/3 --scheduler andante --case frames-64
  andante lab run race-contracts --parallel --scheduler andante --set 'duration_s = 600'
  sudo andante lab run my-own.toml --on host")]
struct Run {
    /// Scenarios that come with Andante (see `andante lab list`), or paths of TOML files.
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<String>,
    /// The SCENARIOs are families (see `andante lab sweep`): run this draw of each.
    #[arg(long, value_name = "SEED/NUMBER", conflicts_with = "case")]
    draw: Option<DrawId>,
    /// Run it so often, each time perturbed: with programs that start up to a beat later, in another order,
    /// and files that lie elsewhere in the virtual machine's image. Its expectations are judged over all
    /// of them; DIR/SCENARIO/perturbed.json has the distributions.
    #[arg(long, value_name = "N", conflicts_with_all = ["against", "perturbation"],
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    perturb: Option<u64>,
    /// Of the perturbations; others are others.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "perturb")]
    seed: u64,
    /// Run it perturbed, once: number K, from 0, of seed S.
    #[arg(long, value_name = "S/K")]
    perturbation: Option<DrawId>,
    /// andante; stock (the stock scheduler, untouched); eevdf (the stock scheduler, with the weights of
    /// the scenario's classes); eevdf-nice, -weight, -fifo, -deadline or -deadline-max (the same, tuned by
    /// hand as the scenario says); or paths of programs that load a scheduler. In the simulator: andante,
    /// or a policy for all tasks, e.g. fair (a model of eevdf). [default: andante,eevdf; simulated
    /// andante,fair]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    scheduler: Option<Vec<String>>,
    /// Where to run it: in a virtual machine, in the simulator, or on this machine as root.
    #[arg(long, value_enum, default_value_t = Place::Vm)]
    on: Place,
    /// In a virtual machine whose CPUs are threads of this one, in this machine's time. They really run at
    /// once, so that races happen which virtual time, where one CPU runs at a time, hardly ever shows. No time
    /// says anything then: only what needs no clock is judged (the scheduler stays in charge, the kernel does
    /// not complain, every program runs and ends, nothing is left behind), and expectations that depend on time
    /// are not, which is said. Needs QEMU 8.1 or newer, which is fetched if it is not installed.
    #[arg(long, conflicts_with_all = ["on", "perturb", "against"])]
    parallel: bool,
    /// Only the cases of these names.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    case: Vec<String>,
    /// A line of TOML laid over the scenario; may be given several times.
    #[arg(long, value_name = "KEY = VALUE")]
    set: Vec<String>,
    /// Virtual machines at once; each keeps one CPU busy. [default: as many as this machine has CPUs, up
    /// to 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    machines: Option<u64>,
    /// Boot every virtual machine. Else one of one CPU that is up, with the scheduler in charge, is saved in
    /// the cache (up to 8 GiB of them), and what is run there next goes on from it. The figures are the same.
    #[arg(long)]
    boot: bool,
    /// Compare shares and frame rates with the results of the same scenarios in this folder, e.g.
    /// those of a real kernel.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Print one line for each thing that the scenario expects: its bound, and what came out under each
    /// scheduler.
    #[arg(long, conflicts_with_all = ["json", "perturb"])]
    brief: bool,
    /// Print the results as JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Folder for what the run leaves.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

/// List the scenarios that come with Andante, and its families, in a line each.
///
/// A line is cut where the terminal ends; --json prints all there is, of the scenarios or, with --families, of
/// the families.
#[derive(Args)]
#[command(after_help = "\
Examples:
  andante lab list --families
  andante lab list --json | jq '.[].name'")]
struct List {
    /// Only the families, for `andante lab sweep`.
    #[arg(long)]
    families: bool,
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

/// Record what each frame of a film costs to decode, for the key work_trace of scenarios.
///
/// ffmpeg decodes the film several times on one thread; of each frame the least CPU time is taken,
/// since what else this machine does can only add to it. Without FILM it encodes one of 64 s: eight
/// scenes, calm and hectic in turn.
#[derive(Args)]
#[command(after_long_help = "\
Example:
  andante lab record-frames film.mkv --out film.csv
and in a scenario, beside the file:
  [programs.film]
  kind = \"player\"
  fps = 25
  work_trace = \"film.csv\"")]
struct RecordFrames {
    /// The film: any that ffmpeg can decode.
    #[arg(value_name = "FILM")]
    film: Option<PathBuf>,
    /// How often it is decoded.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(frames::MAX_DECODINGS)))]
    decodings: u32,
    /// The file to write. [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Measure what the scheduler's callbacks and the kernel's ways cost, for the simulator.
///
/// In the virtual machine an instruction takes a nanosecond, so that costs are exact. The file is a part of
/// the simulator: measure anew when the scheduler, the kernel or the emulator has changed, and build again.
#[derive(Args)]
#[command(hide = true)]
#[command(after_help = "Example:\n  andante lab costs --out crates/sim/costs.toml")]
struct Costs {
    /// The file to write.
    #[arg(long, value_name = "FILE", default_value = "crates/sim/costs.toml")]
    out: PathBuf,
    /// Folder for the consoles of the machines, and for what each of them found.
    #[arg(long, value_name = "DIR", default_value = "out/costs")]
    logs: PathBuf,
    /// Make these measurements anew, and take the others from an earlier run's folder.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
}

/// What the laboratory asks of itself in another process.
#[derive(Args)]
struct Order {
    /// The order as JSON.
    order: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Place {
    /// A real kernel in a virtual machine, in virtual time.
    Vm,
    /// The simulator: no kernel, synthetic programs only, in no time.
    Sim,
    /// This machine.
    Host,
}

/// One scenario as `lab list --json` prints it.
#[derive(Serialize)]
struct Listed {
    name: String,
    title: String,
    file: PathBuf,
    cases: Vec<String>,
}

impl Lab {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        match self.action {
            Action::Run(run) => run.run(),
            Action::Sweep(sweep) => sweep.run(),
            Action::List(list) => list.run(),
            Action::RecordFrames(record) => record.run(),
            Action::Paper(paper) => paper.run(),
            Action::Figures(figures) => figures.run(),
            Action::Costs(costs) => costs.run(),
            Action::Completions(completions) => completions.run(),
            Action::Man(man) => man.run(),
            Action::CostsGuest(order) => Ok(ended(andante_costs::costs_guest_main(&order.order))),
            Action::ServeDisk(order) => Ok(ended(andante_runner::disk::serve_main(&order.order))),
            Action::Program => Ok(ended(andante_programs::program_main())),
            Action::Guest(order) => Ok(ended(andante_experiment::guest::guest_main(&order.order))),
        }
    }
}

impl Run {
    fn run(self) -> Result<Status> {
        if let Some(count) = self.perturb {
            return self.run_perturbed(count);
        }
        let mut verdicts = Vec::new();
        let mut results = Vec::new();
        for scenario in &self.scenarios {
            let options = self.options(scenario)?;
            let runs = andante_experiment::run(&options, progress::on_stderr().as_mut())?;
            if !self.json {
                self.show(&options, &runs)?;
            }
            verdicts.push(andante_experiment::verdict(&runs));
            results.extend(runs);
        }
        self.finish(&results, verdicts)
    }

    /// All of it perturbed.
    fn run_perturbed(&self, count: u64) -> Result<Status> {
        let mut verdicts = Vec::new();
        let mut results = Vec::new();
        for scenario in &self.scenarios {
            let options = PerturbOptions {
                run: self.options(scenario)?,
                seed: self.seed,
                count,
            };
            let mut progress: Box<dyn Progress> = match self.on {
                Place::Sim => Box::new(Many::on_stderr()),
                Place::Vm | Place::Host => progress::on_stderr(),
            };
            let result = perturb::run(&options, progress.as_mut())?;
            if !self.json {
                let text = perturb::text(&result, width(), true);
                let folder = self.out.join(&result.scenario);
                let folder = paint(DIM, format!("results in {}", folder.display()));
                output::print(&format!("{text}\n{folder}\n"))?;
            }
            verdicts.push(perturb::verdict(&result));
            results.push(result);
        }
        self.finish(&results, verdicts)
    }

    /// Prints the results where JSON is asked for. A scenario that failed has not kept the others from
    /// running; the first failure is told now.
    fn finish(
        &self,
        results: &[impl Serialize],
        verdicts: Vec<Result<(), andante_job::LabError>>,
    ) -> Result<Status> {
        if self.json {
            output::print_json(&results)?;
            output::note(&format!("the files are in {}", self.out.display()));
        }
        verdicts.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(Status::Ok)
    }

    fn options(&self, scenario: &str) -> Result<RunOptions> {
        let (scenario, set) = self.scenario(scenario)?;
        Ok(RunOptions {
            scenario,
            cases: self.case.clone(),
            set,
            schedulers: self.schedulers(),
            perturbation: self.perturbation,
            on: match self.on {
                _ if self.parallel => On::Parallel,
                Place::Vm => On::Vm,
                Place::Sim => On::Sim,
                Place::Host => On::Host,
            },
            against: self.against.clone(),
            out: self.out.clone(),
            lab: this_file()?,
            machines: self.machines(),
            boot: self.boot,
        })
    }

    /// Machines at once. One whose CPUs are threads takes all there are.
    fn machines(&self) -> Option<usize> {
        let usual = self.parallel.then_some(1);
        self.machines.map(|n| n as usize).or(usual)
    }

    /// The scenario to run and what is laid over it: of a family a draw, written as a scenario with
    /// everything laid over it already.
    fn scenario(&self, name: &str) -> Result<(String, Vec<String>)> {
        let Some(draw) = self.draw else {
            return Ok((name.to_owned(), self.set.clone()));
        };
        let file = write_draw(name, &self.set, draw, &self.out)?;
        Ok((file.display().to_string(), Vec::new()))
    }

    fn schedulers(&self) -> Vec<String> {
        let usual: &[&str] = match self.on {
            Place::Sim => &["andante", "fair"],
            Place::Vm | Place::Host => &["andante", "eevdf"],
        };
        let usual = || usual.iter().map(|name| (*name).to_owned()).collect();
        self.scheduler.clone().unwrap_or_else(usual)
    }

    /// Prints one scenario's results.
    fn show(&self, options: &RunOptions, runs: &[RunResult]) -> Result<()> {
        let table = match self.brief {
            true => andante_report::brief::brief(options, runs, width())?,
            false => table::render(runs, width(), true),
        };
        let key = runs.first().map_or("", |run| &run.scenario);
        let folder = self.out.join(key);
        let folder = format!("results in {}", folder.display());
        let judged = match self.parallel {
            true => andante_judge::unclocked::summary(runs),
            false => String::new(),
        };
        let agreement = match (&self.against, andante_judge::against::agreement(runs)) {
            (Some(other), (compared, hold)) => {
                format!(
                    "{hold} of {compared} figures agree with {}\n",
                    other.display()
                )
            }
            (None, _) => String::new(),
        };
        let folder = paint(DIM, folder);
        output::print(&format!("{table}\n{judged}{agreement}{folder}\n"))
    }
}

/// This program's own file.
fn this_file() -> Result<PathBuf> {
    env::current_exe().context("could not find this program's own file")
}

impl Costs {
    fn run(self) -> Result<Status> {
        let options = CostsOptions {
            lab: this_file()?,
            out: self.out,
            logs: self.logs,
            only: self.only,
        };
        andante_costs::measure_costs(&options, progress::on_stderr().as_mut())?;
        output::print(&format!("costs in {}\n", options.out.display()))?;
        Ok(Status::Ok)
    }
}

impl RecordFrames {
    fn run(self) -> Result<Status> {
        let mut progress = progress::on_stderr();
        let say = &mut |what: String| progress.preparing(&what);
        let text = frames::record(self.film.as_deref(), self.decodings, say)?;
        match &self.out {
            Some(file) => std::fs::write(file, text)
                .with_context(|| format!("cannot write {}", file.display()))?,
            None => output::print(&text)?,
        }
        Ok(Status::Ok)
    }
}

impl List {
    fn run(self) -> Result<Status> {
        let families = listed_families()?;
        if self.families {
            if families.is_empty() {
                return Err(none_listed("families", "a TOML file").into());
            }
            return match self.json {
                true => output::print_json(&families),
                false => output::print(&lines(&families, width())),
            }
            .map(|()| Status::Ok);
        }
        let scenarios = listed_scenarios()?;
        if self.json {
            output::print_json(&scenarios)?;
            return Ok(Status::Ok);
        }
        if scenarios.is_empty() && families.is_empty() {
            return Err(none_listed("scenarios", "a TOML file").into());
        }
        output::print(&lines(&scenarios, width()))?;
        if !families.is_empty() {
            let title = paint(BOLD, "Families, for `andante lab sweep`");
            output::print(&format!("\n{title}\n{}", lines(&families, width())))?;
        }
        Ok(Status::Ok)
    }
}

fn listed_families() -> Result<Vec<Listed>> {
    let listed = |(name, file): (String, PathBuf)| {
        let title = Family::load(&file.display().to_string(), &[])?.title;
        Ok(Listed {
            name,
            title,
            file,
            cases: Vec::new(),
        })
    };
    known_families().into_iter().map(listed).collect()
}

fn listed_scenarios() -> Result<Vec<Listed>> {
    let listed = |(name, file): (String, PathBuf)| {
        let scenario = Scenario::load(&file, &[]).map_err(andante_job::LabError::from)?;
        let cases = scenario.cases.into_iter().filter_map(|case| case.name);
        Ok(Listed {
            name,
            title: scenario.title,
            file,
            cases: cases.collect(),
        })
    };
    known_scenarios().into_iter().map(listed).collect()
}

/// A line for each, of at most `width` columns: what does not fit is in `--json`.
fn lines(listed: &[Listed], width: usize) -> String {
    let names = listed.iter().map(|one| one.name.chars().count());
    let longest = names.max().unwrap_or(0);
    let line = |one: &Listed| {
        let title = format!("{:longest$}  {}", one.name, one.title);
        let cases = match one.cases.len() {
            0 => String::new(),
            _ => format!("  ({})", one.cases.join(", ")),
        };
        let whole = format!("{title}{cases}");
        let kept = output::cut(&whole, width);
        match kept.strip_prefix(&title) {
            Some(cases) => format!("{title}{}\n", paint(DIM, cases)),
            None => format!("{kept}\n"),
        }
    };
    listed.iter().map(line).collect()
}

/// A list of nothing helps nobody.
fn none_listed(what: &str, file: &str) -> Refusal {
    let message = format!("there are no {what} here: {}", none_here(file));
    Refusal::new(Status::BadScenario, message)
}

/// The status of a main function that returns a number.
fn ended(code: i32) -> Status {
    Status::Program(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_one_line_that_fits() {
        let listed = |name: &str, title: &str, cases: &[&str]| Listed {
            name: name.to_owned(),
            title: title.to_owned(),
            file: PathBuf::new(),
            cases: cases.iter().map(|case| (*case).to_owned()).collect(),
        };
        let all = [
            listed("x", "A title", &[]),
            listed("long-one", "Another", &["one", "two", "three", "four"]),
            listed("y", "A title that is longer than the line", &["case"]),
        ];
        let text = lines(&all, 30);
        let plain = text
            .replace(&DIM.to_string(), "")
            .replace(&format!("{DIM:#}"), "");
        assert_eq!(
            plain.lines().collect::<Vec<_>>(),
            [
                "x         A title",
                "long-one  Another  (one, two,…",
                "y         A title that is lon…"
            ]
        );
    }
}
