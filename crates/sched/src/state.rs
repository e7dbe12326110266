//! Reading the state of the loaded scheduler, from any process that may.
//!
//! The class tree lives in one of the scheduler's maps.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use libbpf_rs::MapHandle;

use crate::class::{ClassError, WEIGHT_DEFAULT, cgroup_root};
use crate::error::StateError;
use crate::leaf_policy::LeafPolicy;
use crate::maps::{self, Variables};
use crate::skel::types;
use crate::snapshot::{Bandwidth, Class, Snapshot};
use crate::text;

/// Names that the loader gives the map of the scheduler's variables: with one tree, with several, and with
/// events.
const STATE_MAPS: [&str; 3] = ["sched_bp.bss", "domains_.bss", "events_b.bss"];
/// The trees of all domains.
const TREES_MAP: &str = ".bss.trees";
/// What every node has been given in all domains, if there are several.
const SERVICE_MAP: &str = ".bss.everywhere";

/// Quotas of classes, by leaf.
const BANDWIDTH_MAP: &str = ".bss.bandwidths";

/// Policies of classes, by leaf.
const POLICIES_MAP: &str = ".bss.policies";

/// A copy of the state that took no longer than this was not interrupted [ns].
const PROMPT_NS: u64 = 3_000_000;
/// Copies of the state to take at most until one is prompt.
const MAX_TRIES: u32 = 5;

/// Long enough for the CPU to turn to somebody else, or to idle.
const STOP: Duration = Duration::from_micros(100);

/// Values of `enum an_node_kind` (`core/tree.h`).
pub(crate) const LEAF: u8 = 2;
/// `AN_WEIGHT_IDLE` (`core/tag.h`).
const IDLE: u32 = 0;
/// `AN_ROOT` (`core/tree.h`).
pub(crate) const ROOT: usize = 1;

/// The class tree of the loaded scheduler at this instant.
///
/// # Errors
///
/// [`StateError`].
pub fn snapshot() -> Result<Snapshot, StateError> {
    let maps = StateMaps::find()?;
    let mut copy = Copied::take(&maps)?;
    for _ in 1..MAX_TRIES {
        if copy.took_ns < PROMPT_NS {
            break;
        }
        let another = Copied::take(&maps)?;
        if another.took_ns < copy.took_ns {
            copy = another;
        }
    }
    Ok(copy
        .state
        .snapshot(copy.at_ns, &cgroup_paths(&cgroup_root()?)))
}

/// A copy of the state and its time, which belong together, or shares taken from two of them are wrong:
/// something may have come between.
struct Copied {
    state: State,
    /// In the midst of it [ns of CLOCK_MONOTONIC].
    at_ns: u64,
    took_ns: u64,
}

impl Copied {
    fn take(maps: &StateMaps) -> Result<Self, StateError> {
        // What runs is charged when it stops. So do we: of all that runs nothing is as certain to have
        // run for long as a program that has just been started, as this one may be.
        thread::sleep(STOP);
        let begun_ns = monotonic_ns();
        let bytes = maps.read()?;
        let ended_ns = monotonic_ns();
        Ok(Self {
            state: State::of(maps, &bytes)?,
            at_ns: begun_ns.midpoint(ended_ns),
            took_ns: ended_ns - begun_ns,
        })
    }
}

/// All that the loaded scheduler has counted.
pub(crate) fn counted() -> Result<types::an_stats, StateError> {
    let variables = Variables::<types::bss>::all_of(&find_variables()?)?;
    Ok(variables.get().stats)
}

/// All counters of the loaded scheduler, by their names in `bpf/intf.h`.
///
/// # Errors
///
/// [`StateError`].
pub fn counters() -> Result<Vec<(&'static str, u64)>, StateError> {
    Ok(named(&counted()?))
}

pub(crate) fn named(stats: &types::an_stats) -> Vec<(&'static str, u64)> {
    macro_rules! named {
        ($($name:ident),*) => { vec![$((stringify!($name), stats.$name)),*] };
    }
    named!(
        picks,
        kept,
        missed_picks,
        corrected,
        wake_preemptions,
        timer_preemptions,
        unpicked_runs,
        classes_refused,
        contract_picks,
        contract_handed,
        contract_preemptions,
        learnt,
        bound,
        overdue,
        pulled,
        learnt_pulled,
        contract_misses,
        classes_shared,
        learnt_held,
        learnt_refused,
        learnt_gave_way,
        throttled,
        events_raised,
        event_rule_1,
        event_rule_2,
        event_rule_3,
        event_rule_4,
        event_rule_5,
        event_forfeits,
        untold
    )
}

/// The map of the scheduler's variables.
fn find_variables() -> Result<MapHandle, StateError> {
    let id = |name: &str| maps::newest(name).map(|info| info.id);
    let newest = STATE_MAPS.into_iter().max_by_key(|name| id(name));
    maps::find(newest.unwrap_or(STATE_MAPS[0]), size_of::<types::bss>())
}

