// SPDX-License-Identifier: GPL-2.0
//! The published experiment: random task sets, and the part of them that each algorithm admits.
//!
//! Kato's `schedbench` (RESCH) draws sets of a given load; the more of them an algorithm can place,
//! the better it uses the CPUs. Nothing is run here; see [`admitted_sets`] for sets to run.

mod generator;
mod sample;
mod table;

pub use generator::{Deadlines, Generator, LoadClass, Random};
pub use sample::{AdmittedSet, MAX_DRAWS_PER_SET, admitted_sets, place_all};
pub use table::{Algorithm, Parameters, Row, Series, Table};
