//! What the facts mean for the scheduler.

use super::{Check, Facts, Need, Obstacle};
use crate::class::ClassError;

/// The oldest kernel whose sched_ext the scheduler is tested on (major, minor).
const FLOOR: (u32, u32) = (6, 18);

/// Judges the facts; the most fundamental first, so that the first one missing is the one to name.
pub(super) fn scheduler(facts: &Facts) -> Vec<Check> {
    vec![
        kernel_version(facts),
        sched_ext(facts),
        timers(facts),
        type_information(facts),
        bpf(facts),
        cgroups(facts),
        isolated_cpus(facts),
        other_scheduler(facts),
        privilege(facts),
    ]
    .into_iter()
    .chain(no_room(
        "room for classes",
        facts.sharing.and_then(|one| one.warning()),
    ))
    .chain(no_room(
        "room for learnt contracts",
        facts.learnt.and_then(|one| one.warning()),
    ))
    .collect()
}

/// Said only while there is too little room, in two sentences: what is so, and the way out. It stands in the way of
/// nothing, but weights do nothing for cgroups that share a class, and nothing more is learnt.
fn no_room(title: &'static str, warning: Option<(String, String)>) -> Option<Check> {
    let (detail, mend) = warning?;
    Some(Check {
        title,
        need: Need::Scheduler,
        found: false,
        detail,
        mend: Some(mend),
        obstacle: None,
    })
}

fn kernel_version(facts: &Facts) -> Check {
    let title = "kernel version";
    let floor = format!("{}.{}", FLOOR.0, FLOOR.1);
    match version(&facts.release) {
        Some(version) if version >= FLOOR => Check::found(
            title,
            Need::Scheduler,
            format!("{}, at least {floor}", facts.release),
        ),
        _ => Check::missing(
            title,
            Need::Scheduler,
            Obstacle::OldKernel,
            format!("{} is older than {floor}", facts.release),
            format!(
                "boot a newer kernel, for example {}",
                facts.distribution.kernels()
            ),
        ),
    }
}

fn sched_ext(facts: &Facts) -> Check {
    let title = "sched_ext";
    if facts.sched_ext {
        return Check::found(title, Need::Scheduler, "/sys/kernel/sched_ext is there");
    }
    let detail = match facts.sched_ext_configured {
        Some(false) => "this kernel was built without CONFIG_SCHED_CLASS_EXT",
        Some(true) => "/sys/kernel/sched_ext is missing; is /sys mounted?",
        None => "/sys/kernel/sched_ext is missing: this kernel was built without sched_ext",
    };
    let mend = match facts.sched_ext_configured {
        Some(true) => "mount -t sysfs none /sys".to_owned(),
        _ => format!(
            "boot a kernel with sched_ext, for example {}",
            facts.distribution.kernels()
        ),
    };
    Check::missing(title, Need::Scheduler, Obstacle::NoSchedExt, detail, mend)
}

/// Turns shorter than a tick end by a timer of the BPF program's, and the verifier refuses all of them on
/// PREEMPT_RT: `process_timer_func()` says "bpf_timer cannot be used for PREEMPT_RT" from 6.17 on, in every release
/// tried so far, because the memory for a timer is had under a lock that may sleep there.
fn timers(facts: &Facts) -> Check {
    let title = "BPF timers";
    match facts.preempt_rt {
        None => Check::found(title, Need::Scheduler, "the kernel is not PREEMPT_RT"),
        Some(told) => Check::missing(
            title,
            Need::Scheduler,
            Obstacle::PreemptRt,
            format!(
                "this kernel was built with PREEMPT_RT ({told}), and such kernels refuse BPF timers, by which turns end"
            ),
            format!(
                "boot a kernel without it, for example {}; with `preempt=full threadirqs` on its command line it \
                 comes near to PREEMPT_RT",
                facts.distribution.kernels()
            ),
        ),
    }
}

fn type_information(facts: &Facts) -> Check {
    let title = "kernel types (BTF)";
    let missing =
        |detail, mend| Check::missing(title, Need::Scheduler, Obstacle::BrokenBtf, detail, mend);
    let verdict = match &facts.btf {
        Ok(verdict) => verdict,
        Err(why) => {
            let mend = "boot a kernel built with CONFIG_DEBUG_INFO_BTF, for example";
            return missing(
                why.clone(),
                format!("{mend} {}", facts.distribution.kernels()),
            );
        }
    };
    if !verdict.has_sched_ext && !facts.sched_ext {
        // Said once already, by the check before this one.
        return Check::found(
            title,
            Need::Scheduler,
            "readable, but they know no sched_ext",
        );
    }
    let Some(reason) = verdict.reason() else {
        let count = crate::NEEDED_KFUNCS.len();
        let detail = format!("all {count} functions that the scheduler needs are described");
        return Check::found(title, Need::Scheduler, detail);
    };
    let mut detail = format!("{} cannot be used, {reason}", facts.release);
    if !verdict.broken.is_empty() {
        detail += "; Debian's 7.1 and 7.2.0 to 7.2.12 kernels were built like this";
    }
    missing(
        detail,
        format!(
            "boot another kernel, for example {}",
            facts.distribution.kernels()
        ),
    )
}

