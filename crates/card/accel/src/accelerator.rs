// SPDX-License-Identifier: Apache-2.0
//! The interface between a card and its accelerator: the traits `Accelerator` and `Env`.

use std::rc::Rc;

use sim::Time;

use crate::command::{CommandId, Issued, Reply};
use crate::memory::{AllocationError, HpuMemory, OutsideMemory};
use crate::outcome::Finished;
use crate::profile::Profile;
use crate::program::{CardProgram, ImageError};
use crate::task::{MessageId, Packet, Task};

/// An event that an accelerator schedules for itself; its meaning is private to the accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Part of the accelerator that receives the event.
    pub unit: u32,
    /// Token by which that part recognises an obsolete event.
    pub token: u32,
}

/// A period during which a handler occupies an HPU, for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSlice<'a> {
    /// Process of the handler.
    pub process: u32,
    /// Number of the HPU.
    pub hpu: u32,
    /// Start of the period.
    pub start: Time,
    /// End of the period.
    pub end: Time,
    /// Name of the handler.
    pub name: &'a str,
    /// Message and packet that the handler processes.
    pub packet: Option<(MessageId, Packet)>,
}

/// Text that a handler prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Process of the handler.
    pub process: u32,
    /// Number of the HPU.
    pub hpu: u32,
    /// Name of the handler.
    pub handler: Rc<str>,
    /// Time of the print.
    pub at: Time,
    /// The text.
    pub text: String,
}

/// An error of the simulator: an impossible state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternalError {
    /// A task was offered to an accelerator without a program.
    #[error("a handler is to be run although no device program is loaded")]
    NoProgram,
    /// An HPU refers to a context without a resident handler.
    #[error("no handler is resident in HPU context {0}")]
    NoHandler(u16),
    /// An event stops a handler that is not running.
    #[error("the handler in HPU context {0} stops although it does not run")]
    NotRunning(u16),
    /// The card replied to a command that is not outstanding, or with an unsuitable reply.
    #[error("a command of HPU context {0} got an unexpected reply")]
    UnexpectedReply(u32),
    /// The accelerator accesses addresses without memory.
    #[error(transparent)]
    Memory(#[from] OutsideMemory),
}

