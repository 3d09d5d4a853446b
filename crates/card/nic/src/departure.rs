use sim::Time;

/// When a packet leaves its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number by which the interconnect knows the packet.
    pub ticket: u32,
    /// When its first byte leaves.
    pub start: Time,
    /// When its last byte has left.
    pub end: Time,
}
