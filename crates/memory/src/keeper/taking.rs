// SPDX-License-Identifier: GPL-2.0
//! The thread that keeps free what is not lent. It waits for the swap, if what it takes has to be written first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::tracked::Tracked;
use super::{State, locked};
use crate::cgroup::Cgroup;
use crate::demand::{self, Now, Take};
use crate::firewall::Firewall;
use crate::{machine, process};

/// At once no more is taken from one than this [bytes], so that the next look is not late.
const MOST_AT_ONCE: u64 = 16 << 20;

/// The firewall; none, once all is over.
pub(super) type Wall = Mutex<Option<Firewall>>;

pub(super) fn run(state: &State, root: &Path, firewall: &Wall) {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpus = u32::try_from(cpus).unwrap_or(1);
    let mut taking = Taking {
        root,
        own: process::own_class(root),
        firewall,
        in_vain: Duration::ZERO,
        limited: None,
    };
    loop {
        let (over, floor) = {
            let state = locked(state);
            (state.over, state.machine.floor)
        };
        if over {
            return;
        }
        let free = machine::free();
        let now = Now {
            free: free.memory,
            floor,
            swap: free.swap,
            cpus,
        };
        let pause = match taking.nothing_to_do(state, &now) {
            Some(pause) => pause,
            None => taking.look(state, &now),
        };
        std::thread::park_timeout(pause);
    }
}

struct Taking<'a> {
    root: &'a Path,
    /// The class that the keeper is in. With a limit it would have to wait for itself.
    own: Option<PathBuf>,
    firewall: &'a Wall,
    /// The pause after so little was to be had of those asked that asking them cost more than it gave; 0 otherwise.
    in_vain: Duration,
    limited: Option<Limited>,
}

impl Taking<'_> {
    /// Whether it need not be seen what classes use, and until when.
    fn nothing_to_do(&mut self, state: &State, now: &Now) -> Option<Duration> {
        let mut state = locked(state);
        // Where there is enough whatever they use, nobody has to see what that is.
        let unused: Vec<_> = state.tracked.iter().map(Tracked::unused).collect();
        if unused.is_empty() || !demand::may_be_short(now, &unused) {
            state.limit = None;
            drop(state);
            if self.limited.take().is_some() {
                limit(self.firewall, &[]);
            }
            return Some(match unused.is_empty() {
                true => demand::MOST_PAUSE,
                false => demand::pause(now, &unused),
            });
        }
        let as_before = self.limited.is_some_and(|limited| limited.holds(now));
        (as_before && !demand::is_tight(now, &unused)).then_some(demand::LEAST_PAUSE)
    }

    /// Has those without a reservation limited, and takes what is to be free; for how long to pause then.
    fn look(&mut self, state: &State, now: &Now) -> Duration {
        let (classes, reserved) = {
            let mut state = locked(state);
            state.look();
            let reserved = state
                .tracked
                .iter()
                .map(|one| (one.number, one.cgroup.clone()));
            let reserved: Vec<_> = reserved.collect();
            (state.seen(), reserved)
        };
        // Each of them is read, of which there may be hundreds.
        let asked = demand::is_limited(now, &classes) || demand::need(now, &classes) > 0;
        let left_out = reserved.iter().map(|(_, cgroup)| cgroup.folder());
        let others = match asked {
            true => others(self.root, left_out.chain(self.own.as_deref())),
            false => Vec::new(),
        };
        let used: Vec<_> = others.iter().map(|other| other.used).collect();
        let most = demand::limit(now, &classes, &used);
        locked(state).limit = most;
        limit(self.firewall, &limits(most, &others));
        self.limited = Some(Limited::by(now));
        let plan = demand::plan(*now, &classes, &used);
        let mut taken = 0;
        for (take, (number, cgroup)) in plan.classes.iter().zip(&reserved) {
            taken += take_from_reserved(state, *number, cgroup, take);
        }
        for (bytes, other) in plan.others.iter().zip(&others) {
            let given = take_from(&other.cgroup, *bytes, None);
            locked(state).taken += given;
            taken += given;
        }
        // Those of whom hardly anything can be taken, such as all without a swap, are asked less and less often.
        self.in_vain = match taken < plan.takes().min(MOST_AT_ONCE) / 2 {
            true => (self.in_vain * 2).clamp(plan.pause, demand::MOST_PAUSE),
            false => Duration::ZERO,
        };
        plan.pause.max(self.in_vain)
    }
}

/// The moment at which limits were set, and what was free then.
#[derive(Debug, Clone, Copy)]
struct Limited {
    when: Instant,
    free: u64,
}

impl Limited {
    fn by(now: &Now) -> Self {
        Self {
            when: Instant::now(),
            free: now.free,
        }
    }

    /// Whether limits that were set then do as well now. Within them the one that has most may take all that is free, and
    /// what another takes meanwhile is missing then. More than half of the floor is above what programs have to wait for
    /// themselves: so much may be missing.
    fn holds(self, now: &Now) -> bool {
        self.free.abs_diff(now.free) < now.floor / 2 && self.when.elapsed() < demand::MOST_PAUSE
    }
}

/// A class without a reservation.
struct Other {
    cgroup: Cgroup,
    /// The memory that it has, without what somebody has protected by hand: that is not to be given [bytes].
    used: u64,
    /// Memory that somebody has protected by hand [bytes].
    protected: u64,
}

