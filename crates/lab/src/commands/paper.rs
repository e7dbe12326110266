//! `andante paper`: the papers, run again; the work is done by the laboratory's crate.

use std::path::PathBuf;

use andante_paper as paper;
use andante_paper::{KnownPaper, known_papers};
use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;

/// Run the experiments of a paper again, and put what it published beside what comes out.
///
/// Everything runs in the simulator, whose scheduler is the policy core of Andante: no kernel, no
/// root, the same figures on every machine. A figure that is not as published counts as a failure
/// (status 19) unless the paper's folder explains it.
///
/// Marks: ✓ as demanded, ≈ not as demanded for a known reason, ✗ not as demanded.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  andante paper list
  andante paper qlinux00
  andante paper all --report       every paper, and a book of them all
  andante paper all --json | jq '.[] | .exhibits[].id'")]
pub struct Paper {
    #[command(subcommand)]
    action: Option<Action>,
    /// Papers that come with Andante (see `andante paper list`), all for every one of them, or
    /// paths of folders with a paper.toml.
    #[arg(value_name = "KEY", required = true)]
    papers: Vec<String>,
    /// Write a book too: out/papers/book.html for all, out/papers/KEY.html for one. One page of
    /// HTML with every table and figure; it opens offline and prints.
    #[arg(long)]
    report: bool,
    /// Print the results as JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Folder for the book.
    #[arg(long, value_name = "DIR", default_value = "out/papers")]
    out: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    List(List),
}

/// List the papers that come with Andante.
#[derive(Args)]
#[command(after_help = "Example:\n  andante paper list --json | jq '.[].key'")]
struct List {
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

/// One paper as `paper list --json` prints it.
#[derive(Serialize)]
struct Listed<'a> {
    key: &'a str,
    title: &'a str,
    authors: &'a [String],
    venue: &'a str,
    year: u32,
    folder: &'a PathBuf,
}

impl Paper {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        if let Some(Action::List(list)) = self.action {
            return list.run();
        }
        let papers = paper::run(&self.papers)?;
        if self.json {
            output::print_json(&papers)?;
        } else {
            let texts: Vec<_> = papers
                .iter()
                .map(|paper| paper::text(paper, output::width(), true))
                .collect();
            output::print(&texts.join("\n\n"))?;
        }
        if self.report {
            let file = paper::write_book(&papers, &self.papers, &self.out)?;
            output::note(&format!("the book is {}", file.display()));
        }
        paper::verdict(&papers)?;
        Ok(Status::Ok)
    }
}

impl List {
    fn run(self) -> Result<Status> {
        let known = known_papers()?;
        if self.json {
            output::print_json(&known.iter().map(listed).collect::<Vec<_>>())?;
            return Ok(Status::Ok);
        }
        if known.is_empty() {
            return Err(super::none_listed("papers", "a folder with a paper.toml").into());
        }
        let width = known.iter().map(|one| one.key.len()).max().unwrap_or(0);
        for one in &known {
            let line = format!(
                "{:width$}  {}  {} {}",
                one.key, one.title, one.venue, one.year
            );
            output::print(&format!("{}\n", output::cut(&line, output::width())))?;
        }
        Ok(Status::Ok)
    }
}

fn listed(paper: &KnownPaper) -> Listed<'_> {
    Listed {
        key: &paper.key,
        title: &paper.title,
        authors: &paper.authors,
        venue: &paper.venue,
        year: paper.year,
        folder: &paper.folder,
    }
}
