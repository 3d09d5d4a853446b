use net::fabric;
use nic::NicEvent;

/// An event of the cluster.
pub enum Event<E> {
    /// A card handles an event of its own, or a packet that arrives.
    Card(u32, NicEvent),
    /// The network handles an event of its own.
    Network(fabric::Event),
    /// A rank handles an event that it has scheduled.
    Rank(E),
}
