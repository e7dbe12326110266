//! The virtual machine, as tests of packets have it: a script reports, and its report is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use andante_vm::{Boot, Content, Event, InitrdFile};

/// A machine that takes longer hangs.
pub const HANGS: Duration = Duration::from_secs(3600);

/// The lines `REPORT key value` of a script.
pub type Report = BTreeMap<String, u64>;

/// Runs the machine, and returns what its script reported.
pub fn reported(boot: &Boot) -> Report {
    let mut report = Report::new();
    let outcome = boot
        .run(&mut |event| {
            let Event::Console(line) = event else {
                return;
            };
            println!("{line}"); // seen if the test fails
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["REPORT", key, value] = words[..] {
                report.insert(key.to_owned(), value.parse().expect("a number"));
            }
        })
        .expect("the machine runs");
    assert_eq!(outcome.exit_status, 0, "{report:?}");
    report
}

/// The script that all others begin with.
pub fn hosts() -> InitrdFile {
    InitrdFile {
        guest: "/andante/hosts.sh".into(),
        content: Content::Bytes(include_bytes!("hosts.sh").to_vec()),
        mode: 0o644,
    }
}

/// A script of that folder, in the guest's folder of scripts.
pub fn script(folder: &Path, name: &str) -> InitrdFile {
    InitrdFile {
        guest: format!("/andante/{name}").into(),
        content: Content::Host(folder.join(name)),
        mode: 0o755,
    }
}

/// The number of each of these keys, and what it should be.
pub fn all_are(report: &Report, expected: &[(&str, u64)]) {
    for (key, value) in expected {
        assert_eq!(report.get(*key), Some(value), "{key}: {report:?}");
    }
}

/// A program of iproute2, which is where root's programs are, or of util-linux.
pub fn tool(name: &str) -> PathBuf {
    ["/usr/sbin", "/sbin", "/usr/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.is_file())
        .expect("iproute2 and util-linux are installed")
}

/// The program of a source in C, called as that is.
pub fn compiled(source: &Path) -> PathBuf {
    let name = source.file_stem().expect("a name");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(compiler)
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{status}");
    program
}
