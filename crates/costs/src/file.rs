//! The file of costs, as the simulator reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use super::fit::{MODELS, fit, sums};
use super::graph::Graph;
use super::guest::{Found, Runs, Summary, Window};
use super::{Kept, Measurement};

/// What the file says about itself.
const HEAD: &str = "\
# Costs of the scheduler's callbacks and of ways through the kernel. Made by `andante lab costs`
# (`make costs`); do not edit. Measured in the virtual machine, where an instruction takes one virtual
# nanosecond; one CPU unless a key says otherwise. Keys:
#
# counting.*      ns: of a program's run that the kernel times, `inside` is counted as the run's own
#                 time and has been taken off everywhere below; `outside` is not.
# tracing.least   ns: of a traced function that does nothing, or the least of any if that one was not
#                 called. About this much of each function.* is the
#                 tracer's own.
# step.*          ns: of a step of the laboratory's programs, which is what work_ms is counted in.
# path.S.NAME     a way as programs see it under the scheduler S; NAME is explained in
#                 crates/costs/src/paths.rs, and below. ns: the median; then the number of samples,
#                 their mean, least and most. The clock's own reading is taken off. With `callbacks`: the
#                 part of ns that the scheduler's programs are, and `kernel`, the rest.
# along.S.NAME    the programs that run when that way is gone once: how often, and ns of a run.
# own.S.NAME      what one turn (frame, key, period, instant, child, request) of a program of the laboratory
#                 takes of the CPU beside its work: ns as the kernel accounts it to the program, so with
#                 its part of blocks and wake-ups; _shown: drawn by a server, beside which it stands.
# callback.C.NAME ns: mean of a run of that program in the scenario C (all: in all of them); runs.
# decision.NAME   what a run costs, by what it decides: base ns, and what each decision adds that the
#                 scheduler counts (struct an_stats in bpf/intf.h). explained: part of the variance of
#                 means in windows of 30 ms; off: mean error of such a mean [ns].
# function.NAME   ns: median of a kernel's function in all scenarios, with what it calls; samples, mean, least,
#                 most. tracing.least is NOT taken off.
#
# Ways: clock_read, system_call (getppid), thread_cpu_clock_read; page_first_touched; pipe_* (one byte),
# socket_* (8 bytes through a UNIX stream socket); *_round_trip: to another process and back, so two
# wake-ups, two blocks, two switches (server: by epoll, and a reading of the clock); yield_alone;
# *_wakes_on_idle: from a timer's instant to the program, on a CPU that idles; tick: what a program that
# never waits loses at once to an interrupt, tick_period: from one to the next; slice_ends_switch: from the
# last instruction of one program that never waits to the first of another; sleep_wakes_on_busy: as on
# idle, while another program has the CPU, sleep_preempts: its part from the interrupt on,
# sleep_begins_switch: from a program's call to sleep to the other program; fork: the parent's call;
# fork_wait_switch: from there through waitpid to the child's first instruction; child_first_write: first
# write to the stack and to a shared page, copies and all; exit_switch_waited: from _exit to the parent
# behind waitpid; fork_exit_wait: all of these. pipe_wakes_other_idle_cpu and the like: two CPUs.
";

/// The whole text.
pub(super) fn text(all: &[(&Measurement, Kept)]) -> String {
    let mut text = HEAD.to_owned();
    let empty_ns = all[0].1.found.empty_ns;
    head(&mut text, all);
    for (one, kept) in all.iter().filter(|(one, _)| one.paths) {
        paths(&mut text, one.name, &kept.found);
    }
    let cases = || all.iter().filter(|(one, _)| !one.paths);
    let windows: Vec<&Window> = cases().flat_map(|(_, kept)| &kept.found.windows).collect();
    callbacks(&mut text, "all", &windows, empty_ns);
    for (one, kept) in cases() {
        let windows: Vec<&Window> = kept.found.windows.iter().collect();
        callbacks(&mut text, one.name, &windows, empty_ns);
    }
    decisions(&mut text, &windows, empty_ns);
    functions(&mut text, cases().map(|(_, kept)| &kept.found));
    text
}

/// A line; a string can always be written to.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {
        writeln!($text, $($arguments)*).expect("a string grows")
    };
}

