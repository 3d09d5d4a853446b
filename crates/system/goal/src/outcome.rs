// SPDX-License-Identifier: Apache-2.0
//! Results of a run, common to all models.

use sim::Time;

/// Results of a run. `D` is the model-specific part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome<D> {
    /// End of each rank
    pub ends: Vec<Time>,
    /// Number of operations and messages
    pub events: u64,
    /// Sends of unreceived messages, in ascending order
    pub unreceived: Vec<u32>,
    /// Model-specific results
    pub details: D,
}

impl Outcome<()> {
    /// Adds the model-specific part.
    pub(crate) fn with<D>(self, details: D) -> Outcome<D> {
        let Outcome { ends, events, unreceived, .. } = self;
        Outcome { ends, events, unreceived, details }
    }

    /// Adds the outcome of the ranks after those of this one.
    pub(crate) fn append(&mut self, mut later: Outcome<()>) {
        self.ends.append(&mut later.ends);
        self.events += later.events;
        self.unreceived.append(&mut later.unreceived);
        self.unreceived.sort_unstable();
    }
}

impl<D> Outcome<D> {
    /// Returns the end of the last rank.
    pub fn end(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }
}
