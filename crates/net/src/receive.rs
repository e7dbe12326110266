// SPDX-License-Identifier: GPL-2.0
//! Packets in are worked on by the class that receives them, in its share and charged to it (lazy receiver
//! processing), and those that its sockets have no room for are dropped before that work.
//!
//! 1. A device's packets are taken by threads of the kernel's instead of by whatever was interrupted, and
//!    the threads go into the class ([`Receive::place`]). One device serves one class.
//! 2. `bpf/receive.bpf.c` is put before the protocols: in the driver if it can have it there, else at the
//!    device's ingress ([`Hook`]).
//!
//! What the device was like before is written into a file first ([`state`]). Dropping [`Receive`] puts it
//! back; if this process dies instead, [`restore`] does. The program in the kernel goes with the process.

mod device;
mod error;
mod napi;
mod seen;
pub mod state;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{
    BPF_TCX_INGRESS, BPF_XDP, XDP_FLAGS_DRV_MODE, bpf_attach_type, bpf_link_create,
    bpf_link_create_opts,
};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, ProgramMut};
use serde::{Deserialize, Serialize};

use device::{Above, Device};
use error::refused;
use state::{Kept, Placed, Thread};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/receive.skel.rs"));
}

use skel::{ReceiveSkel, ReceiveSkelBuilder};

pub use error::ReceiveError;
pub use seen::{Drops, Seen, seen};
pub use state::restore;

/// Where packets are dropped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// In the driver, before the kernel has made a packet of what came (XDP).
    Driver,
    /// At the device's ingress.
    Ingress,
    /// Nowhere: packets of this device may be for another than this host, behind a bridge for one.
    Nowhere,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Driver, Self::Ingress, Self::Nowhere];

    /// The one that is called so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Ingress => "ingress",
            Self::Nowhere => "nowhere",
        }
    }
}

/// When a class does the work on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As another task of the class.
    #[default]
    Equal,
    /// When its other tasks leave time: what nobody has time to read is not worked on either, and what a
    /// receiver gets does not fall however much comes. Not for a class where something else computes
    /// without end: its packets would wait for that.
    Last,
}

impl Order {
    fn nice(self) -> i32 {
        match self {
            Self::Equal => 0,
            Self::Last => 19,
        }
    }
}

/// What a user may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// When the class does the work.
    pub order: Order,
    /// Where packets are dropped early; none: where it costs least.
    pub early: Option<Hook>,
}

/// A device whose packets are worked on by a class. When this is dropped it is as before.
pub struct Receive {
    device: Device,
    class: PathBuf,
    order: Order,
    early: Option<Early>,
    // None: it has been put back.
    kept: Option<Kept>,
}

/// What drops early, while this lives.
struct Early {
    skel: ReceiveSkel<'static>,
    hook: Hook,
    _late: Link,
    _early: OwnedFd,
}

impl Receive {
    /// The packets of the device become the class's work; a class is the folder of its cgroup.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]; the device is as before then.
    pub fn place(device: &str, class: &Path, how: How) -> Result<Self, ReceiveError> {
        crate::attach::root().map_err(|_| ReceiveError::NotRoot)?;
        let device = Device::named(device)?;
        // Nothing takes its packets, and nothing of it is to be changed until something does.
        if !device.is_up()? {
            return Err(ReceiveError::Down(device.name));
        }
        let kept = Kept::of(&device)?;
        let mut receive = Self {
            device,
            class: class.to_owned(),
            order: how.order,
            early: None,
            kept: Some(kept),
        };
        // From here on dropping it puts back what has been done.
        receive.take()?;
        receive.early = Early::on(&receive.device, how.early)?;
        let early = receive.early.as_ref();
        let placed = Placed {
            class: class.to_owned(),
            order: how.order,
            hook: receive.hook(),
            dropped: early.map(Early::map_id).transpose()?,
            pid: std::process::id(),
        };
        if let Some(kept) = &mut receive.kept {
            kept.tell(&placed)
                .map_err(|source| receive.device.failed("write down what is set of", source))?;
        }
        Ok(receive)
    }

