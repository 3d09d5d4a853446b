use net::fabric;
use nic::CardEvent;

/// An event of the cluster.
pub enum Event<E> {
    /// A card handles an event of its own, or a packet that arrives.
    Card(u32, CardEvent),
    /// The network handles an event of its own.
    Network(fabric::Event),
    /// A rank handles an event that it has scheduled.
    Rank(E),
}
