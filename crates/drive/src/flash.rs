//! Channels of flash.

use std::collections::VecDeque;

use crate::{Action, Drive, NS_PER_S, Ns, Request, SECTOR, Tag};

/// The figures of flash and its channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flash {
    /// Chips that work side by side, more than 0. The disk's bytes are dealt out to them in stripes.
    pub channels: u32,
    /// A stripe [sectors], more than 0.
    pub stripe: u32,
    /// Until the first byte of a read [ns].
    pub read_ns: Ns,
    /// Until the first byte of a write is in [ns].
    pub write_ns: Ns,
    /// Of each channel [bytes/s], more than 0.
    pub rate: u64,
    /// A block, which a channel erases when so much has been written to it [bytes], more than 0.
    pub block: u64,
    /// For so long it does nothing else [ns].
    pub erase_ns: Ns,
}

impl Flash {
    /// A disk as they are built into small computers: four channels of 100 MB/s, 80 µs until the first byte of a read,
    /// blocks of 4 MiB erased in 4 ms.
    pub fn small() -> Self {
        Self {
            channels: 4,
            stripe: 256,
            read_ns: 80_000,
            write_ns: 200_000,
            rate: 100_000_000,
            block: 4 << 20,
            erase_ns: 4_000_000,
        }
    }

    /// The disk at rest.
    pub fn power(self) -> Powered {
        Powered {
            channels: vec![Channel::default(); self.channels.max(1) as usize],
            flash: self,
            left: Vec::new(),
            done: Vec::new(),
        }
    }

    fn takes_ns(&self, part: &Part) -> Ns {
        let first_ns = match part.action {
            Action::Read => self.read_ns,
            Action::Write => self.write_ns,
        };
        first_ns + (part.bytes as f64 * NS_PER_S / self.rate as f64) as Ns
    }

    /// The parts of a request, and their channels.
    fn parts(&self, tag: Tag, request: Request) -> impl Iterator<Item = (usize, Part)> + use<> {
        let stripe = u64::from(self.stripe.max(1));
        let channels = u64::from(self.channels.max(1));
        let mut at = request.sector;
        std::iter::from_fn(move || {
            let until = ((at / stripe + 1) * stripe).min(request.end());
            let part = Part {
                tag,
                action: request.action,
                bytes: (until - at) * SECTOR,
            };
            let channel = (at / stripe % channels) as usize;
            (at < request.end()).then(|| {
                at = until;
                (channel, part)
            })
        })
    }
}

/// A request's part on one channel.
#[derive(Debug, Clone, Copy)]
struct Part {
    tag: Tag,
    action: Action,
    bytes: u64,
}

#[derive(Debug, Clone, Default)]
struct Channel {
    waiting: VecDeque<Part>,
    /// And when it is done [ns].
    serving: Option<(Part, Ns)>,
    /// Since it erased last [bytes].
    written: u64,
    /// It can begin nothing before [ns].
    free_ns: Ns,
}

/// A disk that is in use.
#[derive(Debug, Clone)]
pub struct Powered {
    flash: Flash,
    channels: Vec<Channel>,
    /// Of each request, how many parts are left.
    left: Vec<(Tag, u32)>,
    /// Those without any left, and when they had none [ns].
    done: Vec<(Ns, Tag)>,
}

impl Powered {
    fn begin(&mut self, at: usize, now_ns: Ns) {
        let channel = &mut self.channels[at];
        if channel.serving.is_some() {
            return;
        }
        if let Some(part) = channel.waiting.pop_front() {
            let begin_ns = now_ns.max(channel.free_ns);
            channel.serving = Some((part, begin_ns + self.flash.takes_ns(&part)));
        }
    }

    /// The part that the channel serves is done, at that time.
    fn end(&mut self, at: usize, part: Part, done_ns: Ns) {
        let channel = &mut self.channels[at];
        channel.serving = None;
        channel.free_ns = done_ns;
        if part.action == Action::Write {
            channel.written += part.bytes;
            while channel.written >= self.flash.block.max(1) {
                channel.written -= self.flash.block.max(1);
                channel.free_ns += self.flash.erase_ns;
            }
        }
        self.begin(at, done_ns);
        if let Some(found) = self.left.iter().position(|&(tag, _)| tag == part.tag) {
            self.left[found].1 -= 1;
            if self.left[found].1 == 0 {
                self.left.swap_remove(found);
                self.done.push((done_ns, part.tag));
            }
        }
    }

    /// The channel whose part is done next.
    fn first(&self) -> Option<(usize, Part, Ns)> {
        let serving = |(at, channel): (usize, &Channel)| {
            let (part, done_ns) = channel.serving?;
            Some((at, part, done_ns))
        };
        let all = self.channels.iter().enumerate().filter_map(serving);
        all.min_by_key(|&(at, _, done_ns)| (done_ns, at))
    }

    /// All that happens until then.
    fn run(&mut self, now_ns: Ns) {
        while let Some((at, part, done_ns)) = self.first().filter(|&(.., ns)| ns <= now_ns) {
            self.end(at, part, done_ns);
        }
    }
}

impl Drive for Powered {
    fn take(&mut self, tag: Tag, request: Request, now_ns: Ns) {
        self.run(now_ns);
        let mut parts = 0;
        for (at, part) in self.flash.parts(tag, request) {
            self.channels[at].waiting.push_back(part);
            parts += 1;
            self.begin(at, now_ns);
        }
        self.left.push((tag, parts));
    }

    fn next_ns(&self) -> Option<Ns> {
        let done = self.done.iter().map(|&(done_ns, _)| done_ns).min();
        done.or_else(|| self.first().map(|(.., done_ns)| done_ns))
    }

    fn done(&mut self, now_ns: Ns) -> Option<Tag> {
        self.run(now_ns);
        let first = (0..self.done.len()).min_by_key(|&at| self.done[at]);
        let at = first.filter(|&at| self.done[at].0 <= now_ns)?;
        Some(self.done.remove(at).1)
    }
}
