//! Handler processing units: instruction sets x core timing models.
//!
//! A [`Program`] is the device ELF of one HPU kind. An [`Engine`] runs handlers of it, each as a [`Thread`] on the bytes
//! that a [`Memory`] lets it touch, until the card must decide something ([`Stop`]).
//!
//! * `program`: the ELF, its segments, symbols and line table
//! * `isa`: RV32IMAFDC with Zicsr, Zifencei and Zicntr: a table of encodings, one semantic function for each instruction
//! * `sync`, `watch`: which accesses happen at their exact time, in the order of all HPUs: those beside fences, and those to
//!   words on which a handler waits
//! * `engine`: code is decoded once into straight-line blocks, which then run from the decoded form
//! * `profile`: how often each instruction ran, on request
//! * `timing`: HPU memory has fixed latency and no caches, so a block that starts in a given pipeline state always takes
//!   the same cycles and leaves the same state; each such transition is simulated once and looked up after
//!
//! Determinism: the outcome depends on the program, the arguments, the bytes and, for `ooo-a15`, on the branches that
//! the card has run before (its branch predictor learns, as a core's does).

mod engine;
mod isa;
mod memory;
mod profile;
mod program;
mod stop;
mod sync;
mod thread;
mod timing;
mod watch;

pub use engine::{Engine, Predictor};
pub use memory::{Memory, Sharing, Window};
pub use program::{ElfError, Location, Program};
pub use stop::{Fault, Stop};
pub use thread::Thread;
pub use watch::Watched;