fn head(text: &mut String, all: &[(&Measurement, Kept)]) {
    let first = &all[0].1.found;
    let Kept {
        kernel, emulator, ..
    } = &all[0].1;
    line!(text, "\n[origin]");
    line!(text, "date = \"{}\"", said("date", &["-u", "+%F"]));
    let commit = said("git", &["describe", "--always", "--dirty", "--abbrev=12"]);
    line!(text, "commit = \"{commit}\"");
    line!(text, "kernel = \"{kernel}\"");
    line!(text, "qemu = \"{}.{}\"", emulator.0, emulator.1);
    line!(text, "\n[counting]");
    line!(text, "inside = {:.1}", first.empty_ns);
    if let Some(outside) = outside_ns(first) {
        line!(text, "outside = {outside:.1}");
    }
    if let Some(least_ns) = tracing_ns(all.iter().map(|(_, kept)| &kept.found)) {
        line!(text, "\n[tracing]\nleast = {least_ns}");
    }
    line!(text, "\n[step]\nns = {:.3}", first.step_ns);
}

/// What a traced function takes that does nothing. The kernel may not have been able to trace that one, or
/// nobody may have called it: then the shortest call of any, which does next to nothing.
fn tracing_ns<'a>(found: impl Iterator<Item = &'a Found> + Clone) -> Option<u64> {
    let least = |summary: &Summary| summary.least_ns;
    let nothing = found
        .clone()
        .filter_map(|one| one.functions.get(Graph::NOTHING));
    let any = found.flat_map(|one| one.functions.values());
    nothing.map(least).min().or_else(|| any.map(least).min())
}

/// What counting a program's run costs outside of its own time, by the way that runs most of them.
fn outside_ns(found: &Found) -> Option<f64> {
    const WAY: &str = "pipe_round_trip";
    let path = found.paths.iter().find(|path| path.name == WAY)?;
    let along = found.along.iter().find(|along| along.name == WAY)?;
    let runs: u64 = along.programs.values().map(|(runs, _)| runs).sum();
    let more = path.counted?.mean_ns - path.cost.mean_ns;
    Some(more * along.times as f64 / runs as f64 - found.empty_ns)
}

/// The first line that a program prints; `unknown` if it fails.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let output = output.filter(|output| output.status.success());
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_else(|| "unknown".to_owned())
}

/// Ways whose time is that of the whole way, so that the callbacks that run along are parts of it. Of
/// the others a time begins or ends in the middle.
const WHOLE: [&str; 5] = [
    "yield_alone",
    "pipe_round_trip",
    "socket_round_trip",
    "server_round_trip",
    "fork_exit_wait",
];

fn paths(text: &mut String, scheduler: &str, found: &Found) {
    line!(text, "\n[path.{scheduler}]");
    for path in &found.paths {
        let mut entry = summary(&path.cost);
        let along = found
            .along
            .iter()
            .find(|along| along.name == path.name && WHOLE.contains(&path.name.as_str()));
        if let Some(along) = along {
            let callbacks_ns: f64 = along
                .programs
                .values()
                .map(|run| net_ns(*run, found.empty_ns) * run.0 as f64 / along.times as f64)
                .sum();
            let kernel_ns = path.cost.median_ns as f64 - callbacks_ns;
            write!(
                entry,
                ", callbacks = {callbacks_ns:.1}, kernel = {kernel_ns:.1}"
            )
            .expect("a string grows");
        }
        line!(text, "{} = {{ {entry} }}", path.name);
    }
    if !found.own.is_empty() {
        line!(text, "\n[own.{scheduler}]");
    }
    for (name, ns, turns) in &found.own {
        line!(text, "{name} = {{ ns = {ns:.1}, turns = {turns} }}");
    }
    for along in found.along.iter().filter(|along| along.times > 0) {
        line!(text, "\n[along.{scheduler}.{}]", along.name);
        for (name, run) in &along.programs {
            let runs = run.0 as f64 / along.times as f64;
            let ns = net_ns(*run, found.empty_ns);
            line!(
                text,
                "{} = {{ runs = {runs:.3}, ns = {ns:.1} }}",
                full(name)
            );
        }
    }
}

fn summary(of: &Summary) -> String {
    format!(
        "ns = {}, samples = {}, mean = {:.1}, least = {}, most = {}",
        of.median_ns, of.samples, of.mean_ns, of.least_ns, of.most_ns
    )
}

/// Of a run, without what counting it costs.
fn net_ns((runs, ns): (u64, u64), empty_ns: f64) -> f64 {
    ns as f64 / runs as f64 - empty_ns
}

