//! The command unit (§III-B1): it takes one command a cycle from the HPUs, gives it to the engine that executes it, and sends the
//! responses back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use machine::Pspin;
use sim::Clock;

use super::engines::{Engines, OUTBOUND, Sent, beats};
use super::kinds::{Command, Issued, Through};
use crate::pspin::cycle::Cycle;
use crate::pspin::rate::Rate;

/// The off-cluster DMA engine among [`Engines`].
const OFF_CLUSTER: usize = 1;
/// The host-direct unit.
const DIRECT: usize = 2;

/// Something that happens to a command at its time.
pub enum Due {
    /// Its data is complete: it leaves for the network or for host memory, or it comes from there.
    Deliver(Issued),
    /// Its response reaches the HPU.
    Respond(Response),
}

/// The response to a command.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// The command.
    pub issued: Issued,
    /// What a host-direct read has brought.
    pub data: [u8; 64],
    /// Whether the host refused the address.
    pub is_refused: bool,
}

struct Timed {
    at: Cycle,
    /// Orders what is due in one cycle.
    number: u64,
    due: Due,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Timed) -> bool {
        self.number == other.number
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Timed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Timed) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The command unit and its three engines.
pub struct CommandUnit {
    engines: Engines,
    /// Commands on their way to an engine, in order.
    path: VecDeque<(Cycle, Issued)>,
    /// How many commands each engine has, and may have.
    waiting: [u32; 3],
    room: [u32; 3],
    due: BinaryHeap<Reverse<Timed>>,
    number: u64,
    /// No response is sent before this cycle: one in each.
    respond_from: Cycle,
    to_host: Rate,
    from_host: Rate,
    path_cycles: u64,
    read_cycles: u64,
    response_cycles: u64,
    host_write: u64,
    host_read: u64,
    iommu: u64,
    beat: u32,
}

impl CommandUnit {
    /// A unit without commands.
    pub fn new(unit: &Pspin, clock: Clock) -> CommandUnit {
        let (commands, host) = (&unit.commands, &unit.host);
        let each = commands.in_flight_per_target;
        CommandUnit {
            engines: Engines::new(unit, clock),
            path: VecDeque::new(),
            waiting: [0; 3],
            room: [unit.outbound.queue, each, each],
            due: BinaryHeap::new(),
            number: 0,
            respond_from: Cycle::ZERO,
            to_host: Rate::new(host.gap_per_byte, clock),
            from_host: Rate::new(host.gap_per_byte, clock),
            path_cycles: u64::from(commands.path_cycles),
            read_cycles: u64::from(commands.read_cycles),
            response_cycles: u64::from(commands.response_cycles),
            host_write: u64::from(host.write_cycles),
            host_read: u64::from(host.read_cycles),
            iommu: u64::from(host.iommu_cycles),
            beat: unit.nhi.width_bits / 8,
        }
    }

    /// The next cycle in which something happens to a command.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.is_idle() && self.due.is_empty() {
            return Cycle::NEVER;
        }
        let path = self.path.front().map_or(Cycle::NEVER, |(at, _)| *at);
        let due = self.due.peek().map_or(Cycle::NEVER, |Reverse(timed)| match timed.due {
            Due::Deliver(_) => timed.at,
            Due::Respond(_) => timed.at.max(self.respond_from),
        });
        path.min(due).min(self.engines.wake())
    }

    /// Whether no command is on its way to an engine, or in one.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting == [0; 3]
    }

    /// Whether an engine has room for a command.
    pub fn has_room(&self, command: &Command) -> bool {
        let engine = engine(command);
        self.waiting[engine] < self.room[engine]
    }

    /// Takes a command from an HPU in cycle `now`.
    pub fn take(&mut self, now: Cycle, issued: Issued) {
        self.waiting[engine(&issued.command)] += 1;
        self.path.push_back((now + (self.path_cycles - 1), issued));
    }

    fn at(&mut self, at: Cycle, due: Due) {
        self.number += 1;
        self.due.push(Reverse(Timed { at, number: self.number, due }));
    }

    /// Gives the commands that have come to their engines.
    #[inline]
    pub fn arrive(&mut self, now: Cycle) {
        while let Some((at, issued)) = self.path.front().copied()
            && at <= now
        {
            self.path.pop_front();
            match issued.command {
                Command::Send { .. } | Command::ToHost { .. } | Command::Card { data: Some(_), .. } => {
                    self.engines.push(engine(&issued.command), now, issued);
                }
                Command::FromHost { data, .. } => {
                    let (arriving, written) = (data.size.div_ceil(self.beat), beats(data, self.beat));
                    let start = self.from_host.take(now + self.read_cycles + self.iommu, data.size);
                    // The bytes come at the rate of the link, and are written to their memory after that.
                    let last = (start + arriving).max(self.from_host.free()) + self.host_read;
                    self.at(last + written, Due::Deliver(issued));
                }
                Command::Card { data: None, .. } => self.at(now + 1_u64, Due::Deliver(issued)),
                Command::HostDirect { .. } => {
                    self.at(now + 1_u64 + self.iommu + self.host_write, Due::Deliver(issued));
                }
                Command::HostDirectRead { .. } => {
                    self.at(now + 1_u64 + self.iommu + self.host_read, Due::Deliver(issued));
                }
            }
        }
    }

    /// Reads a beat of a command's data; `port` takes the word in the memory, unless it is taken.
    #[inline]
    pub fn read(&mut self, now: Cycle, port: impl FnMut(u32) -> bool) {
        if self.engines.wake() > now {
            return;
        }
        let Some(Sent { issued, at }) = self.engines.step(now, port) else { return };
        let at = match issued.command {
            // The host accepts a write when the link begins to take it: writes are posted.
            Command::ToHost { data, .. } => self.to_host.take(at + self.iommu, data.size) + self.host_write,
            _ => at,
        };
        self.at(at, Due::Deliver(issued));
    }

    /// The next thing that is due in cycle `now`.
    #[inline]
    pub fn next_due(&mut self, now: Cycle) -> Option<Due> {
        let Reverse(timed) = self.due.peek()?;
        if timed.at > now || matches!(timed.due, Due::Respond(_)) && self.respond_from > now {
            return None;
        }
        let Reverse(Timed { due, .. }) = self.due.pop()?;
        match &due {
            Due::Deliver(issued) => self.waiting[engine(&issued.command)] -= 1,
            Due::Respond(_) => self.respond_from = now + 1_u64,
        }
        Some(due)
    }

    /// A command is done in cycle `now`: its response goes back.
    pub fn respond(&mut self, now: Cycle, response: Response) {
        self.at(now + self.response_cycles, Due::Respond(response));
    }
}

/// The engine that executes a command.
fn engine(command: &Command) -> usize {
    match command {
        Command::Send { .. } | Command::Card { through: Through::Outbound, .. } => OUTBOUND,
        Command::ToHost { .. } | Command::FromHost { .. } | Command::Card { through: Through::OffCluster, .. } => {
            OFF_CLUSTER
        }
        Command::HostDirect { .. } | Command::HostDirectRead { .. } => DIRECT,
    }
}
