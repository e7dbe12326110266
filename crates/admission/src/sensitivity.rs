// SPDX-License-Identifier: GPL-2.0
//! The largest budget that still fits on a CPU: what EDF-WM calls C' [1].
//!
//! One descent as in the demand test suffices ([2] does the same for other parameters): start with a
//! budget that is certainly too large or just right; wherever h(t) exceeds the supply, cut the
//! budget to what t allows and go on from there. A smaller budget cannot undo what was found right
//! at later instants.
//!
//! The budget found always fits. It is the largest if the horizon is near; as utilisation comes
//! close to the supply the horizon flees, and the budget is cut so that it stays within
//! [`HORIZON_PERIODS`] of the longest period. That costs at most 1 / [`HORIZON_PERIODS`] of the CPU,
//! since with H the horizon, K = sum of (T_i - D_i) U_i <= U H / [`HORIZON_PERIODS`] (see
//! [`Workload::near_horizon_ns`]).
//!
//! \[1\] S. Kato, N. Yamasaki, Y. Ishikawa, *Semi-Partitioned Scheduling of Sporadic Task Systems
//! on Multiprocessors*, ECRTS 2009.
//! \[2\] F. Zhang, A. Burns, S. Baruah, *Sensitivity Analysis of Arbitrary Deadline Real-Time
//! Systems with EDF Scheduling*, Real-Time Systems 47, 2011.

use crate::demand::{MAX_STEPS, Workload, hyperperiod_ns};
use crate::task::Task;

/// How far ahead a budget is sought [longest periods].
const HORIZON_PERIODS: u64 = 256;
/// Deadlines of the new task looked at first: they cut the budget most.
const FIRST_JOBS: u64 = 64;

impl Workload {
    /// The largest budget with which a task of this deadline and period fits [ns]; 0 if none does,
    /// or the tasks that are there do not fit.
    pub fn largest_budget_ns(&self, deadline_ns: u64, period_ns: u64) -> u64 {
        let Some(mut task) = Task::new(1, deadline_ns, period_ns) else {
            return 0;
        };
        task.budget_ns = self.budget_left_ns(deadline_ns, period_ns);
        for job in 0..FIRST_JOBS {
            self.cut(&mut task, deadline_ns + job * period_ns);
        }
        if task.budget_ns == 0 {
            return 0;
        }
        let horizon_ns = self.near_horizon_ns(&mut task);
        self.cut_below(task, horizon_ns)
    }

    /// A budget that utilisation and the deadline allow: no larger one can fit [ns].
    pub(crate) fn budget_left_ns(&self, deadline_ns: u64, period_ns: u64) -> u64 {
        let share_low = self.supply().share_low();
        let sums = self.sums();
        let times_period = |share: u128| ((share * u128::from(period_ns)) >> 64) as u64;
        let high_ns = times_period((share_low + 1).saturating_sub(sums.low));
        let low_ns = times_period(share_low.saturating_sub(sums.high));
        let left_ns = high_ns.min(self.supply().within_ns(deadline_ns));
        if left_ns <= low_ns || left_ns == 0 {
            return left_ns;
        }
        // The bounds of the sum disagree, by 1 at most: ask exactly.
        let task = Task {
            budget_ns: left_ns,
            deadline_ns,
            period_ns,
        };
        let with = sums.plus(&task);
        let tasks = self.tasks().iter().chain([&task]);
        left_ns - u64::from(!self.supply().covers(with.low, with.high, tasks))
    }

    /// Cuts the budget to what `t_ns`, a deadline of the task, allows.
    fn cut(&self, task: &mut Task, t_ns: u64) {
        let left_ns = self
            .supply()
            .within_ns(t_ns)
            .saturating_sub(self.demand_ns(t_ns));
        task.budget_ns = task.budget_ns.min(left_ns / task.jobs_within(t_ns));
    }

    /// The horizon of the tasks and `task` [ns], whose budget is cut where it were too far.
    fn near_horizon_ns(&self, task: &mut Task) -> u64 {
        let supply = self.supply();
        let tasks = || self.tasks().iter();
        let period_ns = tasks().map(|task| task.period_ns).max().unwrap_or(0);
        let limit_ns = HORIZON_PERIODS * period_ns.max(task.period_ns);
        let horizon_ns = self.sums().plus(task).horizon_ns(supply);
        if let Some(horizon_ns) = horizon_ns.filter(|&ns| ns <= limit_ns) {
            return horizon_ns;
        }
        let hyperperiod_ns = hyperperiod_ns(tasks().chain([&*task]));
        if let Some(hyperperiod_ns) = hyperperiod_ns.filter(|&ns| ns <= limit_ns) {
            return hyperperiod_ns;
        }
        // L_a = (K + lag C / T) / (room - C / T) = limit, solved for C; 2^-64 becomes 2^-32.
        let room = supply.share_low().saturating_sub(self.sums().high);
        let free = (u128::from(limit_ns) * room).saturating_sub(self.sums().lag_high) >> 32;
        let lag_ns = task.period_ns.saturating_sub(task.deadline_ns);
        let budget = free * u128::from(task.period_ns) / u128::from(limit_ns + lag_ns);
        task.budget_ns = task.budget_ns.min((budget >> 32) as u64);
        limit_ns
    }

    /// The descent from `horizon_ns`: the budget of `task`, cut wherever it is too large.
    fn cut_below(&self, mut task: Task, horizon_ns: u64) -> u64 {
        let deadlines_ns = self.tasks().iter().map(|task| task.deadline_ns);
        let first_ns = deadlines_ns
            .min()
            .map_or(task.deadline_ns, |ns| ns.min(task.deadline_ns));
        let mut t_ns = horizon_ns;
        for _ in 0..MAX_STEPS {
            if task.budget_ns == 0 || t_ns < first_ns {
                return task.budget_ns;
            }
            let jobs = task.jobs_within(t_ns);
            let others_ns = self.demand_ns(t_ns);
            let demand_ns = others_ns.saturating_add(jobs.saturating_mul(task.budget_ns));
            let served_ns = self.supply().time_for_ns(demand_ns);
            if served_ns <= t_ns {
                t_ns = served_ns.saturating_sub(1);
                continue;
            }
            // Too much is due: since the last deadline, where least is supplied for it.
            let tasks = self.tasks().iter().chain([&task]);
            t_ns = tasks
                .filter_map(|task| task.last_deadline_ns(t_ns))
                .max()
                .unwrap_or(0);
            let left_ns = self.supply().within_ns(t_ns).checked_sub(others_ns);
            // Without a job of the new task the others alone are too much.
            match left_ns.and_then(|left_ns| left_ns.checked_div(jobs)) {
                Some(budget_ns) => task.budget_ns = task.budget_ns.min(budget_ns),
                None => return 0,
            }
            let horizon_ns = self.sums().plus(&task).horizon_ns(self.supply());
            t_ns = horizon_ns.map_or(t_ns, |horizon_ns| t_ns.min(horizon_ns));
        }
        0
    }
}
