// SPDX-License-Identifier: Apache-2.0
//! The pipelines of a card: packets out, packets in, and DMA between card and host memory. They execute the effects of
//! Portals objects, independent of handlers.
//!
//! * `pipelines`: [`Pipeline`], with the Portals objects, statistics, and work for the CPU; `effects`: effects of these
//!   objects
//! * `transmit`: from a message to packets on the wire
//! * `target`: processing of a message's packets at its target
//! * `dma`: the DMA engine; `outstanding`, `rx`: the messages that are being received

mod dma;
mod effects;
mod outstanding;
mod pipelines;
mod rx;
mod target;
mod transmit;

pub use dma::HandlerWrite;
pub use outstanding::{EarlyPackets, Lookup, Messages};
pub use pipelines::Pipeline;
pub use rx::{ArrivedMessage, Completion, Delivery, ReplyRight, RxMessage, Sink};
