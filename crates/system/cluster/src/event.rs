// SPDX-License-Identifier: Apache-2.0
//! Events of the cluster's event queue.

use net::fabric;
use nic::NicEvent;

/// An event of the cluster.
pub enum Event<E> {
    /// An internal event of a card, or the arrival of a packet.
    Card(u32, NicEvent),
    /// An internal event of the network.
    Network(fabric::Event),
    /// An event scheduled by a rank.
    Rank(E),
}
