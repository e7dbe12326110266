// SPDX-License-Identifier: GPL-2.0
//! Whether a contract may be made: by admission, and by what it does not know of.

use andante_admission::{
    Admission, Bounds, Contract, Nearest, Placement, Promise, Refusal, Test, Unproved,
};
use andante_sched::class::ClassPath;
use andante_sched::contracts::{MAX_PERIOD_NS, MAX_PIECES, MAX_SPLITS};

use super::holder::Resolved;
use super::{Books, Caller, Held, cpus};
use crate::protocol::{Limit, Refused};
use crate::terms::LEAST_BUDGET_NS;

/// Utilisation C/T [2^-64 CPU], rounded down.
type Utilisation = u128;

/// Who asks for a contract, and for whom.
pub struct Question<'a> {
    /// The holder.
    pub by: &'a Resolved,
    /// Who asks; none for one that was admitted before, which no limit but the CPUs' concerns.
    pub caller: Option<Caller>,
}

/// What admission says of a place.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Place(Admission),
    /// It would do, but the kernel cannot keep it so.
    Unkept,
    /// Neither there nor, if it was asked for none, on any CPU alone.
    Nowhere,
}

impl Books {
    /// Where the contract is admitted, in admission's numbers, if it is within every limit.
    pub(super) fn admit(&self, contract: &Contract, question: &Question<'_>) -> Option<Admission> {
        if question.caller.is_some() && !self.limits(contract, question).is_empty() {
            return None;
        }
        if self.settings.plain_dwcs {
            return self.emptiest(contract, question);
        }
        // The first of the strongest, so that the first CPU wins ties; and no more questions than it takes, for
        // a refusal asks this some sixty times, and others wait.
        let mut best: Option<Admission> = None;
        for cpu in self.candidates(question.by.allowed) {
            let found = self.admit_at(contract, cpu);
            if cpu.is_none() && found == Found::Nowhere {
                return None;
            }
            let Found::Place(next) = found else { continue };
            let promise = strength(next.promise);
            if best
                .as_ref()
                .is_none_or(|best| promise > strength(best.promise))
            {
                best = Some(next);
            }
            if promise == STRONGEST {
                break;
            }
        }
        best
    }

    /// Plain DWCS asks no test: the CPU of those that the holder may use where least is promised, by
    /// loss windows, whatever that comes to.
    fn emptiest(&self, contract: &Contract, question: &Question<'_>) -> Option<Admission> {
        let promised = |at: &u32| {
            let bit = cpus::bit(self.online[*at as usize]);
            let on = |held: &&Held| {
                let place = held.place.as_ref();
                place.is_some_and(|place| cpus::mask(&place.placement) & bit != 0)
            };
            sum(self.held.iter().filter(on))
        };
        let candidates = self.candidates(question.by.allowed).into_iter().flatten();
        let cpu = candidates.min_by_key(promised)?;
        let promise = match self.admit_at(contract, Some(cpu)) {
            Found::Place(found) => found.promise,
            Found::Unkept | Found::Nowhere => Promise::Nothing(Unproved::Overload),
        };
        Some(Admission {
            placement: Placement::Whole { cpu },
            promise,
            test: Test::WindowConstraint,
            weakened: Vec::new(),
        })
    }

    /// Which places to ask for, in admission's numbers: anywhere first, if the holder may go there.
    fn candidates(&self, allowed: u64) -> Vec<Option<u32>> {
        let numbers = 0..self.online.len() as u32;
        let may = |at: &u32| allowed & cpus::bit(self.online[*at as usize]) != 0;
        let each = numbers.clone().filter(may).map(Some);
        if numbers.clone().all(|at| may(&at)) {
            [None].into_iter().chain(each).collect()
        } else {
            each.collect()
        }
    }

    fn admit_at(&self, contract: &Contract, cpu: Option<u32>) -> Found {
        let pinned = Contract {
            cpu,
            ..contract.clone()
        };
        let Ok(Some(admission)) = self.system.would_admit(&pinned) else {
            return Found::Nowhere;
        };
        let fits_kernel = match &admission.placement {
            Placement::Split { pieces } => pieces.len() <= MAX_PIECES && self.may_split(),
            Placement::Whole { cpu } => {
                admission.test != Test::WindowConstraint || self.is_windowed(*cpu)
            }
        };
        match fits_kernel {
            true => Found::Place(admission),
            false => Found::Unkept,
        }
    }

