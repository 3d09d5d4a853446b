// SPDX-License-Identifier: Apache-2.0
//! `libportals.so`: the Portals 4 API and P4sPIN's host calls for programs that `spinrun` starts.
//!
//! The library implements no semantics. It writes a call into the calling thread's slot of the job's shared memory, the
//! simulator performs it, and the library stores the results through the pointers of the C prototype
//! ([`abi::mailbox`]).
//!
//! * [`api`]: every function of `portals4.h` and `spin.h`
//! * [`argument`]: encoding of each kind of C argument
//! * [`attachment`]: `PtlInit` and `PtlFini`, and the images of device programs
//! * [`clock`]: connection to `libsimclock.so`
//! * [`call`]: one call through a thread's slot
//! * [`posting`]: calls whose result is predictable, so that the thread need not wait
//! * [`accepted`]: calls that the simulator accepted
//! * [`known`]: events and counters received with the last answer
//! * [`quiet`]: sleeps and empty polls until the next event
//! * [`session`]: the process's connection to the simulator
//! * [`output`]: the C library's output streams
//! * [`library_state`]: state of a thread, a process, and a rank in the simulator's process

mod accepted;
pub mod api;
mod argument;
mod attachment;
mod call;
mod clock;
mod known;
pub mod library_state;
mod output;
mod posting;
mod quiet;
pub mod session;

pub use call::leave;
