//! x
mod apt;
mod cache;
mod decompress;
pub mod btf;
mod kernel;
mod qemu;
mod vmlinux;
pub use cache::{Cache, CacheError};
pub use kernel::{Kernel, KernelError, KernelSearch, find_kernel};
pub use qemu::{Qemu, QemuError, find_qemu};
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
