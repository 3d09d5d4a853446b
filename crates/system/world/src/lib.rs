// SPDX-License-Identifier: Apache-2.0
//! Ranks that are processes, on a simulated [cluster](cluster::Cluster).
//!
//! A rank's program runs from one library call to the next while everything else is stopped.
//!
//! The modules, top-down; each uses only those below it:
//!
//! * `event_loop`: the ranks in the event loop, and [`World`], the public interface
//! * `live`: ranks in real time
//! * `deadlock`: describes deadlocks
//! * `failures`: scheduled failures of ranks and cards
//! * `pauses`: handles the pauses of ranks
//! * `polling`: ranks that wait for their own memory to change
//! * `call_dispatch`: executes library calls and charges their costs
//! * `cpu_charges`: CPU time that threads use between calls
//! * `refusal_reasons`: reasons of refused calls
//! * `parked_threads`, `lookahead`: threads that poll without success, and the time until the next event
//! * `jobs`, `tenants`, `membership`: several jobs on one cluster, their properties, ends and parts of shared cards
//! * `switches`: calls about switches with handlers
//! * `completions`, `transfers`, `device_programs`: calls that test for completions, move data, load device code
//! * `outcome`: outcomes of calls
//! * `processes`: state of the ranks, and the waits of their threads
//! * `refusals`: counts refused calls
//! * `wait`: waits inside the library
//! * `poll_state`, `search_streak`: results of polls and searches, and changes since then
//! * `barrier`, `stall_detection`: barriers, and detection of ranks that only sleep or poll
//! * `computation`: CPU time between calls, measured or recorded
//! * `event`: events of ranks
//! * `end`, `error`: end of a run

mod barrier;
mod call_dispatch;
mod completions;
mod computation;
mod cpu_charges;
mod deadlock;
mod device_programs;
mod end;
mod error;
mod event;
mod event_loop;
mod failures;
mod jobs;
mod live;
mod lookahead;
mod membership;
mod outcome;
mod parked_threads;
mod pauses;
mod poll_state;
mod polling;
mod processes;
mod refusal_reasons;
mod refusals;
mod search_streak;
mod stall_detection;
mod switches;
mod tenants;
mod transfers;
mod wait;

pub use cluster::{Death, Failures, HostTraffic, Listener, Loss, LossyPlace, Message, Victim};
pub use computation::{Computation, ComputeTimes};
pub use end::End;
pub use error::RunError;
pub use event_loop::World;
pub use failures::FailureError;
pub use refusals::{Refusals, Refused};
pub use tenants::Tenant;
