// SPDX-License-Identifier: Apache-2.0
//! Portals state machine of a node: effects of library calls and messages on Portals objects (Portals 4.3).
//!
//! It is independent of packets, ports, DMA and time. Effects on the card are queued as [`Effect`]s.
//!
//! * `process`: [`Portals`], all objects of a process; `effect`: work for the card
//! * `calls`, `transfers`: the library's calls, with checked arguments
//! * `interface`, `descriptor`, `entry`, `events`, `operation`, `triggered`, `unexpected`, `slab`: the objects
//! * `matching`: matching of messages to entries; `delivery`: notification of the program on completion
//! * `lists`: lists of entries and unexpected headers, counters and their triggered operations
//! * `interface_properties`: opens interfaces with equal properties on several cards
//! * `initiator`: operations of this node
//! * `flow`: flow control
//! * `partition`: processes of one job, unreachable for others

mod calls;
mod delivery;
mod descriptor;
mod effect;
mod entry;
mod events;
mod flow;
mod initiator;
mod interface;
mod interface_properties;
mod lists;
mod matching;
mod operation;
mod partition;
mod process;
pub(crate) mod slab;
mod transfers;
mod triggered;
mod unexpected;

pub use abi::placement::FIRST_PID as DEFAULT_PID;
pub use calls::{NewEntry, check_increment};
pub use delivery::Ending;
pub use descriptor::MemoryDescriptor;
pub use effect::{Effect, InternalError, Notice};
pub use entry::{Entry, Placement};
pub use initiator::Initiated;
pub(crate) use interface::{Interface, index_of_options};
pub use interface::{MAX_VOLATILE_SIZE, default_limits};
pub use interface_properties::InterfaceProperties;
pub use matching::Delivery;
pub use operation::{CardPlace, Operation, OperationKind};
pub(crate) use partition::FOREIGN;
pub use partition::{Member, Partition};
pub use process::Portals;
pub use triggered::{Action, FetchAction, RmaOp, Target, TriggeredOp};
