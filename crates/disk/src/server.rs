// SPDX-License-Identifier: GPL-2.0
//! The thread that serves a device.
//!
//! ```text
//!   kernel ── fetched ──► Order::arrive                          ┌── answered ◄── ring ◄── Backing::serve
//!     ▲                        │                                 ▼
//!     └──── commit ◄─── Order::done ◄── (Backing::completed) ◄── served        Order::next ──► Backing::serve
//! ```
//!
//! A request's memory is the kernel's own: it is in the ring's table of buffers under its tag before the request is fetched,
//! so that nothing is copied, and nothing has to be allocated while memory is short. Nothing here outlives the
//! process that would be missed: a request is answered when the backing has, and those that are not come to the next server.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode};
use nix::time::{ClockId, clock_gettime};

use crate::abi::{self, Descriptor, IoCommand};
use crate::backing::Backing;
use crate::classes::Classes;
use crate::counts::Counts;
use crate::order::{Order, Request, Tag, What};

/// Files that the ring knows.
const CHAR_DEVICE: Fixed = Fixed(0);
const BACKING: Fixed = Fixed(1);

/// What an answer is to, above the tag.
const FETCHED: u64 = 0;
const SERVED: u64 = 1 << 16;

/// Where a request is.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// With the kernel: the tag is not used, or not fetched yet.
    Free,
    /// With the order.
    Waits(Request),
    /// With the backing, until it has answered and holds it no longer.
    Served {
        request: Request,
        answer: Option<i32>,
        held: bool,
    },
}

/// The memory in which the kernel describes requests.
pub(crate) struct Descriptors {
    at: NonNull<Descriptor>,
    bytes: usize,
}

// SAFETY: only the thread that has it reads it.
unsafe impl Send for Descriptors {}

impl Descriptors {
    pub(crate) fn map(device: &File, tags: u16) -> io::Result<Self> {
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
        let bytes = usize::from(tags) * size_of::<Descriptor>();
        let bytes = bytes.next_multiple_of(page as usize);
        // SAFETY: a new mapping, of which nothing else knows.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                device.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, bytes })
    }

