// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers (§III-B1): to the NIC's outbound engine, the off-cluster DMA engine, and the host-direct unit.

mod engines;
mod host;
mod kinds;
mod unit;

pub use engines::Need;
pub use host::Answer;
pub use kinds::{Command, CommandId, Issued, Port, Send, Through};
pub use unit::{CommandUnit, Due, Response};
