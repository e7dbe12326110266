//! Two networks and the cable between them: network namespaces and a pair of veth, made by `ip`.

use std::fs::File;
use std::io;
use std::process::Command;

use andante_job::LabError;
use andante_scenario::{Program, Workload, networks};

/// The interface at either end of the cable.
const INTERFACE: &str = "cable";
/// Where `ip` keeps networks that it has made.
const FOLDER: &str = "/run/netns";

/// The networks of a workload, which are gone when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// As the scenario names them; the place of each gives its address.
    names: Vec<String>,
}

impl Networks {
    /// Makes them, if the workload has any.
    pub fn make(workload: &Workload) -> Result<Self, LabError> {
        let names = networks(&workload.programs);
        let networks = Self {
            names: names.into_iter().map(str::to_owned).collect(),
        };
        let [one, other] = &networks.names[..] else {
            return Ok(networks);
        };
        let (one, other) = (on_machine(one), on_machine(other));
        ip(&["netns", "add", &one])?;
        ip(&["netns", "add", &other])?;
        ip(&[
            "link", "add", INTERFACE, "netns", &one, "type", "veth", "peer", "name", INTERFACE,
            "netns", &other,
        ])?;
        for name in &networks.names {
            let address = format!("{}/24", networks.address(Some(name)));
            let name = on_machine(name);
            ip(&["-n", &name, "address", "add", &address, "dev", INTERFACE])?;
            ip(&["-n", &name, "link", "set", INTERFACE, "up"])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(networks)
    }

    /// The address of whoever is in this network; none: the machine's own.
    pub fn address(&self, name: Option<&str>) -> String {
        let place = name.and_then(|name| self.names.iter().position(|other| other == name));
        match place {
            Some(place) => format!("10.77.0.{}", place + 1),
            None => "127.0.0.1".to_owned(),
        }
    }

    /// What a program enters its network by.
    pub fn of(&self, program: &Program) -> Result<Option<File>, LabError> {
        let Some(name) = &program.network else {
            return Ok(None);
        };
        let file = format!("{FOLDER}/{}", on_machine(name));
        let opened = File::open(&file).map_err(|e| LabError::file("open", &file, e))?;
        Ok(Some(opened))
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for name in &self.names {
            // One that was never made is none to take away.
            let _ = ip(&["netns", "delete", &on_machine(name)]);
        }
    }
}

/// On a user's machine there may be others of this name.
fn on_machine(name: &str) -> String {
    format!("andante-{}-{name}", std::process::id())
}

fn ip(arguments: &[&str]) -> Result<(), LabError> {
    let what = || format!("run `ip {}`", arguments.join(" "));
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|e| LabError::io(what(), e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("no message").to_owned();
    Err(LabError::io(what(), io::Error::other(last)))
}
