//! `andante lab` and `andante paper`: they start `andante-lab`, a program of its own, so that the service links
//! no simulator, no virtual machine and no report.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use andante_terminal::exit::{Refusal, Status};
use anyhow::{Context, Result};
use clap::Args;

/// The laboratory's program.
const NAME: &str = "andante-lab";

/// Prove what a scheduler does, on a real kernel in virtual time: starts the laboratory, `andante-lab`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Lab {
    /// See `andante lab --help`.
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Run the experiments of papers again: starts the laboratory, `andante-lab paper`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Paper {
    /// See `andante paper --help`.
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Lab {
    /// Becomes the laboratory.
    pub fn run(self) -> Result<Status> {
        become_laboratory(self.arguments)
    }
}

impl Paper {
    /// Becomes the laboratory.
    pub fn run(self) -> Result<Status> {
        become_laboratory([vec!["paper".into()], self.arguments].concat())
    }
}

fn become_laboratory(arguments: Vec<OsString>) -> Result<Status> {
    let this = env::current_exe().context("could not find this program's own file")?;
    let file = find(&this, env::var_os("PATH").as_deref()).ok_or_else(|| {
        Refusal::new(
            Status::NoLaboratory,
            "the laboratory (`andante-lab`) is not installed: install the package andante-lab, or run `make` in \
             the source tree",
        )
    })?;
    let error = Command::new(&file).args(arguments).exec();
    Err(error).with_context(|| format!("could not start {}", file.display()))
}

/// The laboratory beside this program, where it lies when installed, or on the path.
fn find(this: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let folder = this.parent()?;
    let of_path: Vec<PathBuf> = path.map(env::split_paths).into_iter().flatten().collect();
    [folder.to_owned(), folder.join("../libexec/andante")]
        .into_iter()
        .chain(of_path)
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laboratory_is_found_beside_then_installed_then_on_the_path() {
        let prefix = tempfile::tempdir().unwrap();
        let this = prefix.path().join("bin/andante");
        std::fs::create_dir_all(prefix.path().join("bin")).unwrap();
        let elsewhere = prefix.path().join("elsewhere");
        let found = || find(&this, Some(elsewhere.as_os_str()));
        assert_eq!(found(), None);
        assert_eq!(find(&this, None), None);
        for folder in ["elsewhere", "bin/../libexec/andante", "bin"] {
            let folder = prefix.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(NAME), "").unwrap();
            assert_eq!(found(), Some(folder.join(NAME)));
        }
    }
}
