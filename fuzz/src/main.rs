// SPDX-License-Identifier: Apache-2.0
//! libFuzzer on the target that `FUZZ_TARGET` names; see the crate `fuzzing`.
#![no_main]

use std::sync::OnceLock;

use fuzzing::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

fn chosen() -> &'static Target {
    static CHOSEN: OnceLock<&Target> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        TARGETS.iter().find(|target| target.0 == name).unwrap_or_else(|| {
            let names: Vec<_> = TARGETS.iter().map(|target| target.0).collect();
            eprintln!("FUZZ_TARGET is \"{name}\"; there are: {}", names.join(" "));
            std::process::exit(2)
        })
    })
}

fuzz_target!(|bytes: &[u8]| chosen().1(bytes));
