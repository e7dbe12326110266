// SPDX-License-Identifier: GPL-2.0
//! Reserved memory of a program that is to be started: of its class, for as long as it runs.

use std::path::Path;

use andante_daemon::{Holder, Reply, Request};
use andante_sched::class::{ClassPath, Tree};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::Result;

use super::super::contracts;
use crate::commands::memory::{self, Wanted};

/// A reservation that was made. It is released when this is dropped; should that not happen, it ends with the process.
pub struct Reserved {
    class: String,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let which = self.class.clone();
        let _ = contracts::ask(&Request::Release { which });
    }
}

/// A class for a program that was given none: beside that of its caller, so that it has its part of the same.
///
/// # Errors
/// There are no classes here.
pub fn own_class(program: &str) -> Result<ClassPath> {
    let own = i32::try_from(std::process::id())?;
    let beside = Tree::open()?.class_of(own).and_then(|class| class.parent());
    let name = Path::new(program).file_name().unwrap_or_default();
    let name: String = (name.to_string_lossy().chars())
        .filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter))
        .collect();
    let name = format!("{}-{own}", if name.is_empty() { "program" } else { &name });
    Ok(beside.unwrap_or_else(ClassPath::root).child(&name))
}

/// The class that this process is in.
///
/// # Errors
/// There are no classes here.
pub fn this_class() -> Result<(Tree, ClassPath)> {
    let tree = Tree::open()?;
    let own = i32::try_from(std::process::id())?;
    let class = tree.class_of(own).unwrap_or_else(ClassPath::root);
    Ok((tree, class))
}

/// The same wish, as options have it.
pub fn options(wanted: Wanted) -> [String; 4] {
    [
        "--reserve-memory".into(),
        wanted.size.0.to_string(),
        "--lend".into(),
        format!("{}%", f64::from(wanted.lend.per_mille) / 10.0),
    ]
}

/// Reserves it for the class until this process ends. None: it is refused, which has been told.
///
/// # Errors
/// [`ClientError`](andante_daemon::ClientError).
pub fn reserve(wanted: Wanted, class: ClassPath, pid: i32) -> Result<Option<Reserved>> {
    let class = class.to_text();
    let ask = wanted.of(Holder::Class(class.clone()), Some(pid));
    match memory::ask(ask, false)? {
        Reply::MemoryReserved(answer) => {
            for note in &answer.notes {
                output::warn(note);
            }
            Ok(Some(Reserved { class }))
        }
        Reply::MemoryRefused(refusal) => {
            output::complain(&memory::refused(&refusal));
            Ok(None)
        }
        _ => Err(Refusal::new(Status::Failure, "Andante answered something else").into()),
    }
}
