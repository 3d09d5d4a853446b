//! The unit of the sPIN paper (SC'17 §3.2, §4.2): HPUs with contexts, and memories that all of them share.
//!
//! Tasks wait in one queue for a free context; a context belongs to an HPU, and handlers do not migrate (sPIN §3.2.2).
//! A handler that waits leaves its HPU to another one that is resident there. Dispatch takes no time.
//!
//! * `unit`: the structure of a unit, its program and its memories
//! * `context`, `hpus`, `buffers`, `handles`: the parts of a unit
//! * `schedule`: decides which handler runs on which HPU, and for how long
//! * `end`: how handlers end
//! * `calls`: commands of handlers
//! * `debug`, `told`: what a debugger sees and changes; findings of the sanitizer that the user knows
//! * `interface`: the unit as an [`Accelerator`](crate::Accelerator)

mod calls;
mod context;
mod debug;
mod end;
mod hpus;
mod interface;
mod schedule;
mod told;
mod unit;

pub use unit::Unit;
