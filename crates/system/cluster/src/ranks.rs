use crate::failure::InternalError;
use crate::memory::HostMemory;
use crate::state::Cluster;

/// The ranks on the hosts of a cluster: one for each node. [`Cluster::run`] calls these functions.
///
/// No implementation calls the event loop again: a rank schedules an event for what shall happen later, or keeps it in
/// a queue of its own that it processes before it returns.
pub trait Ranks {
    /// An event that a rank schedules for itself.
    type Event;
    /// The memory that cards read and write.
    type Memory: HostMemory;
    /// The outcome of a run.
    type End;
    /// Why a run fails.
    type Error;

    /// The memory that cards read and write.
    fn memory(&mut self) -> &mut Self::Memory;

    /// The rank to which an event belongs.
    fn rank_of(&self, event: &Self::Event) -> usize;

    /// Whether nobody waits for an event any more, as for the time limit of a wait that is over. It is dropped, and the simulated
    /// time does not pass because of it.
    fn is_void(&self, _event: &Self::Event) -> bool {
        false
    }

    /// Starts the ranks, before the first event.
    ///
    /// # Errors
    /// When the run fails.
    fn start(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// The outcome, if the run has ended. It is queried before each event.
    fn end(&mut self) -> Option<Self::End>;

    /// Lets ranks that live in real time act at the present simulated time, before the next event is handled. Returns
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

    /// Handles [`Cluster::notices`] after the card of `rank` has handled an event. Cards of switches have no rank.
    ///
    /// # Errors
    /// When the run fails.
    fn card_has_acted(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Ends the run because a card has met a state that cannot occur. Returns the error of the run.
    fn card_has_failed(&mut self, error: InternalError) -> Self::Error;

    /// Is called when an event of a card or of a rank has been handled completely.
    ///
    /// # Errors
    /// When the run fails.
    fn event_is_over(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Is called when the next event belongs to `rank`, or to a switch, and is beyond the limit of simulated time. If the
    /// run can continue without the event, that is not an error.
    ///
    /// # Errors
    /// When the run fails.
    fn is_out_of_time(&mut self, rank: usize, cluster: &mut Cluster<Self::Event>) -> Result<(), Self::Error>;

    /// Is called when no event is left. Returns the outcome of the run, or `None` if a rank has found more to do.
    ///
    /// # Errors
    /// When the run fails, as ranks wait for each other.
    fn no_event_is_left(&mut self, cluster: &mut Cluster<Self::Event>) -> Result<Option<Self::End>, Self::Error>;
}
