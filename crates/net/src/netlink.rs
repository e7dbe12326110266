// SPDX-License-Identifier: GPL-2.0
//! What the kernel is asked about devices, and told, by rtnetlink: their queueing disciplines, and how
//! large the segments are that they are given.

use std::collections::BTreeSet;
use std::io;

use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use serde::{Deserialize, Serialize};

/// A queueing discipline of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// What `tc` calls it.
    pub kind: String,
    /// Its number. The kernel gives none to those that it puts on a device by itself.
    pub handle: u16,
    /// Where it is.
    pub parent: TcHandle,
}

/// The largest segments that a device is given [bytes].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gso {
    /// Of IPv6, and of IPv4 where that has none of its own.
    pub max_size: u32,
    /// Of IPv4.
    pub ipv4_max_size: u32,
}

/// A connection to the kernel.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Errors come with a sentence, and without the request.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// All disciplines of a device.
    pub fn qdiscs(&mut self, ifindex: u32) -> io::Result<Vec<Qdisc>> {
        let index = index(ifindex)?;
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index));
        let answers = self.ask(ask, NLM_F_DUMP)?;
        let of_device = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(seen) if seen.header.index == index => {
                Some(seen)
            }
            _ => None,
        });
        let qdisc = |seen: TcMessage| {
            let kind = seen.attributes.iter().find_map(|one| match one {
                TcAttribute::Kind(kind) => Some(kind.clone()),
                _ => None,
            });
            Qdisc {
                kind: kind.unwrap_or_default(),
                handle: seen.header.handle.major,
                parent: seen.header.parent,
            }
        };
        Ok(of_device.map(qdisc).collect())
    }

    /// The numbers of the devices that have a discipline of this kind; everybody may ask.
    pub fn devices_with(&mut self, wanted: &str) -> io::Result<BTreeSet<u32>> {
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let has = |seen: &TcMessage| {
            let mut attributes = seen.attributes.iter();
            attributes.any(|one| matches!(one, TcAttribute::Kind(kind) if kind == wanted))
        };
        let answers = self.ask(ask, NLM_F_DUMP)?.into_iter();
        let index = |answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(seen) if has(&seen) => {
                u32::try_from(seen.header.index).ok()
            }
            _ => None,
        };
        Ok(answers.filter_map(index).collect())
    }

    /// The one at the root; none: the device is down, or the kernel's own, which it does not tell of.
    pub fn root(&mut self, ifindex: u32) -> io::Result<Option<Qdisc>> {
        let qdiscs = self.qdiscs(ifindex)?;
        Ok(qdiscs
            .into_iter()
            .find(|qdisc| qdisc.parent == TcHandle::ROOT))
    }

    /// Puts a discipline there, in the place of another.
    pub fn put(&mut self, ifindex: u32, parent: TcHandle, kind: &str) -> io::Result<()> {
        let mut message = TcMessage::with_index(index(ifindex)?);
        message.header.parent = parent;
        message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
        let put = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.tell(put, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Takes the discipline at the root away; the kernel puts its own there.
    pub fn take_root(&mut self, ifindex: u32) -> io::Result<()> {
        let mut message = TcMessage::with_index(index(ifindex)?);
        message.header.parent = TcHandle::ROOT;
        self.tell(RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    /// How large segments are; none of a kernel that does not tell.
    pub fn gso(&mut self, ifindex: u32) -> io::Result<Option<Gso>> {
        let mut message = LinkMessage::default();
        message.header.index = ifindex;
        let answers = self.ask(RouteNetlinkMessage::GetLink(message), NLM_F_ACK)?;
        let Some(RouteNetlinkMessage::NewLink(link)) = answers.into_iter().next() else {
            return Ok(None);
        };
        let (mut all, mut ipv4) = (None, None);
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::GsoMaxSize(size) => all = Some(size),
                LinkAttribute::GsoIpv4MaxSize(size) => ipv4 = Some(size),
                _ => {}
            }
        }
        Ok(all.map(|max_size| Gso {
            max_size,
            ipv4_max_size: ipv4.unwrap_or(max_size),
        }))
    }

    pub fn set_gso(&mut self, ifindex: u32, gso: Gso) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = ifindex;
        message.attributes = vec![
            LinkAttribute::GsoMaxSize(gso.max_size),
            LinkAttribute::GsoIpv4MaxSize(gso.ipv4_max_size),
        ];
        self.tell(RouteNetlinkMessage::NewLink(message), 0)
    }

    fn tell(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.ask(message, flags | NLM_F_ACK).map(|_| ())
    }

    /// Sends a request, and receives all answers to it.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        while !self.receive(&mut answers)? {}
        Ok(answers)
    }

    /// One datagram of answers. Is it the last?
    fn receive(&self, answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            // Messages begin at multiples of four.
            let length = (answer.header.length as usize).next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            match answer.payload {
                NetlinkPayload::Error(error) => {
                    return error.code.map_or(Ok(true), |_| Err(told(&error)));
                }
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::InnerMessage(message) => answers.push(message),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Of the header of the request, which comes back with an error.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG` of `include/uapi/linux/netlink.h`.
const SENTENCE: u16 = 1;

/// The error, in the kernel's own words if it has any.
fn told(error: &ErrorMessage) -> io::Error {
    let plain = error.to_io();
    let rest = error.header.get(HEADER..).unwrap_or_default();
    let sentence = NlasIterator::new(rest)
        .flatten()
        .find(|attribute| attribute.kind() == SENTENCE)
        .map(|attribute| String::from_utf8_lossy(attribute.value()).into_owned());
    match sentence {
        // A device that is gone is told apart by the number.
        Some(words) if plain.raw_os_error() != Some(libc::ENODEV) => {
            let words = words.trim_end_matches('\0');
            io::Error::new(plain.kind(), format!("{words} ({plain})"))
        }
        _ => plain,
    }
}

/// As the kernel has it in messages about disciplines.
fn index(ifindex: u32) -> io::Result<i32> {
    i32::try_from(ifindex).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_the_kernels_words() {
        let mut error = ErrorMessage::default();
        error.code = std::num::NonZeroI32::new(-libc::EOPNOTSUPP);
        error.header = vec![0; HEADER];
        assert_eq!(told(&error).raw_os_error(), Some(libc::EOPNOTSUPP));
        // Eight bytes with their header, a sentence of three.
        error
            .header
            .extend([8_u16, SENTENCE].map(u16::to_ne_bytes).concat());
        error.header.extend(b"no!\0");
        let words = told(&error).to_string();
        assert!(words.starts_with("no! ("), "{words}");
        error.code = std::num::NonZeroI32::new(-libc::ENODEV);
        assert_eq!(told(&error).raw_os_error(), Some(libc::ENODEV));
    }

    /// Everybody may ask, and every network namespace has a loopback device, whose index is 1.
    #[test]
    fn the_kernel_tells_of_the_loopback_device() {
        let mut netlink = Netlink::open().unwrap();
        let root = netlink.root(1).unwrap();
        assert!(root.is_none_or(|root| root.parent == TcHandle::ROOT && !root.kind.is_empty()));
        assert!(netlink.gso(1).unwrap().unwrap().max_size >= 65536);
        let gone = netlink.gso(i32::MAX as u32).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ENODEV));
    }
}
