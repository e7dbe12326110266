//! The user who has called us through sudo, doas or pkexec: the program is his, and runs as he would have run it.
//!
//! sudo hands on an environment of its own making, in which a player finds neither its display nor its sound. What
//! he had is what his sudo was started with, and root may read that; where there is no sudo (doas and pkexec are
//! gone by now), what the nearest process of his was started with.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use andante_terminal::exit::{Refusal, Status};
use anyhow::Result;
use nix::unistd::{Uid, User};

/// Variables in which sudo, doas and pkexec say who has called.
const SUDO_UID: &str = "SUDO_UID";
const DOAS_USER: &str = "DOAS_USER";
const PKEXEC_UID: &str = "PKEXEC_UID";

/// Variables that these programs set themselves. Others that are here and not there were asked for on their command line.
const SET_BY_THEM: [&str; 12] = [
    "HOME",
    "LOGNAME",
    "USER",
    "PATH",
    "SHELL",
    "MAIL",
    "TERM",
    "SUDO_USER",
    "SUDO_GID",
    "SUDO_COMMAND",
    SUDO_UID,
    DOAS_USER,
];

/// The user who has called, with the environment that is his.
#[derive(Debug)]
pub struct Invoker {
    user: User,
    environment: Vec<(OsString, OsString)>,
}

impl Invoker {
    /// Who has called root; none, if root is at work himself, or we are not root.
    ///
    /// # Errors
    /// The caller has no entry among the users.
    pub fn find() -> Result<Option<Self>> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(None);
        }
        let Some(user) = named()? else {
            return Ok(None);
        };
        if user.uid.is_root() {
            return Ok(None);
        }
        let his = environment_of(user.uid);
        let environment = merged(&user, his, std::env::vars_os());
        Ok(Some(Self { user, environment }))
    }

    /// Has the program run as this user, with his groups and his environment.
    ///
    /// # Errors
    /// His groups cannot be had.
    pub fn take_over(self, command: &mut Command) -> Result<()> {
        command.env_clear().envs(self.environment);
        let (uid, gid) = (self.user.uid, self.user.gid);
        let name = CString::new(self.user.name)?;
        let groups = nix::unistd::getgrouplist(&name, gid)?;
        // SAFETY: between fork and exec three system calls are made; nothing is allocated, and no lock taken.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::setgroups(&groups)?;
                nix::unistd::setgid(gid)?;
                Ok(nix::unistd::setuid(uid)?)
            });
        }
        Ok(())
    }
}

/// The user whom the environment names as the caller.
fn named() -> Result<Option<User>> {
    let variable = |name: &str| std::env::var(name).ok();
    let unknown = |who: &str| {
        let message = format!(
            "the caller {who} is no user of this machine: run it without sudo, or with --as-root if root is to be its user"
        );
        Refusal::new(Status::Failure, message)
    };
    let number = variable(SUDO_UID).or_else(|| variable(PKEXEC_UID));
    let found = match (number, variable(DOAS_USER)) {
        (Some(number), _) => {
            let uid = number.parse().map_err(|_| unknown(&number))?;
            User::from_uid(Uid::from_raw(uid))
                .ok()
                .flatten()
                .ok_or_else(|| unknown(&number))?
        }
        (None, Some(name)) => User::from_name(&name)
            .ok()
            .flatten()
            .ok_or_else(|| unknown(&name))?,
        (None, None) => return Ok(None),
    };
    Ok(Some(found))
}

/// What the sudo above us was started with, or else the nearest process of this user's; nothing, if neither can be
/// read.
fn environment_of(uid: Uid) -> Vec<(OsString, OsString)> {
    let mut above = std::os::unix::process::parent_id();
    let mut sudo = None;
    // No chain of processes is longer.
    for _ in 0..1000 {
        let is_sudo = fs::read_link(format!("/proc/{above}/exe"))
            .is_ok_and(|exe| exe.file_name() == Some(OsStr::new("sudo")));
        if is_sudo {
            // With a terminal of its own it is two processes: the outer one is his.
            sudo = Some(above);
        } else if sudo.is_some() || owner(above) == Some(uid) {
            break;
        }
        match parent(above) {
            Some(parent) if parent > 0 => above = parent,
            _ => break,
        }
    }
    let found = sudo.unwrap_or(above);
    let bytes = fs::read(format!("/proc/{found}/environ")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

fn pair(line: &[u8]) -> Option<(OsString, OsString)> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    (at > 0).then(|| (owned(&line[..at]), owned(&line[at + 1..])))
}

fn owner(pid: u32) -> Option<Uid> {
    Some(Uid::from_raw(field(pid, "Uid:")?))
}

fn parent(pid: u32) -> Option<u32> {
    field(pid, "PPid:")
}

fn field(pid: u32, name: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// His environment; what is missing in it, as a session sets it; and over it what was asked for on sudo's command line.
fn merged(
    user: &User,
    his: Vec<(OsString, OsString)>,
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let set = |to: &mut Vec<(OsString, OsString)>, name: &OsStr, value: OsString| {
        to.retain(|(known, _)| known != name);
        to.push((name.to_owned(), value));
    };
    let usual = [
        ("HOME", user.dir.clone().into_os_string()),
        ("USER", user.name.clone().into()),
        ("LOGNAME", user.name.clone().into()),
        ("SHELL", user.shell.clone().into_os_string()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ("XDG_RUNTIME_DIR", format!("/run/user/{}", user.uid).into()),
    ];
    let mut merged = his;
    for (name, value) in usual {
        if !merged.iter().any(|(known, _)| known == name) {
            merged.push((name.into(), value));
        }
    }
    for (name, value) in ours {
        let theirs = SET_BY_THEM
            .iter()
            .any(|set| name.as_bytes() == set.as_bytes());
        if !theirs {
            set(&mut merged, &name, value);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use nix::unistd::Gid;

    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn what_sudo_sets_is_not_his_and_what_was_asked_of_sudo_is() {
        let user = User {
            name: "ann".into(),
            passwd: CString::default(),
            uid: Uid::from_raw(1000),
            gid: Gid::from_raw(1000),
            gecos: CString::default(),
            dir: "/home/ann".into(),
            shell: "/bin/sh".into(),
        };
        let his = pairs(&[
            ("DISPLAY", ":1"),
            ("PATH", "/home/ann/bin"),
            ("WAYLAND_DISPLAY", "wayland-0"),
        ]);
        let ours = pairs(&[
            ("HOME", "/root"),
            ("PATH", "/usr/sbin"),
            ("SUDO_UID", "1000"),
            ("DISPLAY", ":1"),
            ("ASKED", "x"),
        ]);
        let merged = merged(&user, his, ours.into_iter());
        let value = |name: &str| {
            let mut found = merged.iter().filter(|(known, _)| known == name);
            let value = found.next().map(|(_, value)| value.to_str().unwrap());
            assert!(found.next().is_none(), "{name} is there twice");
            value
        };
        assert_eq!(value("HOME"), Some("/home/ann"));
        assert_eq!(value("PATH"), Some("/home/ann/bin"));
        assert_eq!(value("WAYLAND_DISPLAY"), Some("wayland-0"));
        assert_eq!(value("XDG_RUNTIME_DIR"), Some("/run/user/1000"));
        assert_eq!(value("ASKED"), Some("x"));
        assert_eq!(value("SUDO_UID"), None);
    }

    #[test]
    fn lines_without_a_name_are_no_variables() {
        assert_eq!(pair(b"A=b=c"), Some(("A".into(), "b=c".into())));
        assert_eq!(pair(b"=C"), None);
        assert_eq!(pair(b"nothing"), None);
    }
}
