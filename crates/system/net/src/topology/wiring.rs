use sim::{Time, TimePerByte};

use crate::NetError;

/// Hosts and switches, and the vertices to which each vertex has a link, in the order of its ports.
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

/// The ports of a switch that lead on a shortest path to a host, and the virtual channel of a packet that takes one of
/// them: virtual channels of a link have buffers of their own, so that no packet waits, through however many others,
/// for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHops<'a> {
    pub ports: &'a [u32],
    pub vc: u8,
    /// Whether the second port has the other channel of the pair.
    pub is_pair: bool,
}

impl NextHops<'_> {
    /// The virtual channel of the port at `place` of the list.
    #[inline]
    pub fn vc(&self, place: usize) -> u8 {
        self.vc ^ u8::from(self.is_pair && place == 1)
    }
}

/// The part of a packet's path that routing needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteState {
    /// Number of links between switches so far.
    pub hops: u8,
    /// Class of its path.
    pub class: u8,
}

/// Refuses more vertices or links than 30 bits can count.
///
/// # Errors
/// [`NetError::TooLarge`].
pub(crate) fn too_large(count: u64) -> Result<(), NetError> {
    if count > 1 << 30 { Err(NetError::TooLarge) } else { Ok(()) }
}
