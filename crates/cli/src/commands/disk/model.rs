// SPDX-License-Identifier: GPL-2.0
//! The figures of a disk, as they were said or as the kernel has them.

use andante_admission::{Duration, Size};
use andante_core_sys::DiskModel;
use andante_disk::{SECTOR, Shape};
use clap::Args;

/// Of disks with an arm that are sold for desktops.
const TURNS_PER_MINUTE: u32 = 7200;
const NS_PER_MINUTE: u64 = 60_000_000_000;

#[derive(Args)]
#[command(next_help_heading = "The disk (of those with an arm, what a desktop's takes is assumed)")]
pub(super) struct Model {
    /// The shortest seek of the arm [default: 1ms].
    #[arg(long, value_name = "TIME")]
    seek: Option<Duration>,
    /// The time that a seek over the whole disk takes beyond that [default: 9ms].
    #[arg(long, value_name = "TIME")]
    stroke: Option<Duration>,
    /// Turns of the platters [default: 7200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turns_per_minute: Option<u32>,
    /// The bytes that it reads and writes in a second, one thing after the other [default: 125M].
    #[arg(long, value_name = "BYTES")]
    rate: Option<Size>,
    /// Whether it has an arm, where the kernel does not know: a virtual disk.
    #[arg(long, value_name = "BOOL")]
    arm: Option<bool>,
}

impl Model {
    /// Of a backing, of which so many requests may be served at once.
    pub(super) fn of(&self, shape: &Shape, depth: u16) -> DiskModel {
        let ns = |said: &Option<Duration>, usual_ms| {
            said.as_ref()
                .map_or(usual_ms * 1_000_000_u64, |time| time.0)
        };
        let rate = self.rate.map_or(125_000_000, |size| size.0.max(SECTOR));
        if self.has_arm(shape) {
            let turns = self.turns_per_minute.unwrap_or(TURNS_PER_MINUTE);
            let turn_ns = NS_PER_MINUTE / u64::from(turns);
            return DiskModel::platters(
                shape.sectors,
                rate,
                ns(&self.seek, 1),
                ns(&self.stroke, 9),
                turn_ns,
            );
        }
        DiskModel::flash(shape.sectors, rate, ns(&self.seek, 0), depth.into())
    }

    fn has_arm(&self, shape: &Shape) -> bool {
        self.arm.unwrap_or(shape.rotational)
    }
}
