// SPDX-License-Identifier: Apache-2.0
//! `libpspin.so`: the host side of the published interface of the PsPIN artefact. A driver links it, and simulates one
//! card in its own process.
//!
//! * [`api`]: every function of `pspinsim.h` and `spin.h`; `types`: their structures
//! * `session`: the set-up by the driver, and the card if loaded
//! * `settings`: the machine, from the environment and the driver's configuration
//! * `program`: the program of the card, from the folder into which `make deploy` wrote it
//! * `simulation`: main loop of the card and the driver's requests
//! * `requests`: pending requests of the driver; `callbacks`: functions of the driver
//! * `host`: host memory as accessed by the card
//! * `packets`: packets of the driver, one by one or from a trace
//! * `diagnostics`: messages for the user
//! * `statistics`: counts for the text at the end
//!
//! All state belongs to the calling thread. Callbacks run in that thread within `pspinsim_run`, and may add packets and
//! transfers: these calls touch only `requests`.

pub mod api;
mod callbacks;
mod diagnostics;
mod host;
mod packets;
mod program;
mod requests;
mod session;
mod settings;
mod simulation;
mod statistics;
mod types;
