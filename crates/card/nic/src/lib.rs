//! Network cards: rdma, portals4 and spin.
//!
//! * [`Nic`] is one node's card; [`Ports`] is all that it sees of the world
//! * [`api`]: the host's library calls, with their arguments checked
//! * `card`: what it does when an event comes
//! * `pipeline`: transmission, reception, DMA
//! * `portals`: Portals objects and their rules; knows nothing of packets, DMA or time
//! * `spin`: handlers on HPUs
//! * `timeline`: what cards and CPUs did, for people
//! * [`testing`]: a bench for tests of cards, without processes

mod accelerator;
pub mod api;
mod atomic;
mod card;
mod departure;
mod drops;
mod event;
mod handlers;
mod message;
mod pipeline;
mod portals;
mod ports;
mod region;
mod spin;
mod stats;
pub mod testing;
mod timeline;

pub use accel::{
    CardProgram, Debugger, DeviceProgram, Halt, Halted, Handler, ImageError, Printed, Profile, Registers, Resident,
    SourcePlace, load_map,
};
pub use accelerator::{NotOnCards, check_card, counts_instructions, is_unused_on_cards};
pub use api::{Examination, NewEntry, Object, Reason};
pub use atomic::{AtomicSpec, MAX_OPERAND, size as item_size};
pub use card::Nic;
pub use drops::{DropReason, DroppedMessage, Drops, DropsByReason, merge_drops};
pub use event::NicEvent;
pub use handlers::HandlerRequest;
pub use message::{Body, Header, MessageId, Packet, Request, RequestKind, Response};
pub use pipeline::Completion;
pub use portals::slab::owner_of_any as interface_of;
pub use portals::{Action, FetchAction, InternalError, Likeness, Portals, RmaOp, Target, TriggeredOp};
pub use ports::{Departure, MemoryFault, Notice, PacketId, Ports, Slice, Track};
pub use region::Region;
pub use stats::{HandlerStats, Stats};
pub use timeline::{LinkSlice, Timeline};
