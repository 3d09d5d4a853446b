//! The pipelines of a card: packets out, packets in, and DMA between card and host memory. They carry out what the
//! Portals objects ask for, and know nothing of handlers.
//!
//! * `state`: [`Pipeline`], with the Portals objects, counts, and work left to the CPU; `effects`: what a change of these
//!   objects has it do
//! * `transmit`: from a message to packets on the wire
//! * `target`: what is done with the packets of a message at its target
//! * `dma`: the DMA engine; `messages`, `rx`: the messages that are being received

mod dma;
mod effects;
mod messages;
mod rx;
mod state;
mod target;
mod transmit;

pub use dma::HandlerWrite;
pub use messages::{EarlyPackets, Lookup, Messages};
pub use rx::{ArrivedMessage, Completion, Delivery, ReplyRight, RxMessage, Sink};
pub use state::Pipeline;