    /// Whether the kernel has room for the pieces of one more.
    fn may_split(&self) -> bool {
        let places = self.held.iter().filter_map(|held| held.place.as_ref());
        let splits = places.filter(|place| place.placement.is_split());
        splits.count() < MAX_SPLITS
    }

    /// Whether the kernel serves all contracts of this CPU by windows, so that their losses follow
    /// from DWCS's rules. In admission's numbers.
    fn is_windowed(&self, cpu: u32) -> bool {
        let bit = cpus::bit(self.online[cpu as usize]);
        let places = self.held.iter().filter_map(|held| held.place.as_ref());
        let mut there = places.filter(|place| cpus::mask(&place.placement) & bit != 0);
        there.all(|place| place.window)
    }

    /// Why the contract, which is not admitted, is refused.
    pub(super) fn refused(&self, contract: &Contract, question: &Question<'_>) -> Refused {
        let bounds = Bounds {
            least_budget_ns: LEAST_BUDGET_NS,
            longest_period_ns: MAX_PERIOD_NS,
        };
        let nearest = Nearest::to(contract, bounds, |offered| self.admit(offered, question));
        let nearest = cpus::offers_to_machine(nearest, &self.online);
        let limits = self.limits(contract, question);
        let mut refusal = Refusal {
            cpus: Vec::new(),
            split: None,
            nearest,
        };
        if limits.is_empty() {
            self.name_obstacles(contract, question, &mut refusal);
        }
        Refused { limits, refusal }
    }

    /// What stands in the way on each CPU that the holder may use.
    fn name_obstacles(&self, contract: &Contract, question: &Question<'_>, refusal: &mut Refusal) {
        let candidates = self.candidates(question.by.allowed);
        let anywhere = candidates.first() == Some(&None);
        let asked = if anywhere {
            &candidates[..1]
        } else {
            &candidates[..]
        };
        for &cpu in asked {
            let pinned = Contract {
                cpu,
                ..contract.clone()
            };
            let found = self.system.refusal(&pinned, refusal.nearest.clone());
            refusal.cpus.extend(found.cpus);
            refusal.split = found.split;
        }
        for obstacle in &mut refusal.cpus {
            obstacle.cpu = self.online[obstacle.cpu as usize];
            for holder in &mut obstacle.holders {
                holder.name = self.shown(&holder.name);
            }
        }
    }

    /// The limits, other than the CPUs', that the contract exceeds.
    fn limits(&self, contract: &Contract, question: &Question<'_>) -> Vec<Limit> {
        let asked = utilisation(contract.budget_ns, contract.period_ns);
        let limits = [
            question
                .caller
                .and_then(|caller| match question.by.is_session() {
                    true => self.session_quota(asked, caller, question.by),
                    false => self.quota(asked, caller),
                }),
            question
                .caller
                .and_then(|caller| self.users_quota(asked, caller)),
            self.parent(asked, question.by),
            self.children(asked, question.by),
        ];
        limits.into_iter().flatten().collect()
    }

    fn quota(&self, asked: Utilisation, caller: Caller) -> Option<Limit> {
        if caller.privileged {
            return None;
        }
        let limit = self.part_of_machine(self.settings.user_quota_per_mille);
        let own = self.of_user(caller);
        let held = sum(own.filter(|held| !held.by.is_session()));
        (held + asked > limit).then(|| Limit::UserQuota {
            held_ppm: ppm(held),
            asked_ppm: ppm(asked),
            limit_ppm: ppm(limit),
        })
    }

    /// Sessions have a part of their own, in which there is room for a game; it is for those in front, and the
    /// others are promised something while all together have no more than the user could reserve.
    fn session_quota(&self, asked: Utilisation, caller: Caller, by: &Resolved) -> Option<Limit> {
        if caller.privileged {
            return None;
        }
        let whole = self.settings.session_quota_per_mille();
        let limit = self.part_of_machine(match by.behind {
            true => whole.min(self.settings.user_quota_per_mille),
            false => whole,
        });
        let own = self.of_user(caller);
        let held = sum(own.filter(|held| held.by.is_session()));
        (held + asked > limit).then(|| Limit::SessionQuota {
            behind: by.behind,
            held_ppm: ppm(held),
            asked_ppm: ppm(asked),
            limit_ppm: ppm(limit),
        })
    }