fn bpf(facts: &Facts) -> Check {
    let title = "BPF";
    let missing =
        |detail, mend| Check::missing(title, Need::Scheduler, Obstacle::NoBpf, detail, mend);
    if !facts.bpf_syscall {
        return missing(
            "this kernel was built without CONFIG_BPF_SYSCALL",
            format!(
                "boot a kernel with BPF, for example {}",
                facts.distribution.kernels()
            ),
        );
    }
    match facts.bpf_jit {
        Some(false) => missing(
            "the JIT compiler is off",
            "sysctl net.core.bpf_jit_enable=1".to_owned(),
        ),
        Some(true) => Check::found(title, Need::Scheduler, "system call there, JIT compiler on"),
        None => Check::found(
            title,
            Need::Scheduler,
            "system call there; only root can see the JIT",
        ),
    }
}

fn cgroups(facts: &Facts) -> Check {
    let title = "cgroup v2 with cpu";
    let error = match &facts.cgroup {
        Ok(root) => return Check::found(title, Need::Scheduler, format!("mounted at {root}")),
        Err(error) => error,
    };
    let obstacle = match error {
        ClassError::NoCpuController => Obstacle::NoCpuController,
        _ => Obstacle::CgroupV1,
    };
    // The error is one sentence of cause and mend, which stand apart here.
    let text = error.to_string();
    let (detail, mend) = text.split_once(": ").unwrap_or((&text, ""));
    Check::missing(title, Need::Scheduler, obstacle, detail, mend)
}

fn isolated_cpus(facts: &Facts) -> Check {
    let title = "no isolated CPUs";
    match isolation(&facts.command_line) {
        None => Check::found(
            title,
            Need::Scheduler,
            "no isolcpus= on the kernel command line",
        ),
        Some(option) => Check::missing(
            title,
            Need::Scheduler,
            Obstacle::IsolatedCpus,
            format!("the kernel refuses any sched_ext scheduler with {option}"),
            format!("remove {option} from the kernel command line and reboot"),
        ),
    }
}

fn other_scheduler(facts: &Facts) -> Check {
    let title = "no scheduler loaded yet";
    let Some(loaded) = &facts.loaded else {
        return Check::found(title, Need::Scheduler, "the stock scheduler is in charge");
    };
    let (detail, mend) = if loaded.is_andante() {
        (
            "Andante is loaded already".to_owned(),
            "see it with `andante status`, end it with ^C or `systemctl stop andante`".to_owned(),
        )
    } else {
        (
            format!("the sched_ext scheduler {} is loaded", loaded.name),
            format!(
                "end {} first, often with `scxctl stop` or `systemctl stop scx_loader`",
                loaded.name
            ),
        )
    };
    Check::missing(
        title,
        Need::Scheduler,
        Obstacle::OtherScheduler,
        detail,
        mend,
    )
}

fn privilege(facts: &Facts) -> Check {
    let title = "privilege";
    if facts.privileged {
        return Check::found(
            title,
            Need::Scheduler,
            "CAP_SYS_ADMIN, which includes CAP_BPF",
        );
    }
    Check::missing(
        title,
        Need::Scheduler,
        Obstacle::NotRoot,
        "loading a scheduler needs CAP_SYS_ADMIN",
        "run it as root, for example with sudo",
    )
}

/// Major and minor number of a release like `7.2.13+deb14-cloud-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The `isolcpus=` option, if it takes CPUs out of the scheduling domains. With flags but without
/// `domain` among them it concerns only interrupts or the tick.
fn isolation(command_line: &str) -> Option<&str> {
    let option = command_line
        .split_whitespace()
        .find(|word| word.starts_with("isolcpus="))?;
    let mut flags = option["isolcpus=".len()..]
        .split(',')
        .take_while(|item| !item.starts_with(|c: char| c.is_ascii_digit()))
        .peekable();
    let plain = flags.peek().is_none();
    (plain || flags.any(|flag| flag == "domain")).then_some(option)
}

