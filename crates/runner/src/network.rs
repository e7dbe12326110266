//! Two networks and the cable between them: network namespaces and a pair of veth, made by `ip`; and what decides
//! at its ends which packet leaves first, put there by `tc` or by Andante's own command.
//!
//! ```text
//!   10.77.0.1 ══════════════ 10.77.0.2        ══ an end with the rate and the discipline
//!   10.77.0.1 ──══ router ══── 10.77.1.1      ── one without, as fast as the machine
//! ```

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use andante_job::LabError;
use andante_programs::Peer;
use andante_scenario::choice::Choice;
use andante_scenario::{Cable, Discipline, Program, Workload, networks};

use super::Setup;
use super::classes::Classes;

/// A network's end of its cable.
const INTERFACE: &str = "cable";
/// The router's ends, by the places of the networks.
const ROUTERS: [&str; 2] = ["cable-1", "cable-2"];
/// The router's number in each network.
const ROUTER: usize = 254;
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
    /// The router's, as the machine has it.
    router: Option<String>,
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
            // No network's name has a dot, so it is no other's.
            router: (workload.cable.router).then(|| on_machine(".router")),
        };
        for end in networks.lay()? {
            limit(&end, &workload.cable, choice, setup, classes)?;
        }
        Ok(networks)
    }

    /// Lays the cables; the ends at which packets are to wait.
    fn lay(&self) -> Result<Vec<End>, LabError> {
        let mut ends = Vec::new();
        for name in &self.names {
            ip(&["netns", "add", &on_machine(name)])?;
            ends.push(End::new(&on_machine(name), INTERFACE));
        }
        let [one, other] = &ends[..] else {
            return Ok(ends);
        };
        let Some(router) = &self.router else {
            one.joined_to(other)?;
            for (end, name) in ends.iter().zip(&self.names) {
                end.up(&self.address(Some(name)))?;
            }
            return Ok(ends);
        };
        ip(&["netns", "add", router])?;
        within(router, forward)??;
        let hops = ROUTERS.map(|interface| End::new(router, interface));
        for (place, (end, hop)) in ends.iter().zip(&hops).enumerate() {
            end.joined_to(hop)?;
            // A real cable carries one packet at a time. A veth hands over segments of 64 kB as they are, which the
            // router would have to send as they are.
            let device = ["dev", &end.interface, "gso_max_segs", "1"];
            ip(&[&["-n", &end.network, "link", "set"], &device[..]].concat())?;
            end.up(&address(place, 1))?;
            let by = address(place, ROUTER);
            hop.up(&by)?;
            ip(&["-n", &end.network, "route", "add", "default", "via", &by])?;
        }
        Ok(hops.into())
    }

    /// The address of whoever is in this network; none: the machine's own.
    pub fn address(&self, name: Option<&str>) -> String {
        let place = name.and_then(|name| self.names.iter().position(|other| other == name));
        match (place, &self.router) {
            (Some(place), None) => address(0, place + 1),
            (Some(place), Some(_)) => address(place, 1),
            (None, _) => "127.0.0.1".to_owned(),
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
            from: self.address(Some(own)),
        })
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        let names = self.names.iter().map(|name| on_machine(name));
        for name in names.chain(self.router.clone()) {
            // One that was never made is none to take away.
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

/// Of a host in a subnetwork of the laboratory's.
fn address(subnetwork: usize, host: usize) -> String {
    format!("10.77.{subnetwork}.{host}")
}

/// One end of a cable.
struct End {
    /// As the machine has it.
    network: String,
    interface: String,
}

impl End {
    fn new(network: &str, interface: &str) -> Self {
        let [network, interface] = [network, interface].map(str::to_owned);
        Self { network, interface }
    }

    /// Lays the cable from here to there.
    fn joined_to(&self, other: &Self) -> Result<(), LabError> {
        let ends = [self, other].map(|end| ["name", &end.interface, "netns", &end.network]);
        let words = [
            &["link", "add"],
            &ends[0][..],
            &["type", "veth", "peer"],
            &ends[1][..],
        ];
        ip(&words.concat())
    }

    /// Has it send and receive, with this address.
    fn up(&self, address: &str) -> Result<(), LabError> {
        let (network, interface) = (&self.network, &self.interface);
        let address = format!("{address}/24");
        ip(&["-n", network, "address", "add", &address, "dev", interface])?;
        ip(&["-n", network, "link", "set", interface, "up"])?;
        ip(&["-n", network, "link", "set", "lo", "up"])
    }
}

/// Has the network of the calling thread forward packets of others.
fn forward() -> Result<(), LabError> {
    let file = Path::new("/proc/sys/net/ipv4/ip_forward");
    fs::write(file, "1").map_err(|e| LabError::file("write", file, e))
}

/// Does something on a thread within a network.
fn within<T: Send>(network: &str, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    let file = entrance(network);
    let opened = File::open(&file).map_err(|e| LabError::file("open", &file, e))?;
    let work = || enter(opened.as_raw_fd()).map(|()| work());
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    let done = done.expect("it does not panic");
    done.map_err(|e| LabError::io(format!("enter the network {network}"), e))
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
    end: &End,
    cable: &Cable,
    choice: &Choice,
    setup: &Setup,
    classes: &Classes,
) -> Result<(), LabError> {
    let Some(rate) = cable.rate else {
        return Ok(());
    };
    let rate = rate.to_string().replace(' ', "");
    let (network, interface) = (&*end.network, &*end.interface);
    let tc = |words: &[&str]| {
        let on = ["-n", network, "qdisc", "add", "dev", interface];
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
                within(network, || run(&mut command))?
            };
            andante(&["attach", interface, "--rate", &rate])?;
            cable.contracts.iter().try_for_each(|contract| {
                let class = classes.path_of(&contract.class);
                andante(&["reserve", interface, &class, &contract.terms])
            })
        }
    }
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
