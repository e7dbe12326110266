//! Tests of `andante net` on a real kernel: each boots the virtual machine, runs one of the shell scripts in the folder
//! beside this file in it, and reads what the script reports. They need QEMU and a kernel, hence
//! `#[ignore]`.

#[path = "../../net/tests/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

use std::path::{Path, PathBuf};

use andante_sim::link::{self, Sender};
use andante_sim::{NS_PER_S, Packets};
use andante_vm::{Boot, Cache, Content, InitrdFile, find_kernel, find_qemu};
use machine::{HANGS, Report, compiled, reported, tool};

/// Of a datagram by IPv4 on Ethernet, beside what is sent [bytes].
const HEADERS: u64 = link::HEADERS as u64;

/// Runs tests/net/NAME.sh in a machine.
fn in_vm(name: &str) -> Report {
    in_machine(name, 1, false)
}

/// The same in a machine of so many processors, with or without network cards.
fn in_machine(name: &str, cpus: u32, cards: bool) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, cpus, &quiet).expect("QEMU");
    let script = format!("{name}.sh");
    let file = |name: &str| machine::script(&scripts(), name);
    let unit = |name: &str, text: &[u8]| InitrdFile {
        guest: format!("/andante/{name}").into(),
        content: Content::Bytes(text.to_vec()),
        mode: 0o644,
    };
    let units = [
        unit("unit", include_bytes!("../../../dist/andante-net@.service")),
        unit(
            "receive-unit",
            include_bytes!("../../../dist/andante-receive@.service"),
        ),
    ];
    let guest = format!("/andante/{script}");
    let boot = Boot {
        cpus,
        cards,
        memory_mib: 1024,
        files: [machine::hosts(), file("common.sh"), file(&script)]
            .into_iter()
            .chain(units)
            .collect(),
        programs: vec![
            compiled(&scripts().join("packets.c")),
            env!("CARGO_BIN_EXE_andante").into(),
            tool("ip"),
            tool("tc"),
            tool("setpriv"),
            tool("script"),
        ],
        modules: vec![
            "veth",
            "dummy",
            "virtio_net",
            "sch_fq",
            "sch_tbf",
            "sch_htb",
            "sch_cake",
            "cls_u32",
            "8021q",
            "vxlan",
            "bridge",
        ],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log")),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", &guest])
    };
    reported(&boot)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net")
}

/// Bytes on the link of the datagrams of this size that a port has received.
fn on_the_link(report: &Report, port: u32, size: u64) -> u64 {
    report[&format!("bytes_{port}")] / size * (size + HEADERS)
}

/// Of what two ports received together [bytes], which this returns, the first has this part, to within so much [%].
fn in_part(report: &Report, ports: [u32; 2], wanted: f64, within: f64) -> f64 {
    let [one, other] = ports.map(|port| report[&format!("bytes_{port}")] as f64);
    let got = 100.0 * one / (one + other);
    assert!((got - wanted).abs() <= within, "{got} % is not {wanted} %");
    one + other
}

/// a: x 100 and y 300, both in a = 100; b 100; c 300: 5, 15, 20 and 60 % of what the film leaves; and the
/// film's packets wait for one of each class at most.
#[test]
#[ignore = "needs the virtual machine"]
fn senders_share_a_link_by_the_weights_of_their_classes() {
    let report = in_vm("shares");
    let bulk = [(1001, 1400), (1002, 1400), (1003, 1400), (1004, 700)];
    let bytes = bulk.map(|(port, size)| on_the_link(&report, port, size));
    let all: u64 = bytes.iter().sum();
    for (bytes, share) in bytes.into_iter().zip([5.0, 15.0, 20.0, 60.0]) {
        let got = 100.0 * bytes as f64 / all as f64;
        assert!((got - share).abs() <= 0.1, "{got} % is not {share} %");
    }
    // Ten seconds at 10 Mbit/s, within a hundredth.
    let sent = all + on_the_link(&report, 1005, 1000);
    assert!((12_375_000..=12_625_000).contains(&sent), "{sent} bytes");
    assert!(report["bytes_1005"] >= 998 * 1000, "the film lost packets");
    assert!(report["p99_us_1005"] <= 2500, "{report:?}");
    as_simulated(&report);
    // And so says the command.
    assert_eq!(report["film_weight"], 300);
    assert!(report["film_packets"] >= 1000, "{report:?}");
    assert_eq!(
        report["film_bytes"],
        report["film_packets"] * (1000 + HEADERS)
    );
    assert_eq!(
        report["film_dropped_late"] + report["film_dropped_crowded"],
        0
    );
    assert!(report["film_p99_below_us"] <= 4096, "{report:?}");
    // There is room for what sockets hold, so that who sends too much waits, and loses nothing for want of room.
    assert_eq!(report["crowded"], 0, "{report:?}");
}

