//! Runs on this very machine.

use std::path::PathBuf;

use andante_job::files::andante_of;
use andante_job::progress::{At, Progress};
use andante_job::{Carried, Job, LabError, RunOptions};
use andante_programs::assets;
use andante_runner as runner;
use andante_runner::Setup;
use nix::sys::utsname::uname;
use nix::unistd::Uid;

/// Carries out the jobs, one after the other.
pub fn run(
    jobs: &[Job],
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Carried, LabError> {
    if !Uid::effective().is_root() {
        return Err(LabError::NotRoot);
    }
    for job in jobs {
        let workload = &job.case.workload;
        let section = match (workload.memory.is_some(), workload.disk.is_some()) {
            (true, _) => "memory",
            (_, true) => "disk",
            _ => continue,
        };
        let name = job.name();
        let what = format!("`{name}` has `[{section}]`, devices of a virtual machine");
        return Err(LabError::OnlyInVm { what });
    }
    // What this machine lacks is said before a film is encoded in vain.
    andante_sched::class::Tree::open()?;
    let andante = andante_of(&options.lab)?;
    let cache = andante_vm::Cache::open()?;
    let assets = cache.folder("assets")?;
    for job in jobs {
        assets::programs(&job.case.workload)?;
        assets::make(&job.case.workload, &assets, &mut |what| {
            progress.preparing(&what)
        })?;
    }
    progress.runs(&jobs.iter().map(Job::name).collect::<Vec<_>>());
    let mut results = vec![None; jobs.len()];
    let mut failure = None;
    for (index, job) in jobs.iter().enumerate() {
        let folder = tempfile::tempdir().map_err(|e| LabError::io("make a temporary folder", e))?;
        let setup = Setup {
            base_class: format!("/andante-lab-{}", std::process::id()),
            folder: folder.path().to_owned(),
            assets: assets.clone(),
            andante: andante.clone(),
            lab: options.lab.clone(),
            parallel: false,
        };
        let workload = &job.case.workload;
        let mut say = |at: At| progress.run(index, &at, workload.duration_s);
        match runner::run_case(workload, &job.choice, &setup, &mut say) {
            Ok(result) => results[index] = Some(result),
            Err(error) => {
                progress.ended(index, "failed");
                failure = Some(error);
                break;
            }
        }
        progress.ended(index, "done");
    }
    Ok(Carried {
        kernel: kernel_release(),
        results,
        failure,
    })
}

/// `uname -r`.
fn kernel_release() -> String {
    uname().map_or_else(
        |_| String::new(),
        |name| name.release().to_string_lossy().into_owned(),
    )
}

/// CPUs of this machine.
pub(crate) fn cpus() -> u32 {
    runner::online_cpus()
}

/// Memory of this machine [MiB].
pub(crate) fn memory_mib() -> u32 {
    let text = std::fs::read_to_string(PathBuf::from("/proc/meminfo")).unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    u32::try_from(kib.unwrap_or(0) / 1024).unwrap_or(u32::MAX)
}
