// SPDX-License-Identifier: GPL-2.0
//! What a program is told that does not get what it asks for: a name that programs know, and a sentence.

use andante_session::{Fault, FaultKind};
use zbus::fdo;

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Andante is not there to do it.
    Gone(String),
    /// It refuses.
    Refused(Fault),
    /// It was asked for something that makes no sense.
    Nonsense(String),
    /// It is more than may be asked for.
    TooHigh(String),
    /// It is asked for too often.
    TooOften,
}

impl From<Refusal> for fdo::Error {
    /// The names are those of the D-Bus specification that programs look at: PulseAudio, PipeWire and JACK take
    /// `ServiceUnknown` to mean that nobody is there who could do it, and go on without.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Gone(message) => Self::ServiceUnknown(message),
            Refusal::Nonsense(message) => Self::InvalidArgs(message),
            Refusal::TooHigh(message) => Self::AccessDenied(message),
            Refusal::TooOften => Self::LimitsExceeded(format!(
                "a user may ask {} times a second: wait a second, and ask again",
                crate::rate::MOST
            )),
            Refusal::Refused(Fault { kind, message }) => match kind {
                FaultKind::NotPermitted | FaultKind::NotYours => Self::AccessDenied(message),
                FaultKind::NoThread => Self::UnixProcessIdUnknown(message),
                FaultKind::Full | FaultKind::Busy => Self::LimitsExceeded(message),
                FaultKind::Unschedulable => Self::NotSupported(message),
                _ => Self::Failed(message),
            },
        }
    }
}
