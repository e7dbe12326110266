// SPDX-License-Identifier: GPL-2.0
//! `/dev/ublk-control`: makes, starts, stops and lists devices. Each command is one of a ring's, with 128-byte entries.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use crate::abi::{self, ControlCommand, DeviceInfo, Params};
use crate::error::DiskError;

const CONTROL: &str = "/dev/ublk-control";

/// The driver.
pub struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    features: u64,
}

impl Control {
    /// Opens it, and asks what it can do.
    ///
    /// # Errors
    /// The caller is not root, the kernel has no ublk or an old one, or no rings.
    pub fn open() -> Result<Self, DiskError> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DiskError::NoUblk,
            io::ErrorKind::PermissionDenied => DiskError::NotRoot,
            _ => DiskError::Io {
                what: "open /dev/ublk-control".into(),
                source: error,
            },
        })?;
        // One command at a time.
        let ring = IoUring::builder().build(1).map_err(DiskError::NoRings)?;
        let mut control = Self {
            file,
            ring,
            features: 0,
        };
        let mut features = 0_u64;
        let asked = control.command(abi::GET_FEATURES, 0, Some(&mut features), 0);
        control.features = match asked {
            Ok(()) => features,
            // Older than Linux 6.5.
            Err(_) => 0,
        };
        Ok(control)
    }

    /// Whether the driver can all of this.
    #[must_use]
    pub fn has(&self, features: u64) -> bool {
        self.features & features == features
    }

    /// A command about a device, with a value that it reads or writes, and a number.
    fn command<T>(
        &mut self,
        command: u32,
        device: u32,
        value: Option<&mut T>,
        data: u64,
    ) -> io::Result<()> {
        let len = value.as_ref().map_or(0, |_| size_of::<T>());
        let head = ControlCommand {
            device,
            queue: abi::NO_QUEUE,
            len: len.try_into().expect("the structures are small"),
            addr: value.map_or(0, |value| std::ptr::from_mut(value) as u64),
            data,
            ..Default::default()
        };
        let mut bytes = [0; 80];
        // SAFETY: a plain structure without padding, of the size that is copied.
        let head: [u8; size_of::<ControlCommand>()] = unsafe { std::mem::transmute(head) };
        bytes[..head.len()].copy_from_slice(&head);
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(fd, command).cmd(bytes).build();
        // SAFETY: the value is borrowed until the command is done, which is waited for below.
        unsafe { self.ring.submission().push(&entry) }.expect("the ring is empty");
        loop {
            match self.ring.submit_and_wait(1) {
                // A signal; the command goes on.
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            if let Some(answer) = self.ring.completion().next() {
                return match answer.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }

    fn plain(&mut self, command: u32, device: u32, data: u64) -> io::Result<()> {
        self.command::<u8>(command, device, None, data)
    }

    /// Makes a device, which has no block device yet; the kernel fills in what it has chosen.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&mut self, info: &mut DeviceInfo) -> io::Result<()> {
        self.command(abi::ADD_DEV, info.device, Some(info), 0)
    }

    /// The kernel's knowledge of it.
    ///
    /// # Errors
    /// There is none of that number.
    pub fn info(&mut self, device: u32) -> io::Result<DeviceInfo> {
        let mut info = DeviceInfo::default();
        self.command(abi::GET_DEV_INFO, device, Some(&mut info), 0)?;
        Ok(info)
    }

    /// The shape that its block device is to have.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_params(&mut self, device: u32, mut params: Params) -> io::Result<()> {
        params.len = size_of::<Params>() as u32;
        self.command(abi::SET_PARAMS, device, Some(&mut params), 0)
    }

    /// The shape of its block device.
    ///
    /// # Errors
    /// The kernel's.
    pub fn params(&mut self, device: u32) -> io::Result<Params> {
        let mut params = Params {
            len: size_of::<Params>() as u32,
            ..Default::default()
        };
        self.command(abi::GET_PARAMS, device, Some(&mut params), 0)?;
        Ok(params)
    }

    /// Makes its block device; returns when the server of this number has fetched on all tags, which another thread does.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(&mut self, device: u32, server: u32) -> io::Result<()> {
        self.plain(abi::START_DEV, device, server.into())
    }

    /// Takes its block device away. Dirty pages of it are written first, and requests are waited for.
    ///
    /// # Errors
    /// EBUSY if somebody has it open, and the kernel knows to refuse then.
    pub fn stop(&mut self, device: u32, force: bool) -> io::Result<()> {
        match self.has(abi::SAFE_STOP) && !force {
            true => self.plain(abi::TRY_STOP_DEV, device, 0),
            false => self.plain(abi::STOP_DEV, device, 0),
        }
    }

    /// Removes it when its server, and everybody who has its block device open, have closed it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn delete(&mut self, device: u32) -> io::Result<()> {
        self.plain(abi::DEL_DEV_ASYNC, device, 0)
    }

    /// A new server begins to take over.
    ///
    /// # Errors
    /// EBUSY as long as the former one is not gone.
    pub fn start_recovery(&mut self, device: u32) -> io::Result<()> {
        self.plain(abi::START_USER_RECOVERY, device, 0)
    }

    /// It has taken over: requests go on. Returns when the new server has fetched on all tags.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end_recovery(&mut self, device: u32, server: u32) -> io::Result<()> {
        self.plain(abi::END_USER_RECOVERY, device, server.into())
    }
}

/// The numbers of all ublk devices, whoever has made them, the least first.
#[must_use]
pub fn numbers() -> Vec<u32> {
    let folder = std::fs::read_dir("/sys/class/ublk-char");
    let names = folder.into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("ublkc")?.parse().ok()
    };
    let mut numbers: Vec<u32> = names.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}
