// SPDX-License-Identifier: Apache-2.0
//! Network packets for packet-processing cards: headers, message matching, and capture files.
//!
//! * [`capture`]: capture files, pcap and pcapng
//! * [`frame`]: packet headers; [`field`]: their fields, with the names of Wireshark's display filters
//! * [`checksum`]: checksums of IPv4, UDP and TCP
//! * [`rules`]: match-action rules; [`matcher`]: the table that sorts packets into messages, header packet first
//! * [`generate`]: packets of given sizes at a given rate

#![deny(clippy::cast_possible_truncation)] // values come from input

pub mod capture;
pub mod checksum;
pub mod field;
pub mod frame;
pub mod generate;
pub mod matcher;
pub mod rules;
