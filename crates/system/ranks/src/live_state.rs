// SPDX-License-Identifier: Apache-2.0
//! State of the ranks of a live run.

use std::time::Instant;

/// State of a live run.
pub(super) struct LiveState {
    /// Beginning of real time.
    pub(super) since: Instant,
    /// Value of the doorbell after which no rank had a pause to hand out.
    pub(super) seen: Option<u32>,
    /// Rank whose pause is handed out first, so that no rank keeps others waiting.
    pub(super) first: usize,
}

impl LiveState {
    pub(super) fn new(since: Instant) -> LiveState {
        LiveState { since, seen: None, first: 0 }
    }
}
