// SPDX-License-Identifier: GPL-2.0
//! What takes a device's packets, as the kernel tells it by netlink: the family `netdev`, Linux 6.8. The
//! threads' names would not do: devices of two namespaces may have the same.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID` and `_NAME` of linux/genetlink.h.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `NETDEV_CMD_NAPI_GET`, `NETDEV_A_NAPI_IFINDEX`, `_ID` and `_PID` of linux/netdev.h.
const NAPI_GET: u8 = 11;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_PID: u16 = 4;

/// Of a netlink message, and of a generic one behind that [bytes].
const HEADER: usize = 16;
const GENERIC: usize = 4;
/// The kernel answers in pieces of no more than this.
const ANSWER: usize = 32768;

/// One of a device's, usually one for each queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Napi {
    pub(super) id: u32,
    /// The thread that runs it, if one does.
    pub(super) thread: Option<i32>,
}

/// Those of a device, the least id first.
pub(super) fn of(ifindex: u32) -> io::Result<Vec<Napi>> {
    let socket = connected()?;
    let mut name = b"netdev\0".to_vec();
    let mut family = None;
    ask(
        &socket,
        CONTROL,
        GET_FAMILY,
        0,
        (FAMILY_NAME, &mut name),
        |attributes| {
            family = number(attributes, FAMILY_ID);
        },
    )?;
    let family = family.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
    let mut all = Vec::new();
    let mut index = ifindex.to_ne_bytes().to_vec();
    let dump = u16::try_from(libc::NLM_F_DUMP).expect("a flag");
    ask(
        &socket,
        family as u16,
        NAPI_GET,
        dump,
        (NAPI_IFINDEX, &mut index),
        |attributes| {
            if let Some(id) = number(attributes, NAPI_ID) {
                let thread = number(attributes, NAPI_PID).map(u32::cast_signed);
                all.push(Napi { id, thread });
            }
        },
    )?;
    all.sort_by_key(|napi| napi.id);
    Ok(all)
}

fn connected() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_GENERIC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Asks with one attribute, and hands over the attributes of each answer.
fn ask(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    flags: u16,
    (kind, value): (u16, &mut Vec<u8>),
    mut answered: impl FnMut(&[u8]),
) -> io::Result<()> {
    let attribute = 4 + value.len();
    value.resize(value.len().next_multiple_of(4), 0);
    let length = HEADER + GENERIC + 4 + value.len();
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_ACK).expect("flags") | flags;
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend((attribute as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend_from_slice(value);
    // SAFETY: the message is there for as long as the call takes.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = vec![0; ANSWER];
    loop {
        // SAFETY: the kernel writes no more than there is room for.
        let got = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), ANSWER, 0) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        if read_messages(&answer[..got], &mut answered)? {
            return Ok(());
        }
    }
}

/// Is it all?
fn read_messages(mut messages: &[u8], answered: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    while messages.len() >= HEADER {
        let length = four(messages) as usize;
        if !(HEADER..=messages.len()).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let body = &messages[HEADER..length];
        match i32::from(two(&messages[4..])) {
            // With the number of an error, or 0: done.
            libc::NLMSG_ERROR | libc::NLMSG_DONE if body.len() >= 4 => {
                return match four(body).cast_signed() {
                    0 => Ok(true),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
            }
            _ if body.len() >= GENERIC => answered(&body[GENERIC..]),
            _ => {}
        }
        messages = &messages[length.next_multiple_of(4).min(messages.len())..];
    }
    Ok(false)
}

/// The attribute's value, a number of two or four bytes.
fn number(mut attributes: &[u8], wanted: u16) -> Option<u32> {
    while attributes.len() >= 4 {
        let (length, kind) = (usize::from(two(attributes)), two(&attributes[2..]));
        if !(4..=attributes.len()).contains(&length) {
            return None;
        }
        let value = &attributes[4..length];
        match value.len() {
            2 if kind == wanted => return Some(two(value).into()),
            4 if kind == wanted => return Some(four(value)),
            _ => {}
        }
        attributes = &attributes[length.next_multiple_of(4).min(attributes.len())..];
    }
    None
}

fn two(bytes: &[u8]) -> u16 {
    u16::from_ne_bytes([bytes[0], bytes[1]])
}

fn four(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn answers_are_read_to_their_end() {
        let mut body = vec![NAPI_GET, 1, 0, 0];
        body.extend(attribute(NAPI_IFINDEX, &7u32.to_ne_bytes()));
        body.extend(attribute(9, b"odd"));
        body.extend(attribute(NAPI_PID, &42u32.to_ne_bytes()));
        let mut all = message(0x20, &body);
        all.extend(message(0x20, &body));
        let mut pids = Vec::new();
        let mut note = |attributes: &[u8]| pids.push(number(attributes, NAPI_PID));
        assert!(!read_messages(&all, &mut note).unwrap());
        let done = message(libc::NLMSG_DONE as u16, &0i32.to_ne_bytes());
        assert!(read_messages(&done, &mut note).unwrap());
        let error = message(libc::NLMSG_ERROR as u16, &(-libc::EPERM).to_ne_bytes());
        let error = read_messages(&error, &mut note).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert_eq!(pids, [Some(42), Some(42)]);
    }

    #[test]
    fn what_is_cut_off_is_no_answer() {
        let mut cut = message(0x20, &[0; 8]);
        cut[0] = 200;
        assert!(read_messages(&cut, &mut |_: &[u8]| ()).is_err());
        let mut value = attribute(NAPI_PID, &1u32.to_ne_bytes());
        value[0] = 90;
        assert_eq!(number(&value, NAPI_PID), None);
    }

    /// The loopback device has none, on any kernel that can be asked.
    #[test]
    fn the_kernel_is_asked() {
        match of(1) {
            Ok(napis) => assert!(napis.is_empty(), "{napis:?}"),
            // A kernel, or a container's, that does not know the family.
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