/// The same in the simulator: shares within half a point, and the usual delay within 15 %. A datagram of any of
/// these sizes takes 2 kB in memory, and the kernel's own of it a quarter.
fn as_simulated(report: &Report) {
    let mut link = Packets::new(1_250_000, 1514);
    let mut class = |above, weight| link.create(above, weight).expect("there is room");
    let a = class(Packets::ROOT, 100);
    let classes = [
        (class(a, 100), 1400, 400),
        (class(a, 300), 1400, 400),
        (class(Packets::ROOT, 100), 1400, 400),
        (class(Packets::ROOT, 300), 700, 400),
        (class(Packets::ROOT, 300), 1000, 10_000),
    ];
    let senders =
        classes.map(|(class, size, every_us)| Sender::usual(class, size, every_us * 1000));
    let simulated = link::send(&mut link, &senders, 2 * NS_PER_S, 12 * NS_PER_S);
    let bytes = [1400, 1400, 1400, 700, 1000].into_iter().zip(1001..);
    let bytes: Vec<_> = bytes
        .map(|(size, port)| on_the_link(report, port, size))
        .collect();
    let all: u64 = bytes.iter().sum();
    let shares = link::shares(&simulated);
    for ((port, simulated), (bytes, share)) in
        (1001..).zip(&simulated).zip(bytes.iter().zip(shares))
    {
        let points = 100.0 * (*bytes as f64 / all as f64 - share);
        let p50_us = simulated.delay_ns(0.5) as f64 / 1000.0;
        let over = report[&format!("p50_us_{port}")] as f64 / p50_us;
        println!(
            "port {port}: {points:+.2} points and {over:.3} of the delay beside the simulator"
        );
        assert!(points.abs() <= 0.5, "port {port}: {points} points");
        assert!(
            (over - 1.0).abs() <= 0.15,
            "port {port}: {over} of {p50_us} us"
        );
    }
}

/// A film's packets with a contract wait for one of the others' at most, whatever its weight: 1.2 times the
/// 1.21 ms that the largest takes, and 0.3 ms.
#[test]
#[ignore = "needs the virtual machine"]
fn promised_packets_wait_for_one_of_others() {
    let report = in_vm("promised");
    for (key, status) in [
        ("too_much", 23),
        ("unknown", 10),
        ("no_period", 2),
        ("promised", 0),
        ("released", 0),
        ("no_more", 26),
    ] {
        assert_eq!(report[key], status, "{key}");
    }
    assert!(report["bytes_1006"] >= 998 * 1000, "{report:?}");
    assert!(report["p99_us_1006"] <= 1750, "{report:?}");
    let others: u64 = (1001..=1005)
        .map(|port| on_the_link(&report, port, 1472))
        .sum();
    assert!(others >= 11_200_000, "{others} bytes of 11.46 MB");
}

