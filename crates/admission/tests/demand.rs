// SPDX-License-Identifier: GPL-2.0
//! The tests of one CPU against an oracle that looks at every deadline, and published examples.

use andante_admission::{Supply, Task, Verdict, Workload};
use proptest::prelude::*;

/// Periods whose least common multiple is small, so that the oracle can look at all of it.
const PERIODS: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 15];
/// Their least common multiple.
const HYPERPERIOD: u64 = 120;
/// From the longest deadline on, everything repeats.
const HORIZON: u64 = HYPERPERIOD + MAX_DEADLINE;
const MAX_DEADLINE: u64 = 24;

fn task(budget: u64, deadline: u64, period: u64) -> Task {
    Task::new(budget, deadline, period).unwrap()
}

fn any_task() -> impl Strategy<Value = Task> {
    (1_u64..=3, 1..=MAX_DEADLINE, 0..PERIODS.len())
        .prop_map(|(budget, deadline, at)| task(budget, deadline, PERIODS[at]))
}

/// Tasks whose deadlines lie mostly within their periods and that load a CPU about full.
fn any_tasks() -> impl Strategy<Value = Vec<Task>> {
    let constrained = any_task().prop_map(|t| {
        let deadline = 1 + t.deadline_ns() % t.period_ns();
        task(t.budget_ns(), deadline, t.period_ns())
    });
    prop::collection::vec(prop_oneof![1 => any_task(), 4 => constrained], 1..6)
}

fn any_supply() -> impl Strategy<Value = Supply> {
    prop_oneof![2 => Just(0), 1 => 0_u32..600].prop_map(|left| Supply::after(left).unwrap())
}

/// The oracle: utilisation and every deadline up to the hyperperiod and the longest deadline.
fn fits(workload: &Workload) -> bool {
    let needed = |t: &Task| t.budget_ns() * (HYPERPERIOD / t.period_ns());
    let needed: u64 = workload.tasks().iter().map(needed).sum();
    // In thousandths, so that no part of a nanosecond is lost.
    needed * 1000 <= workload.supply().per_mille() * HYPERPERIOD && workload.fits_plainly(HORIZON)
}

/// The tasks that fit, each asked in turn.
fn those_that_fit(supply: Supply, tasks: &[Task]) -> Workload {
    let mut workload = Workload::new(supply);
    for task in tasks {
        if workload.verdict_with(task) == Verdict::Fits {
            workload.push(*task);
        }
    }
    workload
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

    #[test]
    fn quick_analysis_says_what_looking_at_every_deadline_says(
        tasks in any_tasks(), supply in any_supply(),
    ) {
        let workload = Workload::of(supply, &tasks);
        let verdict = workload.verdict();
        prop_assert_eq!(verdict == Verdict::Fits, fits(&workload));
        if let Verdict::Overload { t_ns } = verdict {
            prop_assert!(workload.demand_ns(t_ns) > supply.within_ns(t_ns));
        }
    }

    #[test]
    fn one_task_more_is_judged_as_if_it_were_there(
        tasks in any_tasks(), more in any_task(), supply in any_supply(),
    ) {
        let mut workload = Workload::of(supply, &tasks);
        let verdict = workload.verdict_with(&more);
        workload.push(more);
        prop_assert_eq!(verdict, workload.verdict());
        prop_assert_ne!(verdict, Verdict::Undecided);
    }

    #[test]
    fn the_largest_budget_fits_and_one_more_does_not(
        tasks in any_tasks(), deadline in 1_u64..=15, at in 0..PERIODS.len(), supply in any_supply(),
    ) {
        let workload = those_that_fit(supply, &tasks);
        let budget = workload.largest_budget_ns(deadline, PERIODS[at]);
        let with = |budget| workload.verdict_with(&task(budget, deadline, PERIODS[at]));
        prop_assert!(budget == 0 || with(budget) == Verdict::Fits);
        prop_assert_ne!(with(budget + 1), Verdict::Fits);
    }

    #[test]
    fn the_first_overload_is_the_first(tasks in any_tasks(), supply in any_supply()) {
        let workload = Workload::of(supply, &tasks);
        if workload.verdict() != Verdict::Fits {
            let first = workload.first_overload_ns().unwrap();
            prop_assert!(workload.demand_ns(first) > supply.within_ns(first));
            prop_assert!(workload.fits_plainly(first - 1));
        }
    }
}