#[cfg(test)]
mod tests {
    use andante_btf::BtfVerdict;

    use super::super::{Distribution, Loaded};
    use super::*;

    fn verdict(usable: bool, broken: &[&str]) -> BtfVerdict {
        let broken = broken.iter().map(|name| (*name).to_owned()).collect();
        BtfVerdict {
            usable,
            has_sched_ext: true,
            missing: Vec::new(),
            broken,
        }
    }

    fn healthy() -> Facts {
        Facts {
            distribution: Distribution::Debian,
            release: "7.2.13+deb14-cloud-amd64".into(),
            sched_ext: true,
            sched_ext_configured: Some(true),
            preempt_rt: None,
            btf: Ok(verdict(true, &[])),
            bpf_syscall: true,
            bpf_jit: Some(true),
            cgroup: Ok("/sys/fs/cgroup".into()),
            command_line: "quiet".into(),
            loaded: None,
            sharing: None,
            learnt: None,
            privileged: true,
        }
    }

    fn first_obstacle(facts: &Facts) -> Option<Obstacle> {
        scheduler(facts)
            .into_iter()
            .find_map(|check| check.obstacle)
    }

    #[test]
    fn a_healthy_machine_has_no_obstacle() {
        assert_eq!(first_obstacle(&healthy()), None);
    }

    #[test]
    fn each_defect_is_told_apart() {
        type Spoil = fn(&mut Facts);
        let cases: [(Spoil, Obstacle); 10] = [
            (
                |facts| facts.release = "6.12.9-amd64".into(),
                Obstacle::OldKernel,
            ),
            (|facts| facts.sched_ext = false, Obstacle::NoSchedExt),
            (
                |facts| facts.preempt_rt = Some("uname -v"),
                Obstacle::PreemptRt,
            ),
            (
                |facts| facts.btf = Err("no file".into()),
                Obstacle::BrokenBtf,
            ),
            (|facts| facts.bpf_syscall = false, Obstacle::NoBpf),
            (|facts| facts.bpf_jit = Some(false), Obstacle::NoBpf),
            (
                |facts| facts.cgroup = Err(ClassError::CgroupV1),
                Obstacle::CgroupV1,
            ),
            (
                |facts| facts.cgroup = Err(ClassError::NoCpuController),
                Obstacle::NoCpuController,
            ),
            (
                |facts| facts.command_line = "ro isolcpus=1-3".into(),
                Obstacle::IsolatedCpus,
            ),
            (|facts| facts.privileged = false, Obstacle::NotRoot),
        ];
        for (spoil, expected) in cases {
            let mut facts = healthy();
            spoil(&mut facts);
            assert_eq!(first_obstacle(&facts), Some(expected));
        }
    }

    #[test]
    fn broken_btf_names_the_function_the_kernel_and_usable_ones() {
        let mut facts = healthy();
        facts.release = "7.2.12+deb13-cloud-amd64".into();
        facts.btf = Ok(verdict(false, &["scx_bpf_kick_cpu"]));
        let check = scheduler(&facts)
            .into_iter()
            .find(|check| !check.found)
            .unwrap();
        assert_eq!(check.obstacle, Some(Obstacle::BrokenBtf));
        assert!(check.detail.contains("7.2.12+deb13"), "{}", check.detail);
        assert!(
            check.detail.contains("scx_bpf_kick_cpu"),
            "{}",
            check.detail
        );
        assert!(check.mend.unwrap().contains("7.2.13"));
    }

    #[test]
    fn another_scheduler_is_named() {
        let mut facts = healthy();
        facts.loaded = Some(Loaded {
            name: "bpfland".into(),
        });
        let check = scheduler(&facts)
            .into_iter()
            .find(|check| !check.found)
            .unwrap();
        assert_eq!(check.obstacle, Some(Obstacle::OtherScheduler));
        assert!(check.detail.contains("bpfland"), "{}", check.detail);
    }

    #[test]
    fn only_isolation_from_the_scheduling_domains_counts() {
        assert_eq!(isolation("isolcpus=1-3"), Some("isolcpus=1-3"));
        assert_eq!(
            isolation("a isolcpus=nohz,domain,2 b"),
            Some("isolcpus=nohz,domain,2")
        );
        assert_eq!(isolation("isolcpus=managed_irq,2"), None);
        assert_eq!(isolation("quiet"), None);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.15+deb13-cloud-amd64"), Some((6, 18)));
        assert!(version("7.0-rc1").unwrap() > FLOOR);
        assert!(version("6.9.1").unwrap() < FLOOR);
        assert_eq!(version("strange"), None);
    }
}
