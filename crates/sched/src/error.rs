//! Why the state of the loaded scheduler cannot be read.

use thiserror::Error;

use crate::class::ClassError;

/// Why the scheduler's state could not be read.
#[derive(Debug, Error)]
pub enum StateError {
    /// There is no scheduler of ours in the kernel.
    #[error("Andante is not loaded: start it with `sudo andante run`")]
    NotLoaded,
    /// The kernel does not let this user look at its maps.
    #[error("the scheduler's state may be read by root only: use sudo")]
    NotPermitted,
    /// Another build of Andante is loaded, whose state has another layout.
    #[error(
        "the scheduler that is loaded comes from another build of Andante: restart it with this one"
    )]
    OtherBuild,
    /// The hierarchy of classes is not there any more.
    #[error(transparent)]
    NoClasses(#[from] ClassError),
    /// Something else went wrong.
    #[error("the scheduler's state could not be read: {0}")]
    Read(#[from] libbpf_rs::Error),
}
