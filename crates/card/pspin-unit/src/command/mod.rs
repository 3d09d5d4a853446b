// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers (§III-B1): to the NIC's outbound engine, the off-cluster DMA engine, and the host-direct unit.

mod command_unit;
mod engines;
mod host;
mod kinds;
mod lanes;

pub use command_unit::{CommandUnit, Due, Response};
pub use engines::Need;
pub use host::Answer;
pub use kinds::{Command, CommandId, Issued, Part, Port, Send, Through};
