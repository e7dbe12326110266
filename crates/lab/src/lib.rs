//! The laboratory: runs a scenario under several schedulers and judges what comes out.
//!
//! A scenario ([`scenario`]) names classes, programs and expectations. [`run`] carries it out once
//! per case and scheduler, on a real kernel in virtual time or on this machine, and leaves
//! [`result::RunResult`]s. The same code ([`runner`]) does the work in both places.

mod against;
mod assets;
mod brief;
mod cases;
mod choice;
mod clock;
mod costs;
mod error;
mod figures;
pub mod frames;
mod guest;
mod host;
mod job;
pub mod judge;
mod measures;
mod mpv;
pub mod paper;
pub mod perturb;
mod pool;
mod programs;
pub mod progress;
pub mod recorded;
pub mod report;
pub mod result;
mod run;
pub mod runner;
pub mod scenario;
mod simulator;
mod stop;
pub mod sweep;
pub mod table;
pub mod trace;
mod unclocked;
mod virtual_machine;
pub mod why;

pub use against::agreement;
pub use brief::brief;
pub use costs::{CostsOptions, costs_guest_main, measure_costs};
pub use error::LabError;
pub use guest::guest_main;
pub use job::{On, RunOptions};
pub use programs::program_main;
pub use run::{known_scenarios, run, verdict};
pub use unclocked::summary as parallel_summary;
