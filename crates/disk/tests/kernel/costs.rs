//! What a request costs: on one processor whose instructions are counted, the time of a read is what all who take part in it
//! execute.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use andante_disk::{
    Attached, Backing, Classes, Fifo, NoClasses, Place, Request, Senders, Service, Shape, Wanted,
    attach, open,
};
use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, opcode};

use crate::disks::{Direct, Drawn, Memory, PAGE, run};
use crate::guest::is_inside;

const READS: u64 = 20_000;
/// Of every disk here [bytes].
const SIZE: u64 = 16 << 20;

/// Instructions of a read of a page at random, so many at once.
fn read_ns(path: &str, depth: u32) -> u64 {
    let disk = Direct::open(path, 0);
    let mut ring = IoUring::new(depth).unwrap();
    let mut memory = Memory::new(PAGE * depth as usize);
    let mut drawn = Drawn(5);
    let (mut begun, mut done) = (0, 0);
    let mut free: Vec<u32> = (0..depth).collect();
    let begin = Instant::now();
    while done < READS {
        while begun < READS
            && let Some(at) = free.pop()
        {
            let page = memory[PAGE * at as usize..].as_mut_ptr();
            let entry = opcode::Read::new(Fd(disk.0.as_raw_fd()), page, PAGE as u32)
                .offset(drawn.below(SIZE / PAGE as u64) * PAGE as u64)
                .build()
                .user_data(at.into());
            // SAFETY: the memory lives until all reads are done.
            unsafe { ring.submission().push(&entry) }.unwrap();
            begun += 1;
        }
        ring.submit_and_wait(1).unwrap();
        for answer in ring.completion() {
            assert_eq!(answer.result(), PAGE as i32);
            free.push(answer.user_data() as u32);
            done += 1;
        }
    }
    begin.elapsed().as_nanos() as u64 / READS
}

/// Answers at once, and reads nothing.
struct Nothing(File, Shape);

impl Backing for Nothing {
    fn shape(&self) -> Shape {
        self.1
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn serve(&mut self, _request: &Request, _file: Fixed, _now_ns: u64) -> Service {
        Service {
            entry: None,
            held: false,
        }
    }
}

fn served<B, C>(backing: B, classes: C) -> Attached
where
    B: Backing + Send + 'static,
    C: Classes + Clone + Send + 'static,
{
    attach(backing, Fifo::new(32), classes, Wanted::default()).unwrap()
}

fn off(mut attached: Attached) {
    attached.stop().unwrap();
    attached.end().unwrap();
}

/// At depth 1 and 32.
fn measured(name: &str, path: &str) -> [u64; 2] {
    let ns = [1, 32].map(|depth| read_ns(path, depth));
    println!(
        "COST {name}: {} ns alone, {} ns of 32 at once",
        ns[0], ns[1]
    );
    ns
}

/// Beside the kernel's own way to make a disk of something, which hands requests to a thread as well and copies nothing either.
#[test]
#[ignore = "needs the virtual machine"]
fn a_read_costs_little_more_than_the_kernels_own_loop() {
    if !is_inside("costs::a_read_costs_little_more_than_the_kernels_own_loop") {
        return;
    }
    let ram = Path::new("/dev/ram0");
    measured("memory", "/dev/ram0");
    run("busybox", &["losetup", "/dev/loop0", "/dev/ram0"]);
    let loops = File::open("/dev/loop0").unwrap();
    // LOOP_SET_DIRECT_IO of include/uapi/linux/loop.h: without the page cache, as here.
    // SAFETY: no pointers.
    assert_eq!(unsafe { libc::ioctl(loops.as_raw_fd(), 0x4c08, 1) }, 0);
    drop(loops);
    let loops = measured("loop", "/dev/loop0");
    run("busybox", &["losetup", "-d", "/dev/loop0"]);
    let place: Place = open(ram).unwrap();
    let shape = Shape {
        identity: 1,
        ..place.shape()
    };
    let nothing = served(Nothing(File::open("/dev/null").unwrap(), shape), NoClasses);
    let bare = measured("ublk, nothing below", &nothing.path());
    off(nothing);
    let attached = served(place, NoClasses);
    let plain = measured("ublk on memory", &attached.path());
    off(attached);
    let attached = served(open(ram).unwrap(), Senders::load().unwrap());
    let classes = measured("ublk on memory, with classes", &attached.path());
    off(attached);
    // 18.7 and 9.6 µs were measured, where loop takes 19.2 and 7.4, and 4.2 µs of each are the reader's and the disk's.
    assert!(classes[0] <= loops[0] * 11 / 10 && classes[1] <= loops[1] * 14 / 10);
    // And to know the classes costs little of that.
    assert!(classes[1] <= plain[1] * 105 / 100 && bare[1] < plain[1]);
}
