//! `andante lab sweep`: families of workloads, simulated; the work is done by the laboratory's crate.

use std::path::PathBuf;

use andante_job::progress::Count;
use andante_sweep as sweep;
use andante_sweep::SweepOptions;
use andante_terminal::exit::Status;
use andante_terminal::output::{self, DIM, paint};
use anyhow::Result;
use clap::Args;

/// Look for what breaks a scheduler: simulate workloads drawn at random from a family.
///
/// Every draw runs under every scheduler, on all cores. What comes out is told as distributions, by load,
/// and as the worst draws with the commands that run them again, in the simulator and on a real kernel.
/// Draw K of seed S is the same whatever else is asked for. DIR/sweep/FAMILY is left with sweep.json,
/// report.html (opens offline), and the worst draws as scenarios. Of several families, a table at the end
/// has them side by side: draws that keep every bound, and draws that are worse than under stock.
///
/// Measures: late_share (of frames), xrun_share (of periods of sound), key_p99_ms, key_max_ms, batch
/// (work done over that under the reference), and, where somebody was promised time, promised_late and
/// others_late (of frames or periods of sound).
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  andante lab list --families
  andante lab sweep desktop
  andante lab sweep desktop --draws 1000 --seed 7 --scheduler andante,fair
  andante lab sweep desktop sound games --brief
  andante lab sweep desktop --require 'share = 0.9, load = 0.4'
  andante lab sweep desktop --set 'cpus = 2' --set 'draw.film_load = 0.5'
  andante lab sweep start talkers disk --set sessions=true --brief
  andante lab sweep handovers --set programs.game.session=true
  andante lab sweep keys --bound 'key_p99_ms = 8' --within 'key_p99_ms = 1' --json
  andante lab run desktop --draw 7/42 --on vm")]
pub struct Sweep {
    /// Families that come with Andante (see `andante lab list --families`), or paths of some.
    #[arg(value_name = "FAMILY", required = true)]
    families: Vec<String>,
    /// How many workloads to draw.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    draws: u64,
    /// Of the draws; others draw others.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Schedulers of the simulator (see `andante lab run --help`). [default: andante,eevdf-fifo,stock as
    /// far as the simulator has them, else andante,fair]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    scheduler: Option<Vec<String>>,
    /// The scheduler to compare with. [default: eevdf-fifo, or the last one named]
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// A line of TOML laid over the family before anything is drawn; may be given several times. With
    /// `sessions = true`, or a list of kinds as ["player", "audio"], all programs that can say what they
    /// do say it in sessions.
    #[arg(long, value_name = "KEY = VALUE")]
    set: Vec<String>,
    /// What a draw must keep, over the family's own bounds and the usual ones: late_share 0.01,
    /// xrun_share 0, key_p99_ms 10, batch 0.95; may be given several times.
    #[arg(long, value_name = "MEASURE = FIGURE")]
    bound: Vec<String>,
    /// How much worse than under the reference is as good. Usual: late_share and xrun_share 0.01 (a
    /// point), key_p99_ms and key_max_ms 2, batch 0.05; may be given several times.
    #[arg(long, value_name = "MEASURE = FIGURE")]
    within: Vec<String>,
    /// What the sweep must show, instead of what the family requires (of a hundred draws or more, beside
    /// eevdf-fifo, and without --set and --bound); exit status 19 if it does not. `share` of
    /// the draws in which the reference keeps every bound, at loads up to `load`, keep every bound; may be
    /// given several times.
    #[arg(long, value_name = "share = S, load = L")]
    require: Vec<String>,
    /// Print a line for each family, and no tables.
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    /// Print the results as JSON instead of tables: an object, of several families an array of them.
    #[arg(long)]
    json: bool,
    /// Folder for what the sweep leaves.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

impl Sweep {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let mut verdicts = Vec::new();
        let mut results = Vec::new();
        for family in &self.families {
            let options = self.options(family);
            let result = sweep::run(&options, &mut Count::on_stderr())?;
            verdicts.push(sweep::verdict(&result));
            if self.brief {
                output::print(&sweep::brief(&result))?;
            } else if !self.json {
                let text = sweep::text(&result, true);
                let folder = options.folder(&result.family);
                let folder = paint(DIM, format!("results in {}", folder.display()));
                output::print(&format!("{text}\n{folder}\n"))?;
            }
            results.push(result);
        }
        match (&results[..], self.json) {
            (results, true) => {
                match results {
                    [result] => output::print_json(result)?,
                    results => output::print_json(&results)?,
                }
                output::note(&format!("the files are in {}", self.out.display()));
            }
            ([_], false) => {}
            (results, false) => output::print(&format!("\n{}", sweep::families(results, true)))?,
        }
        // A family that failed is no reason to keep the others from being swept.
        verdicts.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(Status::Ok)
    }

    fn options(&self, family: &str) -> SweepOptions {
        SweepOptions {
            family: family.to_owned(),
            draws: self.draws,
            seed: self.seed,
            schedulers: self.scheduler.clone(),
            reference: self.reference.clone(),
            set: self.set.clone(),
            bounds: self.bound.clone(),
            within: self.within.clone(),
            requirements: self.require.clone(),
            out: self.out.clone(),
        }
    }
}
