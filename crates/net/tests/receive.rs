//! Packets in, on a real kernel: see `receive/receive.sh`. Under Andante's scheduler, whose binary is built
//! before (`make`), and under the kernel's own. They need QEMU and a kernel, hence `#[ignore]`.

#[allow(dead_code)]
mod machine;

use std::path::{Path, PathBuf};

use andante_vm::{Boot, Cache, find_kernel, find_qemu};
use machine::{HANGS, Report, compiled, reported, tool};

fn in_vm(name: &str) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let file = |name: &str| machine::script(&scripts(), name);
    let script = format!("{name}.sh");
    let guest = format!("/andante/{script}");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_andante-receive"));
    let andante = program.with_file_name("andante");
    assert!(andante.is_file(), "{} is not built", andante.display());
    let boot = Boot {
        memory_mib: 1024,
        files: vec![machine::hosts(), file("receive.sh"), file(&script)],
        programs: vec![
            compiled(&scripts().join("receive.c")),
            program,
            andante,
            tool("ip"),
            tool("tc"),
        ],
        modules: vec!["veth", "dummy", "sch_netem", "8021q", "bridge"],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log")),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", &guest])
    };
    reported(&boot)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receive")
}

/// Packets that are sent in the time that is measured: 100 a millisecond, for two seconds.
const FLOOD: f64 = 200_000.0;

/// The part of the loop's work that it loses to a flood.
struct Loss {
    all: f64,
    /// For the flood comes from the same machine: as much as one to a device that drops it, of the packets
    /// that were let go.
    of_sender: f64,
}

fn loss(report: &Report, scheduler: &str, case: &str) -> Loss {
    let get = |case: &str, key: &str| report[&format!("{scheduler}_{case}_{key}")] as f64;
    let lost = |case| 1.0 - get(case, "strides") / get("none", "strides");
    Loss {
        all: lost(case),
        of_sender: lost("base") * get(case, "packets") / FLOOD,
    }
}

/// A flood at a socket that is read slowly costs others what its class has a right to, and no more. Without
/// us it is on whoever runs.
#[test]
#[ignore = "needs the virtual machine"]
fn a_flood_is_the_work_of_the_class_that_it_is_for() {
    let report = in_vm("receive_isolation");
    for scheduler in ["stock", "andante"] {
        let [softirq, tenth, equal] = ["softirq", "placed_10", "placed_100"].map(|case| {
            let loss = loss(&report, scheduler, case);
            println!(
                "{scheduler} {case}: the loop loses {:.1} %, {:.1} of them to the sender",
                100.0 * loss.all,
                100.0 * loss.of_sender
            );
            loss
        });
        // A tenth of the loop's weight is an eleventh of what both have.
        let placed = tenth.all - tenth.of_sender;
        assert!(placed <= 0.12, "{placed}");
        // And with the same weight no more than half.
        assert!(equal.all - equal.of_sender <= 0.5, "{}", equal.all);
        assert!(tenth.all < equal.all && equal.all < softirq.all);
        // Hardly a datagram went through all protocols in vain.
        for weight in [10, 100] {
            let get = |key: &str| report[&format!("{scheduler}_placed_{weight}_{key}")];
            let early = report[&format!("{scheduler}_early_{weight}")];
            assert!(get("udp") - get("received") <= early / 100, "{report:?}");
            assert!(early > 10_000);
        }
    }
    let film = |case: &str, key: &str| report[&format!("andante_{case}_{key}")];
    for case in ["placed_10", "placed_100"] {
        assert_eq!(film(case, "late"), 0);
        let (with, without) = (film(case, "p99_us"), film("none", "p99_us"));
        assert!(with * 10 <= without * 11, "{with} us, {without} without");
    }
}

/// What a receiver gets does not fall when more is offered than it can take. Without us it does.
#[test]
#[ignore = "needs the virtual machine"]
fn a_receiver_gets_as_much_however_much_is_offered() {
    let report = in_vm("receive_goodput");
    for scheduler in ["stock", "andante"] {
        let got = |case: &str, kpps: u32| report[&format!("{scheduler}_{case}_{kpps}_received")];
        let of = |case| [10, 20, 40, 100, 200].map(|kpps| got(case, kpps));
        for case in ["softirq", "equal", "last"] {
            println!("{scheduler} {case}: {:?} in half a second", of(case));
        }
        let most = of("last").into_iter().max().expect("five");
        // The stock scheduler lets the thread have a little more on some kernels.
        let least = if scheduler == "andante" { 90 } else { 80 };
        for kpps in [40, 100, 200] {
            assert!(got("last", kpps) * 100 >= most * least, "{:?}", of("last"));
        }
        // From far below on it is as without.
        assert!(got("last", 10) * 100 >= got("softirq", 10) * 99);
        assert!(got("softirq", 200) * 10 < most * 6);
        assert!(got("softirq", 200) < got("equal", 200) && got("equal", 200) < got("last", 200));
    }
}

/// And a device is afterwards as it was before, whatever becomes of us.
#[test]
#[ignore = "needs the virtual machine"]
fn what_a_full_socket_would_refuse_is_dropped_early_and_nothing_else() {
    let report = in_vm("receive_kinds");
    let is = |when: &str| {
        ["threaded", "gro", "in_class", "files"].map(|what| report[&format!("{when}_{what}")])
    };
    assert_eq!(is("before"), [0, 0, 0, 0]);
    for wrong in ["no_device", "no_napi", "no_class", "taken"] {
        assert_eq!(report[wrong], 1, "{wrong}");
    }
    for back in ["refused", "restored", "behind"] {
        assert_eq!(is(back), [0, 0, 0, 0], "{back}");
    }
    assert_eq!(is("placed"), [1, 1, 1, 1]);
    assert_eq!(is("killed"), [1, 1, 1, 1]);
    assert_eq!(is("up_again"), [1, 1, 1, 1]);
    // Half a second of 50 a millisecond, and what comes before and behind, at a socket that takes one.
    let early = |case: &str| report[&format!("{case}_early")];
    assert!(
        (20_000..=35_000).contains(&early("six")),
        "{}",
        early("six")
    );
    assert!(report["six_udp"] <= report["six_received"] + early("six") / 100);
    assert!(early("forwarded") > early("six") + 20_000);
    assert!(report["forwarded_further"] >= 2000);
    for at in ["driver", "nowhere"] {
        assert_eq!(report[&format!("{at}_there")], 1, "{at}");
    }
    assert!((20_000..=35_000).contains(&early("driver")));
    assert!(report["driver_udp"] <= report["driver_received"] + early("driver") / 100);
    assert_eq!(early("nowhere"), 0);
    assert!(report["nowhere_udp"] > 20_000);
    assert_eq!(report["vlan_at_ingress"], 1);
    assert_eq!(report["bridge_nowhere"], 1);
    assert_eq!(report["gone_files"], 0);
    assert_eq!(report["warnings"], 0);
}
