// SPDX-License-Identifier: Apache-2.0
//! The unit of the sPIN paper (SC'17 §3.2, §4.2): HPUs with contexts, and memories that all of them share.
//!
//! Tasks wait in one queue for a free context; a context belongs to an HPU, and handlers do not migrate (sPIN §3.2.2).
//! A waiting handler yields its HPU to another handler resident there. Dispatch takes no time.
//!
//! * `paper_unit`: the structure of a unit; `space`: program and memories of each process that shares it
//! * `context`, `hpus`, `buffers`, `handles`: the parts of a unit
//! * `schedule`: assigns handlers to HPUs and runs them
//! * `end`: ends of handlers
//! * `calls`: commands of handlers
//! * `debug`, `told`: debugger access; reported findings of the sanitizer
//! * `interface`: the unit as an [`Accelerator`](crate::Accelerator)

mod calls;
mod context;
mod debug;
mod end;
mod hpus;
mod interface;
mod paper_unit;
mod schedule;
mod space;
mod told;

pub use paper_unit::Unit;
pub use space::Quota;
