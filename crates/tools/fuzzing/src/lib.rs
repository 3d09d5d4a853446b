// SPDX-License-Identifier: Apache-2.0
//! Targets of the fuzzers. A target takes any bytes and panics if an invariant is violated. `fuzz/` drives the targets
//! with libFuzzer (`make fuzz`); `tests/corpus.rs` replays the files of `fuzz/corpus` through the same functions in
//! every test run.
//!
//! * `schedules`: GOAL text and binary files, those of LogGOPSim, noise, and execution with one and with two threads
//! * `traces`: traces of MPI programs, Chakra execution traces, connection matrices of htsim
//! * `machines`: machine files with `--set`, topologies in DOT and of htsim
//! * `device`: device programs and their images
//! * `engine`: arbitrary code on the HPU engine, with both timing models
//! * `paths`: execution paths of the HPU engine on the same code, compared at each stop
//! * `cards`: three cards, arbitrary library calls, handlers and packets
//! * `tenants`: a hostile job with two cards, and the card of a victim
//! * `pmi`: PMI-1 clients that send arbitrary bytes
//! * `network`: captures of packets, and rules that sort packets into messages
//! * `pspin`: a PsPIN unit with its NIC, arbitrary handlers and packets
//! * `mailbox`: ranks that write arbitrary bytes into the memory shared with the simulator

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
mod tenants;
mod traces;

/// Target: its name, also that of its folder in `fuzz/corpus`, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("goal_text", schedules::text),
    ("goal_binary", schedules::binary),
    ("goal_lgs", schedules::lgs),
    ("goal_run", schedules::execution),
    ("goal_noise", schedules::noise),
    ("mpi_text", traces::liballprof),
    ("mpi_binary", traces::tracer),
    ("chakra", traces::chakra),
    ("connections", traces::connections),
    ("machine", machines::machine),
    ("topology", machines::topology),
    ("tiers", machines::tiers),
    ("device_elf", device::elf),
    ("device_image", device::image),
    ("hpu", engine::code),
    ("paths", paths::code),
    ("cards", cards::calls),
    ("tenants", tenants::play),
    ("capture", network::captures),
    ("rules", network::matching),
    ("pspin", pspin::unit),
    ("pmi", pmi::clients),
    ("mailbox", mailbox::slots),
];
