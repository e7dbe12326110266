//! Whether a kernel's own type information (BTF) lets a sched_ext scheduler load.
//!
//! A BPF program calls kernel functions ("kfuncs") by their BTF entry: a `FUNC` that carries the
//! declaration tag `bpf_kfunc`. From Linux 7.1 on most sched_ext kfuncs have an implicit last
//! argument, `const struct bpf_prog_aux *aux`, which the verifier supplies. For each of these the build
//! step `resolve_btfids` makes two entries: the public prototype without that argument, and a twin
//! called `…_impl` with it.
//!
//! It does so for tagged functions only, and pahole 1.30 loses the tags of a random set of
//! functions, another one in every build. Such a function keeps its implicit argument in the
//! public prototype and has no twin, and loading any program that calls it fails deep inside
//! libbpf or the verifier ("cannot find function scx_bpf_kick_cpu_impl in BTF", "func_proto
//! incompatible with vmlinux"). Debian's 7.1 and 7.2.0 to 7.2.12 kernels were built this way.
//! [`probe`] finds it out beforehand.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use btf_rs::{Backend, Btf, BtfType, FuncProto, Type};

/// The kfuncs without which no sched_ext scheduler can do its work. A scheduler that calls more
/// passes its own list to [`probe`].
pub const ESSENTIAL_KFUNCS: &[&str] = &[
    "scx_bpf_create_dsq",
    "scx_bpf_dsq_insert",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_kick_cpu",
];

/// What [`probe`] found out about a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BtfVerdict {
    /// A scheduler that calls the asked kfuncs can be loaded.
    pub usable: bool,
    /// The kernel was built with sched_ext.
    pub has_sched_ext: bool,
    /// Asked kfuncs that do not exist, or whose tag was lost; in the order asked.
    pub missing: Vec<String>,
    /// sched_ext kfuncs, asked or not, whose prototype was left unfinished by the faulty build;
    /// sorted. One is enough to distrust the kernel: programs also call kfuncs they can do
    /// without, and fail on those too.
    pub broken: Vec<String>,
}

impl BtfVerdict {
    /// Why the kernel is not usable, as a clause; `None` if it is.
    pub fn reason(&self) -> Option<String> {
        if self.usable {
            None
        } else if !self.has_sched_ext {
            Some("it was built without sched_ext".to_owned())
        } else if !self.broken.is_empty() {
            Some(format!(
                "its type information (BTF) is broken: {} sched_ext functions, {} among them, lost their tag when it was built",
                self.broken.len(),
                self.broken[0]
            ))
        } else {
            Some(format!("it lacks {}", self.missing.join(", ")))
        }
    }
}

/// The data are not BTF.
#[derive(Debug, thiserror::Error)]
#[error("the kernel's type information (BTF) cannot be read: {0}")]
pub struct BtfError(#[from] btf_rs::Error);

/// Judges a kernel by its BTF, the `.BTF` section of its ELF file. `kfuncs` are the kernel functions that
/// must be callable.
pub fn probe(btf: &[u8], kfuncs: &[&str]) -> Result<BtfVerdict, BtfError> {
    judge(&Btf::from_bytes(btf)?, kfuncs)
}

/// The same for a file of BTF alone: on a running machine `/sys/kernel/btf/vmlinux`. It is mapped, which
/// takes a third of the instructions; kernels before 6.16 do not have theirs mapped.
pub fn probe_file(file: &Path, kfuncs: &[&str]) -> Result<BtfVerdict, BtfError> {
    let mapped = Btf::from_file_with_backend(file, Backend::Mmap);
    judge(&mapped.or_else(|_| Btf::from_file(file))?, kfuncs)
}

fn judge(btf: &Btf, kfuncs: &[&str]) -> Result<BtfVerdict, BtfError> {
    let functions = Functions::collect(btf, kfuncs)?;
    let has_sched_ext = btf
        .resolve_types_by_name("sched_ext_ops")
        .is_ok_and(|types| types.iter().any(|t| matches!(t, Type::Struct(_))));
    let missing: Vec<String> = kfuncs
        .iter()
        .filter(|name| !functions.is_kfunc(name))
        .map(|name| name.to_string())
        .collect();
    let broken = functions.broken(btf)?;
    Ok(BtfVerdict {
        usable: has_sched_ext && missing.is_empty() && broken.is_empty(),
        has_sched_ext,
        missing,
        broken,
    })
}

/// Is this a function of sched_ext?
fn is_of_sched_ext(name: &str) -> bool {
    name.trim_start_matches('_').starts_with("scx_bpf_")
}

/// The functions of a kernel that matter here: those asked for, and those of sched_ext.
struct Functions {
    /// Name to (id of the `FUNC`, id of its prototype).
    by_name: HashMap<String, (u32, u32)>,
    /// Ids of the `FUNC`s with the tag `bpf_kfunc`.
    tagged: HashSet<u32>,
}

impl Functions {
    fn collect(btf: &Btf, kfuncs: &[&str]) -> Result<Self, btf_rs::Error> {
        let mut functions = Self {
            by_name: HashMap::new(),
            tagged: HashSet::new(),
        };
        let (first, last) = btf.base().type_id_range();
        for id in first..=last {
            match btf.resolve_type_by_id(id)? {
                Type::Func(func) => {
                    let prototype = func.get_type_id().unwrap_or_default();
                    let name = btf.resolve_name(&func)?;
                    if is_of_sched_ext(&name) || kfuncs.contains(&name.as_str()) {
                        functions.by_name.insert(name, (id, prototype));
                    }
                }
                Type::DeclTag(tag) if btf.resolve_name(&tag)? == "bpf_kfunc" => {
                    functions.tagged.extend(tag.get_type_id());
                }
                _ => {}
            }
        }
        Ok(functions)
    }

    fn is_kfunc(&self, name: &str) -> bool {
        self.by_name
            .get(name)
            .is_some_and(|(id, _)| self.tagged.contains(id))
    }

    /// Public sched_ext functions that still have their implicit argument.
    fn broken(&self, btf: &Btf) -> Result<Vec<String>, btf_rs::Error> {
        let mut broken = Vec::new();
        for (name, &(_, prototype)) in &self.by_name {
            let public = is_of_sched_ext(name) && !name.ends_with("_impl");
            if public
                && let Type::FuncProto(prototype) = btf.resolve_type_by_id(prototype)?
                && takes_prog_aux(btf, &prototype)
            {
                broken.push(name.clone());
            }
        }
        broken.sort();
        Ok(broken)
    }
}

/// Whether the last parameter is a `struct bpf_prog_aux *`, const or not.
fn takes_prog_aux(btf: &Btf, prototype: &FuncProto) -> bool {
    let Some(last) = prototype.parameters.last() else {
        return false;
    };
    let mut chain = btf.chained_type_iter(last);
    matches!(chain.next(), Some(Type::Ptr(_)))
        && matches!(
            chain.find(|target| !matches!(target, Type::Const(_))),
            Some(Type::Struct(target)) if btf.resolve_name(&target).is_ok_and(|n| n == "bpf_prog_aux")
        )
}

#[cfg(test)]
mod tests;
