// SPDX-License-Identifier: Apache-2.0
//! Hardware in lockstep with the model. These tests build simulators of the hardware, which needs `make build` and
//! `make -C rtl tools` and takes minutes: `make -C rtl test-lockstep` runs them.

mod defects;
mod ends;
mod hpu;
mod small_machine;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use machine::{Accelerator, Machine};
use output::Cache;

/// Returns the root of the checkout.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// Returns the cache of simulators, shared with the commands of a checkout.
fn cache() -> Cache {
    Cache::at(&home().join(".cache/zig")).unwrap()
}

/// Loads a machine.
fn machine(name: &str) -> Machine {
    Machine::load(name, &[home().join("machines")], &[]).unwrap()
}

/// Returns the unit of a machine.
fn unit(name: &str) -> Rc<machine::Pspin> {
    match machine(name).accelerator {
        Accelerator::Pspin(unit) => Rc::from(unit),
        other => panic!("{}", other.kind()),
    }
}

/// Compiles a source: general handlers, those that wait and end in all ways, or those controlled by random packets.
const HANDLERS: &str = "crates/card/pspin-rtl/tests/lockstep/handlers.c";
const ENDS: &str = "crates/card/pspin-rtl/tests/lockstep/ends.c";
const RANDOM: &str = "rtl/tests/lockstep/random.c";

fn program(source: &str) -> Vec<u8> {
    let room = tempfile::tempdir().unwrap();
    let target = room.path().join("program.elf");
    let here = std::env::current_exe().unwrap();
    let compiler = here.ancestors().nth(2).unwrap().join("spinkit-pspin");
    assert!(compiler.is_file(), "{} is not there: make build", compiler.display());
    let mut command = Command::new(compiler);
    command.args(["cc", "--hpu", "rv32imac-corev", "-O2"]).arg(home().join(source)).arg("-o").arg(&target);
    assert!(command.env("SPINKIT_HOME", home()).status().unwrap().success(), "the handlers compile");
    std::fs::read(target).unwrap()
}
