// SPDX-License-Identifier: Apache-2.0
//! Rules of a card, on the test bench: cards and packets in one process. Expected times are computed by hand from the
//! parameters of the machine `sc17-int`.

mod flow;
mod handlers;
mod interfaces;
mod matching;
mod operations;
mod packets;
mod partition;
mod rig;
mod rules;
mod sending;
