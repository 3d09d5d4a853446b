// SPDX-License-Identifier: Apache-2.0
//! Trait of the ranks that run on a cluster.

use crate::failure::InternalError;
use crate::memory::HostMemory;
use crate::nodes::Cluster;

/// The ranks on the hosts of a cluster: one for each node. [`Cluster::run`] calls these functions.
///
/// Implementations must not call the event loop recursively: a rank schedules an event for later work, or keeps it in
/// its own queue and processes it before it returns.
pub trait Ranks {
    /// Event that a rank schedules for itself.
    type Event;
    /// Memory that cards read and write.
    type Memory: HostMemory;
    /// Outcome of a run.
    type End;
    /// Error of a run.
    type Error;

    /// Returns the memory that cards read and write.
    fn memory(&mut self) -> &mut Self::Memory;

    /// Returns the rank of an event.
    fn rank_of(&self, event: &Self::Event) -> usize;

    /// Returns true if an event is obsolete, such as the time limit of a finished wait. The cluster drops it without
    /// advancing simulated time.
    fn is_void(&self, _event: &Self::Event) -> bool {
        false
    }

    /// Starts the ranks, before the first event.
    ///
    /// # Errors
    /// If the run fails.
    fn start(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Returns the outcome if the run has ended. Called before each event.
    fn end(&mut self) -> Option<Self::End>;

    /// Lets ranks that live in real time act at the current simulated time, before the next event. Returns true if one
    /// acted.
    ///
    /// # Errors
    /// If the run fails.
    fn act_between_events(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<bool, Self::Error>;

    /// Handles an event that a rank scheduled.
    ///
    /// # Errors
    /// If the run fails.
    fn handle(&mut self, event: Self::Event, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Handles [`Cluster::notices`] after the card of `rank` handles an event. Cards of switches have no rank.
    ///
    /// # Errors
    /// If the run fails.
    fn card_has_acted(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Ends the run because a card reached an impossible state. Returns the error of the run.
    fn card_has_failed(&mut self, error: InternalError) -> Self::Error;

    /// Called after an event of a card or of a rank is completely handled.
    ///
    /// # Errors
    /// If the run fails.
    fn event_is_over(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Called when the next event belongs to `rank`, or to a switch, and is beyond the limit of simulated time. Returns
    /// no error if the run can continue without the event.
    ///
    /// # Errors
    /// If the run fails.
    fn is_out_of_time(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Called when no event is left. Returns the outcome of the run, or `None` if a rank scheduled more work.
    ///
    /// # Errors
    /// If the run fails because ranks wait for each other.
    fn no_event_is_left(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<Option<Self::End>, Self::Error>;
}
