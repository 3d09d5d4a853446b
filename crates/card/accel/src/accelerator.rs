use std::rc::Rc;

use sim::Time;

use crate::command::{CommandId, Issued, Reply};
use crate::debug::Debugger;
use crate::memory::{AllocationError, HpuMemory, OutsideMemory};
use crate::outcome::Finished;
use crate::profile::Profile;
use crate::program::{CardProgram, ImageError};
use crate::task::{MessageId, Packet, Task};

/// An event that an accelerator has scheduled for itself; only the accelerator knows what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The part of the accelerator that it is for.
    pub unit: u32,
    /// A number by which that part recognises an obsolete event.
    pub token: u32,
}

/// A period in which a handler occupies a processor, for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSlice<'a> {
    /// The number of the processor.
    pub hpu: u32,
    /// The start of the period.
    pub start: Time,
    /// The end of the period.
    pub end: Time,
    /// The handler.
    pub name: &'a str,
    /// The message and the packet that it processes.
    pub packet: Option<(MessageId, Packet)>,
}

/// A text that a handler shows to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The number of the processor.
    pub hpu: u32,
    /// The handler.
    pub handler: Rc<str>,
    /// The time at which it has printed.
    pub at: Time,
    /// The text.
    pub text: String,
}

/// An error of the simulator itself: a state that cannot occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternalError {
    /// A task was offered to an accelerator without a program.
    #[error("a handler is to be run although no device program is loaded")]
    NoProgram,
    /// A processor refers to a context in which no handler is resident.
    #[error("no handler is resident in HPU context {0}")]
    NoHandler(u16),
    /// An event stops a handler that does not run.
    #[error("the handler in HPU context {0} stops although it does not run")]
    NotRunning(u16),
    /// The card replied to a command that has not been issued, or replied in a way that does not fit.
    #[error("a command of HPU context {0} got an unexpected reply")]
    UnexpectedReply(u32),
    /// The accelerator uses addresses at which it has no memory.
    #[error(transparent)]
    Memory(#[from] OutsideMemory),
}

/// The services that an accelerator gets from its card.
///
/// `issue` and `finished` only record work for the card; it acts when the call of the accelerator has returned, so the
/// card never re-enters an accelerator.
pub trait Env {
    /// The current time.
    fn now(&self) -> Time;
    /// The time of the next event of the whole run, [`Time::MAX`] when there is none. Until then nobody calls this
    /// accelerator, except for the replies to what it does itself, so it may simulate that time in one go.
    fn horizon(&self) -> Time;
    /// Schedules a call of [`Accelerator::handle`] with `event` at time `at`.
    fn schedule(&mut self, at: Time, event: Event);
    /// A handler has issued a command. The card executes it and replies with [`Accelerator::complete`].
    fn issue(&mut self, issued: Issued);
    /// A handler has ended. The card takes back the task and its packet, and calls [`Accelerator::resume`] when it has
    /// acted on the outcome.
    fn finished(&mut self, finished: Finished);
    /// A handler shows a text to the user.
    fn print(&mut self, printed: Printed);
    /// The sanitizer has found a mistake of a handler, in words.
    fn found(&mut self, mistake: String);
    /// Whether slices are recorded.
    fn tracing(&self) -> bool;
    /// Adds a slice to the timeline.
    fn slice(&mut self, slice: HandlerSlice<'_>);
}

/// An accelerator, which runs handlers on a card.
///
/// The card owns the messages: their order, verdicts and ends. The accelerator owns processors, memories and packet
/// buffers. They interact only through this trait and [`Env`].
pub trait Accelerator {
    /// Loads a device program; an accelerator holds one.
    ///
    /// # Errors
    /// When the program was prepared for an accelerator with larger memories.
    fn load(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError>;
    /// The device program.
    fn program(&self) -> Option<&Rc<CardProgram>>;
    /// Discards the device program, all allocated memory, and everything that runs or waits. DMA transfers in flight
    /// still end.
    fn unload(&mut self);

    /// Allocates HPU memory, filled with zeros. It is freed when its last owner drops it.
    ///
    /// # Errors
    /// When the length is 0, or when no free piece is large enough.
    fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError>;
    /// Writes the initial state of handlers to the start of their memory.
    ///
    /// # Errors
    /// When the memory is not one of this accelerator.
    fn initialise(&mut self, memory: &HpuMemory, state: &[u8]) -> Result<(), InternalError>;
    /// Releases memory of the host computer that is not needed while nothing runs.
    fn trim(&mut self);

    /// Puts a packet into a buffer, from now on. The data after the first `user_header` bytes is aligned for handlers.
    /// Returns `None` when all buffers are full: the card then drops the packet and starts flow control.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn store(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
        env: &mut dyn Env,
    ) -> Result<Option<Packet>, InternalError>;
    /// Number of packet buffers.
    fn packet_buffers(&self) -> u32;
    /// The maximum number of bytes of packets that were in buffers at once.
    fn packet_buffer_peak(&self) -> u64;
    /// Takes a packet's data out of its buffer, which becomes free.
    ///
    /// # Errors
    /// When the packet is not one of this accelerator.
    fn take(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError>;
    /// Frees the buffer of a packet.
    fn free(&mut self, packet: Packet);

    /// Offers a handler to be run, now or later. The packet stays in its buffer until the card frees it.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn offer(&mut self, task: Task, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Handles an event that this accelerator has scheduled.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn handle(&mut self, event: Event, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Passes on the card's reply to a command. A second reply follows after [`Reply::Blocked`], [`Reply::Queued`] and
    /// a transfer that was [`UnderWay`](crate::Transfer::UnderWay).
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn complete(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Is called when the card has acted on the outcome of a finished handler: its context is free for the next task.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn resume(&mut self, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Is called when all handlers of a message have ended, also when it has had none. Messages that are
    /// [withdrawn](Accelerator::withdraw) end without this call.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn message_ended(&mut self, message: MessageId, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Ends all waiting and running tasks of these messages, which are sorted by number, and returns them in the order
    /// in which they were found. Transfers of their commands no longer write to memory that belonged to a handler.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn withdraw(&mut self, messages: &[MessageId], env: &mut dyn Env) -> Result<Vec<Task>, InternalError>;

    /// Reads memory of the handler that has issued a command. Returns `None` when it is not the handler's own.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn read(&mut self, id: CommandId, address: u32, length: u32) -> Result<Option<Vec<u8>>, InternalError>;
    /// Whether memory is writable for the handler that has issued a command.
    fn may_write(&self, id: CommandId, address: u32, length: u32) -> bool;
    /// Writes the data of a command to card memory, unless it was for memory of a handler that has ended meanwhile.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    fn deliver(&mut self, id: CommandId, address: u32, data: &[u8]) -> Result<(), InternalError>;

    /// Lets the texts that handlers print take no time on the card.
    fn set_print_free(&mut self);
    /// Looks for data races of handlers from now on. Returns whether this kind of accelerator can.
    fn sanitize(&mut self) -> bool;
    /// Attaches a debugger. Returns whether this kind of accelerator can be debugged.
    fn attach(&mut self, debugger: Box<dyn Debugger>) -> bool;
    /// Counts, from now on, how often each instruction is executed.
    fn set_profiling(&mut self);
    /// Number of executions of each instruction.
    fn profile(&self) -> Profile;
    /// The time for which all processors together were occupied.
    fn busy(&self) -> Time;
}
