//! A disk in virtual time: programs that read, whoever decides whose request goes to the disk next (`core/disk.h`, or what
//! others have), and the disk.

mod others;
mod readers;

use std::collections::HashMap;

use andante_core_sys::Disk;
use andante_drive::{Action, Drive, Request, Tag};

use crate::Ns;

pub use others::{Fifo, MqDeadline, Priority};
pub use readers::{Pattern, Reader, Served};

/// A request that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Its name, until it is done: more than 0.
    pub tag: Tag,
    /// The class that it is of.
    pub class: u32,
    /// Its priority, as said with `ioprio_set(2)`.
    pub priority: Priority,
    /// The request itself.
    pub request: Request,
}

/// A disk scheduler: it decides which request goes to the disk.
pub trait Queue {
    /// A request comes.
    fn arrive(&mut self, asked: &Asked, now_ns: Ns);

    /// The request that goes to the disk now; none: nothing goes at present. To be asked until then.
    fn next(&mut self, now_ns: Ns) -> Option<Tag>;

    /// A request that went is done.
    fn done(&mut self, tag: Tag, now_ns: Ns);

    /// When to ask again though nothing has come and nothing is done [ns]; none: never.
    fn ask_ns(&self) -> Option<Ns>;
}

impl Queue for Disk {
    fn arrive(&mut self, asked: &Asked, now_ns: Ns) {
        let Request {
            sector, sectors, ..
        } = asked.request;
        self.arrive(asked.tag, asked.class, sector, sectors, now_ns);
    }

    fn next(&mut self, now_ns: Ns) -> Option<Tag> {
        self.next(now_ns)
    }

    fn done(&mut self, tag: Tag, now_ns: Ns) {
        self.done(tag, now_ns);
    }

    fn ask_ns(&self) -> Option<Ns> {
        self.waits_until_ns()
    }
}

/// Requests on their way.
struct Traffic<'a> {
    readers: Vec<readers::Reading<'a>>,
    /// By tag.
    asked: HashMap<Tag, (usize, Request)>,
    last_tag: Tag,
}

/// All of them read from the disk until `end_ns`; what was begun from `from_ns` on counts. One answer for each.
pub fn read(
    queue: &mut dyn Queue,
    drive: &mut dyn Drive,
    readers: &[Reader],
    from_ns: Ns,
    end_ns: Ns,
) -> Vec<Served> {
    let mut traffic = Traffic {
        readers: (readers.iter())
            .map(|reader| readers::Reading::new(reader, from_ns))
            .collect(),
        asked: HashMap::new(),
        last_tag: 0,
    };
    let mut now_ns = 0;
    while now_ns < end_ns {
        while let Some(tag) = drive.done(now_ns) {
            queue.done(tag, now_ns);
            traffic.done(tag, now_ns);
        }
        traffic.ask(queue, now_ns);
        while let Some(tag) = queue.next(now_ns) {
            let (_, request) = traffic.asked[&tag];
            drive.take(tag, request, now_ns);
        }
        let events = [traffic.next_ns(), drive.next_ns(), queue.ask_ns()];
        let next_ns = events.into_iter().flatten().min().unwrap_or(end_ns);
        now_ns = next_ns.max(now_ns + 1);
    }
    let served = |reading: readers::Reading<'_>| reading.served(end_ns);
    traffic.readers.into_iter().map(served).collect()
}

impl Traffic<'_> {
    /// When somebody asks next [ns].
    fn next_ns(&self) -> Option<Ns> {
        let all = self.readers.iter().filter_map(readers::Reading::next_ns);
        all.min()
    }

    /// Has everybody ask who would by now.
    fn ask(&mut self, queue: &mut dyn Queue, now_ns: Ns) {
        for (number, reading) in self.readers.iter_mut().enumerate() {
            while let Some(request) = reading.ask(now_ns) {
                self.last_tag = free_tag(&self.asked, self.last_tag);
                self.asked.insert(self.last_tag, (number, request));
                let asked = Asked {
                    tag: self.last_tag,
                    class: reading.class(),
                    priority: reading.priority(),
                    request,
                };
                queue.arrive(&asked, now_ns);
            }
        }
    }

    fn done(&mut self, tag: Tag, now_ns: Ns) {
        let Some((number, request)) = self.asked.remove(&tag) else {
            unreachable!("it is done once, and after it was asked for")
        };
        self.readers[number].done(request, now_ns);
    }
}

/// A tag that nothing has, behind the last one.
fn free_tag(asked: &HashMap<Tag, (usize, Request)>, last: Tag) -> Tag {
    let after = |tag: Tag| tag % (Disk::REQUESTS - 1) + 1;
    let mut tag = after(last);
    while asked.contains_key(&tag) {
        tag = after(tag);
    }
    tag
}

/// A request to read.
pub(crate) fn to_read(sector: u64, bytes: u32) -> Request {
    Request {
        action: Action::Read,
        sector,
        sectors: (bytes / andante_drive::SECTOR as u32).max(1),
    }
}
