// SPDX-License-Identifier: GPL-2.0
//! The exact test for earliest deadline first on one CPU.
//!
//! Sporadic tasks meet all deadlines under EDF exactly if in no interval more is due than supplied:
//!
//! ```text
//!     h(t) = sum of dbf_i(t)  <=  supply(t)        for all t > 0                       [1, theorem 1]
//! ```
//!
//! Only deadlines up to a horizon need a look. With supply(t) = a t and utilisation U,
//! dbf_i(t) <= (t + max(0, T_i - D_i)) C_i / T_i, so that h(t) > a t implies
//!
//! ```text
//!     t < L_a = sum of max(0, T_i - D_i) C_i / T_i  /  (a - U)                         [cf. 2, eq. 3]
//! ```
//!
//! Where U is so close to a that L_a is of no use, the hyperperiod (and the longest deadline) or the
//! synchronous busy period serve instead.
//!
//! *Quick processor-demand analysis* [2] goes down from the horizon and leaps: if h(t) <= supply(t),
//! all of h(t) is supplied at some s <= t, and every t' from s to t has h(t') <= h(t) <= supply(t').
//! The next t to look at is the instant before s.
//!
//! \[1\] S. Baruah, A. Mok, L. Rosier, *Preemptively Scheduling Hard-Real-Time Sporadic Tasks on
//! One Processor*, RTSS 1990.
//! \[2\] F. Zhang, A. Burns, *Schedulability Analysis for Real-Time Systems with EDF Scheduling*,
//! IEEE Transactions on Computers 58(9), 2009.

use crate::task::{Supply, Task};

/// No look farther ahead than this [ns], about 146 years. Keeps sums within 64 bits.
const MAX_HORIZON_NS: u64 = 1 << 62;
/// Most steps of one test. Random sets take a few dozen; only sets that use their CPU to the last
/// part in a million or so, with deadlines before the periods' ends, come anywhere near.
pub(crate) const MAX_STEPS: u32 = 1 << 16;
/// Most rounds of the search for the end of the busy period.
const MAX_BUSY_ROUNDS: u32 = 256;
/// A horizon of so many periods is worth the search for a nearer one.
const LONG_HORIZON_PERIODS: u64 = 1024;
/// Most deadlines passed in search of the first overload.
const MAX_DEADLINES_SEARCHED: u32 = 1 << 14;

/// What the test says of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every deadline is met.
    Fits,
    /// Sum of C / T above the supply.
    OverUtilised,
    /// More is due within `t_ns` than supplied.
    Overload {
        /// Length of the interval [ns].
        t_ns: u64,
    },
    /// Not known within the bounds of this crate: treated like an overload.
    Undecided,
}

/// Sums over tasks that bound the horizon.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// Bounds of the sum of C / T [2^-64].
    pub low: u128,
    pub high: u128,
    /// Bound above of the sum of max(0, T - D) C / T [2^-64 ns].
    pub lag_high: u128,
}

impl Sums {
    pub fn plus(self, task: &Task) -> Self {
        let (low, high) = task.share();
        let lag_ns = task.period_ns.saturating_sub(task.deadline_ns);
        Self {
            low: self.low + low,
            high: self.high + high,
            lag_high: self.lag_high + u128::from(lag_ns) * high,
        }
    }

    /// L_a [ns], if utilisation is below the supply.
    pub fn horizon_ns(&self, supply: Supply) -> Option<u64> {
        let room = supply.share_low().checked_sub(self.high)?;
        let horizon_ns = self.lag_high.checked_div(room)?;
        u64::try_from(horizon_ns)
            .ok()
            .filter(|&ns| ns <= MAX_HORIZON_NS)
    }
}

/// The tasks of one CPU, and what it supplies.
#[derive(Debug, Clone)]
pub struct Workload {
    supply: Supply,
    tasks: Vec<Task>,
    sums: Sums,
}

