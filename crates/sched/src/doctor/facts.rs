//! What can be read off a running machine, without judging it.

use std::fs;
use std::io::Read;
use std::path::Path;

use andante_btf::{self as btf, BtfVerdict};

use super::distribution::Distribution;
use crate::class::{ClassError, cgroup_root};
use crate::historical::Policy;
use crate::{LearntRoom, Sharing};

/// `CAP_SYS_ADMIN` of the kernel's `include/uapi/linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;

/// The facts that decide whether the scheduler can be loaded.
#[derive(Debug)]
pub struct Facts {
    /// The distribution, whose packages the mends name.
    pub distribution: Distribution,
    /// `uname -r`.
    pub release: String,
    /// Whether `/sys/kernel/sched_ext` exists.
    pub sched_ext: bool,
    /// What the kernel's configuration says of `CONFIG_SCHED_CLASS_EXT`; none if it cannot be read.
    pub sched_ext_configured: Option<bool>,
    /// What says that the kernel was built with PREEMPT_RT; none if nothing does.
    pub preempt_rt: Option<&'static str>,
    /// The judgement of the kernel's type information, or why there is none to judge.
    pub btf: Result<BtfVerdict, String>,
    /// Whether the bpf system call exists.
    pub bpf_syscall: bool,
    /// Whether BPF is compiled to machine code; none if only root may know.
    pub bpf_jit: Option<bool>,
    /// Where cgroup v2 with the `cpu` controller is, or what is wrong.
    pub cgroup: Result<String, ClassError>,
    /// The kernel command line.
    pub command_line: String,
    /// The sched_ext scheduler that is loaded.
    pub loaded: Option<Loaded>,
    /// How many cgroups have no class of their own; none if nobody can tell.
    pub sharing: Option<Sharing>,
    /// How full the places for learnt contracts are; none if nobody can tell.
    pub learnt: Option<LearntRoom>,
    /// Whether the caller has CAP_SYS_ADMIN, which includes CAP_BPF and CAP_PERFMON.
    pub privileged: bool,
}

/// A sched_ext scheduler that is in charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The name it gave itself.
    pub name: String,
}

impl Loaded {
    /// The sched_ext scheduler in charge of this machine; none while it is the stock one.
    pub fn find() -> Option<Self> {
        Self::read(Path::new("/sys/kernel/sched_ext"))
    }

    fn read(directory: &Path) -> Option<Self> {
        let state = fs::read_to_string(directory.join("state")).ok()?;
        if state.trim() == "disabled" {
            return None;
        }
        let name = fs::read_to_string(directory.join("root/ops"));
        Some(Self {
            name: name.map_or_else(|_| "unknown".into(), |name| name.trim().to_owned()),
        })
    }

    /// Whether it is Andante; the kernel keeps the name that the BPF object gives itself.
    pub fn is_andante(&self) -> bool {
        self.name.starts_with("andante")
    }

    /// The historical policy by which Andante schedules; none if it does so by its classes.
    pub fn policy(&self) -> Option<Policy> {
        Policy::ALL
            .into_iter()
            .find(|policy| policy.ops_name() == self.name)
    }
}

impl Facts {
    /// Reads them off this machine; what cannot be read counts as not there.
    pub fn gather() -> Self {
        let release = read("/proc/sys/kernel/osrelease").trim().to_owned();
        let root = Path::new("/");
        let config = kernel_config(root, &release);
        let configured = |option: &str| config.as_deref().map(|config| is_on(config, option));
        Self {
            distribution: Distribution::of_this_machine(),
            sched_ext: Path::new("/sys/kernel/sched_ext").is_dir(),
            sched_ext_configured: configured("CONFIG_SCHED_CLASS_EXT"),
            preempt_rt: preempt_rt(root, config.as_deref()),
            btf: probe_btf(),
            bpf_syscall: Path::new("/proc/sys/kernel/unprivileged_bpf_disabled").exists(),
            bpf_jit: fs::read_to_string("/proc/sys/net/core/bpf_jit_enable")
                .ok()
                .map(|value| value.trim() != "0"),
            cgroup: cgroup_root().map(|root| root.display().to_string()),
            command_line: read("/proc/cmdline").trim().to_owned(),
            loaded: Loaded::find(),
            sharing: crate::sharing().ok(),
            learnt: crate::learnt_room().ok(),
            privileged: effective_capabilities(&read("/proc/self/status"))
                .is_some_and(|set| set & (1 << CAP_SYS_ADMIN) != 0),
            release,
        }
    }
}

