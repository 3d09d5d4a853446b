//! Network packets, for cards that process them: what is in a packet, which message it belongs to, and files of packets.
//!
//! * [`capture`]: files of packets, pcap and pcapng
//! * [`frame`]: the headers of a packet; [`field`]: their fields, by the names of Wireshark's display filters
//! * [`checksum`]: checksums of IPv4, UDP and TCP
//! * [`rules`]: match-action rules; [`matcher`]: the table that sorts packets into messages, header packet first
//! * [`generate`]: packets of given sizes at a given rate

pub mod capture;
pub mod checksum;
pub mod field;
pub mod frame;
pub mod generate;
pub mod matcher;
pub mod rules;
