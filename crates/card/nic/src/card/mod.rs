//! The card: what it does when an event comes, from packets that arrive to what the program is told.
//!
//! * `state`: [`Nic`], made of pipelines, messages and what it has for handlers
//! * `events`: the events of a card; `receive`: packets that arrive; `finish`: the ends of messages and operations
//! * `order`: the order of requests
//! * `close`: messages under way when their interface is closed; `lost`: packets that are lost, and cards that are dead

mod close;
mod events;
mod finish;
mod lost;
mod order;
mod receive;
mod state;

pub use state::Nic;
