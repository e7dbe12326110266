//! The virtual machine of the laboratory: Debian's own kernel under QEMU, in deterministic virtual
//! time.
//!
//! QEMU can run a machine by counting instructions (`-icount`): every instruction then takes
//! exactly one virtual nanosecond, timers fire at virtual instants, and an idle machine jumps to
//! its next timer. A real kernel with real programs so becomes an experiment that gives the same
//! figures, to the last digit, on every run and however busy the host is (with one reservation,
//! below). Nothing needs root, nothing is installed, and the network is used only until the cache
//! is filled.
//!
//! A run takes four steps, each a call:
//!
//! 1. [`find_kernel`] finds a kernel whose sched_ext works. Many do not, because their type
//!    information is broken; [`andante_btf`] explains and finds out. Kernels come through the machine's
//!    own apt, on a private state that leaves the system alone.
//! 2. [`find_qemu`] finds an emulator that shares virtual time fairly among so many CPUs, or
//!    fetches one the same way.
//! 3. [`build_image`] makes a root file system of programs, with the shared libraries they need,
//!    and files. The same content gives the same bytes, and is built once.
//! 4. [`Boot::run`] boots and runs one command:
//!
//! ```text
//!   host                                          guest
//!   ────                                          ─────
//!   RAM disk (cpio): busybox, /init, modules,  →  /init mounts everything, makes the image
//!     programs                                      the root if there is one,
//!   fw_cfg: files, the command                 →    and runs the command
//!   image (ext4)  → NVDIMM, mapped privately   →  /dev/pmem0; writes end with the machine
//!   (memory)      → NVDIMM, if there is swap   →  /dev/pmem1; both below dm-delay then
//!   console log   ← serial line                ←  kernel messages, the command's output
//!   progress      ← port andante.progress      ←  lines shown while it runs
//!   output        ← port andante.out           ←  the data
//!   exit status   ← port andante.status        ←  /init's last word
//! ```
//!
//! Booting takes most of the host's time that a short run takes, and so does what most commands begin with.
//! So the guest asks for what is its own only when it is up, and a machine is saved there ([`Boot::saved`])
//! and where the command has made it ready ([`Boot::order`]), each once; runs go on from there, on one CPU
//! with the same figures.
//!
//! What keeps a run deterministic: one QEMU thread runs all virtual CPUs in turns; the ports are
//! files, so the guest never waits for the host; disk and network of the host are not there; the
//! clock starts at one date; randomness is seeded and addresses are fixed. Two things follow for
//! experiments: all virtual CPUs share one instruction budget, so with N of them busy each runs at
//! 1/N of the speed; and figures belong to one kernel, one QEMU and one image.
//!
//! One thing is left to chance. When the last virtual CPU halts, QEMU's main thread puts the clock
//! forward to the next timer. If something else wakes it between the halt and the accounting of the
//! instructions before it, it seems to do so from a count that is out of date. Nothing does as a
//! rule; with 20,000 signals a second to that thread, and four busy machines on two cores, 2 of 14
//! runs gave other figures, and without the signals none of 15.
//!
//! Waiting loops are the slow part: each turn of one (a `PAUSE` instruction) leaves and enters
//! QEMU's interpreter. Half of the host's time for a boot goes into 100 virtual milliseconds in
//! which the kernel measures its local timer.
//!
//! ```no_run
//! use andante_vm::{Boot, Cache, Event, find_kernel, find_qemu};
//!
//! let cache = Cache::open()?;
//! let progress = |line: &str| eprintln!("{line}");
//! let kernel = find_kernel(&cache, &progress)?;
//! let qemu = find_qemu(&cache, 1, &progress)?;
//! let boot = Boot {
//!     saved: Some(&cache),
//!     ..Boot::of(&kernel, &qemu, &["busybox", "uname", "-r"])
//! };
//! let outcome = boot.run(&mut |event| match event {
//!     Event::Console(line) | Event::Progress(line) | Event::Note(line) => println!("{line}"),
//! })?;
//! assert_eq!(outcome.exit_status, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apt;
mod boot;
mod cache;
mod decompress;
mod elf;
mod image;
mod initrd;
mod kernel;
mod modules;
mod qemu;
mod system;
mod tree;
mod vmlinux;

pub use apt::AptError;
pub use boot::{
    Boot, BootError, Event, InitrdFile, Order, Outcome, ROOT_NAME, SWAP_DEVICE, SWAP_NAME, Timing,
    Topology,
};
pub use cache::{Cache, CacheError};
pub use image::{ImageError, ImageSpec, PassingImage, build_image, build_passing_image};
pub use kernel::{Kernel, KernelError, KernelSearch, Kind as KernelKind, find_kernel};
pub use modules::ModuleError;
pub use qemu::{Qemu, QemuError, find_qemu, find_qemu_for};
pub use system::{SystemError, build_system};
pub use tree::{Content, TreeError};

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