    /// The device is as before.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]; what could not be put back [`restore`] may put back later.
    pub fn end(mut self) -> Result<(), ReceiveError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), ReceiveError> {
        self.early = None;
        self.kept.take().map_or(Ok(()), |kept| kept.put_back())
    }

    fn take(&self) -> Result<(), ReceiveError> {
        let device = &self.device;
        // Some drivers have threads to make only while they may put packets together (veth).
        if device.napis()?.is_empty() && device.gro()? == Some(false) {
            device.set_gro(true)?;
        }
        if device.napis()?.is_empty() {
            return Err(ReceiveError::NoNapi(device.name.clone()));
        }
        device.set_threaded("1")?;
        if device.threads()?.is_empty() {
            return Err(ReceiveError::NoThreads(device.name.clone()));
        }
        self.keep().map(|_| ())
    }

    /// The device makes new threads when it goes down and comes up again. This puts those into the class that
    /// are not there; returns how many.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`].
    pub fn keep(&self) -> Result<usize, ReceiveError> {
        let mut moved = 0;
        for pid in self.device.threads()? {
            let thread = Thread::of(pid);
            if thread.is_in(&self.class) {
                continue;
            }
            let told = state::move_thread(pid, &self.class).map_err(|source| self.class(source));
            let told = told.and_then(|()| {
                state::set_nice(pid, self.order.nice()).map_err(|source| {
                    self.device
                        .failed("give an order to the threads of", source)
                })
            });
            match told {
                // The device has gone down since it was asked.
                Err(_) if !thread.is_there() => {}
                Err(error) => return Err(error),
                Ok(()) => moved += 1,
            }
        }
        Ok(moved)
    }

    fn class(&self, source: std::io::Error) -> ReceiveError {
        ReceiveError::Class {
            class: self.class.clone(),
            device: self.device.name.clone(),
            source,
        }
    }

    /// The threads that take its packets.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`].
    pub fn threads(&self) -> Result<Vec<i32>, ReceiveError> {
        self.device.threads()
    }

    /// Where packets are dropped early.
    #[must_use]
    pub fn hook(&self) -> Hook {
        self.early
            .as_ref()
            .map_or(Hook::Nowhere, |early| early.hook)
    }

    /// What was dropped early so far, by cgroup, the least id first.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`].
    pub fn drops(&self) -> Result<Vec<Drops>, ReceiveError> {
        let early = self.early.as_ref();
        early.map_or(Ok(Vec::new()), |early| {
            seen::drops(&early.skel.maps.dropped)
        })
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        // What cannot be put back now can be by `restore`: the file is still there then.
        let _ = self.put_back();
    }
}

impl Early {
    /// Nothing, where a packet may be for others than this host.
    fn on(device: &Device, wanted: Option<Hook>) -> Result<Option<Self>, ReceiveError> {
        let above = device.above()?;
        if above == Above::Others || wanted == Some(Hook::Nowhere) {
            return Ok(None);
        }
        // Kept by whoever borrows from it: some bytes for each device.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = ReceiveSkelBuilder::default()
            .open(object)
            .map_err(refused("open"))?;
        if let Some(constants) = &mut open.maps.rodata_data {
            constants.own_address = device.address()?;
        }
        let skel = open.load().map_err(refused("load"))?;
        let late = skel.progs.late.attach().map_err(refused("attach"))?;
        // On a veth there is a packet already, which the driver would have to copy for such a program. Where
        // there are VLANs the tag may be beside the packet, where only the ingress sees it.
        let in_driver = match wanted {
            _ if above == Above::Vlans => false,
            None => device.driver()? != "veth",
            Some(hook) => hook == Hook::Driver,
        };
        let in_driver =
            in_driver.then(|| attach(&skel.progs.early_xdp, device, BPF_XDP, XDP_FLAGS_DRV_MODE));
        let (hook, early) = match in_driver {
            Some(Ok(link)) => (Hook::Driver, link),
            // Another program may be there, or the driver knows of none.
            Some(Err(source)) if wanted == Some(Hook::Driver) => {
                let device = device.name.clone();
                return Err(ReceiveError::Driver { device, source });
            }
            _ => {
                let link = attach(&skel.progs.early_tc, device, BPF_TCX_INGRESS, 0);
                (Hook::Ingress, link.map_err(refused("attach"))?)
            }
        };
        Ok(Some(Self {
            skel,
            hook,
            _late: late,
            _early: early,
        }))
    }

    /// By which others find what was dropped, as long as this process lives.
    fn map_id(&self) -> Result<u32, ReceiveError> {
        let info = self.skel.maps.dropped.info();
        Ok(info.map_err(refused("number"))?.info.id)
    }
}

/// Gone when it is dropped, and with this process.
fn attach(
    program: &ProgramMut<'_>,
    device: &Device,
    at: bpf_attach_type,
    flags: u32,
) -> Result<OwnedFd, libbpf_rs::Error> {
    let options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as _,
        flags,
        ..Default::default()
    };
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the program's descriptor is open, and the options outlive the call.
    let fd =
        unsafe { bpf_link_create(program, device.index.cast_signed(), at, &raw const options) };
    if fd < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
