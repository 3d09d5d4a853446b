//! The replacement of `repetition.rs` for processors other than x86-64, on which threads cannot be inspected.

use super::rank_state::Job;

impl Job {
    /// Returns `None`: it is not known what the ranks do next.
    pub fn fingerprint(&self) -> Option<u64> {
        None
    }
}