/// Services of the card for its accelerator.
///
/// `issue` and `finished` only queue work for the card. The card acts once the accelerator returns, so it never
/// re-enters an accelerator.
pub trait Env {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Returns the time of the next event of the whole simulation, or [`Time::MAX`] if none is pending. Until then the
    /// card calls this accelerator only to reply to its commands, so the accelerator may simulate ahead up to that
    /// time.
    fn horizon(&self) -> Time;
    /// Schedules a call of [`Accelerator::handle`] with `event` at time `at`.
    fn schedule(&mut self, at: Time, event: Event);
    /// Issues a handler's command. The card executes it and replies with [`Accelerator::complete`].
    fn issue(&mut self, issued: Issued);
    /// Reports the end of a handler. The card reclaims the task and its packet, acts on the outcome, and then calls
    /// [`Accelerator::resume`].
    fn finished(&mut self, finished: Finished);
    /// Shows a handler's text to the user.
    fn print(&mut self, printed: Printed);
    /// Reports a mistake that the sanitizer found in a handler of a process.
    fn found(&mut self, process: u32, mistake: String);
    /// Returns true if slices are recorded.
    fn tracing(&self) -> bool;
    /// Adds a slice to the timeline.
    fn slice(&mut self, slice: HandlerSlice<'_>);
}

/// Runs handlers on a card.
///
/// The card owns the messages: their order, verdicts and ends. The accelerator owns HPUs, memories and packet buffers.
/// They interact only through this trait and [`Env`].
///
/// Processes that share an accelerator have separate programs, static data and HPU memory; they share HPUs, contexts and
/// packet buffers. Programs, memory, packets, reads and writes are those of the process that the card
/// [serves](Accelerator::serve).
pub trait Accelerator {
    /// Switches to another of the processes that share the accelerator.
    fn serve(&mut self, process: u32);
    /// Loads a device program; a process has one program.
    ///
    /// # Errors
    /// Returns an error if the program was prepared for an accelerator with larger memories.
    fn load(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError>;
    /// Returns the device program.
    fn program(&self) -> Option<&Rc<CardProgram>>;
    /// Discards the device program, all allocated memory, and all running and waiting tasks. DMA transfers in flight
    /// still complete. The tasks of a process that shares the accelerator are [withdrawn](Accelerator::withdraw) before.
    fn unload(&mut self);

    /// Allocates zeroed HPU memory. It is freed when its last owner drops it.
    ///
    /// # Errors
    /// Returns an error if the length is 0, or if no free piece is large enough.
    fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError>;
    /// Copies the initial handler state to the start of `memory`.
    ///
    /// # Errors
    /// Returns an error if the memory is not one of this accelerator.
    fn initialise(&mut self, memory: &HpuMemory, state: &[u8]) -> Result<(), InternalError>;
    /// Releases host memory that an idle accelerator does not need.
    fn trim(&mut self);

    /// Stores a packet in a buffer at the current time. The data after the first `user_header` bytes is aligned for
    /// handlers. Returns `None` if all buffers are full: the card then drops the packet and starts flow control.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn store(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
        env: &mut dyn Env,
    ) -> Result<Option<Packet>, InternalError>;
    /// Returns the number of packet buffers.
    fn packet_buffers(&self) -> u32;
    /// Returns the peak number of packet bytes in buffers.
    fn packet_buffer_peak(&self) -> u64;
    /// Removes a packet's data from its buffer and frees the buffer.
    ///
    /// # Errors
    /// Returns an error if the packet is not one of this accelerator.
    fn take(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError>;
    /// Frees the buffer of a packet.
    fn free(&mut self, packet: Packet);

    /// Queues a task for execution. Its packet stays in the buffer until the card frees it.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn offer(&mut self, task: Task, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Handles an event that this accelerator scheduled.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn handle(&mut self, event: Event, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Delivers the card's reply to a command. A second reply follows [`Reply::Blocked`], [`Reply::Queued`] and a
    /// transfer that was [`UnderWay`](crate::Transfer::UnderWay).
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn complete(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Frees the context of a finished handler for the next task. The card calls this after it acts on the handler's
    /// outcome.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn resume(&mut self, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Notifies the accelerator that all handlers of a message have ended; also called for a message without handlers,
    /// but not for a [withdrawn](Accelerator::withdraw) message.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn message_ended(&mut self, message: MessageId, env: &mut dyn Env) -> Result<(), InternalError>;
    /// Ends all waiting and running tasks of `messages`, which are sorted by number, and returns the tasks in the order
    /// found. Transfers of their commands no longer write to handler memory.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn withdraw(&mut self, messages: &[MessageId], env: &mut dyn Env) -> Result<Vec<Task>, InternalError>;

    /// Reads memory of the handler that issued command `id`. Returns `None` if the range is outside the handler's
    /// memory.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn read(&mut self, id: CommandId, address: u32, length: u32) -> Result<Option<Vec<u8>>, InternalError>;
    /// Returns true if the handler that issued command `id` may write the range.
    fn may_write(&self, id: CommandId, address: u32, length: u32) -> bool;
    /// Writes the data of a command to card memory, unless the target is memory of a handler that has ended.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    fn deliver(&mut self, id: CommandId, address: u32, data: &[u8]) -> Result<(), InternalError>;

    /// Returns the peak number of bytes of HPU memory that a process had allocated.
    fn memory_peak(&self, process: u32) -> u64;
    /// Returns the number of executions of each instruction of a process; empty unless
    /// [`Observation`](crate::Observation) asks for them.
    fn profile(&self, process: u32) -> Profile;
    /// Returns the total time for which handlers of a process occupied the HPUs.
    fn busy(&self, process: u32) -> Time;
}
