//! The loaded scheduler's programs, as the kernel sees them.

use libbpf_rs::query::ProgInfoIter;

/// What all of our programs' names begin with.
const PREFIX: &str = "andante_";

/// A BPF program of the loaded scheduler.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Program {
    /// Its name; the kernel keeps 15 bytes of that.
    pub name: String,
    /// Instructions that the kernel's verifier followed when it was loaded: most of the time that
    /// loading takes. At most a million.
    pub verified_instructions: u32,
    /// How often it ran while the kernel counted (`sysctl kernel.bpf_stats_enabled=1`).
    pub runs: u64,
    /// How long all of these took [ns].
    pub run_ns: u64,
}

/// Those that are loaded, in no particular order. None if this user may not look.
pub fn programs() -> Vec<Program> {
    ProgInfoIter::default()
        .filter_map(|info| {
            let name = info.name.to_str().ok()?.to_owned();
            name.starts_with(PREFIX).then_some(Program {
                name,
                verified_instructions: info.verified_insns,
                runs: info.run_cnt,
                run_ns: info.run_time_ns,
            })
        })
        .collect()
}
