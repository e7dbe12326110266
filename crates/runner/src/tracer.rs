//! Who ran when: the kernel's `sched_switch` events of the first seconds.
//!
//! Recording an event costs each switch a little time, so a scenario that measures costs asks for
//! no trace.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_result::Run;
use nix::mount::{MsFlags, mount};

/// Room for about 60,000 switches on each CPU [KiB].
const BUFFER_KIB: &str = "8192";

/// The kernel's tracer, set up for switches.
pub(super) struct Tracer {
    folder: PathBuf,
}

impl Tracer {
    /// Sets the tracer up, not yet recording.
    ///
    /// # Errors
    /// If the kernel has none.
    pub fn prepare() -> Result<Self, LabError> {
        let folder = PathBuf::from("/sys/kernel/tracing");
        if !folder.join("trace").exists() {
            mount(
                Some("tracefs"),
                &folder,
                Some("tracefs"),
                MsFlags::empty(),
                None::<&str>,
            )
            .map_err(|e| LabError::io("mount the kernel's tracing files", e))?;
        }
        let tracer = Self { folder };
        tracer.write("tracing_on", "0")?;
        tracer.write("trace_clock", "mono")?;
        // When the buffer is full, the end is missing and not the beginning: then it is seen how far it reaches.
        tracer.write("options/overwrite", "0")?;
        tracer.write("buffer_size_kb", BUFFER_KIB)?;
        tracer.write("events/sched/sched_switch/enable", "1")?;
        tracer.write("trace", "")?;
        Ok(tracer)
    }

    /// Begins to record.
    pub fn start(&self) -> Result<(), LabError> {
        self.write("tracing_on", "1")
    }

    /// Ends recording.
    pub fn stop(&self) -> Result<(), LabError> {
        self.write("tracing_on", "0")
    }

    /// What was recorded, in times since `begin_ns` of CLOCK_MONOTONIC.
    pub fn read(&self, begin_ns: u64) -> Vec<Run> {
        let text = fs::read(self.folder.join("trace")).unwrap_or_default();
        parse(&String::from_utf8_lossy(&text), begin_ns)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), LabError> {
        let file: &Path = &self.folder.join(file);
        fs::write(file, value).map_err(|e| LabError::file("write", file, e))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // On a host, others may want the tracer as they know it.
        for (file, value) in [
            ("tracing_on", "0"),
            ("events/sched/sched_switch/enable", "0"),
            ("trace", ""),
            ("trace_clock", "local"),
            ("options/overwrite", "1"),
            ("tracing_on", "1"),
        ] {
            let _ = self.write(file, value);
        }
    }
}

/// Reads lines such as
/// `  loop-71  [000] d..2.  12.345678: sched_switch: prev_comm=… ==> next_comm=loop next_pid=71 …`.
fn parse(text: &str, begin_ns: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut running: HashMap<u32, Run> = HashMap::new();
    for line in text.lines() {
        let Some((cpu, at_ns, tid, comm)) = parse_switch(line) else {
            continue;
        };
        let start_ns = at_ns.saturating_sub(begin_ns);
        let next = Run {
            cpu,
            tid,
            comm,
            start_ns,
            length_ns: 0,
            rule: None,
        };
        if let Some(mut run) = running.insert(cpu, next) {
            run.length_ns = start_ns - run.start_ns;
            // Thread 0 is the idle loop.
            if run.tid != 0 {
                runs.push(run);
            }
        }
    }
    runs
}

/// CPU, time, and the thread that runs from now on.
fn parse_switch(line: &str) -> Option<(u32, u64, u32, String)> {
    let (head, event) = line.split_once(": sched_switch: ")?;
    let seconds = head.split_whitespace().next_back()?;
    let (whole, fraction) = seconds.split_once('.')?;
    let fraction_ns: u64 = format!("{fraction:0<9}").parse().ok()?;
    let at_ns = whole.parse::<u64>().ok()? * 1_000_000_000 + fraction_ns;
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
    let (_, next) = event.split_once(" ==> next_comm=")?;
    let (comm, rest) = next.rsplit_once(" next_pid=")?;
    let tid = rest.split_whitespace().next()?.parse().ok()?;
    Some((cpu, at_ns, tid, comm.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
           <...>-71      [000] d..2.    12.000100: sched_switch: prev_comm=a prev_pid=70 prev_prio=120 prev_state=R ==> next_comm=b [x] next_pid=71 next_prio=120
           <...>-71      [001] d..2.    12.000150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=72 next_prio=120
           <...>-71      [000] d..2.    12.004100: sched_switch: prev_comm=b [x] prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
           <...>-71      [000] d..2.    12.005000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=70 next_prio=120
";

    #[test]
    fn switches_become_runs_and_idle_time_none() {
        let runs = parse(TRACE, 12_000_000_000);
        let expected = Run {
            cpu: 0,
            tid: 71,
            comm: "b [x]".into(),
            start_ns: 100_000,
            length_ns: 4_000_000,
            rule: None,
        };
        assert_eq!(runs, [expected]);
    }
}
