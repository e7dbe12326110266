// SPDX-License-Identifier: GPL-2.0
//! What loss windows promise, run: DWCS slot by slot, with its rules written down once more.

use andante_admission::dwcs::{Unproved, WindowTask, WindowVerdict, judge};
use andante_admission::experiment::Random;
use andante_admission::{Contract, Machine, Policy, Promise, Supply, System, Task, Tolerance};

/// A process whose service takes one slot.
#[derive(Debug, Clone)]
struct Process {
    period: u64,
    original: (u32, u32),
    current: (u32, u32),
    deadline: u64,
    served: bool,
}

impl Process {
    fn new(period: u64, losses: u32, window: u32) -> Self {
        Self {
            period,
            original: (losses, window),
            current: (losses, window),
            deadline: period,
            served: false,
        }
    }

    /// Rule a: served in its period.
    fn serve(&mut self) {
        self.served = true;
        let (x, y) = &mut self.current;
        if *y > *x {
            *y -= 1;
        } else if *x > 0 {
            *x -= 1;
            *y -= 1;
        }
        self.begin_window();
    }

    /// Rule b, in its nested form: not served in its period. Whether that violates its window.
    fn miss(&mut self) -> bool {
        let (x, y) = &mut self.current;
        if *x == 0 {
            *y += 1;
            return true;
        }
        *x -= 1;
        *y -= 1;
        self.begin_window();
        false
    }

    fn begin_window(&mut self) {
        if self.current == (0, 0) {
            self.current = self.original;
        }
    }

    /// Whether it goes before `other`: deadline, then the tighter window (Table 1).
    fn before(&self, other: &Self) -> bool {
        let ((x, y), (u, v)) = (self.current, other.current);
        let window = (u64::from(x) * u64::from(v)).cmp(&(u64::from(u) * u64::from(y)));
        let tie = if x == 0 && u == 0 {
            v.cmp(&y)
        } else {
            x.cmp(&u)
        };
        self.deadline
            .cmp(&other.deadline)
            .then(window)
            .then(tie)
            .is_lt()
    }
}

/// Violations within `slots`; of equals the first in the list is served.
fn violations(mut processes: Vec<Process>, slots: u64) -> u32 {
    let mut violations = 0;
    for now in 0..slots {
        for process in &mut processes {
            if process.deadline <= now {
                if !process.served {
                    violations += u32::from(process.miss());
                }
                process.served = false;
                process.deadline += process.period;
            }
        }
        let waiting = (0..processes.len()).filter(|&at| !processes[at].served);
        let best = waiting.reduce(|best, at| {
            if processes[at].before(&processes[best]) {
                at
            } else {
                best
            }
        });
        if let Some(best) = best {
            processes[best].serve();
        }
    }
    violations
}

fn window_task(period: u64, losses: u32, window: u32) -> WindowTask {
    WindowTask {
        task: Task::new(1, period, period).unwrap(),
        tolerance: Tolerance { losses, window },
        piece: false,
    }
}

#[test]
fn a_promised_window_is_never_violated() {
    let mut random = Random::new(26);
    let (mut promised, mut full) = (0, 0);
    for _ in 0..4000 {
        let period = random.within(1, 4);
        let mut tasks = Vec::new();
        let mut processes = Vec::new();
        for _ in 0..random.within(2, 3 * period) {
            let window = random.within(1, 6) as u32;
            let losses = random.within(0, u64::from(window) - 1) as u32;
            tasks.push(window_task(period, losses, window));
            processes.push(Process::new(period, losses, window));
        }
        if judge(&tasks, Supply::WHOLE) == WindowVerdict::Promised {
            promised += 1;
            full += u32::from(tasks.len() as u64 > period);
            // Windows are up to 6 periods; their common multiple is 60.
            assert_eq!(
                violations(processes.clone(), 4 * 60 * period),
                0,
                "{processes:?}"
            );
        }
    }
    assert!(
        promised > 500 && full > 200,
        "{promised} promised, {full} with losses"
    );
}

/// The set of utilisation 31/72 of which DWCS violates a window by slot 72: the condition holds,
/// so it is admitted, and the warning is right.
#[test]
fn what_is_admitted_without_a_promise_can_be_violated() {
    let set = [(1, 3, 4), (6, 2, 3), (6, 1, 4)];
    let processes = set.map(|(period, x, y)| Process::new(period, x, y));
    assert!(violations(processes.into(), 72 + 6) > 0);
    let tasks = set.map(|(period, x, y)| window_task(period, x, y));
    let unproved = Unproved::UnequalPeriods;
    assert_eq!(
        judge(&tasks, Supply::WHOLE),
        WindowVerdict::Unproved(unproved)
    );

    let mut system = System::new(Machine::whole(1), Policy::default()).unwrap();
    let mut ask = |name: &str, (period, losses, window)| {
        let contract = Contract::new(name, 1, period).with_tolerance(losses, window);
        system.admit(contract).unwrap()
    };
    let first = ask("first", set[0]);
    assert_eq!(first.admission().unwrap().promise, Promise::EveryDeadline);
    let second = ask("second", set[1]);
    let admission = second.admission().unwrap();
    assert_eq!(admission.promise, Promise::Nothing(unproved));
    assert_eq!(admission.weakened, ["first"]);
    let third = ask("third", set[2]);
    assert_eq!(
        third.admission().unwrap().promise,
        Promise::Nothing(unproved)
    );
    assert_eq!(system.promise("first"), Some(Promise::Nothing(unproved)));
}

/// Two tasks of utilisation 11/12 that violate only because a tie goes to the first.
#[test]
fn a_tie_decides_between_violation_and_none() {
    let (a, b) = (Process::new(1, 1, 4), Process::new(3, 2, 4));
    assert!(violations(vec![a.clone(), b.clone()], 120) > 0);
    assert_eq!(violations(vec![b, a], 120), 0);
}

#[test]
fn a_contract_that_tolerates_no_loss_is_not_put_at_risk() {
    let mut system = System::new(Machine::whole(1), Policy::default()).unwrap();
    system.admit(Contract::new("strict", 5, 10)).unwrap();
    let lossy = Contract::new("lossy", 4, 7).with_tolerance(1, 2);
    let refused = system.ask(&lossy).unwrap();
    let refusal = refused
        .refusal()
        .expect("what could hurt `strict` is refused");
    let failure = refusal.cpus[0].windows.clone().unwrap();
    let json = serde_json::to_value(&failure).unwrap();
    assert_eq!(json["endangers"]["contracts"][0], "strict");
    assert_eq!(json["endangers"]["unproved"], "unequal_periods");
}

#[test]
fn equal_contracts_share_a_cpu_by_their_windows() {
    let mut system = System::new(Machine::whole(1), Policy::default()).unwrap();
    let film = |name| Contract::new(name, 5, 10).with_tolerance(1, 2);
    let promises = ["a", "b", "c", "d"].map(|name| {
        let answer = system.admit(film(name)).unwrap();
        let admission = answer.admission().unwrap();
        (admission.promise, admission.weakened.len())
    });
    let (all, windows) = (Promise::EveryDeadline, Promise::Windows);
    assert_eq!(promises, [(all, 0), (all, 0), (windows, 2), (windows, 0)]);
    assert!(system.ask(&film("e")).unwrap().refusal().is_some());
    assert_eq!(system.promise("a"), Some(windows));
    assert!(system.release("c") && system.release("d"));
    assert_eq!(
        system.promise("a"),
        Some(all),
        "there is room for every deadline again"
    );
}
