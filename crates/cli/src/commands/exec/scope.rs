//! Without root: a class of one's own, from one's own systemd.
//!
//! A user may write to the control groups below his instance of systemd, but may not move a process there from his
//! session: only systemd may. So the program is started by `systemd-run --user --scope`, which executes it
//! itself once it is in a scope of its own.

use std::ffi::OsString;

use andante_sched::class::{ClassError, ClassPath};
use andante_terminal::output;
use anyhow::{Error, Result};

/// The command that starts this one in a scope with this weight, if that is what an error calls for: root's classes
/// may not be changed, and there is a systemd of this user's.
///
/// # Errors
/// The one given, if a scope is no answer to it.
pub fn instead(
    error: Error,
    class: &ClassPath,
    weight: Option<i64>,
    words: &[String],
) -> Result<Vec<String>> {
    let forbidden = matches!(error.downcast_ref(), Some(ClassError::NotPermitted { .. }));
    if !forbidden
        || nix::unistd::geteuid().is_root()
        || !has_own_systemd(std::env::var_os("XDG_RUNTIME_DIR"))
    {
        return Err(error);
    }
    output::note(&format!(
        "{class} is a scope of your own systemd instance: only root may change classes elsewhere. Its weight counts beside your other programs"
    ));
    Ok(command(class, weight, std::process::id(), words))
}

fn has_own_systemd(runtime: Option<OsString>) -> bool {
    runtime.is_some_and(|folder| {
        std::path::Path::new(&folder)
            .join("systemd/private")
            .exists()
    })
}

fn command(class: &ClassPath, weight: Option<i64>, pid: u32, words: &[String]) -> Vec<String> {
    let name: String = (class.to_string().trim_matches('/').chars())
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    let mut command = ["systemd-run", "--user", "--scope", "--quiet", "--collect"]
        .map(str::to_owned)
        .to_vec();
    command.push(format!("--unit=andante-{name}-{pid}"));
    if let Some(weight) = weight {
        command.push(format!("--property=CPUWeight={weight}"));
    }
    command.push("--".into());
    command.extend_from_slice(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_named_after_the_class_and_has_its_weight() {
        let class = ClassPath::parse("/media/film 1").unwrap();
        let command = command(&class, Some(300), 7, &["mpv".into(), "-v".into()]);
        assert_eq!(
            command[5..],
            [
                "--unit=andante-media-film-1-7",
                "--property=CPUWeight=300",
                "--",
                "mpv",
                "-v"
            ]
        );
    }
}
