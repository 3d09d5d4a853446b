//! The card's side of sPIN (sPIN §3.2, App. B): what handlers decide about messages, and what they ask of the card.
//!
//! The handlers themselves run on an [`accel::Accelerator`]. It leaves work to the card in a queue, which the card
//! empties after each event; so the card may offer new tasks while it acts on the end of a handler.
//!
//! * `unit`: what a card has for handlers; `lazy`: the accelerator, made when it is first used; `verdict`, `transfer`: what it knows of a message and of a DMA transfer
//! * `env`: what the accelerator sees of the card, and what it leaves to it
//! * `handlers`: the handlers of a message, and what they decide about its packets
//! * `commands`: the commands of handlers
//! * `memory`: HPU memory, its handles, and the initial state of handlers

mod commands;
mod env;
mod handlers;
mod lazy;
mod memory;
mod transfer;
mod unit;
mod verdict;

pub use env::Work;
pub use transfer::HostTransfer;
pub use unit::Spin;
pub use verdict::SpinMessage;
