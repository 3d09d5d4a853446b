//! Ranks that are processes, on a simulated [cluster](cluster::Cluster).
//!
//! A rank's program runs from one library call to the next while everything else stands still. The modules, each of which
//! uses only those above it:
//!
//! * `end`: how a run ends
//! * `event`: what ranks schedule
//! * `computation`: CPU time between calls, as measured or recorded
//! * `barrier`, `idle`: where all ranks meet, and ranks that only sleep or poll
//! * `poll_state`, `search_streak`: what polls and searches have found, and whether they could find more
//! * `wait`: what threads inside the library wait for
//! * `refusals`: calls that were refused
//! * `processes`: the state of the ranks; threads that wait, and what lets them go on
//! * `step`: what a call leads to; `end`, `error`: how a run ends
//! * `looks`, `transfers`, `programs`: the calls that look at completions, that move data, that load device code
//! * `switches`: the calls about switches with handlers
//! * `parking`, `lookahead`: threads that find nothing to do; for how long nothing else happens
//! * `reasons`: why calls were refused
//! * `charges`: the CPU time that threads use between calls
//! * `calls`: what each library call does and costs
//! * `polling`: ranks that wait for their own memory to change
//! * `pauses`: what is done when a rank pauses
//! * `failures`: ranks and cards that die because the user wants it
//! * `run`: the ranks in the event loop, and the [`World`] that users see

mod barrier;
mod call_dispatch;
mod completions;
mod computation;
mod cpu_charges;
mod device_programs;
mod end;
mod error;
mod event;
mod event_loop;
mod failures;
mod lookahead;
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
mod transfers;
mod wait;

pub use cluster::{Death, Failures, HostTraffic, Listener, Loss, LossyPlace, Message, Victim};
pub use computation::{Computation, ComputeTimes};
pub use end::End;
pub use error::RunError;
pub use event_loop::World;
pub use failures::FailureError;
pub use refusals::{Refusals, Refused};
