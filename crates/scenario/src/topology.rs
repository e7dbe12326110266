//! Threads of cores, caches and nodes of the machine: `threads_of_core`, `cpus_of_cache`, `cpus_of_node`.

use andante_document::{DocumentError, Section};
use andante_sim::Topology;

/// Reads the keys; each part must be one of those of the next, and all CPUs some of the last.
pub(super) fn read(root: &mut Section<'_>, cpus: u32) -> Result<Topology, DocumentError> {
    let mut within = ("CPUs there are", cpus);
    let mut part = |key: &'static str, name: &'static str, otherwise: u32| {
        let each = root.get::<u32>(key)?;
        let (all, count) = within;
        match each {
            Some(each) if each == 0 || count % each != 0 => {
                let message = format!("the {count} {all} are no whole number of {each}");
                return Err(root.error(key, message));
            }
            _ => {}
        }
        let each = each.unwrap_or(otherwise.min(count));
        within = (name, each);
        Ok(each)
    };
    let cpus_of_node = part("cpus_of_node", "CPUs of a node", cpus)?;
    let cpus_of_cache = part("cpus_of_cache", "CPUs of a cache", cpus)?;
    let threads_of_core = part("threads_of_core", "threads of a core", 1)?;
    Ok(Topology {
        threads_of_core,
        cpus_of_cache,
        cpus_of_node,
    })
}
