//! Putting processes into classes.

use std::fs;

use super::undo::{Step, Undo};
use super::{ClassError, ClassPath, Kind, Tree, write};
use crate::text::from_bytes;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: the task is a thread of the kernel.
const PF_KTHREAD: u32 = 0x0020_0000;

/// What `/proc` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its name, as `ps -o comm` shows it.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel_thread: bool,
}

/// Looks a process (or a thread) up; none if there is none.
pub fn process(pid: i32) -> Option<Process> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads name and flags from the text of `/proc/PID/stat`: `pid (name) state ppid pgrp session tty
/// tpgid flags …`, where the name is bytes and may itself contain spaces and brackets.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let first = stat.iter().position(|&byte| byte == b'(')?;
    let last = stat.iter().rposition(|&byte| byte == b')')?;
    let name = stat.get(first + 1..last)?;
    let rest = String::from_utf8_lossy(stat.get(last + 1..)?);
    let flags: u32 = rest.split_whitespace().nth(6)?.parse().ok()?;
    Some(Process {
        name: from_bytes(name),
        kernel_thread: flags & PF_KTHREAD != 0,
    })
}

impl Tree {
    /// Moves processes, with all their threads, into a class (QLinux: move, join).
    ///
    /// # Errors
    /// [`ClassError::KernelThread`], [`ClassError::NoProcess`], [`ClassError::InnerClass`],
    /// [`ClassError::Unknown`]; all processes are then back where they were.
    pub fn place(&self, pids: &[i32], path: &ClassPath) -> Result<(), ClassError> {
        self.check_may_hold_tasks(path)?;
        for &pid in pids {
            let found = process(pid).ok_or(ClassError::NoProcess(pid))?;
            if found.kernel_thread {
                return Err(ClassError::KernelThread {
                    pid,
                    name: found.name,
                });
            }
        }
        let target = self.directory(path).join("cgroup.procs");
        let mut undo = Undo::default();
        for &pid in pids {
            let from = self.class_of(pid);
            write(&target, &pid.to_string())
                .map_err(|error| ClassError::from_move(path, pid, error))?;
            if let Some(from) = from {
                undo.push(Step::MoveBack {
                    pid,
                    to: self.directory(&from),
                });
            }
        }
        undo.keep();
        Ok(())
    }

    /// The class that a process is in, as seen from this tree's root.
    pub fn class_of(&self, pid: i32) -> Option<ClassPath> {
        let text = from_bytes(&fs::read(format!("/proc/{pid}/cgroup")).ok()?);
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        ClassPath::parse(path).ok()
    }

    /// Says why the class cannot hold processes of its own, if it cannot.
    ///
    /// # Errors
    /// [`ClassError::InnerClass`], [`ClassError::Invalid`], [`ClassError::Unknown`].
    pub fn check_may_hold_tasks(&self, path: &ClassPath) -> Result<(), ClassError> {
        self.existing(path)?;
        match self.kind(path)? {
            Kind::Root | Kind::Threaded | Kind::ThreadRoot => Ok(()),
            Kind::Invalid => Err(ClassError::Invalid(path.clone())),
            // With its children empty the kernel would accept the process and make them invalid.
            Kind::Domain if self.hands_out(path, "cpu") && !self.children(path)?.is_empty() => {
                Err(ClassError::InnerClass(path.clone()))
            }
            Kind::Domain => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_and_kernel_threads_are_read_from_stat() {
        let odd = parse_stat(b"7 (a) (b c) S 1 7 7 0 -1 4194560 0 0").unwrap();
        assert_eq!(
            odd,
            Process {
                name: "a) (b c".into(),
                kernel_thread: false
            }
        );
        let kernel = parse_stat(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0").unwrap();
        assert!(kernel.kernel_thread);
        let cut = parse_stat(b"7 (gr\xc3) S 1 7 7 0 -1 4194560 0 0").unwrap();
        assert_eq!(cut.name, "gr\\xc3");
        assert_eq!(parse_stat(b"2 (cut"), None);
    }

    #[test]
    fn this_very_process_is_no_kernel_thread() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(!process(pid).unwrap().kernel_thread);
        assert_eq!(process(i32::MAX), None);
    }
}