/// Where the class tree is.
struct StateMaps {
    trees: MapHandle,
    service: Option<MapHandle>,
    bandwidths: Option<MapHandle>,
    policies: Option<MapHandle>,
}

impl StateMaps {
    fn find() -> Result<Self, StateError> {
        // How many trees there are says nothing of the build, but the size of the variables does.
        find_variables()?;
        let open = |name: &str| {
            let id = maps::newest(name).map(|info| info.id);
            id.map(MapHandle::from_map_id).transpose()
        };
        Ok(Self {
            trees: open(TREES_MAP)?.ok_or(StateError::NotLoaded)?,
            service: open(SERVICE_MAP)?,
            bandwidths: open(BANDWIDTH_MAP)?,
            policies: open(POLICIES_MAP)?,
        })
    }

    fn read(&self) -> Result<Bytes, StateError> {
        Ok(Bytes {
            trees: maps::bytes_of(&self.trees)?,
            service: self.service.as_ref().map(maps::bytes_of).transpose()?,
        })
    }
}

/// The kernel's copy of the trees, and of what every node has been given in all domains.
struct Bytes {
    trees: Vec<u8>,
    service: Option<Vec<u8>>,
}

/// A copy of the scheduler's class tree.
pub(crate) struct State {
    pub tree: Variables<types::an_tree>,
    /// None while nobody has a quota.
    pub bandwidths: Option<Variables<types::bss_bandwidths>>,
    pub policies: Option<Variables<types::bss_policies>>,
    pub domains: u32,
}

impl State {
    /// Of several trees, with the same classes in the same places: the first, with what the others
    /// add; and how many there are.
    fn of(maps: &StateMaps, bytes: &Bytes) -> Result<Self, StateError> {
        let mut trees = Variables::<types::an_tree>::each_of(&bytes.trees);
        let service_ns = bytes.service.as_deref().map(maps::words);
        trees.retain(|tree| tree.get().cpus > 0); // there is room for a power of two
        let domains = trees.len() as u32;
        let mut trees = trees.into_iter();
        let mut tree = trees.next().ok_or(StateError::NotLoaded)?;
        let nodes = &mut tree.get_mut().nodes;
        for (node, service_ns) in nodes.iter_mut().zip(service_ns.unwrap_or_default()) {
            node.service_ns = service_ns;
        }
        for other in trees {
            for (node, other) in nodes.iter_mut().zip(&other.get().nodes) {
                node.queued += other.queued;
                node.serving += other.serving;
            }
        }
        let limited = nodes.iter().any(|node| node.bandwidth != 0);
        let map = maps.bandwidths.as_ref().filter(|_| limited);
        let bandwidths = map.map(Variables::all_of).transpose()?;
        let policies = maps.policies.as_ref().map(Variables::all_of).transpose()?;
        Ok(Self {
            tree,
            bandwidths,
            policies,
            domains,
        })
    }

    fn tree(&self) -> &types::an_tree {
        self.tree.get()
    }

    /// The policy of the class of this leaf, if it has one of its own.
    fn policy(&self, leaf: usize) -> Option<LeafPolicy> {
        let policy = self.policies.as_ref()?.get().leaf_policies.get(leaf)?;
        if policy.version == 0 {
            return None;
        }
        LeafPolicy::from_raw(
            policy.policy.kind,
            policy.policy.quantum_ns,
            policy.nice_is_real_time != 0,
        )
    }

    /// The quota of the class of this leaf.
    fn bandwidth(&self, leaf: usize, now_ns: u64) -> Option<Bandwidth> {
        let all = &self.bandwidths.as_ref()?.get().bandwidths.of;
        let its = all.get(leaf).filter(|its| its.quota_ns > 0)?;
        let so_far_ns = match its.throttled_from_ns {
            0 => 0,
            from_ns => now_ns.saturating_sub(from_ns),
        };
        Some(Bandwidth {
            quota_usec: its.quota_ns / 1_000,
            period_usec: its.period_ns / 1_000,
            burst_usec: its.burst_ns / 1_000,
            throttled: its.throttled_from_ns > 0,
            nr_periods: its.nr_periods.into(),
            nr_throttled: its.nr_throttled.into(),
            throttled_usec: (its.throttled_ns + so_far_ns) / 1_000,
            nr_exceeded: its.nr_exceeded.into(),
        })
    }

