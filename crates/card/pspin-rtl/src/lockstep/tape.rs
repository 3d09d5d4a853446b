// SPDX-License-Identifier: Apache-2.0
//! Events of a unit as comparable streams: model and hardware agree on the order within a stream; events of two streams
//! in one cycle are unordered.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use pspin_unit::command::Command;
use pspin_unit::her::{HpuId, Role, TaskOutcome};
use pspin_unit::observe::{Noted, Observer};
use pspin_unit::{Cycle, Status};

/// Stream of a unit: requests, feedback, and events of a cluster or an HPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Accepted requests.
    Request,
    /// Tasks arriving at a cluster.
    Task(u16),
    /// Packets copied to a cluster.
    Copied(u16),
    /// Assignments of tasks to an HPU, and starts and ends of their handlers.
    Hpu(u16, u16),
    /// Commands of an HPU.
    Command(u16, u16),
    /// Responses to an HPU.
    Response(u16, u16),
    /// Feedback of packets.
    Feedback,
}

impl Display for Stream {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stream::Request => write!(out, "requests"),
            Stream::Task(cluster) => write!(out, "tasks of cluster {cluster}"),
            Stream::Copied(cluster) => write!(out, "copies to cluster {cluster}"),
            Stream::Hpu(cluster, hpu) => write!(out, "HPU {hpu} of cluster {cluster}"),
            Stream::Command(cluster, hpu) => write!(out, "commands of HPU {hpu} of cluster {cluster}"),
            Stream::Response(cluster, hpu) => write!(out, "responses to HPU {hpu} of cluster {cluster}"),
            Stream::Feedback => write!(out, "feedback"),
        }
    }
}

/// End of a task as both sides report it: the status codes in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    kind: u8,
    cause: u32,
    pc: u32,
    address: u64,
}

impl Ending {
    /// Converts the end of a task.
    pub fn new(outcome: TaskOutcome) -> Ending {
        let Status { cause, pc, address, .. } = Status::of(outcome, Role::Payload, 0, 0);
        let kind = match outcome {
            TaskOutcome::Done => 0,
            TaskOutcome::Skipped => 1,
            TaskOutcome::Faulted(_) => 2,
            TaskOutcome::TimedOut => 3,
            TaskOutcome::MessageReset => 4,
        };
        Ending { kind, cause, pc, address }
    }
}

/// Event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Request: message, size, last-packet flag, NIC number.
    Request(u32, u32, bool, u64),
    /// Task: slot, role of the handler, NIC number of the packet.
    Task(u8, u8, u64),
    /// Slot.
    Place(u8),
    /// Start of a handler: role, and packet.
    Start(u8, u64),
    /// End of a handler: role, packet, and end.
    End(u8, u64, Ending),
    /// Command, with its slot.
    Command(u8, Command),
    /// Slot of a command.
    Slot(u8),
    /// Feedback: message, packet, kind of end, end-of-message flag.
    Feedback(u32, u64, u8, bool),
}

/// All streams of a unit.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    streams: BTreeMap<Stream, Vec<(Cycle, Note)>>,
}

/// First difference of two tapes.
#[derive(Clone, Debug)]
pub struct Difference {
    stream: Stream,
    /// Events of model and hardware, from a few before the difference on.
    told: [Vec<(Cycle, Note)>; 2],
}

/// Number of events shown before and after a difference.
const SHOWN: usize = 10;

impl Display for Difference {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "model and hardware differ in the {}", self.stream)?;
        for (name, told) in ["model", "hardware"].iter().zip(&self.told) {
            write!(out, "\n  {name}:")?;
            for (cycle, note) in told {
                write!(out, "\n    cycle {:>9}  {note:?}", cycle.0)?;
            }
        }
        Ok(())
    }
}

impl Tape {
    /// Returns all events, stream by stream.
    pub fn all(&self) -> impl Iterator<Item = (Cycle, Stream, Note)> {
        self.streams.iter().flat_map(|(stream, told)| told.iter().map(|(at, note)| (*at, *stream, *note)))
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.streams.values().map(Vec::len).sum()
    }

    /// Returns true if the tape has no events.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns the events of a stream.
    pub fn stream(&self, stream: Stream) -> &[(Cycle, Note)] {
        self.streams.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// Compares the tape of the model with that of the hardware: all streams must have the same events in the same
    /// cycles.
    ///
    /// # Errors
    /// The earliest difference.
    pub fn compare(&self, hardware: &Tape) -> Result<(), Box<Difference>> {
        let mut first: Option<(Cycle, Stream, usize)> = None;
        let streams: std::collections::BTreeSet<_> = self.streams.keys().chain(hardware.streams.keys()).collect();
        for stream in streams {
            let (a, b) = (self.stream(*stream), hardware.stream(*stream));
            let Some(index) = (0..a.len().max(b.len())).find(|index| a.get(*index) != b.get(*index)) else { continue };
            let at = a.get(index).into_iter().chain(b.get(index)).map(|told| told.0).min().unwrap_or_default();
            if first.is_none_or(|(earliest, ..)| at < earliest) {
                first = Some((at, *stream, index));
            }
        }
        let Some((_, stream, index)) = first else { return Ok(()) };
        let around = |tape: &Tape| {
            let all = tape.stream(stream);
            all[index.saturating_sub(SHOWN).min(all.len())..(index + SHOWN).min(all.len())].to_vec()
        };
        Err(Box::new(Difference { stream, told: [around(self), around(hardware)] }))
    }
}

impl Observer for Tape {
    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        let of = |HpuId { cluster, hpu }: HpuId| (cluster, hpu);
        let (stream, note) = match what {
            Noted::HerAccepted(her) => {
                (Stream::Request, Note::Request(her.message, her.packet.size, her.eom, her.user))
            }
            Noted::TaskSent { cluster, place, task } => {
                (Stream::Task(cluster), Note::Task(place, task.role as u8, task.her.user))
            }
            Noted::DmaDone { cluster, place } => (Stream::Copied(cluster), Note::Place(place)),
            Noted::Assigned { hpu, place } => (Stream::Hpu(of(hpu).0, of(hpu).1), Note::Place(place)),
            Noted::Start { hpu, task } => {
                (Stream::Hpu(of(hpu).0, of(hpu).1), Note::Start(task.role as u8, task.her.user))
            }
            Noted::End { hpu, task, outcome } => {
                let note = Note::End(task.role as u8, task.her.user, Ending::new(outcome));
                (Stream::Hpu(of(hpu).0, of(hpu).1), note)
            }
            Noted::Command { hpu, slot, command, .. } => {
                (Stream::Command(of(hpu).0, of(hpu).1), Note::Command(slot, *command))
            }
            Noted::Response { hpu, slot } => (Stream::Response(of(hpu).0, of(hpu).1), Note::Slot(slot)),
            Noted::Feedback(feedback) => {
                let kind = Ending::new(feedback.outcome).kind;
                (Stream::Feedback, Note::Feedback(feedback.message, feedback.user, kind, feedback.last))
            }
            _ => return,
        };
        self.streams.entry(stream).or_default().push((at, note));
    }
}
