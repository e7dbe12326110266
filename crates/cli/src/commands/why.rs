//! `andante why`: why a frame was late, or a program is served as it is.

mod program;

use std::fs;
use std::path::{Path, PathBuf};

use andante_result::why::{Question, explain};
use andante_result::{RunResult, SCHEMA, VERSION};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::Result;
use clap::{ArgGroup, Args};

/// Say why a frame was late: who ran instead, for how long, and by which rule each was chosen; or, of a
/// program that runs, what Andante has learnt of it.
///
/// Reads a result of the laboratory that was traced, such as what `make demo` leaves: a scenario's `trace_s`
/// must cover the frame. Results of the simulator name the rules; those of a kernel name who ran.
///
/// With --pid it tells when each thread of a running program wakes and how long it works then, and
/// which contract Andante has taken for it because of that, or why none; and to root, for how long packets of its
/// class have waited, where a network device is attached; and what is reserved of memory for its class, by whom. A result
/// has neither.
#[derive(Args)]
#[command(group(ArgGroup::new("of").required(true).args(["result", "pid"])))]
#[command(after_long_help = "\
Without --frame it explains the first frame that was late or dropped, and lists the others.

Examples:
  andante why out/desktop-real --scheduler stock
  andante why --pid $(pidof mpv)
  andante lab run qlinux-3-film --on sim --set 'trace_s = 10' --out /tmp/sim
  andante why /tmp/sim/qlinux-3-film/dhrystones-8 --scheduler fair
  andante why out/my-own/result.json --task film --frame 17 --order")]
pub struct Why {
    /// A result.json, or the folder that holds it.
    result: Option<PathBuf>,
    /// A process that runs, or one of its threads.
    #[arg(long, value_name = "PID", conflicts_with_all = ["task", "frame", "scheduler", "order"])]
    pid: Option<i32>,
    /// The player; the first with a late frame if left out.
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
    /// The number of the frame, from 0, dropped ones counted.
    #[arg(long, value_name = "N")]
    frame: Option<usize>,
    /// The scheduler; the first of the result if left out.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Also list who ran piece by piece.
    #[arg(long)]
    order: bool,
    /// Print the explanation as JSON.
    #[arg(long)]
    json: bool,
}

impl Why {
    /// Reads and explains.
    pub fn run(self) -> Result<Status> {
        let Some(path) = &self.result else {
            return program::run(self.pid.expect("clap asks for one of both"), self.json);
        };
        let result = read(path)?;
        let question = Question {
            task: self.task,
            frame: self.frame,
            scheduler: self.scheduler,
        };
        let why = explain(&result, &question)
            .map_err(|error| Refusal::new(Status::Usage, error.to_string()))?;
        if self.json {
            output::print_json(&why)?;
        } else {
            output::print(&why.text(self.order))?;
        }
        Ok(Status::Ok)
    }
}

/// The result in a folder that a run left: that of its only case, where it has cases.
fn in_folder(folder: &Path) -> Result<PathBuf, Refusal> {
    let result = folder.join("result.json");
    if result.is_file() {
        return Ok(result);
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let cases = entries.map(|entry| entry.path());
    let mut cases: Vec<PathBuf> = cases
        .filter(|case| case.join("result.json").is_file())
        .collect();
    cases.sort();
    match cases.as_slice() {
        [] => Ok(result),
        [case] => Ok(case.join("result.json")),
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|case| case.display().to_string())
                .collect();
            let message = format!(
                "{} has several cases: name one of {}",
                folder.display(),
                names.join(", ")
            );
            Err(Refusal::new(Status::Usage, message))
        }
    }
}

fn read(path: &Path) -> Result<RunResult, Refusal> {
    let file = match path.is_dir() {
        true => in_folder(path)?,
        false => path.to_owned(),
    };
    let refuse = |reason: String| {
        let mend = "give a result.json that `andante lab run` left";
        Refusal::new(
            Status::Usage,
            format!("{}: {reason}; {mend}", file.display()),
        )
    };
    let text = fs::read(&file).map_err(|error| refuse(error.to_string()))?;
    let result: RunResult = serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("this is no result of a run: {error}")))?;
    if result.schema != SCHEMA || result.version != VERSION {
        return Err(refuse(format!(
            "a result of version {} is not known here",
            result.version
        )));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_result_or_that_of_its_only_case() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let leave = |case: &str| {
            fs::create_dir_all(out.join(case)).unwrap();
            fs::write(out.join(case).join("result.json"), "{}").unwrap();
        };
        leave("later");
        assert_eq!(in_folder(out).unwrap(), out.join("later/result.json"));
        leave("at-once");
        let error = in_folder(out).unwrap_err().to_string();
        assert!(error.contains("several cases"), "{error}");
        assert!(error.find("at-once") < error.find("later"), "{error}");
        fs::write(out.join("result.json"), "{}").unwrap();
        assert_eq!(in_folder(out).unwrap(), out.join("result.json"));
    }
}
