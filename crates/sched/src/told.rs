//! What the kernel tells a scheduler, and what it does not: of cgroups, and of what programs do.
//!
//! `cpu.max` is enforced for tasks of the stock scheduler only. Since 6.17 the kernel tells a scheduler of
//! ours, which then does it itself; since 6.19 it tells when `cpu.idle` is written.

use std::fs;
use std::sync::OnceLock;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Struct, Typedef};
use serde::Serialize;

use crate::class::{ClassPath, Tree};

/// What this kernel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Quotas, from the beginning and as they change.
    pub bandwidth: bool,
    /// That a class is idle, as that changes; how it begins is read.
    pub idle: bool,
    /// That something has come to a socket.
    pub data_ready: bool,
    /// That it has been received.
    pub received: bool,
    /// That `prctl` has been called: the hook that fast calls pass.
    pub calls: bool,
    /// That somebody writes to an eventfd, and that it ends.
    pub eventfds: bool,
}

impl Told {
    /// As this kernel describes its own types, which are read once.
    pub fn here() -> Self {
        static HERE: OnceLock<Told> = OnceLock::new();
        *HERE.get_or_init(Self::read)
    }

    fn read() -> Self {
        let btf = Btf::from_vmlinux();
        let btf = btf.as_ref().ok();
        let ops = btf.and_then(|btf| btf.type_by_name::<Struct<'_>>("sched_ext_ops"));
        let has = |name: &str| {
            ops.as_ref().is_some_and(|ops| {
                ops.iter()
                    .any(|member| member.name.is_some_and(|known| known == name))
            })
        };
        let traces =
            |name: &str| btf.is_some_and(|btf| btf.type_by_name::<Typedef<'_>>(name).is_some());
        let calls =
            |name: &str| btf.is_some_and(|btf| btf.type_by_name::<Func<'_>>(name).is_some());
        Self {
            bandwidth: has("cgroup_set_bandwidth"),
            idle: has("cgroup_set_idle"),
            data_ready: traces("btf_trace_sk_data_ready"),
            received: traces("btf_trace_sock_recv_length"),
            calls: calls("security_task_prctl"),
            eventfds: calls("eventfd_write") && calls("eventfd_release"),
        }
    }
}

/// A class of which something is set that the kernel does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Untold {
    /// The class.
    pub path: ClassPath,
    /// The file of its cgroup: `cpu.max` or `cpu.idle`.
    pub file: &'static str,
    /// What that says.
    pub says: String,
}

/// The classes of this machine that ask for something that this kernel does not tell; none where it tells
/// all, or there is no cgroup v2.
pub fn untold() -> Vec<Untold> {
    let told = Told::here();
    if told.bandwidth && told.idle {
        return Vec::new();
    }
    let Ok(tree) = Tree::open() else {
        return Vec::new();
    };
    let classes = tree.list(&ClassPath::root()).unwrap_or_default();
    let mut found = Vec::new();
    for class in classes {
        let directory = tree.directory(&class.path);
        let mut note = |file: &'static str, is_told: bool, usual: fn(&str) -> bool| {
            let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
            let says = text.trim();
            if !is_told && !says.is_empty() && !usual(says) {
                found.push(Untold {
                    path: class.path.clone(),
                    file,
                    says: says.to_owned(),
                });
            }
        };
        note("cpu.max", told.bandwidth, |says| says.starts_with("max"));
        note("cpu.idle", told.idle, |says| says == "0");
    }
    found
}

/// What becomes of them, in a sentence each for `cpu.max` and `cpu.idle`; with the classes' names.
pub fn warnings(untold: &[Untold]) -> Vec<String> {
    let of = |file: &str| {
        let named = untold.iter().filter(|class| class.file == file);
        named
            .map(|class| class.path.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut said = Vec::new();
    let limited = of("cpu.max");
    if !limited.is_empty() {
        said.push(format!(
            "cpu.max is not honoured, since kernels before 6.17 do not tell a scheduler of it: {limited}"
        ));
    }
    let idle = of("cpu.idle");
    if !idle.is_empty() {
        said.push(format!(
            "cpu.idle is honoured as it is now, and no later change of it, since kernels before 6.19 do \
             not tell a scheduler of it: {idle}"
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_said_with_names() {
        let class = |path: &str, file| Untold {
            path: ClassPath::parse(path).unwrap(),
            file,
            says: "1".to_owned(),
        };
        let said = warnings(&[class("/a", "cpu.max"), class("/b", "cpu.max")]);
        assert_eq!(said.len(), 1);
        assert!(said[0].ends_with("/a, /b"), "{said:?}");
        assert!(warnings(&[class("/a", "cpu.idle")])[0].contains("6.19"));
        assert!(warnings(&[]).is_empty());
    }
}
