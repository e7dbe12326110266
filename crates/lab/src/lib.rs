//! The laboratory's own command line.

pub mod frames;
