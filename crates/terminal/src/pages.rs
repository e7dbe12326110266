//! Manual pages and completion scripts, made of the same texts as `--help`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
pub use clap_complete::Shell;

use crate::output;

/// Prints the manual page of `command`.
///
/// # Errors
/// If it cannot be written.
pub fn print_manual(command: Command) -> Result<()> {
    output::print(&String::from_utf8(manual(command)?)?)
}

/// Writes a page for `command` and for each of its subcommands into a folder, which is made if missing.
/// Subcommands `of_others` are named on the command's own page and have theirs from another program.
///
/// # Errors
/// If the pages cannot be written.
pub fn write_manual(command: Command, of_others: &[&str], folder: &Path) -> Result<()> {
    let own = of_others.iter().fold(command.clone(), |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.hide(true))
    });
    let page = folder.join(format!("{}.1", command.get_name()));
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(own, folder))
        .and_then(|()| fs::write(page, manual(command)?))
        .with_context(|| format!("could not write pages to {}", folder.display()))
}

fn manual(command: Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

/// Prints the completion script of `command` for a shell.
///
/// # Errors
/// If it cannot be written.
pub fn print_completions(mut command: Command, shell: Shell) -> Result<()> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    output::print(&String::from_utf8(script)?)
}