/// The most that each is to have. One that has less than half of that would have to double it between two looks, and has
/// none.
fn limits(most: Option<u64>, others: &[Other]) -> Vec<(&Cgroup, u64)> {
    let Some(most) = most else { return Vec::new() };
    let large = others.iter().filter(|other| other.used >= most / 2);
    large
        .map(|other| (&other.cgroup, most.saturating_add(other.protected)))
        .collect()
}

/// If it cannot be written down now, it is tried with the next look.
fn limit(firewall: &Wall, limits: &[(&Cgroup, u64)]) {
    let mut firewall = firewall.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(firewall) = firewall.as_mut() {
        let _ = firewall.limit(limits);
    }
}

/// Those that may be asked to give some, as few as possible, and what each uses: beside every class that is left out, for its
/// reservation or otherwise, and every class above such a one, its siblings.
fn others<'a>(root: &Path, left_out: impl Iterator<Item = &'a Path>) -> Vec<Other> {
    let left_out: BTreeSet<&Path> = left_out.collect();
    let above = |class: &&'a Path| {
        class
            .ancestors()
            .skip(1)
            .take_while(|at| at.starts_with(root))
    };
    let above: BTreeSet<PathBuf> = (left_out.iter())
        .flat_map(above)
        .map(Path::to_owned)
        .collect();
    let mut found = Vec::new();
    for folder in &above {
        // Classes within one that is left out are its own.
        if folder.ancestors().any(|at| left_out.contains(at)) {
            continue;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_other = !above.contains(&path) && !left_out.contains(path.as_path());
            if is_other && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let cgroup = Cgroup::new(path);
                // One whose memory is not counted apart cannot give any.
                let used = cgroup.current().unwrap_or(0);
                let protected = cgroup.protected().unwrap_or(0);
                found.push(Other {
                    cgroup,
                    used: used.saturating_sub(protected),
                    protected,
                });
            }
        }
    }
    found
}

fn take_from_reserved(state: &State, number: u64, cgroup: &Cgroup, take: &Take) -> u64 {
    if take.held > 0 {
        locked(state).holder.let_go_of(number, take.held);
    }
    let taken =
        take_from(cgroup, take.files, Some(0)) + take_from(cgroup, take.anonymous, Some(u8::MAX));
    if taken > 0
        && let Some(tracked) = locked(state).named(number)
    {
        tracked.taken += taken;
    }
    taken + take.held
}

/// Takes so much, and says how much that was. The kernel may not have so much of a kind.
fn take_from(cgroup: &Cgroup, bytes: u64, swappiness: Option<u8>) -> u64 {
    let bytes = bytes.min(MOST_AT_ONCE);
    // Less than a page is none.
    if bytes < machine::page() {
        return 0;
    }
    let before = cgroup.current().unwrap_or(0);
    let _ = cgroup.reclaim(bytes, swappiness);
    before.saturating_sub(cgroup.current().unwrap_or(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ones_have_a_limit_and_keep_what_is_protected_by_hand() {
        let of = |used, protected| Other {
            cgroup: Cgroup::new(format!("/{used}")),
            used,
            protected,
        };
        let others = [of(100, 0), of(60, 7), of(20, 0)];
        let found: Vec<_> = limits(Some(120), &others)
            .into_iter()
            .map(|(cgroup, most)| (cgroup.folder().to_owned(), most))
            .collect();
        assert_eq!(found, [(PathBuf::from("/100"), 120), ("/60".into(), 127)]);
        assert!(limits(None, &others).is_empty());
    }

    #[test]
    fn others_are_the_siblings_of_those_with_a_reservation_and_of_all_above() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (class, mib) in [
            ("a", 30),
            ("a/film", 10),
            ("a/film/below", 5),
            ("a/hog", 20),
            ("b", 7),
            ("b/below", 7),
            ("uncounted", 0),
        ] {
            let class = root.join(class);
            fs::create_dir_all(&class).unwrap();
            if mib > 0 {
                fs::write(class.join("memory.current"), (mib << 20).to_string()).unwrap();
            }
        }
        fs::write(root.join("b/memory.min"), (2 << 20).to_string()).unwrap();
        let film = root.join("a/film");
        let mut found: Vec<_> = others(root, [film.as_path()].into_iter())
            .into_iter()
            .map(|other| {
                let folder = other.cgroup.folder().strip_prefix(root).unwrap();
                (folder.to_owned(), other.used >> 20)
            })
            .collect();
        found.sort();
        let expected = [("a/hog", 20), ("b", 5), ("uncounted", 0)];
        assert_eq!(
            found,
            expected.map(|(class, mib)| (PathBuf::from(class), mib))
        );
        // The keeper's own class is asked for nothing, nor one that it is in.
        let own = root.join("b/below");
        fs::create_dir(root.join("b/beside")).unwrap();
        let found = others(root, [film.as_path(), &own].into_iter());
        let names: BTreeSet<_> = found.iter().map(|other| other.cgroup.folder()).collect();
        let expected = ["a/hog", "b/beside", "uncounted"].map(|class| root.join(class));
        assert_eq!(names, expected.iter().map(PathBuf::as_path).collect());
    }
}
