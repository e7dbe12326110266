//! How long functions of the kernel take: its function-graph tracer.
//!
//! A traced function reads the clock when it begins and when it returns; what lies between holds some of
//! the tracer's own work, [`Graph::NOTHING`] of it. The name of a function that this kernel lacks, or has
//! made part of its callers, is passed over.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use andante_job::LabError;
use andante_programs::clock::{now_ns, sleep_until};
use nix::unistd::getppid;

const FOLDER: &str = "/sys/kernel/tracing";
/// Room for some hundred thousand calls on each CPU [KiB].
const BUFFER_KIB: &str = "16384";
/// Calls that show what tracing costs.
const NOTHINGS: u32 = 64;

/// The tracer; it is put out of work when this is dropped.
pub(super) struct Graph;

impl Graph {
    /// A function that does next to nothing: it reads one field of the calling process.
    pub const NOTHING: &'static str = "__x64_sys_getppid";

    pub fn prepare() -> Result<Self, LabError> {
        write("tracing_on", "0")?;
        write("buffer_size_kb", BUFFER_KIB)?;
        write("options/funcgraph-tail", "1")?;
        write("options/funcgraph-irqs", "1")?;
        Ok(Self)
    }

    /// The calls of these functions (`*` stands for anything) during the next `length_ns` [ns].
    pub fn record(
        &self,
        functions: &[&str],
        length_ns: u64,
    ) -> Result<BTreeMap<String, Vec<u64>>, LabError> {
        write("current_tracer", "nop")?;
        write("set_ftrace_filter", "")?;
        let filter = Path::new(FOLDER).join("set_ftrace_filter");
        for function in functions.iter().chain(&[Self::NOTHING]) {
            let mut file = OpenOptions::new()
                .append(true)
                .open(&filter)
                .map_err(|e| LabError::file("open", &filter, e))?;
            // One that is not there is no error here: another kernel may have it.
            let _ = writeln!(file, "{function}");
        }
        write("current_tracer", "function_graph")?;
        write("tracing_on", "1")?;
        for _ in 0..NOTHINGS {
            let _ = getppid();
        }
        sleep_until(now_ns() + length_ns);
        write("tracing_on", "0")?;
        let trace = Path::new(FOLDER).join("trace");
        let text = fs::read(&trace).map_err(|e| LabError::file("read", &trace, e))?;
        write("current_tracer", "nop")?;
        write("trace", "")?;
        Ok(parse(&String::from_utf8_lossy(&text)))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let files = [
            ("current_tracer", "nop"),
            ("set_ftrace_filter", ""),
            ("tracing_on", "1"),
        ];
        for (file, value) in files {
            let _ = write(file, value);
        }
    }
}

fn write(file: &str, value: &str) -> Result<(), LabError> {
    let file = Path::new(FOLDER).join(file);
    fs::write(&file, value).map_err(|e| LabError::file("write", &file, e))
}

/// Reads lines such as ` 0)   0.640 us    |  function();` and ` 0) + 12.5 us    |  } /* function */`.
fn parse(text: &str) -> BTreeMap<String, Vec<u64>> {
    let mut calls: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((function, ns)) = parse_call(line) {
            calls.entry(function.to_owned()).or_default().push(ns);
        }
    }
    calls
}

fn parse_call(line: &str) -> Option<(&str, u64)> {
    let (_, rest) = line.split_once(')')?;
    let (duration, call) = rest.split_once('|')?;
    let duration = duration.trim().strip_suffix("us")?;
    let us: f64 = duration.split_whitespace().next_back()?.parse().ok()?;
    let call = call.trim();
    let function = match call.strip_prefix("} /* ") {
        Some(rest) => rest.split(' ').next()?,
        None => call.split('(').next().filter(|_| call.ends_with(';'))?,
    };
    Some((function, (us * 1e3).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 0)   0.640 us    |  scx_bpf_kick_cpu();
 0)               |  try_to_wake_up() {
 0)   ==========> |
 0) + 12.005 us   |  } /* try_to_wake_up */
 ------------------------------------------
 1) ! 101.000 us  |  } /* hrtimer_interrupt [mod] */
";

    #[test]
    fn every_call_counts_where_its_length_stands() {
        let calls = parse(TRACE);
        let expected = [
            ("hrtimer_interrupt", vec![101_000]),
            ("scx_bpf_kick_cpu", vec![640]),
            ("try_to_wake_up", vec![12_005]),
        ];
        let expected = expected.map(|(name, ns)| (name.to_owned(), ns));
        assert_eq!(calls, expected.into_iter().collect());
    }
}
