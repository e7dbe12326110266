// SPDX-License-Identifier: GPL-2.0
//! Why a device's packets are not scheduled as was asked.

use std::io;
use std::path::PathBuf;

use crate::device::Nature;
use crate::discipline::MAX_LINKS;

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Disciplines are root's to put on devices, and to see.
    #[error("only root may see or change how packets leave: use sudo")]
    NotRoot,
    /// The kernel has no queueing disciplines in BPF.
    #[error(
        "this kernel has no queueing disciplines in BPF: boot one of Linux 6.17 or newer with CONFIG_NET_SCH_BPF"
    )]
    OldKernel,
    /// There is nowhere to keep what was on a device.
    #[error("no BPF file system is mounted at {0}: mount -t bpf bpf {0}")]
    NoBpfFs(&'static str),
    /// There is no such device here.
    #[error("there is no network device {0}: `ip link` lists those that there are")]
    NoDevice(String),
    /// It is not on this device.
    #[error("Andante is not on {0}: `andante net status` lists the devices that it is on")]
    NotAttached(String),
    /// Nobody knows when the device may send.
    #[error("{device} {}: say what it sends, such as --rate 10mbit", why(.nature))]
    NoRate {
        /// The device.
        device: String,
        /// What it is.
        nature: Nature,
    },
    /// Somebody has put another discipline there.
    #[error(
        "somebody has put the queueing discipline {kind} on {device}: say --replace to have Andante in its \
         place; when Andante is taken off, {kind} comes back, but not the options that it was given"
    )]
    Taken {
        /// The device.
        device: String,
        /// The discipline.
        kind: String,
    },
    /// What it sends is not known, so that nothing can be promised.
    #[error(
        "{0} was attached without a rate, of which nothing can be promised: attach it with --rate"
    )]
    NoContracts(String),
    /// The class has a contract, which only `reserve` without a process replaces.
    #[error(
        "{class} is promised a part of {device} already: `andante net release {device} {class}` ends that"
    )]
    Promised {
        /// The device.
        device: String,
        /// The class's path.
        class: String,
    },
    /// No device is named, and none attached.
    #[error(
        "Andante is on no network device: `andante net attach DEVICE --rate RATE` puts it there"
    )]
    Nowhere,
    /// No device is named, and several are attached.
    #[error("Andante is on {}: say which device is meant, such as {}:2mbit/10ms", .0.join(" and "), .0[0])]
    Several(Vec<String>),
    /// A contract was to end with a process that is not there.
    #[error("there is no process {0}: it may have ended")]
    NoProcess(u32),
    /// A contract was to end with a process which the kernel knows by another number.
    #[error(
        "in a container a contract of the network cannot end with a process: ask for it outside, with \
         `andante net reserve`"
    )]
    Contained,
    /// What is asked of a link makes no sense.
    #[error(transparent)]
    Contract(#[from] andante_admission::link::LinkError),
    /// The states of its links have another layout.
    #[error("{0} was attached by another version of Andante: detach it, and attach it anew")]
    OtherBuild(String),
    /// So many links are more than there may be.
    #[error("{0} queues are more than {MAX_LINKS}: give a rate, so that all of them are one")]
    Links(u32),
    /// The kernel refused the object.
    #[error("the kernel refused to {step} the queueing discipline: {source}")]
    Kernel {
        /// What was being done.
        step: &'static str,
        /// What the kernel said.
        source: libbpf_rs::Error,
    },
    /// The kernel refused what it was asked of a device.
    #[error("the kernel refused to {step} {device}: {source}")]
    Netlink {
        /// What was being done.
        step: &'static str,
        /// The device.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl NetError {
    pub(crate) fn promised(device: &str, class: &str) -> Self {
        Self::Promised {
            device: device.to_owned(),
            class: class.to_owned(),
        }
    }
}

fn why(nature: &Nature) -> &'static str {
    match nature {
        Nature::Wireless => "is wireless, and its packets wait in queues behind this one",
        Nature::Bridge => "is a bridge, which hands every packet on at once",
        Nature::Other => "does not say when it may send (it has no byte queue limits)",
    }
}

pub(crate) fn refused(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> NetError {
    move |source| NetError::Kernel { step, source }
}

pub(crate) fn netlink(step: &'static str, device: &str) -> impl FnOnce(io::Error) -> NetError {
    let device = device.to_owned();
    move |source| match source.raw_os_error() {
        Some(libc::ENODEV) => NetError::NoDevice(device),
        _ => NetError::Netlink {
            step,
            device,
            source,
        },
    }
}

pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> NetError {
    let path = path.to_owned();
    move |source| NetError::File { path, source }
}
