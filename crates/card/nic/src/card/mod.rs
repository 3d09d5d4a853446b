// SPDX-License-Identifier: Apache-2.0
//! The card's reactions to events, from arriving packets to the program's notifications.
//!
//! * `nic`: [`Nic`], made of pipelines, messages and handler state
//! * `events`: the events of a card; `receive`: arriving packets; `finish`: completion of messages and operations
//! * `order`: the order of requests
//! * `close`: messages in flight at the close of their interface; `lost`: lost packets and dead cards

mod close;
mod events;
mod finish;
mod lost;
mod nic;
mod order;
mod receive;

pub use nic::Nic;
