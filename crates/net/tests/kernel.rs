//! The discipline on a real kernel, put on a device a thousand times: this program boots the virtual machine,
//! and goes on there as its only command. It needs QEMU and a kernel, hence `#[ignore]`.

#[expect(dead_code, reason = "this test reports by itself")]
mod machine;

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use andante_net::{Device, Discipline, Wanted, attach, attached, detach};
use andante_vm::{Boot, Cache, Content, Event, InitrdFile, find_kernel, find_qemu};
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use machine::{HANGS, tool};

/// Is set in the machine.
const INSIDE: &str = "ANDANTE_NET_INSIDE";

/// A link of four queues to a host that nobody answers on, and this program.
const SCRIPT: &str = "#!/bin/sh
set -e
ip() { /andante/bin/ip \"$@\"; }
ip netns add there
ip link add out numtxqueues 4 type veth peer name in netns there
ip addr add 10.0.0.1/24 dev out
ip netns exec there /andante/bin/ip link set in up
ip link set out up
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev out
ANDANTE_NET_INSIDE=1 /andante/bin/$1 --ignored --nocapture --test-threads=1 
echo \"REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')\"
";

fn in_vm() {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let this = std::env::current_exe().expect("this program");
    let name = this
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let boot = Boot {
        memory_mib: 1024,
        files: vec![InitrdFile {
            guest: "/andante/cycles.sh".into(),
            content: Content::Bytes(SCRIPT.into()),
            mode: 0o755,
        }],
        programs: vec![this, tool("ip"), tool("tc")],
        modules: vec!["veth"],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join("cycles.log"),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", "/andante/cycles.sh", &name])
    };
    let mut sound = false;
    let outcome = boot
        .run(&mut |event| {
            if let Event::Console(line) = event {
                println!("{line}"); // seen if the test fails
                sound |= line.trim() == "REPORT warnings 0";
            }
        })
        .expect("the machine runs");
    assert_eq!(outcome.exit_status, 0);
    assert!(sound, "the kernel has warned of something");
}

/// The least of what is seen within this time: the kernel frees things some time after they were let go.
fn settled<T: Ord>(within: Duration, look: impl Fn() -> T) -> T {
    let until = Instant::now() + within;
    let mut least = look();
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
        least = least.min(look());
    }
    least
}

/// Maps and programs in the kernel.
fn in_the_kernel() -> (usize, usize) {
    (
        MapInfoIter::default().count(),
        ProgInfoIter::default().count(),
    )
}

/// What the kernel has allocated for itself [bytes].
fn kernel_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let of = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (of("SUnreclaim:") + of("VmallocUsed:") + of("Percpu:")) * 1024
}

fn qdiscs() -> String {
    let tc = Command::new("/andante/bin/tc")
        .args(["qdisc", "show", "dev", "out"])
        .output();
    String::from_utf8(tc.expect("tc").stdout).expect("text")
}

/// Sends datagrams by each of the queues, and waits until they have gone.
fn send(packets: u64) {
    let sent = || -> u64 {
        let text = std::fs::read_to_string("/sys/class/net/out/statistics/tx_packets").unwrap();
        text.trim().parse().unwrap()
    };
    let before = sent();
    for _ in 0..packets {
        // Each has a port, and so a flow, of its own.
        let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
        socket.send_to(&[0; 100], "10.0.0.2:9").unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(sent() - before >= packets, "packets were lost");
}

/// A thousand times on the device and off it again, by the same object and by one of their own; on its root, and on
/// each queue below mq.
#[test]
#[ignore = "needs the virtual machine"]
fn nothing_is_left_of_a_thousand_attachments() {
    if std::env::var_os(INSIDE).is_none() {
        return in_vm();
    }
    let out = Device::of("out").unwrap();
    assert_eq!((out.queues, out.limits), (4, false));
    let before = settled(Duration::from_secs(2), in_the_kernel);
    let discipline = Discipline::load(4).unwrap();
    let rate = "10mbit".parse().unwrap();
    discipline.set_rate(out.ifindex, rate).unwrap();
    let cycles = |times: u32| {
        for at in 0..times {
            let queues = (at % 2 == 1).then_some(4);
            discipline.put(out.ifindex, queues).unwrap();
            discipline.take_off(out.ifindex).unwrap();
        }
    };
    // What is freed is kept for a while for others, hundreds of thousands of bytes at times.
    let grown: Vec<u64> = (0..10)
        .map(|_| {
            cycles(100);
            settled(Duration::from_millis(300), kernel_memory)
        })
        .collect();
    println!("bytes after each hundred: {grown:?}");
    let (early, late) = grown.split_at(5);
    let [early, late] = [early, late].map(|half| half.iter().min().unwrap());
    // Two and a half disciplines a cycle, and of each as little as the smallest thing in it.
    assert!(late < &(early + 500 * 5 / 2 * 64));
    discipline.put(out.ifindex, Some(4)).unwrap();
    let seen = qdiscs();
    assert_eq!(seen.matches("qdisc andante").count(), 4, "{seen}");
    send(100);
    discipline.take_off(out.ifindex).unwrap();
    // There is room for four links, and there are four queues: what cannot be leaves nothing.
    discipline.put(out.ifindex, Some(5)).unwrap_err();
    let seen = qdiscs();
    assert!(!seen.contains("andante") && !seen.contains("mq"), "{seen}");
    drop(discipline);
    let wanted = Wanted {
        rate: Some(rate),
        replace: false,
    };
    for _ in 0..10 {
        attach("out", wanted).unwrap();
        assert_eq!(attached().unwrap(), ["out"]);
        send(10);
        detach("out").unwrap();
    }
    assert_eq!(settled(Duration::from_secs(2), in_the_kernel), before);
    assert!(!Path::new("/sys/fs/bpf/andante").exists());
}