    /// The kernel has handed this one over, and does not write to it until it is answered.
    fn of(&self, tag: u16) -> Descriptor {
        // SAFETY: tags are fewer than what is mapped has room for.
        unsafe { self.at.add(usize::from(tag)).read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

/// One device's queue, on the thread that serves it.
pub(crate) struct Server<B, O, C> {
    pub backing: B,
    pub order: O,
    pub classes: C,
    pub counts: Arc<Counts>,
    ring: IoUring,
    descriptors: Descriptors,
    slots: Vec<Slot>,
    /// Answers of the ring, as they are read.
    answers: Vec<(u64, i32)>,
    /// Tags that the kernel has taken back for good.
    ended: u16,
}

impl<B: Backing, O: Order, C: Classes> Server<B, O, C> {
    /// On the thread that will run it.
    pub fn new(
        backing: B,
        order: O,
        classes: C,
        counts: Arc<Counts>,
        device: &OwnedFd,
        descriptors: Descriptors,
        tags: u16,
    ) -> io::Result<Self> {
        // Of each tag there is one entry at a time: the kernel's or the backing's.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(u32::from(tags).next_power_of_two())?;
        let submitter = ring.submitter();
        submitter.register_files(&[device.as_raw_fd(), backing.file().as_raw_fd()])?;
        submitter.register_buffers_sparse(tags.into())?;
        Ok(Self {
            backing,
            order,
            classes,
            counts,
            ring,
            descriptors,
            slots: vec![Slot::Free; tags.into()],
            // Of each tag there may be one of either kind.
            answers: Vec::with_capacity(2 * usize::from(tags)),
            ended: 0,
        })
    }

    /// Asks for a request on each tag; the device can be started then.
    pub fn fetch_all(&mut self) -> io::Result<()> {
        for tag in 0..self.slots.len() as u16 {
            self.push(to_kernel(abi::FETCH_REQ, tag, 0));
        }
        self.ring.submit()?;
        // A wish that is refused is answered at once, and the device could never be started.
        let refused = self.ring.completion().find(|answer| answer.result() < 0);
        refused.map_or(Ok(()), |answer| {
            Err(io::Error::from_raw_os_error(-answer.result()))
        })
    }

    /// Serves until the device is stopped.
    pub fn run(&mut self) -> io::Result<()> {
        while usize::from(self.ended) < self.slots.len() {
            self.submit_and_wait()?;
            let now_ns = now_ns()?;
            self.read_answers(now_ns);
            while let Some(tag) = self.backing.completed(now_ns) {
                if let Slot::Served { held, .. } = &mut self.slots[usize::from(tag.0)] {
                    *held = false;
                }
                self.finish(tag, now_ns);
            }
            while let Some(tag) = self.order.next(now_ns) {
                self.serve(tag, now_ns);
            }
        }
        self.flush();
        // The kernel takes a ring down some time after it is closed, and would have the backing open until then.
        self.ring.submitter().unregister_files()
    }

    /// What was written before the disk was taken off is safe then, as of one that is pulled out after it was asked for.
    fn flush(&self) {
        let request = Request {
            tag: Tag(0),
            class: 0,
            ioprio: 0,
            what: What::Flush,
            fua: false,
            keep_place: false,
            sector: 0,
            sectors: 0,
        };
        let done = nix::unistd::fdatasync(self.backing.file());
        self.counts
            .count(&request, done.map_or_else(|errno| -(errno as i32), |()| 0));
    }

    fn submit_and_wait(&mut self) -> io::Result<()> {
        let again = [self.order.ask_again_ns(), self.backing.complete_at_ns()];
        let done = match again.into_iter().flatten().min() {
            None => self.ring.submit_and_wait(1),
            Some(at_ns) => {
                let at = Timespec::new()
                    .sec(at_ns / 1_000_000_000)
                    .nsec((at_ns % 1_000_000_000) as u32);
                let args = SubmitArgs::new().timespec(&at);
                let submitter = self.ring.submitter();
                submitter.submit_with_args_and_flags(1, &args, EnterFlags::ABS_TIMER)
            }
        };
        match done {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn read_answers(&mut self, now_ns: u64) {
        let mut answers = std::mem::take(&mut self.answers);
        let completed = self.ring.completion();
        answers.extend(completed.map(|one| (one.user_data(), one.result())));
        for (to, result) in answers.drain(..) {
            let tag = to as u16;
            match to & !u64::from(u16::MAX) {
                FETCHED => self.fetched(tag, result, now_ns),
                _ => self.answered(Tag(tag), result, now_ns),
            }
        }
        self.answers = answers;
    }

    fn fetched(&mut self, tag: u16, result: i32, now_ns: u64) {
        if result < 0 {
            // ENODEV: the device is stopped. Whatever else it is, the tag is of no use any more.
            self.ended += 1;
            return;
        }
        let request = self.request(tag);
        let Some(request) = request else {
            self.push(to_kernel(abi::COMMIT_AND_FETCH_REQ, tag, -libc::EOPNOTSUPP));
            return;
        };
        self.slots[usize::from(tag)] = Slot::Waits(request);
        self.order.arrive(&request, now_ns);
    }

    /// None: nobody here knows how to do that.
    fn request(&self, tag: u16) -> Option<Request> {
        let found = self.descriptors.of(tag);
        let what = match found.op_flags as u8 {
            abi::OP_READ => What::Read,
            abi::OP_WRITE => What::Write,
            abi::OP_FLUSH => What::Flush,
            abi::OP_DISCARD => What::Discard,
            abi::OP_WRITE_ZEROES => What::Zeroes,
            _ => return None,
        };
        let (class, ioprio) = self.classes.of(Tag(tag));
        let (sector, sectors) = match what {
            What::Flush => (0, 0),
            _ => (found.sector, found.sectors),
        };
        Some(Request {
            tag: Tag(tag),
            class,
            ioprio,
            what,
            fua: found.op_flags & abi::IO_FUA != 0,
            keep_place: found.op_flags & abi::IO_NOUNMAP != 0,
            sector,
            sectors,
        })
    }

    fn serve(&mut self, tag: Tag, now_ns: u64) {
        let slot = &mut self.slots[usize::from(tag.0)];
        let Slot::Waits(request) = *slot else {
            panic!("the order has named {tag:?}, which does not wait");
        };
        let service = self.backing.serve(&request, BACKING, now_ns);
        let answer = match &service.entry {
            Some(_) => None,
            None => Some(request.bytes() as i32),
        };
        *slot = Slot::Served {
            request,
            answer,
            held: service.held,
        };
        match service.entry {
            Some(entry) => self.push(entry.user_data(SERVED | u64::from(tag.0))),
            None => self.finish(tag, now_ns),
        }
    }

    fn answered(&mut self, tag: Tag, result: i32, now_ns: u64) {
        if let Slot::Served { answer, .. } = &mut self.slots[usize::from(tag.0)] {
            *answer = Some(result);
        }
        self.finish(tag, now_ns);
    }

    /// If it is answered and held no longer.
    fn finish(&mut self, tag: Tag, now_ns: u64) {
        let slot = &mut self.slots[usize::from(tag.0)];
        let Slot::Served {
            request,
            answer: Some(answer),
            held: false,
        } = *slot
        else {
            return;
        };
        *slot = Slot::Free;
        // Nothing done of a read or write, and no reason: the file has become shorter.
        let result = match answer {
            0 if request.sectors > 0 && matches!(request.what, What::Read | What::Write) => {
                -libc::EIO
            }
            answer => answer,
        };
        self.counts.count(&request, result);
        self.order.done(tag, now_ns);
        self.push(to_kernel(abi::COMMIT_AND_FETCH_REQ, tag.0, result));
    }

    fn push(&mut self, entry: Entry) {
        // SAFETY: what an entry refers to are files and buffers of the ring's own table, or memory of the kernel's.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            // It is full, and the kernel takes all of it. If it cannot now it can later.
            let _ = self.ring.submit();
        }
    }
}

/// An answer, and the wish for the next request on that tag, whose memory is to be the ring's buffer of the same number.
fn to_kernel(command: u32, tag: u16, result: i32) -> Entry {
    let io = IoCommand {
        queue: 0,
        tag,
        result,
        addr: 0,
    };
    // SAFETY: a plain structure without padding.
    let bytes: [u8; size_of::<IoCommand>()] = unsafe { std::mem::transmute(io) };
    opcode::UringCmd16::new(CHAR_DEVICE, command)
        .cmd(bytes)
        .addr(Some(tag.into()))
        .build()
        .flags(Flags::empty())
        .user_data(FETCHED | u64::from(tag))
}

/// CLOCK_MONOTONIC, by which rings wait as well.
pub(crate) fn now_ns() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
