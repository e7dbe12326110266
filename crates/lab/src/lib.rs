//! The laboratory: runs a scenario under several schedulers and judges what comes out.
//!
//! A scenario ([`scenario`]) names classes, programs and expectations. [`run`] carries it out once
//! per case and scheduler, on a real kernel in virtual time or on this machine, and leaves
//! [`result::RunResult`]s. The same code ([`runner`]) does the work in both places.

mod cases;
mod clock;
mod figures;
pub mod judge;
mod programs;
pub mod report;
pub mod result;
pub mod scenario;
pub mod table;
pub mod trace;

pub use programs::program_main;
