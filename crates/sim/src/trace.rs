//! What happened, in full or summed up.

use crate::Ns;
use crate::spec::TaskId;
use andante_core_sys::Rule;

/// A task having run on a CPU without interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Which CPU.
    pub cpu: u32,
    /// Who.
    pub task: TaskId,
    /// From when [ns].
    pub start_ns: Ns,
    /// How long [ns].
    pub length_ns: Ns,
    /// By which rule it was chosen.
    pub rule: Rule,
}

/// A hash over all decisions, and those of a stretch of time in full.
#[derive(Debug, Clone)]
pub struct Trace {
    hash: u64,
    decisions: u64,
    from_ns: Ns,
    until_ns: Ns,
    runs: Vec<Ran>,
}

impl Trace {
    /// Keeps what begins from `from_ns` to `until_ns` in full.
    pub(crate) fn keep(from_ns: Ns, until_ns: Ns) -> Self {
        Self {
            // The offset basis of FNV-1a.
            hash: 0xcbf2_9ce4_8422_2325,
            decisions: 0,
            from_ns,
            until_ns,
            runs: Vec::new(),
        }
    }

    pub(crate) fn decided(&mut self, now_ns: Ns, cpu: usize, task: TaskId, rule: Rule) {
        self.decisions += 1;
        for word in [
            now_ns,
            (cpu as u64) << 40 | u64::from(task.0) << 8 | u64::from(rule.0),
        ] {
            // FNV-1a over words instead of bytes.
            self.hash = (self.hash ^ word).wrapping_mul(0x0100_0000_01b3);
            self.hash ^= self.hash >> 29;
        }
    }

    pub(crate) fn ran(&mut self, run: Ran) {
        if run.length_ns == 0
            || run.start_ns + run.length_ns <= self.from_ns
            || run.start_ns >= self.until_ns
        {
            return;
        }
        if let Some(last) = self
            .runs
            .iter_mut()
            .rev()
            .take(8)
            .find(|r| r.cpu == run.cpu)
            && last.task == run.task
            && last.start_ns + last.length_ns == run.start_ns
        {
            last.length_ns += run.length_ns;
            return;
        }
        self.runs.push(run);
    }

    /// The same for two runs that decided the same at the same instants.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How often a CPU was given to a task, or left to it.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Who ran when, in the stretch that was kept, in the order of their ends.
    pub fn runs(&self) -> &[Ran] {
        &self.runs
    }
}
