// SPDX-License-Identifier: Apache-2.0
//! Wiring of a network, and types shared by all routes.

use sim::{Time, TimePerByte};

use crate::NetError;

/// Hosts and switches, and the neighbours of each vertex in port order.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    pub description: String,
    pub hosts: u32,
    pub neighbours: Vec<Vec<u32>>,
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub from: u32,
    pub to: u32,
    /// Inverse bandwidth, if it differs from that of the network.
    pub gap_per_byte: Option<TimePerByte>,
    /// Latency, if it differs from that of the network.
    pub latency: Option<Time>,
}

/// Ports of a switch on shortest paths to a host, and the virtual channel of a packet that takes one of them. Virtual
/// channels of a link have separate buffers, which prevents cyclic waits of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHops<'a> {
    pub ports: &'a [u32],
    pub vc: u8,
    /// True if the second port uses the other channel of the pair.
    pub is_pair: bool,
}

impl NextHops<'_> {
    /// Returns the virtual channel of the port at index `place` of the list.
    #[inline]
    pub fn vc(&self, place: usize) -> u8 {
        self.vc ^ u8::from(self.is_pair && place == 1)
    }
}

/// Part of a packet's path that routing needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteState {
    /// Number of links between switches so far.
    pub hops: u8,
    /// Class of its path.
    pub class: u8,
}

/// Checks that `count` vertices or links fit into 30 bits.
///
/// # Errors
/// [`NetError::TooLarge`].
pub(crate) fn too_large(count: u64) -> Result<(), NetError> {
    if count > 1 << 30 { Err(NetError::TooLarge) } else { Ok(()) }
}