proptest! {
    // The oracle looks at thousands of deadlines here.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// Times of real contracts, where no oracle can look at everything: what fits must fit up to a
    /// thousand periods, and a budget that is said to be the largest must fit.
    #[test]
    fn times_in_nanoseconds_are_judged_like_small_ones(
        tasks in prop::collection::vec((10_000_000_u64..100_000_000, 1_u64..1000, 1_u64..300), 1..6),
        deadline in 1_000_000_u64..50_000_000,
    ) {
        let tasks: Vec<_> = tasks.iter().map(|&(period, deadline, budget)| {
            let deadline = period / 1000 * deadline;
            task((deadline / 1000 * budget).max(1), deadline, period)
        }).collect();
        let workload = Workload::of(Supply::WHOLE, &tasks);
        let plainly = workload.fits_plainly(10_000_000_000);
        match workload.verdict() {
            Verdict::Fits => prop_assert!(plainly),
            Verdict::Overload { t_ns } => prop_assert!(t_ns > 10_000_000_000 || !plainly),
            // Utilisation above 1 may show later; what is undecided is treated like an overload.
            Verdict::OverUtilised | Verdict::Undecided => {}
        }
        let mut workload = those_that_fit(Supply::WHOLE, &tasks);
        let budget = workload.largest_budget_ns(deadline, 50_000_000);
        let slightly_more = task(budget + 50_000_000 / 256 + 1, deadline, 50_000_000);
        prop_assert_ne!(workload.verdict_with(&slightly_more), Verdict::Fits);
        if budget > 0 {
            workload.push(task(budget, deadline, 50_000_000));
            prop_assert_eq!(workload.verdict(), Verdict::Fits);
            prop_assert!(workload.fits_plainly(10_000_000_000));
        }
    }
}

/// Liu and Layland (1973): EDF uses a CPU to the full where deadlines end the periods.
#[test]
fn implicit_deadlines_fill_a_cpu() {
    let tasks = [task(1, 2, 2), task(1, 3, 3), task(1, 6, 6)];
    assert_eq!(Workload::of(Supply::WHOLE, &tasks).verdict(), Verdict::Fits);
    let more = [
        task(1, 2, 2),
        task(1, 3, 3),
        task(1, 6, 6),
        task(1, 1000, 1000),
    ];
    assert_eq!(
        Workload::of(Supply::WHOLE, &more).verdict(),
        Verdict::OverUtilised
    );
}

/// A full CPU with deadlines before the periods' ends: L_a does not exist, the hyperperiod does.
#[test]
fn a_full_cpu_with_early_deadlines_is_decided() {
    let fits = [task(5, 10, 10), task(5, 9, 10)];
    assert_eq!(Workload::of(Supply::WHOLE, &fits).verdict(), Verdict::Fits);
    let late = [task(5, 9, 10), task(5, 9, 10)];
    let late = Workload::of(Supply::WHOLE, &late);
    assert_eq!(late.verdict(), Verdict::Overload { t_ns: 9 });
    assert_eq!(late.first_overload_ns(), Some(9));
}

/// A sixth of a CPU is kept back: the same tasks fit a slower CPU only while a sixth is free.
#[test]
fn what_is_left_for_others_is_left_in_every_interval() {
    let supply = Supply::after(200).unwrap();
    let early = task(9_000_000, 10_000_000, 33_000_000);
    let refused = Workload::of(supply, &[early]);
    assert_eq!(refused.first_overload_ns(), Some(10_000_000));
    assert_eq!(refused.demand_ns(10_000_000), 9_000_000);
    assert_eq!(supply.within_ns(10_000_000), 8_000_000);
    let empty = Workload::new(supply);
    assert_eq!(empty.largest_budget_ns(10_000_000, 33_000_000), 8_000_000);
    assert_eq!(
        Workload::of(Supply::WHOLE, &[early]).verdict(),
        Verdict::Fits
    );
}

/// Where nothing within reason decides, the answer says so, and soon.
#[test]
fn a_test_that_would_take_for_ever_is_undecided() {
    let primes = [1_000_000_007, 998_244_353, 1_000_000_009, 999_999_937];
    let tasks = primes.map(|period: u64| task(period / 4, period / 10 * 9, period));
    let workload = Workload::of(Supply::WHOLE, &tasks);
    // Utilisation is within 3e-9 of the whole CPU, and deadlines are far before the periods' ends.
    assert_eq!(workload.verdict(), Verdict::Undecided);
    let period = 999_999_893;
    let budget = workload.largest_budget_ns(period - 1, period);
    assert_eq!(budget, 0);
}
