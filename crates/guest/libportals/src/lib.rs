//! `libportals.so`: the Portals 4 API and P4sPIN's host calls for programs that `spinrun` starts.
//!
//! The library knows no semantics. A call is written into the calling thread's slot of the job's shared memory, the
//! simulator performs it, and its results are written to where the C prototype wants them ([`abi::mailbox`]).
//!
//! * [`api`]: every function of `portals4.h` and `spin.h`
//! * [`argument`]: how each kind of C argument travels
//! * [`attachment`]: `PtlInit` and `PtlFini`, and the images of device programs
//! * [`clock`]: the connection to `libsimclock.so`
//! * [`call`]: one call through a thread's slot
//! * [`posting`]: calls whose answer is known before they are made
//! * [`known`]: events and counters that are known before they are asked for
//! * [`quiet`]: sleeps and polls while nothing else happens
//! * [`session`]: the process's connection to the simulator
//! * [`output`]: the C library's output streams

pub mod api;
mod argument;
mod attachment;
mod call;
mod clock;
mod known;
mod output;
mod posting;
mod quiet;
mod session;
