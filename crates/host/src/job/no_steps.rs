//! Other processors than x86-64: threads cannot be looked at, and nothing is inferred from their silence.

use super::spin::{Loop, Sample};
use std::collections::BTreeSet;

/// A stopped thread, of which there is none.
pub enum Held {}

impl Held {
    /// Whether it is the thread of this number.
    pub fn is(&self, _tid: u32) -> bool {
        match *self {}
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        match *self {}
    }

    /// Whether it may go on.
    pub fn is_roused(&self, _polls: &Loop) -> bool {
        match *self {}
    }

    /// Follows it.
    pub fn find_loop(&self, _within: Option<&BTreeSet<u64>>, _disturbed: &dyn Fn() -> bool) -> Result<Loop, Sample> {
        match *self {}
    }
}

/// The process itself, to ask about.
pub fn running_threads(process: u32, inside: impl Fn(u32) -> bool) -> Vec<u32> {
    if inside(process) { Vec::new() } else { vec![process] }
}

/// It may not be looked at.
pub fn sample(_tid: u32, _waited_for: bool, _disturbed: &dyn Fn() -> bool) -> Sample {
    Sample::Denied
}
