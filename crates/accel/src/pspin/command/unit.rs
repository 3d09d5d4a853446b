//! The command unit (§III-B1): it takes one command a cycle from the HPUs, gives it to the engine that executes it, and sends the
//! responses back. The status of a handler that failed goes the way of a host-direct write (§III-B2).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use machine::Pspin;
use sim::Clock;

use super::engines::{Engines, OUTBOUND, Sent, beats};
use super::kinds::{Command, Issued, Through};
use crate::pspin::arbiter::RoundRobin;
use crate::pspin::cycle::Cycle;
use crate::pspin::rate::Rate;
use crate::pspin::status::Status;

/// The off-cluster DMA engine among [`Engines`].
const OFF_CLUSTER: usize = 1;
/// The host-direct unit.
const DIRECT: usize = 2;

/// Statuses of handlers that may wait for the command unit.
const STATUSES: usize = 4;

/// Something that happens to a command at its time.
pub enum Due {
    /// The data of a command is complete: it leaves for the network or for host memory, or it comes from there.
    Deliver(Issued),
    /// A status reaches the descriptor at this address of host memory.
    Tell(u64, Status),
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
    /// Orders what is due in one cycle: a host-direct read comes before a write, and else the one that was issued first.
    order: (u8, u64),
    due: Due,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Timed) -> bool {
        self.cmp(other).is_eq()
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
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// What is on its way to an engine.
#[derive(Clone, Copy)]
enum Taken {
    /// A command of a handler.
    Command(Issued),
    /// A status, and the address of its descriptor.
    Status(u64, Status),
}

/// Data of the host that is written to a memory of the unit.
struct Write {
    /// When the last byte of it has come.
    from: Cycle,
    /// The address of its next beat, and the number of beats that are left.
    next: u32,
    left: u32,
    issued: Issued,
}

/// The command unit and its three engines.
pub struct CommandUnit {
    engines: Engines,
    /// Commands on their way to an engine, in order.
    path: VecDeque<(Cycle, Taken)>,
    /// Statuses that wait for the unit, which takes each from a cycle on.
    statuses: VecDeque<(Cycle, u64, Status)>,
    /// How many commands each engine has, and may have.
    waiting: [u32; 3],
    room: [u32; 3],
    /// Data from the host, which is written in order.
    writes: VecDeque<Write>,
    due: BinaryHeap<Reverse<Timed>>,
    number: u64,
    /// Responses by their source ([`source`]), in order of time. The sources take turns, one in each cycle.
    responses: [VecDeque<(Cycle, Response)>; 4],
    arbiter: RoundRobin,
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
            statuses: VecDeque::new(),
            waiting: [0; 3],
            room: [unit.outbound.queue, each, each],
            writes: VecDeque::new(),
            due: BinaryHeap::new(),
            number: 0,
            responses: Default::default(),
            arbiter: RoundRobin::default(),
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
        if self.waiting == [0; 3] && self.responses.iter().all(VecDeque::is_empty) {
            return Cycle::NEVER;
        }
        let path = self.path.front().map_or(Cycle::NEVER, |(at, _)| *at);
        let write = self.writes.front().map_or(Cycle::NEVER, |write| write.from);
        let due = self.due.peek().map_or(Cycle::NEVER, |Reverse(timed)| timed.at);
        let responses = self.responses.iter().filter_map(VecDeque::front).map(|(at, _)| *at).min();
        path.min(write).min(due).min(responses.unwrap_or(Cycle::NEVER)).min(self.engines.wake())
    }

    /// Whether an engine has room for a command.
    pub fn has_room(&self, command: &Command) -> bool {
        let engine = engine(command);
        self.waiting[engine] < self.room[engine]
    }

    /// Takes a command from an HPU in cycle `now`.
    pub fn take(&mut self, now: Cycle, issued: Issued) {
        self.waiting[engine(&issued.command)] += 1;
        self.path.push_back((now + (self.path_cycles - 1), Taken::Command(issued)));
    }

    /// Whether one more status may wait.
    pub fn has_room_for_status(&self) -> bool {
        self.statuses.len() < STATUSES
    }

    /// A status waits for the unit, to be written to the descriptor at this address of host memory.
    pub fn tell(&mut self, now: Cycle, descriptor: u64, status: Status) {
        self.statuses.push_back((now + 1_u64, descriptor, status));
    }

    /// Whether a status waits.
    pub fn has_status(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Whether a status waits that could be taken in cycle `now`.
    pub fn could_take_status(&self, now: Cycle) -> bool {
        self.statuses.front().is_some_and(|(from, ..)| *from <= now) && self.waiting[DIRECT] < self.room[DIRECT]
    }

    /// Takes the first status in cycle `now`.
    pub fn take_status(&mut self, now: Cycle) {
        if let Some((_, descriptor, status)) = self.statuses.pop_front() {
            self.waiting[DIRECT] += 1;
            self.path.push_back((now + (self.path_cycles - 1), Taken::Status(descriptor, status)));
        }
    }

    fn at(&mut self, at: Cycle, due: Due) {
        self.number += 1;
        let is_read = matches!(due, Due::Deliver(Issued { command: Command::HostDirectRead { .. }, .. }));
        self.due.push(Reverse(Timed { at, order: (u8::from(!is_read), self.number), due }));
    }

    /// Gives the commands that have come to their engines.
    #[inline]
    pub fn arrive(&mut self, now: Cycle) {
        while let Some((at, taken)) = self.path.front().copied()
            && at <= now
        {
            self.path.pop_front();
            let written = now + 1_u64 + self.iommu + self.host_write;
            let issued = match taken {
                Taken::Command(issued) => issued,
                Taken::Status(descriptor, status) => {
                    self.at(written, Due::Tell(descriptor, status));
                    continue;
                }
            };
            match issued.command {
                Command::Send { .. } | Command::ToHost { .. } | Command::Card { data: Some(_), .. } => {
                    self.engines.push(engine(&issued.command), now, issued);
                }
                Command::FromHost { data, .. } => {
                    let start = self.from_host.take(now + self.read_cycles + self.iommu, data.size);
                    // The bytes come at the rate of the link, and are written to their memory after that.
                    let from = (start + data.size.div_ceil(self.beat)).max(self.from_host.free()) + self.host_read;
                    let next = data.address - data.address % self.beat;
                    self.writes.push_back(Write { from, next, left: beats(data, self.beat), issued });
                }
                Command::Card { data: None, .. } => self.at(now + 1_u64, Due::Deliver(issued)),
                Command::HostDirect { .. } => self.at(written, Due::Deliver(issued)),
                Command::HostDirectRead { .. } => {
                    self.at(now + 1_u64 + self.iommu + self.host_read, Due::Deliver(issued));
                }
            }
        }
    }

    /// Writes a beat of the host's data; `port` takes the word in the memory, unless it is taken.
    #[inline]
    pub fn write(&mut self, now: Cycle, mut port: impl FnMut(u32) -> bool) {
        let Some(write) = self.writes.front_mut().filter(|write| write.from <= now && port(write.next)) else { return };
        write.next = write.next.wrapping_add(self.beat);
        write.left -= 1;
        if write.left == 0
            && let Some(Write { issued, .. }) = self.writes.pop_front()
        {
            self.at(now + 1_u64, Due::Deliver(issued));
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
        self.due.peek().filter(|Reverse(timed)| timed.at <= now)?;
        let Reverse(Timed { due, .. }) = self.due.pop()?;
        let engine = if let Due::Deliver(issued) = &due { engine(&issued.command) } else { DIRECT };
        self.waiting[engine] -= 1;
        Some(due)
    }

    /// A command is done in cycle `now`: its response goes back.
    pub fn respond(&mut self, now: Cycle, response: Response) {
        let at = now + self.response_cycles;
        let responses = &mut self.responses[source(&response.issued.command)];
        // A card may be done with its commands in another order.
        let place = responses.partition_point(|(other, _)| *other <= at);
        responses.insert(place, (at, response));
    }

    /// The response that reaches its HPU in cycle `now`.
    #[inline]
    pub fn next_response(&mut self, now: Cycle) -> Option<Response> {
        let is_due = |responses: &VecDeque<(Cycle, Response)>| responses.front().is_some_and(|(at, _)| *at <= now);
        let due = self.responses.iter().rev().fold(0, |due, responses| due << 1 | u64::from(is_due(responses)));
        let choice = self.arbiter.choice(due)?;
        self.arbiter.grant(choice);
        self.responses[choice as usize].pop_front().map(|(_, response)| response)
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

/// Where the response to a command comes from: the outbound engine, the host's answers to writes and to reads of the off-cluster DMA
/// engine, and the host-direct unit.
fn source(command: &Command) -> usize {
    match command {
        Command::Send { .. } | Command::Card { through: Through::Outbound, .. } => 0,
        Command::ToHost { .. } | Command::Card { through: Through::OffCluster, .. } => 1,
        Command::FromHost { .. } => 2,
        Command::HostDirect { .. } | Command::HostDirectRead { .. } => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pspin::command::Send;
    use crate::pspin::her::{HpuId, Range};
    use crate::pspin::testing::unit;

    const L2: u32 = 0x1c00_0000;

    fn commands() -> CommandUnit {
        CommandUnit::new(&unit(), Clock::from_khz(1_000_000))
    }

    fn issued(slot: u8, command: Command) -> Issued {
        Issued { hpu: HpuId { cluster: 0, hpu: 0 }, slot, command }
    }

    /// In one cycle, two sends and one of each other kind are done. The four sources take turns from 2 cycles later on, one response
    /// a cycle.
    #[test]
    fn responses_of_four_sources_take_turns() {
        let mut commands = commands();
        let (host, data) = (0, Range { address: L2, size: 64 });
        let send = Command::Send { data, send: Send { node: 0, flow: 0, user: 0 } };
        let all = [
            Command::HostDirectRead { host, size: 8 },
            Command::FromHost { host, data, event: None },
            send,
            send,
            Command::ToHost { host, data, event: None },
            Command::HostDirect { host, data: [0; 64], size: 8 },
        ];
        for (slot, command) in (0..).zip(all) {
            commands.respond(Cycle(10), Response { issued: issued(slot, command), data: [0; 64], is_refused: false });
        }
        let slots = (0..20).filter_map(|now| Some((now, commands.next_response(Cycle(now))?.issued.slot)));
        let expected = [(12, 2), (13, 4), (14, 1), (15, 0), (16, 3), (17, 5)];
        assert_eq!(slots.collect::<Vec<_>>(), expected);
        assert_eq!(commands.wake(), Cycle::NEVER);
    }

    /// A command of cycle 0 is at its engine in 3. 128 B come over the link from 3 + 4 on, and the last of them is there 2 beats and
    /// 29 - 2 - 4 - 1 cycles later; the two beats are written when the port is free, and the handler's data is complete after them.
    #[test]
    fn data_of_the_host_is_written_beat_by_beat() {
        let run = |is_free: fn(u64) -> bool| {
            let mut commands = commands();
            let data = Range { address: L2 + 32, size: 100 };
            commands.take(Cycle(0), issued(0, Command::FromHost { host: 0, data, event: None }));
            let mut written = Vec::new();
            for now in 0..100 {
                if let Some(Due::Deliver(_)) = commands.next_due(Cycle(now)) {
                    return (written, now);
                }
                commands.arrive(Cycle(now));
                commands.write(Cycle(now), |address| {
                    let is_free = is_free(now);
                    written.extend(is_free.then_some((now, address - L2)));
                    is_free
                });
            }
            panic!("it is never delivered");
        };
        let (free, at) = run(|_| true);
        let first = free[0].0;
        assert_eq!((free, at), (vec![(first, 0), (first + 1, 64), (first + 2, 128)], first + 3));
        let (written, at) = run(|now| now % 4 == 0);
        let first = first.next_multiple_of(4);
        assert_eq!((written, at), (vec![(first, 0), (first + 4, 64), (first + 8, 128)], first + 9));
    }

    /// A status of cycle 0 is taken in 1, is at the unit in 1 + 3, and at the host after 1 + 2 more. Four may wait, and they use the
    /// credits of the host-direct unit.
    #[test]
    fn a_status_goes_the_way_of_a_host_direct_write() {
        let mut commands = commands();
        for count in 1..=4 {
            assert!(commands.has_room_for_status());
            commands.tell(Cycle(0), 0x1000 * count, Status { count, ..Status::default() });
        }
        assert!(!commands.has_room_for_status() && !commands.could_take_status(Cycle(0)));
        let direct = Command::HostDirect { host: 0, data: [0; 64], size: 8 };
        let others = commands.room[DIRECT] - 2;
        (0..others).for_each(|slot| commands.take(Cycle(0), issued(slot as u8, direct)));
        let mut told = Vec::new();
        for now in 1..30 {
            while let Some(due) = commands.next_due(Cycle(now)) {
                if let Due::Tell(descriptor, status) = due {
                    told.push((now, descriptor, status.count));
                }
            }
            if commands.could_take_status(Cycle(now)) {
                commands.take_status(Cycle(now));
            }
            commands.arrive(Cycle(now));
        }
        // The third and the fourth wait for the credits of the commands, which are at the host in 3 + 3.
        assert_eq!(told, [(7, 0x1000, 1), (8, 0x2000, 2), (12, 0x3000, 3), (13, 0x4000, 4)]);
    }
}
