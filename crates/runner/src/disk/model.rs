//! The process that serves a model of a disk as a block device.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use andante_disk::{
    Attached, Backing, DiskError, Fifo, NoClasses, Request, SECTOR, Service, Shape, Tag, Wanted,
    What, attach, lock_memory,
};
use andante_drive::{Action, Drive};
use andante_job::stop;
use andante_programs::clock;
use andante_scenario::Disk;
use io_uring::opcode::{ReadFixed, WriteFixed};
use io_uring::types::Fixed;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;

/// A process that waits for a signal is woken by it.
const LONG_NS: u64 = 3_600_000_000_000;
/// Of all disks here: what the page cache takes [bytes].
const PHYSICAL_BLOCK: u32 = 4096;

/// Serves the disk that `order` describes (JSON) until SIGTERM, once it has said by which path, or why it does not; returns
/// the exit status.
pub fn serve_main(order: &str) -> i32 {
    let served = serde_json::from_str(order)
        .map_err(|error| format!("this is no disk of the laboratory: {error}"))
        .and_then(|disk: Disk| serve(&disk).map_err(|error| error.to_string()));
    match served {
        Ok(()) => 0,
        Err(message) => {
            println!("{message}");
            1
        }
    }
}

fn serve(disk: &Disk) -> Result<(), DiskError> {
    let failed = |what: &str, source| DiskError::Io {
        what: what.to_owned(),
        source,
    };
    stop::on(&[Signal::SIGTERM]).map_err(|e| failed("set up signals", e.into()))?;
    lock_memory().map_err(|e| failed("keep the model of a disk in memory", e))?;
    let backing = Model::make(disk).map_err(|e| failed("have memory for a disk", e))?;
    let wanted = Wanted { tags: disk.tags };
    let mut attached: Attached = attach(backing, Fifo::new(disk.tags), NoClasses, wanted)?;
    println!("{}", attached.path());
    while !stop::requested() {
        clock::sleep_until(clock::now_ns() + LONG_NS);
    }
    attached.stop()?;
    attached.end()
}

/// A disk that takes its time, and keeps in memory what was written to it: all else is zeros.
struct Model {
    drive: Box<dyn Drive + Send>,
    /// As long as the disk, and of as many pages as have been written.
    content: File,
    shape: Shape,
}

impl Model {
    fn make(disk: &Disk) -> std::io::Result<Self> {
        let content: File = memfd_create(c"disk", MFdFlags::MFD_CLOEXEC)?.into();
        content.set_len(disk.bytes)?;
        Ok(Self {
            drive: disk.model().at_rest(),
            content,
            shape: Shape {
                sectors: disk.bytes / SECTOR,
                logical_block: SECTOR as u32,
                physical_block: PHYSICAL_BLOCK,
                memory_alignment: SECTOR as u32,
                rotational: disk.rotational(),
                discard: None,
                // There is none that it could take over: no other process has this number.
                identity: std::process::id().into(),
            },
        })
    }
}

impl Backing for Model {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.content.as_fd()
    }

    fn serve(&mut self, request: &Request, file: Fixed, now_ns: u64) -> Service {
        let bytes = request.bytes() as u32;
        let (action, entry) = match request.what {
            What::Read => {
                let entry = ReadFixed::new(file, std::ptr::null_mut(), bytes, request.tag.0);
                (Action::Read, entry.offset(request.offset()).build())
            }
            What::Write => {
                let entry = WriteFixed::new(file, std::ptr::null(), bytes, request.tag.0);
                (Action::Write, entry.offset(request.offset()).build())
            }
            // The model has no cache, so that what was answered is safe. The other two are not offered.
            What::Flush | What::Discard | What::Zeroes => {
                return Service {
                    entry: None,
                    held: false,
                };
            }
        };
        let asked = andante_drive::Request {
            action,
            sector: request.sector,
            sectors: request.sectors,
        };
        self.drive.take(request.tag.0.into(), asked, now_ns);
        Service {
            entry: Some(entry),
            held: true,
        }
    }

    fn complete_at_ns(&self) -> Option<u64> {
        self.drive.next_ns()
    }

    fn completed(&mut self, now_ns: u64) -> Option<Tag> {
        self.drive.done(now_ns).map(|tag| Tag(tag as u16))
    }
}

#[cfg(test)]
mod tests {
    use andante_scenario::Scenario;

    use super::*;

    #[test]
    fn a_request_is_held_as_long_as_the_model_takes() {
        let text = "title = 'x'\nduration_s = 1\n[disk]\nkind = 'hdd'\nsize = '1G'\n\
                    [programs.x]\nclass = '/'\nkind = 'loop'\n";
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let disk = scenario.cases[0].workload.disk.clone().unwrap();
        let mut model = Model::make(&disk).unwrap();
        assert_eq!(model.shape().sectors, (1 << 30) / SECTOR);
        let request = |what, tag| Request {
            tag: Tag(tag),
            class: 0,
            ioprio: 0,
            what,
            fua: false,
            keep_place: false,
            sector: 1024,
            sectors: 8,
        };
        let flush = model.serve(&request(What::Flush, 1), Fixed(0), 0);
        assert!(flush.entry.is_none() && !flush.held);
        assert_eq!(model.complete_at_ns(), None);
        assert!(model.serve(&request(What::Read, 0), Fixed(0), 0).held);
        let done_ns = model.complete_at_ns().unwrap();
        // It has to seek at least, and no more than from end to end and once around.
        assert!((1_000_000..=20_000_000).contains(&done_ns), "{done_ns}");
        assert_eq!(model.completed(done_ns - 1), None);
        assert_eq!(model.completed(done_ns), Some(Tag(0)));
    }
}
