// SPDX-License-Identifier: GPL-2.0
//! Counts of requests that were served.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use crate::order::{Request, What};

/// Of one kind of request.
#[derive(Debug, Default)]
struct Kind {
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// The requests that a server has served so far; others may read it while it goes on.
#[derive(Debug, Default)]
pub struct Counts {
    kinds: [Kind; What::ALL.len()],
    last_error: AtomicI32,
    last_sector: AtomicU64,
}

/// Of one kind of request, at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// That were answered.
    pub requests: u64,
    /// That were read, written, or forgotten.
    pub bytes: u64,
    /// Of these requests failed.
    pub errors: u64,
}

impl Counts {
    pub(crate) fn count(&self, request: &Request, result: i32) {
        let kind = &self.kinds[request.what as usize];
        kind.requests.fetch_add(1, Relaxed);
        if result >= 0 {
            kind.bytes.fetch_add(request.bytes(), Relaxed);
        } else {
            self.last_error.store(-result, Relaxed);
            self.last_sector.store(request.sector, Relaxed);
            kind.errors.fetch_add(1, Relaxed);
        }
    }

    /// Of that kind.
    #[must_use]
    pub fn of(&self, what: What) -> Count {
        let kind = &self.kinds[what as usize];
        Count {
            requests: kind.requests.load(Relaxed),
            bytes: kind.bytes.load(Relaxed),
            errors: kind.errors.load(Relaxed),
        }
    }

    /// Requests that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        What::ALL.map(|what| self.of(what).errors).iter().sum()
    }

    /// The error number of the last one that failed, and its sector.
    #[must_use]
    pub fn last_error(&self) -> (i32, u64) {
        (
            self.last_error.load(Relaxed),
            self.last_sector.load(Relaxed),
        )
    }
}
