//! What the laboratory's own programs need for one turn of their loops, beside the work that scenarios
//! ask of them: system calls, readings of the clock, their parts of blocks and wake-ups.
//!
//! A program runs with next to no work on a CPU that is otherwise idle, and the kernel tells how long it
//! had the CPU [ns], as the scheduler charges it.

use andante_job::{LabError, stop};
use andante_programs as programs;
use andante_programs::Order;
use andante_programs::clock::{NS_PER_S, now_ns, sleep_until};
use andante_scenario::{Program, Scenario};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::shared::Shared;

/// How long programs come up, and how long they are then measured [s].
const UP_S: f64 = 0.3;
const MEASURED_S: f64 = 1.5;
/// The work that is asked of them [ms].
const WORK_MS: f64 = 0.001;

/// Programs that run together, as a scenario has them. Each turn is one of a frame, key, period, request,
/// instant, child or round trip; `x` serves the one beside it.
const SCENARIOS: [&str; 8] = [
    "[programs.player]\nclass = '/'\nkind = 'player'\nfps = 97\nwork_ms = 0.001\ndrops = false",
    "[programs.typist]\nclass = '/'\nkind = 'typist'\nkeys_per_s = 97\nwork_ms = 0.001",
    "[programs.audio]\nclass = '/'\nkind = 'audio'\nframes = 256\nrate_hz = 48000\nwork_ms = 0.001",
    "[programs.waker]\nclass = '/'\nkind = 'waker'\ninterval_us = 10300",
    "[programs.batch]\nclass = '/'\nkind = 'batch'\nwork_ms = 0.001",
    "[programs.server_of_player]\nclass = '/'\nkind = 'server'\n\
     [programs.player_shown]\nclass = '/'\nkind = 'player'\nfps = 97\nwork_ms = 0.001\ndrops = false\n\
     display_ms = 0.001\nserver = 'server_of_player'",
    "[programs.server_of_typist]\nclass = '/'\nkind = 'server'\n\
     [programs.typist_shown]\nclass = '/'\nkind = 'typist'\nkeys_per_s = 97\nwork_ms = 0.001\n\
     display_ms = 0.001\nserver = 'server_of_typist'",
    "[programs.server_of_client]\nclass = '/'\nkind = 'server'\n\
     [programs.client]\nclass = '/'\nkind = 'client'\nserver = 'server_of_client'\nwork_ms = 0.001\n\
     think_ms = 5",
];

/// One program's.
#[derive(Debug, Clone, Copy, Default)]
struct Ran {
    cpu_ns: u64,
    turns: u64,
}

/// Of each program: CPU time of a turn without the work [ns], and turns.
pub(super) fn measure(steps_per_ms: f64) -> Result<Vec<(String, f64, u64)>, LabError> {
    let mut all = Vec::new();
    for text in SCENARIOS {
        let text = format!("title = 'x'\nduration_s = {MEASURED_S}\n{text}\n");
        let scenario = Scenario::parse("own.toml", &text, &[])?;
        let programs = &scenario.cases[0].workload.programs;
        let ran = together(programs, steps_per_ms)
            .map_err(|e| LabError::io("run the laboratory's programs", e))?;
        for (program, ran) in programs.iter().zip(ran) {
            let work_ns = (WORK_MS * steps_per_ms).round() / steps_per_ms * 1e6;
            // The waker is not asked for any.
            let work_ns = if program.name == "waker" {
                0.0
            } else {
                work_ns
            };
            let turn_ns = ran.cpu_ns as f64 / ran.turns.max(1) as f64 - work_ns;
            all.push((program.name.clone(), turn_ns, ran.turns));
        }
    }
    Ok(all)
}

fn together(programs: &[Program], steps_per_ms: f64) -> nix::Result<Vec<Ran>> {
    let mut all = Shared::<Ran>::among_children(programs.len())?;
    all.get().fill(Ran::default());
    let begin_ns = now_ns() + (UP_S * NS_PER_S) as u64;
    let end_ns = begin_ns + (MEASURED_S * NS_PER_S) as u64;
    let socket = std::env::temp_dir().join("andante-own-socket");
    let _ = std::fs::remove_file(&socket);
    let mut children = Vec::new();
    for (place, program) in programs.iter().enumerate() {
        let order = Order {
            name: program.name.clone(),
            number: 0,
            kind: program.kind.clone(),
            begin_ns,
            end_ns,
            steps_per_ms,
            out: socket.with_extension("samples"),
            server: Some(socket.clone()),
            session: None,
            url: None,
            peer: None,
            library: None,
            disk: None,
            lock: false,
        };
        // SAFETY: this process has one thread; the child leaves by `_exit`.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => children.push(child),
            ForkResult::Child => {
                if let Some(ran) = run(&order) {
                    all.get()[place] = ran;
                }
                // SAFETY: always sound; skips the parent's buffered output and destructors.
                unsafe { libc::_exit(0) }
            }
        }
    }
    sleep_until(end_ns);
    for child in children.iter().rev() {
        kill(*child, Signal::SIGTERM)?;
        waitpid(*child, None)?;
    }
    Ok(all.get().to_vec())
}

/// Runs a program to its SIGTERM; its turns and CPU time within the measurement. A program starts at
/// the measurement's beginning, or it would have had turns before.
fn run(order: &Order) -> Option<Ran> {
    stop::on(&[Signal::SIGTERM]).ok()?;
    let serves = matches!(order.kind, andante_scenario::Kind::Server);
    if !serves {
        sleep_until(order.begin_ns);
    }
    let before_ns = had_ns()?;
    let samples = programs::run(order).ok()?;
    let cpu_ns = had_ns()? - before_ns;
    let turns = samples.iterations.or(samples.due)?;
    Some(Ran { cpu_ns, turns })
}

/// How long this process has had a CPU [ns].
fn had_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
