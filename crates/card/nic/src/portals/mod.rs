//! The Portals state machine of a node: what library calls and messages do to Portals objects (Portals 4.3).
//!
//! Nothing here knows of packets, ports, DMA or time. What a change means for the card is left as a list of [`Effect`]s.
//!
//! * `state`: [`Portals`], all objects of a process; `effect`: what the card has to do
//! * `calls`, `transfers`: the library's calls, with their arguments checked
//! * `interface`, `descriptor`, `entry`, `events`, `operation`, `triggered`, `unexpected`, `slab`: the objects
//! * `matching`: which entry takes a message; `delivery`: what the program is told at its end
//! * `lists`: lists of entries and unexpected headers, counters and what they trigger
//! * `likeness`: interfaces of several cards that know the same processes
//! * `initiator`: operations of this node
//! * `flow`: flow control

mod calls;
mod delivery;
mod descriptor;
mod effect;
mod entry;
mod events;
mod flow;
mod initiator;
mod interface;
mod likeness;
mod lists;
mod matching;
mod operation;
pub(crate) mod slab;
mod state;
mod transfers;
mod triggered;
mod unexpected;

pub use calls::{NewEntry, check_increment};
pub use delivery::Ending;
pub use descriptor::MemoryDescriptor;
pub use effect::{Effect, InternalError, Notice};
pub use entry::{Entry, Placement};
pub use initiator::Initiated;
pub(crate) use interface::{Interface, index_of_options};
pub use interface::{MAX_VOLATILE_SIZE, default_limits};
pub use likeness::Likeness;
pub use matching::Delivery;
pub use operation::{CardPlace, Operation, OperationKind};
pub use state::{DEFAULT_PID, Portals};
pub use triggered::{Action, FetchAction, RmaOp, Target, TriggeredOp};
