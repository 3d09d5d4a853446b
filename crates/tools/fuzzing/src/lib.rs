// SPDX-License-Identifier: Apache-2.0
//! The targets of the fuzzers. A target is a function that takes any bytes and panics if an invariant is violated.
//! `fuzz/` drives the targets with libFuzzer (`make fuzz`); `tests/corpus.rs` replays the files of `fuzz/corpus`
//! through the same functions in every test run.
//!
//! * `schedules`: GOAL text and binary files, noise, and execution with one and with two threads
//! * `traces`: traces of MPI programs
//! * `machines`: machine files with `--set`, topologies in DOT
//! * `device`: device programs and the images that hold them
//! * `engine`: any code on the HPU engine, with both timing models
//! * `paths`: the HPU engine's execution paths on the same code, compared where they stop
//! * `cards`: three cards, any library calls, handlers and packets
//! * `pmi`: clients of PMI-1 that send anything
//! * `network`: captures of packets, and rules that sort packets into messages
//! * `pspin`: a PsPIN unit with its NIC, any handlers and packets
//! * `mailbox`: ranks that write anything into the memory that they share with the simulator

mod base;
mod cards;
mod device;
mod engine;
mod machines;
mod mailbox;
mod network;
mod paths;
mod pmi;
mod pspin;
mod schedules;
mod traces;

/// A target: its name, which is also that of its folder in `fuzz/corpus`, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("goal_text", schedules::text),
    ("goal_binary", schedules::binary),
    ("goal_run", schedules::execution),
    ("goal_noise", schedules::noise),
    ("mpi_text", traces::liballprof),
    ("mpi_binary", traces::tracer),
    ("machine", machines::machine),
    ("topology", machines::topology),
    ("device_elf", device::elf),
    ("device_image", device::image),
    ("hpu", engine::code),
    ("paths", paths::code),
    ("cards", cards::calls),
    ("capture", network::captures),
    ("rules", network::matching),
    ("pspin", pspin::unit),
    ("pmi", pmi::clients),
    ("mailbox", mailbox::slots),
];
