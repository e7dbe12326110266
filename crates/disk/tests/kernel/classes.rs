//! The class of each request.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use andante_disk::{
    Attached, Fifo, HandingOn, Order, Request, Senders, Tag, Wanted, What, attach, open,
};

use crate::disks::run;
use crate::guest::is_inside;

const ROOT: &str = "/sys/fs/cgroup";
/// What each writes and reads [bytes].
const PIECE: u64 = 1 << 20;

/// Bytes by class and kind.
type Seen = Arc<Mutex<BTreeMap<(u64, &'static str), u64>>>;

/// As they come, and what has come.
struct Noting(Fifo, Seen);

impl Order for Noting {
    fn arrive(&mut self, request: &Request, now_ns: u64) {
        let mut seen = self.1.lock().unwrap();
        *seen
            .entry((request.class, request.what.name()))
            .or_default() += request.bytes();
        self.0.arrive(request, now_ns);
    }

    fn next(&mut self, now_ns: u64) -> Option<Tag> {
        self.0.next(now_ns)
    }

    fn done(&mut self, tag: Tag, now_ns: u64) {
        self.0.done(tag, now_ns);
    }
}

fn noting(backing: &str) -> (Attached, Seen) {
    let seen = Seen::default();
    let order = Noting(Fifo::new(8), Arc::clone(&seen));
    let backing = open(Path::new(backing)).unwrap();
    let attached = attach(backing, order, Senders::load().unwrap(), Wanted::default());
    (attached.unwrap(), seen)
}

/// Writes a file through the page cache, has it written, forgets it and reads it again, in that class.
fn program(class: &str, folder: &str) -> Child {
    let file = format!("{folder}/{}", class.replace('/', "-"));
    let script = format!(
        "echo $$ > {ROOT}/{class}/cgroup.procs
         busybox dd if=/dev/zero of={file} bs=64k count=16 conv=fsync
         echo 1 > /proc/sys/vm/drop_caches
         busybox dd if={file} of=/dev/null bs=64k"
    );
    Command::new("sh").args(["-c", &script]).spawn().unwrap()
}

fn mounted(device: &str, at: &str) {
    run("mkfs.ext4", &["-q", device]);
    fs::create_dir_all(at).unwrap();
    run("busybox", &["mount", "-t", "ext4", device, at]);
}

fn class(path: &str) -> u64 {
    let path = Path::new(ROOT).join(path);
    fs::create_dir_all(&path).unwrap();
    path.metadata().unwrap().ino()
}

#[test]
#[ignore = "needs the virtual machine"]
fn requests_are_of_the_classes_that_sent_them() {
    if !is_inside("classes::requests_are_of_the_classes_that_sent_them") {
        return;
    }
    let control = |path: &str| {
        fs::read_to_string(Path::new(ROOT).join(path).join("cgroup.subtree_control")).unwrap()
    };
    fs::write(
        Path::new(ROOT).join("cgroup.subtree_control"),
        "+cpu +memory -io",
    )
    .unwrap();
    let (film, copies) = (class("film"), class("copies"));
    let (one, other) = (noting("/dev/ram0"), noting("/dev/ram1"));
    let handing_on = HandingOn::begin(Path::new(ROOT), Path::new("/run/andante/disk")).unwrap();
    assert!(control("").contains("io"));
    // A class that comes later, below one that hands nothing on yet.
    class("late");
    fs::write(
        Path::new(ROOT).join("late/cgroup.subtree_control"),
        "+cpu +memory",
    )
    .unwrap();
    let late = class("late/one");
    handing_on.see().unwrap();
    assert!(control("late").contains("io"));
    mounted(&one.0.path(), "/tmp/one");
    mounted(&other.0.path(), "/tmp/other");
    let all = [
        program("film", "/tmp/one"),
        program("copies", "/tmp/one"),
        program("late/one", "/tmp/one"),
        program("film", "/tmp/other"),
    ];
    for mut child in all {
        assert!(child.wait().unwrap().success());
    }
    let of = |seen: &Seen, class: u64, what: What| {
        let seen = seen.lock().unwrap();
        seen.get(&(class, what.name())).copied().unwrap_or(0)
    };
    println!(
        "film {film}, copies {copies}, late {late}: {:?}",
        one.1.lock().unwrap()
    );
    for (seen, class) in [
        (&one.1, film),
        (&one.1, copies),
        (&one.1, late),
        (&other.1, film),
    ] {
        // And blocks of the file system's own, which the first who needs them reads.
        let exactly = PIECE..PIECE + PIECE / 4;
        for what in [What::Write, What::Read] {
            let bytes = of(seen, class, what);
            assert!(exactly.contains(&bytes), "{class} {what:?}: {bytes}");
        }
    }
    assert_eq!(
        of(&other.1, copies, What::Write),
        0,
        "the disks are mixed up"
    );
    run("busybox", &["umount", "/tmp/one", "/tmp/other"]);
    for (mut attached, _) in [one, other] {
        attached.stop().unwrap();
        attached.end().unwrap();
    }
    drop(handing_on);
    assert!(!control("").contains("io") && !control("late").contains("io"));
}
