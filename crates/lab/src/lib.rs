//! The laboratory: runs a scenario under several schedulers and judges what comes out.
//!
//! A scenario ([`scenario`]) names classes, programs and expectations. [`run`] carries it out once
//! per case and scheduler, on a real kernel in virtual time or on this machine, and leaves
//! [`result::RunResult`]s. The same code ([`runner`]) does the work in both places.

mod assets;
mod cases;
mod clock;
mod error;
mod figures;
pub mod judge;
mod mpv;
mod programs;
pub mod report;
pub mod result;
pub mod runner;
pub mod scenario;
mod stop;
pub mod table;
pub mod trace;

pub use error::LabError;
pub use programs::program_main;
