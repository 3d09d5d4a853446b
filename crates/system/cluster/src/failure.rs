// SPDX-License-Identifier: Apache-2.0
//! Internal errors of cards.

use sim::Time;

/// A card reached an impossible state: a defect of the simulator, which ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error of the card of node {node} at {at}: {error}, please report")]
pub struct InternalError {
    /// Node of the card.
    pub node: u32,
    /// Simulated time.
    pub at: Time,
    /// Error of the card.
    pub error: nic::InternalError,
}
