//! What schedulers are called for people.

/// A scheduler's name for people.
pub fn scheduler_title(name: &str) -> String {
    match name {
        "andante" => "Andante".into(),
        "stock" => "stock scheduler, untouched".into(),
        "eevdf" => "stock scheduler, same weights".into(),
        "eevdf-nice" => "stock scheduler, nice by hand".into(),
        "eevdf-weight" => "stock scheduler, cpu.weight by hand".into(),
        "eevdf-fifo" => "SCHED_FIFO by hand".into(),
        "eevdf-deadline" => "SCHED_DEADLINE, mean budget".into(),
        "eevdf-deadline-max" => "SCHED_DEADLINE, full budget".into(),
        "fair" => "model of EEVDF without weights".into(),
        "andante-svr4-ts" | "svr4" => "SVR4, time sharing".into(),
        "andante-svr4-rt" => "SVR4, with real time".into(),
        "andante-svr4-new" | "svr4-new" => "Solaris 2.3, time sharing".into(),
        "andante-linux-2.2" | "linux-2.2" => "Linux 2.2".into(),
        "andante-fifo" | "fifo" => "FIFO for all tasks".into(),
        "andante-rr" | "rr" => "round robin".into(),
        "andante-dwcs" => "plain DWCS".into(),
        "servers" => "contracts as published".into(),
        other => other.into(),
    }
}
