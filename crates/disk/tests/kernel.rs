//! The server on a real kernel. Each test boots the virtual machine and goes on there as its only command; in it the
//! disks are in memory. They need QEMU and a kernel, hence `#[ignore]`.

#[path = "../../net/tests/machine/mod.rs"]
#[expect(dead_code, reason = "these tests report by themselves")]
mod machine;

#[path = "kernel/classes.rs"]
mod classes;
#[path = "kernel/costs.rs"]
mod costs;
#[path = "kernel/disks.rs"]
mod disks;
#[path = "kernel/guest.rs"]
mod guest;
#[path = "kernel/kills.rs"]
mod kills;
#[path = "kernel/power.rs"]
mod power;
#[path = "kernel/requests.rs"]
mod requests;
#[path = "kernel/servers.rs"]
mod servers;
