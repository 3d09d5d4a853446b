//! `libportals.so`: the Portals 4 API and P4sPIN's host calls for programs that `spinrun` starts.
//!
//! The library knows no semantics. A call is written into the calling thread's slot of the job's shared memory, the
//! simulator performs it, and its results are written to where the C prototype wants them ([`abi::mailbox`]).
//!
//! * [`api`]: every function of `portals4.h` and `spin.h`
//! * [`argument`]: how each kind of C argument travels
//! * [`session`]: the process's connection to the simulator, `PtlInit` and `PtlFini`
//! * [`call`]: one call through a thread's slot
//! * [`output`]: what C's streams have buffered

pub mod api;
mod argument;
mod call;
mod output;
mod session;
