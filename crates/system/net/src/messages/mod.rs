// SPDX-License-Identifier: Apache-2.0
//! Messages over a [fabric](crate::fabric), for executors of schedules without cards: hosts split messages into
//! packets, send them in sequence with LogGP's gap between messages, and report the arrival of each whole message.

mod in_flight;
mod network;
mod pace;
mod prefetch;
mod pull;
mod rate;
mod scope;

pub use network::{Event, Message, MessageNetwork, Notice};
pub use scope::{Parcels, Part, Scope, Whole};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transport_tests;
