// SPDX-License-Identifier: GPL-2.0
//! The program on a bus of its own, before a daemon whose kernel does as it is told.

mod gamemode;
mod program;
mod realtime;
mod stage;
