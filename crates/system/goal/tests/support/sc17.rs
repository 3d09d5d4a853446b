// SPDX-License-Identifier: Apache-2.0
//! Parameters of packet networks, for their tests.

use goal::RunProgress;
use goal::packet::Parameters;
use net::fabric::{Flow, Routing, Transport};
use sim::{Time, TimePerByte};

/// Returns the network and hosts of sPIN §4.2: o = 65 ns, g = 6.7 ns, 20 ps a byte, 50 ns a switch, 33.4 ns a wire.
pub fn sc17() -> Parameters {
    Parameters {
        overhead: Time::from_ns(65),
        overhead_per_byte: TimePerByte::INFINITE,
        eager: 65_535,
        noise: None,
        threads: 1,
        progress: RunProgress::default(),
        network: net::fabric::Parameters {
            gap_per_byte: TimePerByte::from_fs_per_byte(20_000),
            wire: Time::from_ps(33_400),
            switch: Time::from_ns(50),
            mtu: 4096,
            gap: Time::from_ps(6_700),
            buffer: 65_536,
            flow: Flow::Credits,
            routing: Routing::Ecmp,
            seed: 1,
            transport: Transport::USUAL,
        },
    }
}
