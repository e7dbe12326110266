//! The scheduler as the rest of the workspace sees it: loading it, reading its state, and the
//! class tree that it serves.

pub mod class;
pub mod contracts;
pub mod doctor;
pub mod domains;
mod error;
pub mod events;
pub mod explained;
pub mod historical;
pub mod leaf_policy;
mod learnt;
pub mod loader;
mod mapped;
mod maps;
pub mod programs;
pub mod session;
mod sharing;
pub mod snapshot;
pub mod state;
pub mod text;
pub mod told;
pub mod urgent;
mod verifying;
pub mod watched;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/sched.skel.rs"));
}

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod domains_skel {
    include!(concat!(env!("OUT_DIR"), "/domains.skel.rs"));
}

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod events_skel {
    include!(concat!(env!("OUT_DIR"), "/events.skel.rs"));
}

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod historical_skel {
    include!(concat!(env!("OUT_DIR"), "/historical.skel.rs"));
}

/// The BPF objects that this build loads, by name, and the SHA-256 of each: what a figure was measured of.
pub const OBJECTS: [(&str, &str); 4] = [
    ("sched", env!("ANDANTE_OBJECT_sched")),
    ("domains", env!("ANDANTE_OBJECT_domains")),
    ("events", env!("ANDANTE_OBJECT_events")),
    ("historical", env!("ANDANTE_OBJECT_historical")),
];

pub use domains::Domains;
pub use error::StateError;
pub use events::EventRules;
pub use historical::{Historical, Policy};
pub use leaf_policy::{BadPolicy, LeafPolicy, PolicyError};
pub use learnt::{LearntRoom, learnt_room};
pub use loader::{Exit, LoadError, NEEDED_KFUNCS, Options, Scheduler};
pub use programs::{EmptyProgram, Program, programs};
pub use sharing::{MAX_CLASSES, Sharing, shares_class, sharing};
pub use snapshot::{Bandwidth, Class, Seen, Snapshot};
pub use state::{class_paths, counters, monotonic_ns, snapshot};
pub use urgent::Urgent;
pub use verifying::{Verifying, verifying};