impl Workload {
    /// A CPU without tasks.
    pub fn new(supply: Supply) -> Self {
        Self {
            supply,
            tasks: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// A CPU with these tasks, whether they fit or not.
    pub fn of(supply: Supply, tasks: &[Task]) -> Self {
        let mut workload = Self::new(supply);
        tasks.iter().for_each(|&task| workload.push(task));
        workload
    }

    /// Its tasks, in the order they came.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// What it supplies.
    pub fn supply(&self) -> Supply {
        self.supply
    }

    pub(crate) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Adds a task, whether it fits or not.
    pub fn push(&mut self, task: Task) {
        self.sums = self.sums.plus(&task);
        self.tasks.push(task);
    }

    /// Takes out the task at `index`; those behind it move up.
    pub(crate) fn remove(&mut self, index: usize) {
        self.tasks.remove(index);
        self.sums = self.tasks.iter().fold(Sums::default(), Sums::plus);
    }

    /// h(t): the most that can be due within `t_ns` [ns].
    pub fn demand_ns(&self, t_ns: u64) -> u64 {
        let demands_ns = self.tasks.iter().map(|task| task.demand_ns(t_ns));
        demands_ns.fold(0, u64::saturating_add)
    }

    /// Whether its tasks fit.
    pub fn verdict(&self) -> Verdict {
        self.judge(None)
    }

    /// Whether its tasks and `task` fit together.
    pub fn verdict_with(&self, task: &Task) -> Verdict {
        self.judge(Some(task))
    }

    fn judge(&self, more: Option<&Task>) -> Verdict {
        let tasks = || self.tasks.iter().chain(more);
        let sums = more.map_or(self.sums, |task| self.sums.plus(task));
        if !self.supply.covers(sums.low, sums.high, tasks()) {
            return Verdict::OverUtilised;
        }
        if sums.lag_high == 0 {
            // No deadline before the end of its period: utilisation decides.
            return Verdict::Fits;
        }
        match self.horizon_ns(&sums, tasks) {
            Some(horizon_ns) => self.descend(horizon_ns, more),
            None => Verdict::Undecided,
        }
    }

    /// An interval beyond which nothing can go wrong [ns], of those that are known the shortest.
    fn horizon_ns<'a, I>(&self, sums: &Sums, tasks: impl Fn() -> I) -> Option<u64>
    where
        I: Iterator<Item = &'a Task>,
    {
        let near_ns = sums.horizon_ns(self.supply);
        let period_ns = tasks().map(|task| task.period_ns).max().unwrap_or(0);
        if near_ns.is_some_and(|ns| ns <= LONG_HORIZON_PERIODS * period_ns) {
            return near_ns;
        }
        let others_ns = [near_ns, hyperperiod_ns(tasks()), self.busy_period_ns(tasks)];
        others_ns.into_iter().flatten().min()
    }

    /// The first instant at which all that was released since 0 has been served [ns], or one a
    /// little later ([2], section 3).
    fn busy_period_ns<'a, I>(&self, tasks: impl Fn() -> I) -> Option<u64>
    where
        I: Iterator<Item = &'a Task>,
    {
        let mut busy_ns = 1_u64;
        for _ in 0..MAX_BUSY_ROUNDS {
            let released_ns = tasks().fold(0, |sum: u64, task| {
                sum.saturating_add(task.budget_ns * busy_ns.div_ceil(task.period_ns))
            });
            let served_ns = self.supply.time_for_ns(released_ns);
            if served_ns <= busy_ns {
                return Some(busy_ns);
            }
            if served_ns > MAX_HORIZON_NS {
                return None;
            }
            busy_ns = served_ns;
        }
        None
    }

    /// [2]'s descent from `horizon_ns`.
    fn descend(&self, horizon_ns: u64, more: Option<&Task>) -> Verdict {
        let deadlines_ns = self.tasks.iter().chain(more).map(|task| task.deadline_ns);
        let first_ns = deadlines_ns.min().unwrap_or(u64::MAX);
        let mut t_ns = horizon_ns;
        for _ in 0..MAX_STEPS {
            if t_ns < first_ns {
                return Verdict::Fits;
            }
            let more_ns = more.map_or(0, |task| task.demand_ns(t_ns));
            let demand_ns = self.demand_ns(t_ns).saturating_add(more_ns);
            let served_ns = self.supply.time_for_ns(demand_ns);
            if served_ns > t_ns {
                return Verdict::Overload { t_ns };
            }
            t_ns = served_ns.saturating_sub(1);
        }
        Verdict::Undecided
    }

    /// The first instant at which more is due than supplied [ns], counted from a common release;
    /// none if the search ends before one is found.
    pub fn first_overload_ns(&self) -> Option<u64> {
        let mut next_ns: Vec<u64> = self.tasks.iter().map(|task| task.deadline_ns).collect();
        let mut demand_ns = 0_u64;
        for _ in 0..MAX_DEADLINES_SEARCHED {
            let t_ns = *next_ns.iter().min()?;
            for (next_ns, task) in next_ns.iter_mut().zip(&self.tasks) {
                if *next_ns == t_ns {
                    *next_ns += task.period_ns;
                    demand_ns += task.budget_ns;
                }
            }
            if demand_ns > self.supply.within_ns(t_ns) {
                return Some(t_ns);
            }
        }
        None
    }

    /// The plain test: every deadline up to `horizon_ns` looked at. An oracle for the tests above.
    pub fn fits_plainly(&self, horizon_ns: u64) -> bool {
        let fits_at = |t_ns: u64| self.demand_ns(t_ns) <= self.supply.within_ns(t_ns);
        self.tasks.iter().all(|task| {
            let deadline_ns = |job: u64| task.deadline_ns + job * task.period_ns;
            (0..task.jobs_within(horizon_ns)).all(|job| fits_at(deadline_ns(job)))
        })
    }
}

/// Least common multiple of the periods plus the longest deadline [ns]: from the longest deadline
/// on, demand repeats with the hyperperiod.
pub(crate) fn hyperperiod_ns<'a>(tasks: impl Iterator<Item = &'a Task>) -> Option<u64> {
    let (mut multiple_ns, mut deadline_ns) = (1_u64, 0);
    for task in tasks {
        let factor = task.period_ns / gcd(multiple_ns, task.period_ns);
        multiple_ns = multiple_ns.checked_mul(factor)?;
        if multiple_ns > MAX_HORIZON_NS / 2 {
            return None;
        }
        deadline_ns = deadline_ns.max(task.deadline_ns);
    }
    Some(multiple_ns + deadline_ns)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