/// A program that is started with a contract has it until it ends, whoever was killed; both its contracts, or none.
#[test]
#[ignore = "needs the virtual machine"]
fn a_program_has_its_part_of_the_network_until_it_ends() {
    let report = in_vm("executed");
    for (key, status) in [
        ("nowhere", 31),
        ("unprivileged", 3),
        ("no_class", 2),
        ("too_much", 23),
        ("elsewhere", 31),
        ("missing", 127),
        ("second", 25),
        ("room", 0),
        ("alone", 8),
        ("alone_status", 8),
        ("kim_status", 8),
        ("kim_releases", 3),
        ("instead", 25),
        ("release_unknown", 8),
        ("released", 0),
        ("released_again", 8),
        ("released_class", 0),
        ("kim_sees", 0),
        ("release_cpu", 0),
        ("release_net", 0),
        ("no_cpu", 23),
        ("no_net", 23),
    ] {
        assert_eq!(report[key], status, "{key}");
    }
    assert_eq!(report["offers"], 2);
    for key in [
        "runs_held",
        "orphan_held",
        "alone_listed",
        "alone_shown",
        "alone_json",
        "kim_told",
        "in_json",
        "top_contract",
        "status_json",
        "kim_told_too",
        "left_told",
        "why",
    ] {
        assert_eq!(report[key], 1, "{key}");
    }
    assert_eq!(report["both_held"], 2, "one of the CPU, one of the network");
    assert_eq!(report["status_contract"], 2);
    for key in [
        "refused_left",
        "ended_left",
        "killed_left",
        "kim_shown",
        "released_left",
        "none_left",
        "process_left",
        "both_left",
    ] {
        assert_eq!(report[key], 0, "{key}");
    }
    assert_eq!(
        report["unpromised"], 0,
        "it was promised to one that is dead"
    );
    assert!(report["bytes_1006"] >= 998 * 1000, "{report:?}");
    assert!(report["p99_us_1006"] <= 1750, "{report:?}");
    assert_eq!(report["warnings"], 0);
}

/// The film beside five floods, under what is there without us: printed, for the figures; ours is none the
/// worse than the best that knows of flows.
#[test]
#[ignore = "needs the virtual machine"]
fn a_film_beside_floods_under_each_discipline() {
    let report = in_vm("beside");
    let p99 = |first: u32| report[&format!("p99_us_{}", first + 6)];
    let others = [
        (1000, "tbf, FIFO"),
        (2000, "tbf, fq_codel"),
        (3000, "CAKE"),
        (4000, "HTB by hand"),
    ];
    for (first, name) in others {
        println!("{name}: p99 {} us", p99(first));
    }
    println!("andante, by share: p99 {} us", p99(5000));
    assert!(p99(1000) > 50_000, "the floods fill a FIFO");
    assert!(p99(5000) <= 2500 && p99(5000) <= p99(2000), "{report:?}");
}

/// A hundred connections get what one gets in another class, and each of them the same.
#[test]
#[ignore = "needs the virtual machine"]
fn a_hundred_streams_share_what_one_gets() {
    let report = in_vm("crowd");
    let many: Vec<u64> = (101..=200).map(|n| report[&format!("bytes_{n}")]).collect();
    let (all, one) = (many.iter().sum::<u64>(), report["bytes_300"]);
    let share = 100.0 * one as f64 / (one + all) as f64;
    let mean = all as f64 / 100.0;
    let worst = (many.iter())
        .map(|&bytes| 100.0 * (bytes as f64 / mean - 1.0).abs())
        .fold(0.0, f64::max);
    println!("one: {share:.2} %; of the others the worst is {worst:.1} % from their mean");
    assert!((share - 50.0).abs() <= 1.0, "{share} % for the one");
    assert!(worst <= 10.0, "{worst} % from the mean");
}

/// Instructions of a packet beyond those under fq_codel, which looks at no queue when none waits.
#[test]
#[ignore = "needs the virtual machine"]
fn a_packet_costs_little_more_than_under_fq_codel() {
    let report = in_vm("cost");
    let beyond = |port: u32| report[&format!("ns_{port}")] as i64 - report["ns_1"] as i64;
    assert!(beyond(11) <= 1500, "{report:?}");
    assert!((beyond(15) - beyond(11)) / 4 <= 400, "{report:?}");
    // Of those that wait for the link's rate; beside fq_codel there is a token bucket for it.
    let beyond = |port: u32| report[&format!("wait_ns_{port}")] as i64 - report["wait_ns_1"] as i64;
    assert!(beyond(11) <= 1_800, "{report:?}");
    assert!((beyond(15) - beyond(11)) / 4 <= 400, "{report:?}");
}

