//! `andante lab figures`: figures are measured, kept and quoted by this command; nobody types one.

use std::path::PathBuf;

use andante_recorded as recorded;
use andante_recorded::{Counted, RecordOptions};
use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::Result;
use clap::Args;

/// Record the figures that the documentation quotes (for those who work on Andante).
///
/// DIR/figures.toml declares them: each names a scenario and a measure, a paper, or a command of the
/// repository that reports values. They are run in the virtual machine, as many at once as there are CPUs,
/// and written to DIR/figures.json with date, commit, kernel, QEMU and the hash of the BPF objects. DIR/figures.md and
/// the quotations of README.md are written from that. Figures of which the scenario's own bounds do not hold
/// are not recorded; what is not asked for keeps its own date and commit.
///
/// A page quotes between markers that are comments of Markdown:
///
///   freezes for <!--fig:film-loops.freeze-->38.4 ms<!--/--> at most
///
///   <!--figures: film-loops shares-->
///   (a table of these entries)
///   <!--/figures-->
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  andante lab figures                        all: hours
  andante lab figures --only shares,wakeup   some
  taskset -c 0 andante lab figures           one machine at a time
  andante lab figures --render               write the pages again, from what is recorded
  andante lab figures --check                do the pages say what was recorded?")]
pub struct Figures {
    /// Only the entries of these names.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Run nothing: compare the pages with the file, and the file with the declaration (status 19 if
    /// they differ).
    #[arg(long, conflicts_with_all = ["only", "render"])]
    check: bool,
    /// Run nothing: write the pages again from the file.
    #[arg(long, conflicts_with = "only")]
    render: bool,
    /// Folder of figures.toml, figures.json and figures.md; pages that quote lie above it.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
    /// Folder for what the runs leave.
    #[arg(long, value_name = "DIR", default_value = "out/figures")]
    out: PathBuf,
}

impl Figures {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let Counted {
            declared,
            recorded,
            quoted,
        } = if self.check {
            recorded::check(&self.docs)?
        } else if self.render {
            recorded::render(&self.docs)?
        } else {
            recorded::record(&RecordOptions {
                folder: self.docs,
                only: self.only,
                out: self.out,
                lab: super::this_file()?,
            })?
        };
        output::print(&format!(
            "{declared} figures declared, {recorded} recorded; {quoted} quotations say what was recorded\n"
        ))?;
        Ok(Status::Ok)
    }
}
