//! The card's side of sPIN (sPIN §3.2, App. B): what handlers decide about messages, and what they ask of the card.
//!
//! The handlers themselves run on an [`accel::Accelerator`]. It leaves work to the card in a queue, which the card
//! empties when the accelerator has returned; so the card may offer new tasks while it acts on the end of a handler.
//!
//! * `unit`: what a card has for handlers; `handling`, `transfer`: what it knows of a message and of a DMA transfer
//! * `env`: what the accelerator sees of the card; `work`: what it leaves to the card
//! * `message`: what a message's handlers decide about its packets
//! * `commands`: the commands of handlers
//! * `memory`: HPU memory, its handles, and the initial state of handlers
//! * `close`: what is left of handlers when their interface is closed

mod close;
mod commands;
mod env;
mod handling;
mod memory;
mod message;
mod transfer;
mod unit;
mod work;

pub use handling::SpinMessage;
pub use transfer::HostTransfer;
pub use unit::Spin;
