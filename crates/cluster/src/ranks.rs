use crate::failure::InternalError;
use crate::memory::HostMemory;
use crate::state::Cluster;

/// What runs on the hosts of a cluster: one rank a node. [`Cluster::run`] calls these functions.
///
/// Nothing in here calls the event loop again: what a rank wants to happen later, it schedules, or keeps in a queue of
/// its own which it works off before it returns.
pub trait Ranks {
    /// What a rank schedules for itself.
    type Event;
    /// The memory that cards read and write.
    type Memory: HostMemory;
    /// How a run ends.
    type End;
    /// Why a run fails.
    type Error;

    /// The memory that cards read and write.
    fn memory(&mut self) -> &mut Self::Memory;

    /// The rank whose event this is.
    fn rank_of(&self, event: &Self::Event) -> usize;

    /// Before the first event.
    ///
    /// # Errors
    /// When the run fails.
    fn start(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// How the run has ended, if it has. Asked before each event.
    fn end(&mut self) -> Option<Self::End>;

    /// Before the next event is taken, ranks that live in real time may do something at the present simulated time;
    /// whether one has.
    ///
    /// # Errors
    /// When the run fails.
    fn act_between_events(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<bool, Self::Error>;

    /// Handles an event that a rank has scheduled.
    ///
    /// # Errors
    /// When the run fails.
    fn handle(&mut self, event: Self::Event, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// The card of `rank` has handled an event; [`Cluster::notices`] has what it tells its host.
    ///
    /// # Errors
    /// When the run fails.
    fn card_has_acted(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// The run ends because a card has met a state that cannot occur. Returns the error with which it ends.
    fn card_has_failed(&mut self, error: InternalError) -> Self::Error;

    /// An event of a card or of a rank has been handled completely.
    ///
    /// # Errors
    /// When the run fails.
    fn event_is_over(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// The next event belongs to `rank` and lies beyond the limit of simulated time. If the run can go on without it,
    /// that is not an error.
    ///
    /// # Errors
    /// When the run fails.
    fn is_out_of_time(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// No event is left: the end of the run, or `None` if a rank has found something more to do.
    ///
    /// # Errors
    /// When the run fails, as ranks wait for each other.
    fn no_event_is_left(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<Option<Self::End>, Self::Error>;
}