fn probe_btf() -> Result<BtfVerdict, String> {
    const FILE: &str = "/sys/kernel/btf/vmlinux";
    btf::probe_file(Path::new(FILE), crate::NEEDED_KFUNCS)
        .map_err(|error| format!("{FILE}: {error}"))
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// The configuration the kernel was built with, from where distributions keep it.
fn kernel_config(root: &Path, release: &str) -> Option<String> {
    if let Ok(text) = fs::read_to_string(root.join(format!("boot/config-{release}"))) {
        return Some(text);
    }
    let mut text = String::new();
    let file = fs::File::open(root.join("proc/config.gz")).ok()?;
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

fn is_on(config: &str, option: &str) -> bool {
    let on = |line: &str| line.strip_prefix(option) == Some("=y");
    config.lines().any(on)
}

/// What says that this kernel was built with PREEMPT_RT. Most have the file that says so; a container may hide it.
fn preempt_rt(root: &Path, config: Option<&str>) -> Option<&'static str> {
    let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    if text("sys/kernel/realtime").trim() == "1" {
        Some("/sys/kernel/realtime")
    } else if text("proc/sys/kernel/version")
        .split_whitespace()
        .any(|word| word == "PREEMPT_RT")
    {
        Some("uname -v")
    } else if config.is_some_and(|config| is_on(config, "CONFIG_PREEMPT_RT")) {
        Some("its configuration")
    } else {
        None
    }
}

/// The effective capability set in the text of `/proc/self/status`.
fn effective_capabilities(status: &str) -> Option<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(value.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        let root = effective_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").unwrap();
        assert_ne!(root & (1 << CAP_SYS_ADMIN), 0);
        assert_eq!(
            effective_capabilities("CapEff:\t0000000000000000\n"),
            Some(0)
        );
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn a_real_time_kernel_is_known_by_its_file_its_version_or_its_configuration() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let found = || {
            let config = kernel_config(root.path(), "7.2.13+deb14-rt-amd64");
            preempt_rt(root.path(), config.as_deref())
        };
        assert_eq!(found(), None, "nothing can be read");
        let config = "boot/config-7.2.13+deb14-rt-amd64";
        write(config, "CONFIG_PREEMPT=y\n# CONFIG_PREEMPT_RT is not set\n");
        assert_eq!(found(), None);
        write(config, "CONFIG_PREEMPT_RT=y\n");
        assert_eq!(found(), Some("its configuration"));
        let version = "proc/sys/kernel/version";
        write(version, "#1 SMP PREEMPT_RT Debian 7.2.13-1 (2026-11-14)\n");
        assert_eq!(found(), Some("uname -v"));
        write("sys/kernel/realtime", "1\n");
        assert_eq!(found(), Some("/sys/kernel/realtime"));
        write("sys/kernel/realtime", "0\n");
        write(
            version,
            "#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1 (2026-11-14)\n",
        );
        write(config, "CONFIG_PREEMPT_RTX=y\n");
        assert_eq!(found(), None);
    }

    #[test]
    fn the_loaded_scheduler_is_named_and_a_disabled_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
        assert_eq!(Loaded::read(directory.path()), None, "no sched_ext at all");
        fs::create_dir(directory.path().join("root")).unwrap();
        write("root/ops", "bpfland_1.1.0_x86_64\n");
        write("state", "disabled\n");
        assert_eq!(Loaded::read(directory.path()), None);
        write("state", "enabled\n");
        let loaded = Loaded::read(directory.path()).unwrap();
        assert_eq!(loaded.name, "bpfland_1.1.0_x86_64");
        assert!(!loaded.is_andante());
    }
}
