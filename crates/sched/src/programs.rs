//! The loaded scheduler's programs, as the kernel sees them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::ProgInfoIter;

/// What all of our programs' names begin with.
const PREFIX: &str = "andante_";

/// A BPF program of the loaded scheduler.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Program {
    /// Its name; the kernel keeps 15 bytes of that.
    pub name: String,
    /// Instructions that the kernel's verifier followed when it was loaded: most of the time that
    /// loading takes. At most a million.
    pub verified_instructions: u32,
    /// How often it ran while the kernel counted (`sysctl kernel.bpf_stats_enabled=1`).
    pub runs: u64,
    /// How long all of these took [ns].
    pub run_ns: u64,
}

/// Those that are loaded, in no particular order. None if this user may not look.
pub fn programs() -> Vec<Program> {
    ProgInfoIter::default()
        .filter_map(|info| {
            let name = info.name.to_str().ok()?.to_owned();
            name.starts_with(PREFIX).then_some(Program {
                name,
                verified_instructions: info.verified_insns,
                runs: info.run_cnt,
                run_ns: info.run_time_ns,
            })
        })
        .collect()
}

/// A program of two instructions, which does nothing: what the kernel counts for one of its runs is what
/// counting costs.
#[derive(Debug)]
pub struct EmptyProgram(OwnedFd);

impl EmptyProgram {
    /// Its name in [`programs`].
    pub const NAME: &'static str = "andante_empty";

    /// Loads it.
    ///
    /// # Errors
    /// The kernel's, if it does not let this user.
    pub fn load() -> io::Result<Self> {
        // r0 = 0; exit.
        let instructions = [0x0000_00b7_u64, 0x0000_0095];
        let name = c"andante_empty";
        // SAFETY: all pointers are to live values, and the instructions are two.
        let fd = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_SOCKET_FILTER,
                name.as_ptr(),
                c"GPL".as_ptr(),
                instructions.as_ptr().cast(),
                instructions.len() as u64,
                std::ptr::null_mut(),
            )
        };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the call has just made it, and it is nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Has the kernel run it so often.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run(&self, times: u32) -> io::Result<()> {
        // The kernel asks for the length of an Ethernet header at least.
        let packet = [0_u8; 64];
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as u64,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            repeat: times as i32,
            ..Default::default()
        };
        // SAFETY: the packet lives until the call returns.
        match unsafe {
            libbpf_sys::bpf_prog_test_run_opts(self.0.as_fd().as_raw_fd(), &mut options)
        } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}
