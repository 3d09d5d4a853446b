// SPDX-License-Identifier: Apache-2.0
//! Parameters of the LogGOPS model.

use sim::{Time, TimePerByte};

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogGops {
    /// L: latency of the network
    pub latency: Time,
    /// o: CPU time per message
    pub overhead: Time,
    /// g: NIC time per message
    pub gap: Time,
    /// G: NIC time per byte after the first
    pub gap_per_byte: TimePerByte,
    /// O: CPU time per byte after the first
    pub overhead_per_byte: TimePerByte,
    /// S: maximum size in bytes of a message that does not wait for its receive
    pub eager: u64,
}

impl Default for LogGops {
    /// Returns the defaults of LogGOPSim.
    fn default() -> LogGops {
        LogGops {
            latency: Time::from_ns(2500),
            overhead: Time::from_ns(1500),
            gap: Time::from_ns(1000),
            gap_per_byte: TimePerByte::from_fs_per_byte(6_000_000),
            overhead_per_byte: TimePerByte::INFINITE,
            eager: 65_535,
        }
    }
}

impl LogGops {
    /// Returns the parameters of a machine whose network has this `latency` between the cards. O is zero, as the cards
    /// move the data, and S is the default, as a machine has no such parameter.
    pub fn of_machine(machine: &machine::Machine, latency: Time) -> LogGops {
        LogGops {
            latency,
            overhead: machine.host.overhead,
            gap: machine.network.gap,
            gap_per_byte: machine.network.gap_per_byte,
            ..LogGops::default()
        }
    }
}