/// TCP, in segments of two packets, and a weight that is turned while no sched_ext scheduler is loaded.
#[test]
#[ignore = "needs the virtual machine"]
fn streams_share_a_link_by_weights_that_may_be_turned() {
    let report = in_vm("streams");
    for (light, heavy, share) in [(2001, 2002, 25.0), (2003, 2004, 50.0)] {
        let all = in_part(&report, [light, heavy], share, 1.0);
        // Of 12.5 MB, headers left out.
        assert!(all > 11_500_000.0, "{all} bytes");
    }
}

/// Two processors send by two devices at once, while classes come and go: one to three on both, and nothing is
/// left.
#[test]
#[ignore = "needs the virtual machine"]
fn processors_share_what_is_known_of_classes() {
    let report = in_machine("processors", 2, false);
    assert_eq!(report["processors"], 2);
    for (light, heavy) in [(1101, 1102), (1103, 1104)] {
        in_part(&report, [light, heavy], 25.0, 0.5);
    }
    assert_eq!((report["left"], report["warnings"]), (0, 0));
}

/// A card whose driver says when it may send, without a rate: its packets wait in our queue, not in its ring.
#[test]
#[ignore = "needs the virtual machine"]
fn a_card_with_byte_queue_limits_needs_no_rate() {
    let report = in_machine("card", 1, true);
    in_part(&report, [1201, 1202], 25.0, 0.5);
    // Three packets are in the card's ring, for it is told of more when two are left.
    assert!(report["p99_us_1203"] <= 5_000, "{report:?}");
    // So has fq_codel; a film's packet comes at any time of the millisecond that the card takes for one.
    assert!(
        report["p99_us_1203"] <= report["p99_us_1303"] + 1_000,
        "{report:?}"
    );
    assert_eq!((report["left"], report["warnings"]), (0, 0));
}

/// By IPv6, from a VLAN, through a tunnel; what comes from a container's network, behind a bridge, is forwarded.
#[test]
#[ignore = "needs the virtual machine"]
fn a_packet_is_of_its_sockets_class_on_whatever_path() {
    let report = in_vm("paths");
    assert_eq!(report["six"], 3);
    // One every 10 ms for a second, the first as the program starts.
    for class in ["vlan", "tunnel", "forwarded"] {
        assert!((90..=110).contains(&report[class]), "{class}: {report:?}");
    }
}

/// Nobody stays, classes come and go, and the device goes with packets waiting.
#[test]
#[ignore = "needs the virtual machine"]
fn the_discipline_outlives_its_classes() {
    let report = in_vm("ends");
    for port in [3001, 3002] {
        let bytes = report[&format!("bytes_{port}")];
        assert!((99_000..=101_000).contains(&bytes), "port {port}: {bytes}");
    }
    assert_eq!(report["gone"], 31);
    assert_eq!(
        report["left"], 0,
        "something is kept of a device that is gone"
    );
    assert_eq!(report["warnings"], 0);
}

/// What cannot be is refused with a status of its own and changes nothing; what was on the device comes back.
#[test]
#[ignore = "needs the virtual machine"]
fn what_was_on_a_device_comes_back() {
    let report = in_vm("command");
    for (key, status) in [
        ("no_such_device", 31),
        ("no_rate", 32),
        ("rate_of_zero", 2),
        ("not_attached", 31),
        ("taken", 32),
        ("unprivileged", 3),
        ("wrong_config", 27),
        ("nowhere_to_keep", 1),
    ] {
        assert_eq!(report[key], status, "{key}");
    }
    assert_eq!(report["warnings"], 0);
}

