// SPDX-License-Identifier: Apache-2.0
//! `spincc` and `spinrun` together, on the programs of `tests/programs`: results and times as seen by programs.

mod debugging;
mod determinism;
mod drops;
mod ends;
mod errors;
mod fabric;
mod failures;
mod handlers;
mod harness;
mod jobs;
mod loggopsim2;
mod noise;
mod offload;
mod order;
mod outlive;
mod outputs;
mod p4spin;
mod p4spin_limits;
mod p4spin_times;
mod portals;
mod pspin;
mod refusals;
mod shared;
mod start;
mod switches;
mod times;
