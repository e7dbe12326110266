// SPDX-License-Identifier: GPL-2.0
//! The kernel's side of ublk: its structures and numbers (`include/uapi/linux/ublk_cmd.h`), as far as they are used.

/// Of which control commands are told [`ControlCommand::queue`]: no queue.
pub const NO_QUEUE: u16 = u16::MAX;
/// The kernel chooses the number of the device.
pub const ANY_DEVICE: u32 = u32::MAX;

/// `UBLK_F_USER_RECOVERY`: the device outlives its server.
pub const USER_RECOVERY: u64 = 1 << 3;
/// `UBLK_F_USER_RECOVERY_REISSUE`: and what that had not answered comes to the next one.
pub const USER_RECOVERY_REISSUE: u64 = 1 << 4;
/// `UBLK_F_SUPPORT_ZERO_COPY`: memory of requests may be had in the server's ring.
pub const ZERO_COPY: u64 = 1;
/// `UBLK_F_AUTO_BUF_REG`: it is there when the request comes.
pub const AUTO_BUFFERS: u64 = 1 << 11;
/// `UBLK_F_SAFE_STOP_DEV`: the kernel stops a device only if nobody has it open.
pub const SAFE_STOP: u64 = 1 << 17;

/// `UBLK_S_DEV_DEAD`, one of the states: it has no block device (yet, or any more). In all others it is served, or waits for
/// another server.
pub const DEAD: u16 = 0;

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlCommand {
    pub device: u32,
    pub queue: u16,
    pub len: u16,
    pub addr: u64,
    pub data: u64,
    pub path_len: u16,
    pub pad: u16,
    pub reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceInfo {
    pub queues: u16,
    pub depth: u16,
    pub state: u16,
    pub pad0: u16,
    pub max_io_bytes: u32,
    pub device: u32,
    pub server: i32,
    pub pad1: u32,
    pub flags: u64,
    /// Kept by the kernel for the server, and of no meaning to it.
    pub own_flags: u64,
    pub owner_uid: u32,
    pub owner_gid: u32,
    pub reserved1: u64,
    pub reserved2: u64,
}

/// `UBLK_ATTR_ROTATIONAL`.
pub const ROTATIONAL: u32 = 1 << 1;
/// `UBLK_ATTR_VOLATILE_CACHE`: what is written is safe when it has been flushed.
pub const VOLATILE_CACHE: u32 = 1 << 2;
/// `UBLK_ATTR_FUA`: or was to be safe when it is answered.
pub const FUA: u32 = 1 << 3;

/// `struct ublk_param_basic`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct BasicParams {
    pub attributes: u32,
    pub logical_shift: u8,
    pub physical_shift: u8,
    pub optimal_shift: u8,
    pub minimal_shift: u8,
    pub max_sectors: u32,
    pub chunk_sectors: u32,
    pub sectors: u64,
    pub virtual_boundary: u64,
}

/// `struct ublk_param_discard`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardParams {
    pub alignment: u32,
    pub granularity: u32,
    pub max_sectors: u32,
    pub max_zeroes_sectors: u32,
    pub max_segments: u16,
    pub reserved: u16,
}

/// `struct ublk_param_devt`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberParams {
    pub char_major: u32,
    pub char_minor: u32,
    pub disk_major: u32,
    pub disk_minor: u32,
}

/// Kinds of parameters that are there (`UBLK_PARAM_TYPE_*`).
pub const BASIC: u32 = 1;
pub const DISCARD: u32 = 1 << 1;
pub const DMA_ALIGN: u32 = 1 << 4;

/// `struct ublk_params`, as far as the alignment of memory (`struct ublk_param_dma_align`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Params {
    pub len: u32,
    pub types: u32,
    pub basic: BasicParams,
    pub discard: DiscardParams,
    pub numbers: NumberParams,
    pub zoned: [u32; 8],
    pub dma_mask: u32,
    pub dma_pad: u32,
}

/// `struct ublksrv_io_desc`: a request, in memory that the kernel shares, by its tag.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Descriptor {
    pub op_flags: u32,
    pub sectors: u32,
    pub sector: u64,
    pub addr: u64,
}

/// `UBLK_IO_OP_*`, the lowest byte of [`Descriptor::op_flags`].
pub const OP_READ: u8 = 0;
pub const OP_WRITE: u8 = 1;
pub const OP_FLUSH: u8 = 2;
pub const OP_DISCARD: u8 = 3;
pub const OP_WRITE_ZEROES: u8 = 5;
/// `UBLK_IO_F_FUA`.
pub const IO_FUA: u32 = 1 << 13;
/// `UBLK_IO_F_NOUNMAP`: zeroes are to have their place.
pub const IO_NOUNMAP: u32 = 1 << 15;

/// `struct ublksrv_io_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct IoCommand {
    pub queue: u16,
    pub tag: u16,
    pub result: i32,
    pub addr: u64,
}

const _: () = {
    assert!(size_of::<ControlCommand>() == 32);
    assert!(size_of::<DeviceInfo>() == 64);
    assert!(size_of::<BasicParams>() == 32);
    assert!(size_of::<DiscardParams>() == 20);
    assert!(std::mem::offset_of!(Params, zoned) == 76);
    assert!(std::mem::offset_of!(Params, dma_mask) == 108);
    assert!(size_of::<Params>() == 120);
    assert!(size_of::<Descriptor>() == 24);
    assert!(size_of::<IoCommand>() == 16);
};

/// The number of a command, as ioctl encodes it (`_IOR` and `_IOWR` of `asm-generic/ioctl.h`).
const fn command(writes: bool, number: u8, size: usize) -> u32 {
    let direction: u32 = if writes { 3 } else { 2 };
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number as u32
}

const fn control(writes: bool, number: u8) -> u32 {
    command(writes, number, size_of::<ControlCommand>())
}

const fn io(number: u8) -> u32 {
    command(true, number, size_of::<IoCommand>())
}

pub const GET_DEV_INFO: u32 = control(false, 0x02);
pub const ADD_DEV: u32 = control(true, 0x04);
pub const START_DEV: u32 = control(true, 0x06);
pub const STOP_DEV: u32 = control(true, 0x07);
pub const SET_PARAMS: u32 = control(true, 0x08);
pub const GET_PARAMS: u32 = control(false, 0x09);
pub const START_USER_RECOVERY: u32 = control(true, 0x10);
pub const END_USER_RECOVERY: u32 = control(true, 0x11);
pub const GET_FEATURES: u32 = control(false, 0x13);
pub const DEL_DEV_ASYNC: u32 = control(false, 0x14);
pub const TRY_STOP_DEV: u32 = control(true, 0x17);
pub const FETCH_REQ: u32 = io(0x20);
pub const COMMIT_AND_FETCH_REQ: u32 = io(0x21);