    /// What the caller's user holds without privilege.
    fn of_user(&self, caller: Caller) -> impl Iterator<Item = &Held> {
        let own = move |held: &&Held| !held.privileged && held.account == caller.account;
        self.held.iter().filter(own)
    }

    /// Whoever has many ids, none of them another's subordinate, has no more by them than this.
    fn users_quota(&self, asked: Utilisation, caller: Caller) -> Option<Limit> {
        if caller.privileged {
            return None;
        }
        let limit = self.part_of_machine(self.settings.users_quota_per_mille());
        let held = sum(self.held.iter().filter(|held| !held.privileged));
        (held + asked > limit).then(|| Limit::UsersQuota {
            held_ppm: ppm(held),
            asked_ppm: ppm(asked),
            limit_ppm: ppm(limit),
        })
    }

    fn part_of_machine(&self, per_mille: u32) -> Utilisation {
        let machine = (self.online.len() as u128) << 64;
        machine * u128::from(per_mille) / 1000
    }

    /// The contract of the class that the new one is nested in must cover all that are.
    fn parent(&self, asked: Utilisation, by: &Resolved) -> Option<Limit> {
        let parent = self.parent_of(by)?;
        let nested = self.held.iter().filter(|held| {
            let here = self.parent_of(&held.by);
            // Not those that will be nested in the new one.
            let below = by.is_class() && is_below(&held.by, &by.class);
            !below && here.is_some_and(|found| found.key == parent.key)
        });
        let held = sum(nested);
        let limit = utilisation(parent.terms.budget_ns, parent.terms.period_ns);
        (held + asked > limit).then(|| Limit::Parent {
            name: parent.name.clone(),
            limit_ppm: ppm(limit),
            held_ppm: ppm(held),
            asked_ppm: ppm(asked),
        })
    }

    /// A new contract of a class must cover those that are nested in it from then on.
    fn children(&self, asked: Utilisation, by: &Resolved) -> Option<Limit> {
        if !by.is_class() {
            return None;
        }
        let nested: Vec<&Held> = self
            .held
            .iter()
            .filter(|held| is_below(&held.by, &by.class))
            .filter(|held| {
                // Not those that have a nearer one.
                let depth = self.parent_of(&held.by).map(|found| found.by.class.depth());
                depth.is_none_or(|depth| depth < by.class.depth())
            })
            .collect();
        let held = sum(nested.iter().copied());
        (held > asked).then(|| Limit::Children {
            names: nested.iter().map(|held| held.name.clone()).collect(),
            held_ppm: ppm(held),
            asked_ppm: ppm(asked),
        })
    }

    /// The contract that one of this holder is nested in: that of the nearest class around it.
    pub(super) fn parent_of(&self, by: &Resolved) -> Option<&Held> {
        let classes = self.held.iter().filter(|held| held.by.is_class());
        classes
            .filter(|held| is_below(by, &held.by.class))
            .max_by_key(|held| held.by.class.depth())
    }
}

/// Whether the holder is of the class or one below it; a class is not below itself.
fn is_below(by: &Resolved, class: &ClassPath) -> bool {
    let above = by.class.ancestry().any(|found| found == *class);
    above && !(by.is_class() && by.class == *class)
}

fn sum<'a>(held: impl Iterator<Item = &'a Held>) -> Utilisation {
    held.map(|held| utilisation(held.terms.budget_ns, held.terms.period_ns))
        .sum()
}

fn utilisation(budget_ns: u64, period_ns: u64) -> Utilisation {
    (u128::from(budget_ns) << 64) / u128::from(period_ns.max(1))
}

/// For display: rounded to the nearest millionth.
fn ppm(utilisation: Utilisation) -> u64 {
    ((utilisation * 1_000_000 + (1 << 63)) >> 64) as u64
}

/// Of [`strength`].
const STRONGEST: u8 = 2;

fn strength(promise: Promise) -> u8 {
    match promise {
        Promise::EveryDeadline => STRONGEST,
        Promise::Windows => 1,
        Promise::Nothing(_) => 0,
    }
}
