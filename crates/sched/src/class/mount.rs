//! Where the cgroup v2 hierarchy is mounted, and whether it has what classes need.

use std::fs;
use std::path::PathBuf;

use super::ClassError;

/// The directory at which cgroup v2 is mounted.
///
/// # Errors
/// [`ClassError::NoCgroup2`] if none is mounted, [`ClassError::CgroupV1`] if the `cpu` controller
/// belongs to a version 1 hierarchy, [`ClassError::NoCpuController`] if the kernel has none.
pub fn cgroup_root() -> Result<PathBuf, ClassError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let cpu_is_v1 = v1_has_cpu(&fs::read_to_string("/proc/cgroups").unwrap_or_default());
    let Some(root) = cgroup2_mount(&mounts) else {
        return Err(if cpu_is_v1 {
            ClassError::CgroupV1
        } else {
            ClassError::NoCgroup2
        });
    };
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpu") {
        Ok(root)
    } else if cpu_is_v1 {
        Err(ClassError::CgroupV1)
    } else {
        Err(ClassError::NoCpuController)
    }
}

/// The first cgroup2 mount in the text of `/proc/self/mounts`.
fn cgroup2_mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (directory, kind) = (fields.next()?, fields.next()?);
        // The kernel writes a space in a path as an octal escape.
        (kind == "cgroup2").then(|| PathBuf::from(directory.replace("\\040", " ")))
    })
}

/// Whether the text of `/proc/cgroups` puts `cpu` into a version 1 hierarchy; version 2 is number 0.
fn v1_has_cpu(cgroups: &str) -> bool {
    cgroups.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("cpu") && fields.next().is_some_and(|hierarchy| hierarchy != "0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup2_mount_is_found_in_unified_and_hybrid_layouts() {
        let unified = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(cgroup2_mount(unified), Some("/sys/fs/cgroup".into()));
        let hybrid = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup2_mount(hybrid), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(
            cgroup2_mount("c /my\\040groups cgroup2 rw 0 0"),
            Some("/my groups".into())
        );
        assert_eq!(
            cgroup2_mount("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"),
            None
        );
    }

    #[test]
    fn a_version_1_cpu_hierarchy_is_recognised() {
        let header = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n";
        assert!(v1_has_cpu(&format!(
            "{header}cpuset\t3\t1\t1\ncpu\t1\t1\t1\n"
        )));
        assert!(!v1_has_cpu(&format!(
            "{header}cpuset\t0\t9\t1\ncpu\t0\t9\t1\n"
        )));
    }
}