/// Whenever the command is killed: afterwards the device is as it was, or as it is when that is taken back.
#[test]
#[ignore = "needs the virtual machine"]
fn who_is_killed_in_the_midst_leaves_nothing() {
    let report = in_vm("killed");
    // It was killed before anything was changed, and when all was done.
    for done in ["nothing", "all"] {
        assert!(report[done] > 0, "{done}: {report:?}");
    }
    assert_eq!(report["warnings"], 0);
}

/// Packets that come are the work of a class as long as the command stands, and the device is behind as it was before.
#[test]
#[ignore = "needs the virtual machine"]
fn packets_that_come_are_placed_by_command() {
    let report = in_vm("receive");
    for (key, status) in [
        ("no_device", 31),
        ("loopback", 32),
        ("no_class", 10),
        ("inner", 12),
        ("no_word", 2),
        ("no_hook", 2),
        ("unprivileged", 3),
        ("taken", 32),
        ("ended", 0),
        ("interrupted", 0),
        ("class_gone", 10),
        ("device_gone", 31),
    ] {
        assert_eq!(report[key], status, "{key}");
    }
    let is = |when: &str| {
        ["threaded", "in_class", "files"].map(|what| report[&format!("{when}_{what}")])
    };
    for back in [
        "before",
        "refused",
        "behind",
        "restored",
        "by_file",
        "neither",
        "without_class",
    ] {
        assert_eq!(is(back), [0, 0, 0], "{back}");
    }
    for placed in ["placed", "up_again", "killed"] {
        assert_eq!(is(placed), [1, 1, 1], "{placed}");
    }
    // Only the other's thread and file.
    assert_eq!(is("elsewhere"), [0, 1, 1]);
    assert_eq!(report["placed_nice"], 19);
    // Ten thousand to a socket of two million bytes, of which each takes more than seven hundred.
    let dropped = report["dropped"];
    assert!((7000..10_000).contains(&dropped), "{dropped}");
    assert_eq!(report["dropped_bytes"], dropped * (200 + HEADERS));
    assert_eq!(report["status_class"], 1);
    assert_eq!(report["told_at_the_end"], dropped);
    assert_eq!(report["left"] + report["warnings"], 0, "{report:?}");
}

/// Weights of a device alone: 3 to 1 as a file says, 1 to 2 by command while packets are sent, and again as the CPU's.
#[test]
#[ignore = "needs the virtual machine"]
fn weights_of_a_device_are_its_own() {
    let report = in_vm("weights");
    for (key, status) in [
        ("not_attached", 31),
        ("nowhere", 31),
        ("unknown", 10),
        ("too_much", 13),
        ("of_root", 2),
        ("no_class", 10),
        ("two_words", 2),
    ] {
        assert_eq!(report[key], status, "{key}");
    }
    for (first, share) in [(1001, 75.0), (1003, 100.0 / 3.0), (1005, 50.0)] {
        let bytes = [first, first + 1].map(|port| report[&format!("bytes_{port}")] as f64);
        let got = 100.0 * bytes[0] / (bytes[0] + bytes[1]);
        assert!((got - share).abs() <= 0.5, "{got} % is not {share} %");
    }
    assert_eq!(report["later"], 1);
    assert_eq!([report["own"], report["own_after"]], [1, 1]);
}

/// On a terminal of 80 columns no line is longer than that, with contracts of classes deep in the tree.
#[test]
#[ignore = "needs the virtual machine"]
fn what_is_shown_fits_a_terminal() {
    let report = in_vm("screens");
    for screen in ["netstatus", "status", "reservelist", "statusall", "toponce"] {
        let wide = report[&format!("wide_{screen}")];
        assert!((40..=80).contains(&wide), "{screen}: {wide} columns");
        let contracts = match screen {
            "netstatus" => 0,
            _ => 3,
        };
        assert_eq!(
            report[&format!("contracts_{screen}")],
            contracts,
            "{screen}"
        );
    }
}
