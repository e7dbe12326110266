//! Runs that go on from saved machines, in the real virtual machine: they need QEMU and a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_vm::{
    Boot, Cache, Content, Event, InitrdFile, Kernel, Order, Qemu, find_kernel, find_qemu,
};

/// A machine that takes longer hangs.
const HANGS: Duration = Duration::from_secs(1800);

struct Machine {
    kernel: Kernel,
    qemu: Qemu,
    folder: tempfile::TempDir,
}

/// All that can be told of a run from outside.
#[derive(Debug, PartialEq)]
struct Told {
    output: String,
    virtual_s: f64,
}

impl Machine {
    fn new() -> Self {
        let cache = Cache::open().unwrap();
        let progress = |line: &str| println!("{line}");
        Self {
            kernel: find_kernel(&cache, &progress).unwrap(),
            qemu: find_qemu(&cache, 1, &progress).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Runs a script that makes ready and then receives and prints a word and all that could differ.
    /// Returns what came out, and the notes.
    fn run(&self, word: &str, saved: Option<&Cache>) -> (Told, Vec<String>) {
        let script = "
            cat /andante/word 2>/dev/null && exit 1
            ls -R /sys/devices >/tmp/ready
            /andante/init receive order || exit 1
            sleep 0.0123
            (cat /andante/word; date; cat /proc/uptime /proc/stat /proc/interrupts; od -N 16 -x /dev/urandom
             grep -c . /tmp/ready; dmesg) >/dev/virtio-ports/andante.out";
        let boot = Boot {
            memory_mib: 256,
            order: Some(Order {
                files: vec![InitrdFile {
                    guest: "/andante/word".into(),
                    content: Content::Bytes(word.as_bytes().to_vec()),
                    mode: 0o644,
                }],
                save: true,
            }),
            saved,
            timeout: HANGS,
            console_log: self.folder.path().join("console"),
            ..Boot::of(&self.kernel, &self.qemu, &["sh", "-c", script])
        };
        let mut notes = Vec::new();
        let outcome = boot.run(&mut |event| match event {
            Event::Note(note) => notes.push(note.to_owned()),
            Event::Console(line) | Event::Progress(line) => println!("{line}"),
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.exit_status, 0);
        let told = Told {
            output: String::from_utf8(outcome.output).unwrap(),
            virtual_s: outcome.virtual_s,
        };
        (told, notes)
    }
}

/// The saved machines in a cache.
fn saved_in(cache: &Path) -> Vec<PathBuf> {
    let machines = fs::read_dir(cache.join("machines")).unwrap();
    let files = machines.map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "machine"))
        .collect()
}

#[test]
#[ignore = "needs the virtual machine"]
fn a_saved_machine_goes_on_as_one_that_was_never_saved() {
    let machine = Machine::new();
    let folder = machine.folder.path().join("cache");
    let cache = Cache::at(&folder).unwrap();
    let never = machine.run("same", None);
    assert!(never.0.output.starts_with("same"));
    let saving = machine.run("same", Some(&cache));
    assert_eq!(never, saving);
    // One at either point.
    assert_eq!(saved_in(&folder).len(), 2);
    assert_eq!(never, machine.run("same", Some(&cache)));

    // The order is given later, and is no part of a saved machine.
    let (other, notes) = machine.run("else", Some(&cache));
    assert_eq!(other.output.replacen("else", "same", 1), never.0.output);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(saved_in(&folder).len(), 2);

    // A machine that cannot be read is told of, and made anew.
    for file in saved_in(&folder) {
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    }
    let (told, notes) = machine.run("same", Some(&cache));
    assert_eq!(told, never.0);
    assert!(
        notes.len() == 2 && notes.iter().all(|note| note.contains("QEMU refuses")),
        "{notes:?}"
    );
    assert_eq!(saved_in(&folder).len(), 2);
}
