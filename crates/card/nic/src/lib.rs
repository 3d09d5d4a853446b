// SPDX-License-Identifier: Apache-2.0
//! Network cards: rdma, portals4 and spin.
//!
//! * [`Nic`] is one node's card; [`Ports`] is its interface to the environment
//! * [`api`]: the host's library calls, with checked arguments
//! * `card`: the card's reactions to events
//! * `pipeline`: transmission, reception, DMA
//! * `portals`: Portals objects and their rules, independent of packets, DMA and time
//! * `spin`: handlers on HPUs
//! * `timeline`: activity of cards and CPUs, for users
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

pub use accel::Share;
pub use accel::sc17::Quota;
pub use accel::{
    CardProgram, Debugger, DeviceProgram, Halt, Halted, Handler, ImageError, Observation, Printed, Profile, Registers,
    Resident, SourcePlace, load_map,
};
pub use accelerator::{CardModel, NotOnCards, Unobservable, counts_instructions, is_unused_on_cards};
pub use api::{Examination, NewEntry, Object, Reason};
pub use atomic::{AtomicSpec, MAX_OPERAND, size as item_size};
pub use card::Nic;
pub use drops::{DropReason, DroppedMessage, Drops, DropsByReason, merge_drops};
pub use event::NicEvent;
pub use handlers::HandlerRequest;
pub use message::{Body, Header, MessageId, Packet, Request, RequestKind, Response};
pub use pipeline::Completion;
pub use portals::slab::owner_of_any as interface_of;
pub use portals::{
    Action, FetchAction, InterfaceProperties, InternalError, Member, Partition, Portals, RmaOp, Target, TriggeredOp,
};
pub use ports::{Departure, MemoryFault, Notice, PacketId, Ports, Slice, Track};
pub use region::Region;
pub use stats::{Counts, HandlerStats, Stats};
pub use timeline::{LinkSlice, Timeline};