fn callbacks(text: &mut String, case: &str, windows: &[&Window], empty_ns: f64) {
    line!(text, "\n[callback.{case}]");
    let runs: Runs = sums(windows.iter().copied());
    for (name, run) in runs {
        let ns = net_ns(run, empty_ns);
        line!(
            text,
            "{} = {{ ns = {ns:.1}, runs = {} }}",
            full(&name),
            run.0
        );
    }
}

fn decisions(text: &mut String, windows: &[&Window], empty_ns: f64) {
    for model in &MODELS {
        let Some(fit) = fit(model, windows, empty_ns) else {
            continue;
        };
        line!(text, "\n[decision.{}]", full(model.program));
        line!(text, "base = {:.1}", fit.base_ns);
        for (counter, ns) in &fit.adds_ns {
            line!(text, "{counter} = {ns:.1}");
        }
        line!(
            text,
            "explained = {:.3}\noff = {:.1}\nwindows = {}",
            fit.explained,
            fit.off_ns,
            fit.windows
        );
    }
}

/// Functions in all cases: of a case's samples the most telling ones.
fn functions<'a>(text: &mut String, found: impl Iterator<Item = &'a Found>) {
    let mut all: BTreeMap<&str, Vec<&Summary>> = BTreeMap::new();
    for (name, summary) in found.flat_map(|found| &found.functions) {
        all.entry(name).or_default().push(summary);
    }
    line!(text, "\n[function]");
    for (name, of) in all {
        let most = of.iter().max_by_key(|summary| summary.samples);
        let samples: u64 = of.iter().map(|summary| summary.samples).sum();
        let sum: f64 = of.iter().map(|one| one.mean_ns * one.samples as f64).sum();
        let together = Summary {
            samples,
            mean_ns: sum / samples as f64,
            median_ns: most.map_or(0, |summary| summary.median_ns),
            least_ns: of.iter().map(|summary| summary.least_ns).min().unwrap_or(0),
            most_ns: of.iter().map(|summary| summary.most_ns).max().unwrap_or(0),
        };
        line!(text, "\"{name}\" = {{ {} }}", summary(&together));
    }
}

/// The programs whose names are longer than what the kernel keeps of them.
const LONG: [(&str, &str); 8] = [
    ("dispatc", "dispatch"),
    ("stoppin", "stopping"),
    ("init_ta", "init_task"),
    ("exit_ta", "exit_task"),
    ("data_re", "data_ready"),
    ("receive", "received"),
    ("cgroup_", "cgroup"),
    ("contrac", "contract"),
];

fn full(name: &str) -> &str {
    let name = name.strip_prefix("andante_").unwrap_or(name);
    let long = LONG.iter().find(|(short, _)| *short == name);
    long.map_or(name, |(_, long)| long)
}

#[cfg(test)]
mod tests {
    use super::super::MEASUREMENTS;
    use super::super::guest::{Along, Path};
    use super::*;

    fn found() -> Found {
        let cost = Summary::of(vec![900, 1_000, 1_700]).unwrap();
        Found {
            paths: vec![Path {
                name: "pipe_round_trip".to_owned(),
                cost,
                counted: Some(cost),
            }],
            along: vec![Along {
                name: "pipe_round_trip".to_owned(),
                times: 10,
                programs: [("andante_dispatc".to_owned(), (20, 20 * 120))].into(),
            }],
            windows: vec![Window {
                length_ns: 1,
                programs: [("andante_enqueue".to_owned(), (4, 4 * 320))].into(),
                counters: BTreeMap::new(),
            }],
            empty_ns: 20.0,
            ..Found::default()
        }
    }

    #[test]
    fn the_file_is_toml_and_holds_what_was_found() {
        let kept = |one: &'static Measurement| {
            let kept = Kept {
                kernel: "7.2".to_owned(),
                emulator: (7, 2),
                found: found(),
            };
            (one, kept)
        };
        let all: Vec<_> = MEASUREMENTS.iter().map(kept).collect();
        let text = text(&all);
        andante_document::Node::parse("costs.toml", &text).expect("it is TOML");
        // Two runs of 100 ns a way, once the counting's 20 are taken off.
        let way = "pipe_round_trip = { ns = 1000, samples = 3, mean = 1200.0, least = 900, most = 1700, \
                   callbacks = 200.0, kernel = 800.0 }";
        assert!(text.contains(way), "{text}");
        assert!(
            text.contains("dispatch = { runs = 2.000, ns = 100.0 }"),
            "{text}"
        );
        assert!(
            text.contains("enqueue = { ns = 300.0, runs = 24 }"),
            "{text}"
        );
    }
}
