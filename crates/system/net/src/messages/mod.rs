//! Messages over a [fabric](crate::fabric), for executors of schedules that have no cards: hosts cut messages into
//! packets, send them one after the other with the gap of LogGP between messages, and report when a whole message has
//! arrived.

mod network;
mod pace;
mod prefetch;
mod pull;
mod rate;

pub use network::{Event, Message, MessageNetwork, Notice};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transport_tests;
