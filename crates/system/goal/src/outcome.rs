use sim::Time;

/// The results of a run. `D` is what only the model tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome<D> {
    /// For each rank, when it ended
    pub ends: Vec<Time>,
    /// Number of operations and messages
    pub events: u64,
    /// The sends of messages that no receive took, in ascending order
    pub unreceived: Vec<u32>,
    /// What only the model tells
    pub details: D,
}

impl<D> Outcome<D> {
    /// Returns the end of the last rank.
    pub fn end(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }
}
