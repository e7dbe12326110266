//! Servers that can be killed: processes of this program.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::disks::attached;

/// What a child of this program is to serve.
const SERVES: &str = "ANDANTE_DISK_SERVES";

/// Whether this program is to be a server. Then it has been one, until the disk was detached.
pub fn serves() -> bool {
    let Some(backing) = std::env::var_os(SERVES) else {
        return false;
    };
    let attached = attached(Path::new(&backing)).expect("is attached");
    println!("\nSERVES {}", attached.recovered());
    attached.end().expect("is served");
    true
}

/// A server of its own process, which begins as the test of this name.
pub fn started(name: &str, backing: &str) -> Child {
    let this = std::env::current_exe().unwrap();
    Command::new(this)
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(SERVES, backing)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until it serves; whether it goes on with a device that was there.
pub fn serving(child: &mut Child) -> bool {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let said = lines.find_map(|line| Some(line.strip_prefix("SERVES ")? == "true"));
    if let Some(recovered) = said {
        // It may say more when it ends.
        std::thread::spawn(move || lines.count());
        return recovered;
    }
    panic!("the server has ended: {:?}", child.wait());
}
