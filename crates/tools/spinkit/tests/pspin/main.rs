// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin`: handlers for PsPIN's own interface.
//!
//! * `hardware`: the same on the hardware of `rtl`, and messages when that cannot be simulated
//! * `folders`: folders in the layout of the published artefact, with their Makefiles and drivers
//! * `interfaces`: names and rules of public programs
//! * `programs`: sources and programs, on generated or captured packets
//! * `use_cases`: the use cases of the paper (`sdk/handlers/pspin`)

mod folders;
mod hardware;
mod interfaces;
mod programs;
mod use_cases;

use std::path::{Path, PathBuf};

/// Returns the root of the checkout.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}