    pub fn snapshot(&self, now_ns: u64, paths: &HashMap<u64, String>) -> Snapshot {
        let tree = self.tree();
        let (queued, weights) = (queued_below(tree), children_weigh(tree));
        let mut classes: Vec<Class> = (ROOT..tree.unused as usize)
            .filter(|&index| stands_for_class(tree, index) || is_own(tree, index))
            .filter_map(|index| {
                let node = &tree.nodes[index];
                let own = is_own(tree, index);
                // The tasks of a class itself are found by the class.
                let class = if own { usize::from(node.parent) } else { index };
                Some(Class {
                    path: paths.get(&tree.cgroup_id[class])?.clone(),
                    cgroup_id: tree.cgroup_id[class],
                    own,
                    depth: u32::from(node.depth),
                    weight: if node.weight == IDLE {
                        WEIGHT_DEFAULT
                    } else {
                        node.weight
                    },
                    queued: queued[index],
                    running: node.serving,
                    cpu_ns: node.service_ns,
                    policy: self.policy(index),
                    bandwidth: self.bandwidth(usize::from(node.bandwidth), now_ns),
                    idle: node.weight == IDLE,
                    share_asked: share_asked(tree, &weights, index),
                })
            })
            .collect();
        // Path components compare as wholes, so that /a/b comes before /a-c.
        // Where the class is the root, its path has an empty component more than those of its children.
        let parts = |class: &Class| -> Vec<String> {
            let parts = class.path.split('/').filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        classes.sort_by_cached_key(|class| (parts(class), class.own));
        Snapshot {
            now_ns,
            cpus: tree.cpus,
            domains: self.domains,
            classes,
        }
    }
}

/// Is this node a class among its siblings (not free, and not an inner node's own leaf)?
fn stands_for_class(tree: &types::an_tree, index: usize) -> bool {
    let node = &tree.nodes[index];
    (node.kind == LEAF || node.children > 0) && node.own == 0 && tree.cgroup_id[index] != 0
}

/// Is this node the leaf of the tasks that are in a class with children, and in none of these?
fn is_own(tree: &types::an_tree, index: usize) -> bool {
    let node = &tree.nodes[index];
    node.kind == LEAF && node.own != 0 && tree.nodes[usize::from(node.parent)].children > 1
}

/// Tasks that wait in the queues of all leaves below (or at) each node.
fn queued_below(tree: &types::an_tree) -> Vec<u32> {
    let mut queued = vec![0; tree.nodes.len()];
    for leaf in ROOT..tree.unused as usize {
        let node = &tree.nodes[leaf];
        if node.kind != LEAF || node.queued == 0 {
            continue;
        }
        // The root's parent is nobody.
        let mut at = leaf;
        for _ in 0..=node.depth {
            queued[at] += node.queued;
            at = usize::from(tree.nodes[at].parent);
        }
    }
    queued
}

/// The weights of the children of each node that want to run. The tasks of an inner class itself count as a
/// child of it while some of them wait.
fn children_weigh(tree: &types::an_tree) -> Vec<f64> {
    let mut weights = vec![0.0; tree.nodes.len()];
    for node in &tree.nodes[ROOT..tree.unused as usize] {
        if node.kind != 0 && (node.own == 0 || node.queued > 0) {
            weights[usize::from(node.parent)] += weight(node);
        }
    }
    weights
}

/// The node's weight among its siblings, an idle one's too (`AN_WEIGHT_IDLE` in `core/tag.h`).
fn weight(node: &types::an_node) -> f64 {
    match node.weight {
        IDLE => f64::from(WEIGHT_DEFAULT) * 3.0 / 1024.0,
        weight => f64::from(weight),
    }
}

/// What the weights give the node while all its siblings want to run.
fn share_asked(tree: &types::an_tree, weights: &[f64], mut index: usize) -> f64 {
    let mut share = 1.0;
    while index != ROOT {
        let node = &tree.nodes[index];
        let parent = usize::from(node.parent);
        share *= weight(node) / weights[parent];
        index = parent;
    }
    share
}

/// The path of the class that this leaf of the tree serves, if it serves one.
pub(crate) fn class_of_leaf(leaf: u32) -> Result<Option<String>, StateError> {
    let maps = StateMaps::find()?;
    let state = State::of(&maps, &maps.read()?)?;
    let tree = state.tree();
    let Some(node) = tree.nodes.get(leaf as usize) else {
        return Ok(None);
    };
    let index = match node.own {
        0 => leaf as usize,
        _ => usize::from(node.parent),
    };
    Ok(cgroup_paths(&cgroup_root()?).remove(&tree.cgroup_id[index]))
}

/// The path of every class by the id of its cgroup.
///
/// # Errors
///
/// [`ClassError`].
pub fn class_paths() -> Result<HashMap<u64, String>, ClassError> {
    Ok(cgroup_paths(&cgroup_root()?))
}

/// The path of every cgroup below `root` by the inode number of its directory.
pub(crate) fn cgroup_paths(root: &Path) -> HashMap<u64, String> {
    fn walk(directory: &Path, path: &str, paths: &mut HashMap<u64, String>) -> io::Result<()> {
        let shown = if path.is_empty() { "/" } else { path };
        paths.insert(fs::metadata(directory)?.ino(), shown.to_owned());
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                let name = text::from_bytes(entry.file_name().as_bytes());
                let below = format!("{path}/{name}");
                // A cgroup that goes away while we look is no loss.
                let _ = walk(&entry.path(), &below, paths);
            }
        }
        Ok(())
    }
    let mut paths = HashMap::new();
    let _ = walk(root, "", &mut paths);
    paths
}

/// The time now [ns of CLOCK_MONOTONIC].
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
