// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin`: handlers for PsPIN's own interface.
//!
//! * `hardware`: the same on the hardware of `rtl`, and what is told when that cannot be simulated
//! * `folders`: folders in the layout of the published artefact, with their Makefiles and drivers
//! * `interfaces`: names and rules of public programs
//! * `programs`: sources and programs, on packets that are generated or captured
//! * `use_cases`: the use cases of the paper (`sdk/handlers/pspin`)

mod folders;
mod hardware;
mod interfaces;
mod programs;
mod use_cases;

use std::path::{Path, PathBuf};

/// The checkout.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}
