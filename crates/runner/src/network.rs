//! Two networks and the cable between them: network namespaces and a pair of veth, made by `ip`; and what decides
//! at its ends which packet leaves first, put there by `tc` or by Andante's own command.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use andante_job::LabError;
use andante_programs::Peer;
use andante_scenario::choice::Choice;
use andante_scenario::{Cable, Discipline, Program, Workload, networks};

use super::Setup;
use super::classes::Classes;

/// The interface at either end of the cable.
const INTERFACE: &str = "cable";
/// Where `ip` keeps networks that it has made.
const FOLDER: &str = "/run/netns";
/// The burst of a token bucket [bytes]: two largest packets, so that it never waits for a timer with one
/// to send.
const BURST: &str = "3028";
/// Room of the queue that Linux has by itself [packets] (`txqueuelen`).
const FIFO_PACKETS: &str = "1000";

/// The networks of a workload, which are gone when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// As the scenario names them; the place of each gives its address.
    names: Vec<String>,
}

impl Networks {
    /// Makes them, if the workload has any, with what `choice` has at the ends of the cable.
    pub fn make(
        workload: &Workload,
        choice: &Choice,
        setup: &Setup,
        classes: &Classes,
    ) -> Result<Self, LabError> {
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
            limit(&name, &workload.cable, choice, setup, classes)?;
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
        program.network.as_deref().map(open).transpose()
    }

    /// The other end of a program's cable.
    pub fn peer_of(&self, program: &Program) -> Option<Peer> {
        let own = program.network.as_ref()?;
        let other = self.names.iter().find(|name| *name != own)?;
        Some(Peer {
            network: entrance(&on_machine(other)),
            address: self.address(Some(other)),
        })
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

/// The file by which a network is entered.
fn entrance(on_machine: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(on_machine)
}

fn open(name: &str) -> Result<File, LabError> {
    let file = entrance(&on_machine(name));
    File::open(&file).map_err(|e| LabError::file("open", &file, e))
}

/// Has this end of the cable send no more than its rate, and decide what leaves first.
fn limit(
    network: &str,
    cable: &Cable,
    choice: &Choice,
    setup: &Setup,
    classes: &Classes,
) -> Result<(), LabError> {
    let Some(rate) = cable.rate else {
        return Ok(());
    };
    let rate = rate.to_string().replace(' ', "");
    let tc = |words: &[&str]| {
        let on = ["-n", network, "qdisc", "add", "dev", INTERFACE];
        run(Command::new("tc").args(on).args(words))
    };
    let bucket = |limit: &str| {
        let by = ["tbf", "rate", &rate, "burst", BURST, "limit", limit];
        tc(&[&["root", "handle", "1:"], &by[..]].concat())
    };
    match cable.discipline.under(choice) {
        Discipline::Own => unreachable!("it is one that has a name"),
        Discipline::Fifo => {
            bucket(BURST)?;
            tc(&["parent", "1:", "pfifo", "limit", FIFO_PACKETS])
        }
        Discipline::FqCodel => {
            bucket(BURST)?;
            tc(&["parent", "1:", "fq_codel"])
        }
        Discipline::Cake => tc(&["root", "cake", "bandwidth", &rate]),
        Discipline::Andante => {
            let andante = |words: &[&str]| {
                let mut command = Command::new(&setup.andante);
                command.arg("net").args(words);
                run_in(network, command)
            };
            andante(&["attach", INTERFACE, "--rate", &rate])?;
            cable.contracts.iter().try_for_each(|contract| {
                let class = classes.path_of(&contract.class);
                andante(&["reserve", INTERFACE, &class, &contract.terms])
            })
        }
    }
}

/// Runs a command within a network.
fn run_in(network: &str, mut command: Command) -> Result<(), LabError> {
    let file = entrance(network);
    let network = File::open(&file).map_err(|e| LabError::file("open", &file, e))?;
    // SAFETY: only a system call that is safe between fork and exec; the file is open until then.
    unsafe {
        command.pre_exec(move || enter(network.as_raw_fd()));
    }
    run(&mut command)
}

/// Puts the calling thread into a network; only a system call, so that a forked child may.
pub(super) fn enter(network: RawFd) -> io::Result<()> {
    // SAFETY: no pointers.
    match unsafe { libc::setns(network, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn ip(arguments: &[&str]) -> Result<(), LabError> {
    run(Command::new("ip").args(arguments))
}

fn run(command: &mut Command) -> Result<(), LabError> {
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let words = words.join(" ");
    let what = || format!("run `{words}`");
    let output = command.output().map_err(|e| LabError::io(what(), e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("no message").to_owned();
    Err(LabError::io(what(), io::Error::other(last)))
}
