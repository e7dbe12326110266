// SPDX-License-Identifier: GPL-2.0
//! What there is to know and to set of a device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ReceiveError, napi};

/// `ETHTOOL_GDRVINFO`, `ETHTOOL_GGRO` and `ETHTOOL_SGRO` of linux/ethtool.h.
const GET_DRIVER: u32 = 0x03;
const GET_GRO: u32 = 0x2b;
const SET_GRO: u32 = 0x2c;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`, of which only the driver's name matters.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// What stands on a device: those get packets of it that are not for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Above {
    Nothing,
    Vlans,
    /// A bridge, a bond, one with an address or a namespace of its own.
    Others,
}

/// A device of this network namespace.
pub(super) struct Device {
    pub(super) name: String,
    pub(super) index: u32,
}

impl Device {
    pub(super) fn named(name: &str) -> Result<Self, ReceiveError> {
        let none = || ReceiveError::NoDevice(name.to_owned());
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            return Err(none());
        }
        let index = fs::read_to_string(folder(name).join("ifindex")).map_err(|_| none())?;
        Ok(Self {
            name: name.to_owned(),
            index: index.trim().parse().map_err(|_| none())?,
        })
    }

    pub(super) fn failed(&self, step: &'static str, source: io::Error) -> ReceiveError {
        ReceiveError::System {
            step,
            device: self.name.clone(),
            source,
        }
    }

    fn read(&self, file: &str) -> Result<String, ReceiveError> {
        fs::read_to_string(folder(&self.name).join(file))
            .map(|text| text.trim().to_owned())
            .map_err(|source| self.failed("read what is set of", source))
    }

    /// Are its packets taken by threads? As the kernel writes it.
    pub(super) fn threaded(&self) -> Result<String, ReceiveError> {
        self.read("threaded")
    }

    pub(super) fn set_threaded(&self, value: &str) -> Result<(), ReceiveError> {
        fs::write(folder(&self.name).join("threaded"), value)
            .map_err(|source| self.failed("make threads of", source))
    }

    pub(super) fn is_up(&self) -> Result<bool, ReceiveError> {
        let flags = self.read("flags")?;
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
        Ok(flags.unwrap_or(0) & libc::IFF_UP.cast_unsigned() != 0)
    }

    /// What takes its packets.
    pub(super) fn napis(&self) -> Result<Vec<napi::Napi>, ReceiveError> {
        napi::of(self.index).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV) => ReceiveError::NoDevice(self.name.clone()),
            // There is no such family, or no such question.
            Some(libc::ENOENT | libc::EOPNOTSUPP) => ReceiveError::OldKernel(self.name.clone()),
            _ => self.failed("ask for what takes the packets of", source),
        })
    }

    pub(super) fn threads(&self) -> Result<Vec<i32>, ReceiveError> {
        Ok(self
            .napis()?
            .iter()
            .filter_map(|napi| napi.thread)
            .collect())
    }

    pub(super) fn address(&self) -> Result<[u8; 6], ReceiveError> {
        let text = self.read("address")?;
        let bytes: Vec<u8> = text
            .split(':')
            .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect();
        // A device without one has no Ethernet, and no packet of it is looked at.
        Ok(bytes.try_into().unwrap_or_default())
    }

    pub(super) fn above(&self) -> Result<Above, ReceiveError> {
        let mut above = Above::Nothing;
        let entries = fs::read_dir(folder(&self.name))
            .map_err(|source| self.failed("read what is set of", source))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "master" {
                return Ok(Above::Others);
            }
            if let Some(upper) = name.strip_prefix("upper_") {
                let told = fs::read_to_string(folder(upper).join("uevent")).unwrap_or_default();
                if !told.lines().any(|line| line == "DEVTYPE=vlan") {
                    return Ok(Above::Others);
                }
                above = Above::Vlans;
            }
        }
        Ok(above)
    }

    /// Its driver's name; nothing, of one that does not tell.
    pub(super) fn driver(&self) -> Result<String, ReceiveError> {
        let mut info = DriverInfo {
            command: GET_DRIVER,
            driver: [0; 32],
            rest: [0; 160],
        };
        if self.ask((&raw mut info).cast())?.is_none() {
            return Ok(String::new());
        }
        let name: Vec<u8> = info
            .driver
            .into_iter()
            .take_while(|&byte| byte != 0)
            .collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Are its packets put together before they are worked on? None: it cannot be asked.
    pub(super) fn gro(&self) -> Result<Option<bool>, ReceiveError> {
        let mut value = Value {
            command: GET_GRO,
            data: 0,
        };
        let asked = self.ask((&raw mut value).cast())?;
        Ok(asked.map(|()| value.data != 0))
    }

    pub(super) fn set_gro(&self, on: bool) -> Result<(), ReceiveError> {
        let mut value = Value {
            command: SET_GRO,
            data: on.into(),
        };
        self.ask((&raw mut value).cast()).map(|_| ())
    }

    /// `SIOCETHTOOL` with a structure of that interface's; None: this device does not know the question.
    fn ask(&self, question: *mut libc::c_char) -> Result<Option<()>, ReceiveError> {
        // SAFETY: all of an ifreq may be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request
            .ifr_name
            .iter_mut()
            .zip(self.name.bytes())
            .take(libc::IFNAMSIZ - 1)
        {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = question;
        // SAFETY: a socket of our own, closed below; the question is a whole structure of its kind.
        let status = unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(self.failed("ask", io::Error::last_os_error()));
            }
            let status = libc::ioctl(socket, libc::SIOCETHTOOL as _, &raw mut request);
            let status = if status < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            };
            libc::close(socket);
            status
        };
        match status {
            Ok(()) => Ok(Some(())),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(self.failed("ask", error)),
        }
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}
