// SPDX-License-Identifier: Apache-2.0
//! The card's side of sPIN (sPIN §3.2, App. B): effects of handlers' verdicts on messages, and execution of their
//! commands.
//!
//! The handlers run on an [`accel::Accelerator`]. It queues work for the card, which empties the queue after each
//! event; so the card may offer new tasks while it acts on the end of a handler.
//!
//! * `handler_state`: a card's handler state; `lazy`: the accelerator, created on first use; `verdict`, `transfer`: handler
//!   state of a message and of a DMA transfer
//! * `env`: the card as the accelerator's environment, with the work queue
//! * `handlers`: the handlers of a message, and their verdicts on its packets
//! * `commands`: the commands of handlers
//! * `memory`: HPU memory, its handles, and the initial state of handlers

mod commands;
mod env;
mod handler_state;
mod handlers;
mod lazy;
mod memory;
mod transfer;
mod verdict;

pub use env::Work;
pub use handler_state::Spin;
pub use transfer::HostTransfer;
pub use verdict::{Owner, SpinMessage};
