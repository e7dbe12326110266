// SPDX-License-Identifier: GPL-2.0
//! Why a device's packets are not placed.

use std::io;
use std::path::PathBuf;

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Threads of the kernel's are root's to move.
    #[error("only root may say who works on packets that come: use sudo")]
    NotRoot,
    /// The kernel does not say which threads take packets.
    #[error(
        "this kernel does not tell which threads take the packets of {0}: boot one of Linux 6.8 or newer"
    )]
    OldKernel(String),
    /// There is none of this name.
    #[error("there is no device {0}: `ip link` lists those that there are")]
    NoDevice(String),
    /// It takes no packets now.
    #[error("{0} is down: `ip link set {0} up`")]
    Down(String),
    /// Its packets come without it: a bridge, a tunnel, the loopback device.
    #[error(
        "{0} takes no packets from a driver of its own, as a bridge or the loopback device do not: \
         name the device that they come by"
    )]
    NoNapi(String),
    /// The kernel has made no threads, though it was told to.
    #[error(
        "the kernel makes no threads for the packets of {0}: `dmesg` may say why, and a restart of the \
         device (`ip link set {0} down`, and up) lets it try again"
    )]
    NoThreads(String),
    /// Another process has it.
    #[error("the packets of {device} are placed already{}: end it first", by(*.pid))]
    Taken {
        /// The device.
        device: String,
        /// Whose they are; none: it has just begun.
        pid: Option<u32>,
    },
    /// The class takes no threads.
    #[error("the class {} does not take the threads of {device}: {source}", class.display())]
    Class {
        /// The class.
        class: PathBuf,
        /// The device.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The driver has no place for the program that drops early, or another is there.
    #[error(
        "the driver of {device} does not take the program that drops early ({source}): have it at the \
         ingress, or say nothing of where it is to be"
    )]
    Driver {
        /// The device.
        device: String,
        /// The kernel's error.
        source: libbpf_rs::Error,
    },
    /// The system refused it.
    #[error("could not {step} {device}: {source}")]
    System {
        /// The step that failed, in words.
        step: &'static str,
        /// The device.
        device: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refused the program that drops early.
    #[error("the kernel refused to {step} the program that drops early: {source}")]
    Kernel {
        /// The step that failed, in words.
        step: &'static str,
        /// The kernel's error.
        source: libbpf_rs::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" by process {pid}"))
}

pub(super) fn refused(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ReceiveError {
    move |source| ReceiveError::Kernel { step, source }
}
