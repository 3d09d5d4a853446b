// SPDX-License-Identifier: Apache-2.0
//! `libpspin.so`: the host side of the interface that the PsPIN artefact published. A driver is linked with it, and simulates one
//! card in its own process.
//!
//! * [`api`]: every function of `pspinsim.h` and `spin.h`; `types`: their structures
//! * `session`: what the driver has set up, and the card when there is one
//! * `settings`: the machine, by the environment and the driver's configuration
//! * `program`: the program of the card, from the folder into which `make deploy` wrote it
//! * `simulation`: the card, and what the driver wants of it, in one loop
//! * `requests`: what the driver has asked for and the simulation has not taken; `callbacks`: what the driver is told
//! * `host`: the host's memory, as the card sees it
//! * `packets`: packets of the driver, one by one or from a trace
//! * `messages`: what people are told
//! * `statistics`: what is counted for the text at the end
//!
//! All state belongs to the thread that calls. Callbacks run in that thread within `pspinsim_run`, and may call whatever adds
//! packets and transfers: such calls touch only `requests`.

pub mod api;
mod callbacks;
mod host;
mod messages;
mod packets;
mod program;
mod requests;
mod session;
mod settings;
mod simulation;
mod statistics;
mod types;
