//! Takes back what was done when a later step fails, so that nothing is left half done.

use std::fs;
use std::path::PathBuf;

use super::write;

/// What has been done so far; dropped without [`Undo::keep`], it is taken back, last step first.
#[derive(Default)]
pub(super) struct Undo {
    steps: Vec<Step>,
}

/// How one step is taken back.
pub(super) enum Step {
    /// Remove the directory that was made.
    RemoveDirectory(PathBuf),
    /// Stop handing out `cpu` in this directory.
    KeepCpuBack(PathBuf),
    /// Return the process to the directory it came from.
    MoveBack { pid: i32, to: PathBuf },
}

impl Undo {
    /// Records how to take back what has just been done.
    pub(super) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Everything went well: nothing is to be taken back any more.
    pub(super) fn keep(mut self) {
        self.steps.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for step in self.steps.drain(..).rev() {
            // Another process may be changing the same tree: what cannot be taken back any more
            // stays, and the error that brought us here is the one to report.
            let _ = match step {
                Step::RemoveDirectory(directory) => fs::remove_dir(directory),
                Step::KeepCpuBack(directory) => {
                    write(&directory.join("cgroup.subtree_control"), "-cpu")
                }
                Step::MoveBack { pid, to } => write(&to.join("cgroup.procs"), &pid.to_string()),
            };
        }
    }
}
