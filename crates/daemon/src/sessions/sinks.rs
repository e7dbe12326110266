// SPDX-License-Identifier: GPL-2.0
//! The numbers by which threads are called for (`bpf/sinks.h`), of all sessions.

use andante_sched::session::MAX_SINKS;

/// Which of them nobody has.
#[derive(Debug, Default)]
pub struct Sinks {
    given_back: Vec<u32>,
    /// The highest that was ever given.
    highest: u32,
}

impl Sinks {
    /// One for a thread; 0 if all are taken: then it cannot be called for.
    pub fn take(&mut self) -> u32 {
        if let Some(sink) = self.given_back.pop() {
            return sink;
        }
        if self.highest + 1 == MAX_SINKS {
            return 0;
        }
        self.highest += 1;
        self.highest
    }

    /// The thread takes part no more.
    pub fn give_back(&mut self, sink: u32) {
        if sink != 0 {
            self.given_back.push(sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_threads_have_one_number_and_there_is_an_end() {
        let mut sinks = Sinks::default();
        let taken: std::collections::BTreeSet<_> = (1..MAX_SINKS).map(|_| sinks.take()).collect();
        assert_eq!(taken.len(), MAX_SINKS as usize - 1);
        assert!(!taken.contains(&0));
        assert_eq!(sinks.take(), 0);
        sinks.give_back(0);
        assert_eq!(sinks.take(), 0);
        sinks.give_back(7);
        assert_eq!([sinks.take(), sinks.take()], [7, 0]);
    }
}
