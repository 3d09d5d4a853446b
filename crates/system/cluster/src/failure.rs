use sim::Time;

/// A card has met a state that cannot occur, which is a defect of the simulator: the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error of the card of node {node} at {at}: {error}, please report")]
pub struct InternalError {
    /// The node of the card.
    pub node: u32,
    /// When, in simulated time.
    pub at: Time,
    /// The state.
    pub error: nic::InternalError,
}
