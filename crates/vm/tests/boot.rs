//! Boots of the real virtual machine. They need QEMU and a kernel, which the first of them fetches
//! into the cache if it is not there; run them with `cargo test -p andante-vm -- --ignored`.

use std::path::Path;
use std::time::Duration;

use andante_vm::{
    Boot, BootError, Cache, Content, Event, ImageSpec, InitrdFile, Kernel, Outcome, Qemu,
    ROOT_NAME, SWAP_DEVICE, SWAP_NAME, build_image, find_kernel, find_qemu,
};

struct Machine {
    kernel: Kernel,
    qemu: Qemu,
    cpus: u32,
    folder: tempfile::TempDir,
}

impl Machine {
    fn with_cpus(cpus: u32) -> Self {
        let cache = Cache::open().unwrap();
        let progress = |line: &str| println!("{line}");
        Self {
            kernel: find_kernel(&cache, &progress).unwrap(),
            qemu: find_qemu(&cache, cpus, &progress).unwrap(),
            cpus,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn boot(&self, script: &str) -> Boot<'_> {
        Boot {
            cpus: self.cpus,
            console_log: self.folder.path().join("console"),
            ..Boot::of(&self.kernel, &self.qemu, &["sh", "-c", script])
        }
    }
}

/// The outcome and every line of console and progress.
fn run(boot: &Boot) -> (Result<Outcome, BootError>, Vec<String>) {
    let mut lines = Vec::new();
    let outcome = boot.run(&mut |event| match event {
        Event::Console(line) => lines.push(format!("console {line}")),
        Event::Progress(line) => lines.push(format!("progress {line}")),
        Event::Note(line) => lines.push(format!("note {line}")),
    });
    (outcome, lines)
}

/// Two runs must agree in all they print, the kernel's time stamps included.
fn two_runs_are_identical(cpus: u32) {
    let machine = Machine::with_cpus(cpus);
    let boot = machine.boot(
        "echo begun > /dev/virtio-ports/andante.progress
         (uname -r; nproc; dmesg; od -N 16 -x /dev/urandom; cat /proc/uptime /proc/stat) \
             > /dev/virtio-ports/andante.out
         echo shown; exit 7",
    );
    let (first, lines) = run(&boot);
    let first = first.unwrap();
    let text = String::from_utf8_lossy(&first.output);
    let mut words = text.split_whitespace();
    assert_eq!(words.next(), Some(machine.kernel.release.as_str()));
    assert_eq!(words.next(), Some(cpus.to_string().as_str()));
    assert_eq!(first.exit_status, 7);
    assert!(lines.contains(&"progress begun".to_owned()), "{lines:?}");
    assert!(lines.contains(&"console shown".to_owned()), "{lines:?}");
    let (second, again) = run(&boot);
    assert_eq!(first, second.unwrap());
    // Console and progress are followed side by side, so only their own order is fixed.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(lines), sorted(again));
}

/// Devices for swap and for the image, whose requests take no time until they are told to: then sixteen pages that are
/// read one after the other take as many ticks of the kernel.
#[test]
#[ignore = "boots the virtual machine"]
fn a_machine_may_swap_to_a_device_that_takes_time() {
    let machine = Machine::with_cpus(1);
    let cache = Cache::open().unwrap();
    let spec = ImageSpec {
        programs: vec!["/bin/sh".into()],
        free_mib: 16,
        ..ImageSpec::default()
    };
    let image = build_image(&cache, &spec, &|_| {}).unwrap();
    let script = format!(
        "PATH=$PATH:/andante/bin
         read_pages() {{ for page in $(busybox seq 16); do
             busybox dd if={SWAP_DEVICE} of=/dev/null bs=4096 count=1 skip=$((page * 1000)) 2>&1; done; }}
         uptime_cs() {{ read -r up _ < /proc/uptime; echo ${{up%.*}}${{up#*.}}; }}
         took() {{ begun=$(uptime_cs); read_pages > /dev/null; echo $(($(uptime_cs) - begun)); }}
         at_once=$(took)
         table=$(dmsetup table {SWAP_NAME})
         dmsetup load {SWAP_NAME} --table \"${{table% *}} 40\"
         dmsetup suspend --noudevsync {SWAP_NAME}; dmsetup resume --noudevsync {SWAP_NAME}
         echo $at_once $(took) $(dmsetup table {ROOT_NAME}) > /dev/virtio-ports/andante.out"
    );
    let boot = Boot {
        image: Some(&image),
        swap_mib: Some(64),
        programs: vec!["/usr/sbin/dmsetup".into()],
        ..machine.boot(&script)
    };
    let outcome = run(&boot).0.unwrap();
    let said = String::from_utf8_lossy(&outcome.output).into_owned();
    let words: Vec<&str> = said.split_whitespace().collect();
    let [at_once_cs, slow_cs] = [0, 1].map(|at| words[at].parse::<i64>().unwrap());
    // Sixteen times 40 ms, less a tick for each that began within one; dd itself takes time as well, in both.
    let waited_cs = slow_cs - at_once_cs;
    assert!((54..=70).contains(&waited_cs), "{said}");
    assert!(words[2..].contains(&"delay"), "{said}");
}

#[test]
#[ignore = "boots the virtual machine"]
fn two_runs_on_one_cpu_are_identical() {
    two_runs_are_identical(1);
}

#[test]
#[ignore = "boots the virtual machine"]
fn two_runs_on_two_cpus_are_identical() {
    two_runs_are_identical(2);
}

#[test]
#[ignore = "boots the virtual machine"]
fn two_runs_on_four_cpus_are_identical() {
    two_runs_are_identical(4);
}

#[test]
#[ignore = "boots the virtual machine"]
fn the_image_is_the_root_and_keeps_nothing() {
    let machine = Machine::with_cpus(1);
    let folder = machine.folder.path();
    std::fs::write(folder.join("data"), "from the image").unwrap();
    let spec = ImageSpec {
        programs: vec!["/bin/sh".into(), "/bin/cat".into()],
        files: vec![(folder.join("data"), "/srv/data".into())],
        free_mib: 16,
        ..ImageSpec::default()
    };
    let cache = Cache::at(folder.join("cache")).unwrap();
    let image = build_image(&cache, &spec, &|_| ()).unwrap();
    let before = std::fs::read(&image).unwrap();
    let mut boot = machine.boot(
        "cat /srv/data /andante/data > /dev/virtio-ports/andante.out
         ls > /srv/data && test -e /boot/config-$(busybox uname -r)",
    );
    boot.image = Some(&image);
    boot.programs = vec!["/bin/ls".into()];
    boot.initrd_files = vec![InitrdFile {
        guest: "/andante/data".into(),
        content: Content::Bytes(b", from the RAM disk".to_vec()),
        mode: 0o644,
    }];
    let outcome = run(&boot).0.unwrap();
    assert_eq!(outcome.exit_status, 0);
    assert_eq!(outcome.output, b"from the image, from the RAM disk");
    assert!(
        before == std::fs::read(&image).unwrap(),
        "the image changed"
    );
}

#[test]
#[ignore = "boots the virtual machine"]
fn crashes_hangs_and_absent_programs_are_told_apart() {
    let machine = Machine::with_cpus(1);
    let (crash, _) = run(&machine.boot("echo c > /proc/sysrq-trigger"));
    assert!(
        matches!(&crash, Err(BootError::Panic { message, .. }) if message.contains("sysrq")),
        "{crash:?}"
    );
    let mut boot = machine.boot("while true; do :; done");
    boot.timeout = Duration::from_secs(2);
    let (hang, _) = run(&boot);
    assert!(matches!(hang, Err(BootError::Timeout { .. })), "{hang:?}");
    let (early, _) = run(&machine.boot("busybox poweroff -f"));
    assert!(
        matches!(early, Err(BootError::NoStatus { .. })),
        "{early:?}"
    );
    let mut boot = machine.boot("");
    boot.command = vec!["no-such-program".into()];
    assert_eq!(run(&boot).0.unwrap().exit_status, 127);
    boot.programs = vec![Path::new("/no/such/program").into()];
    assert!(matches!(run(&boot).0, Err(BootError::Tree(_))));
}
