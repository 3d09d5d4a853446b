// SPDX-License-Identifier: Apache-2.0
//! Command unit (§III-B1): it accepts one command per cycle from the HPUs, passes it to its engine, and returns the
//! responses. The status of a failed handler takes the path of a host-direct write (§III-B2).

use std::collections::VecDeque;

use machine::Pspin;
use sim::Clock;

use super::engines::{Engines, Need, OUTBOUND};
use super::host::{Answer, FromHost, Join};
use super::kinds::{Command, Issued, Port, Through};
use super::lanes::Lanes;
use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::rate::Rate;
use crate::status::Status;

/// Index of the off-cluster DMA engine in [`Engines`].
const OFF_CLUSTER: usize = 1;
/// Index of the host-direct unit.
const DIRECT: usize = 2;

/// Maximum number of statuses waiting for the command unit.
const STATUSES: usize = 4;

/// Effect of a command in a cycle.
pub enum Due {
    /// The data of a command is complete: it leaves for the network, in this cycle or later, or for host memory.
    Deliver(Issued, Cycle),
    /// Data read from the host is at its HPU or in its memory.
    Bring(Issued, Answer),
    /// A status reaches the descriptor at this host address.
    Tell(u64, Status),
}

/// Response to a command.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Command that is done.
    pub issued: Issued,
    /// Data of a host-direct read.
    pub data: [u8; 64],
    /// Set when the host refused the address.
    pub is_refused: bool,
}

/// Content of the path to an engine or to the host.
#[derive(Clone, Copy)]
enum Taken {
    /// A command of a handler.
    Command(Issued),
    /// A status, and the host address of its descriptor.
    Status(u64, Status),
}

/// Credits for an engine's commands.
struct Credits {
    left: u32,
    /// Cycles in which returned credits become available, at most one per cycle.
    back: VecDeque<Cycle>,
}

impl Credits {
    fn new(left: u32) -> Credits {
        Credits { left, back: VecDeque::new() }
    }

    fn has_one(&self, now: Cycle) -> bool {
        self.left > 0 || self.back.front().is_some_and(|at| *at <= now)
    }

    fn take(&mut self, now: Cycle) {
        while self.back.front().is_some_and(|at| *at <= now) {
            self.back.pop_front();
            self.left += 1;
        }
        self.left -= 1;
    }

    /// Returns a credit. It is available from cycle `at` on, or from the next cycle without another one.
    fn give(&mut self, at: Cycle) {
        let behind = |free: Cycle, given: &Cycle| if *given == free { free + 1_u64 } else { free };
        let free = self.back.iter().fold(at, behind);
        self.back.insert(self.back.partition_point(|given| *given < free), free);
    }
}

/// The command unit and its three engines.
pub struct CommandUnit {
    engines: Engines,
    /// Commands in flight to an engine, in order.
    path: VecDeque<(Cycle, Taken)>,
    /// Statuses waiting for the unit, each with the first cycle in which it can be taken; and the cycle for which the
    /// latest status without a descriptor still occupies an entry.
    statuses: VecDeque<(Cycle, u64, Status)>,
    undescribed: Cycle,
    /// Credits of each engine, by tenant if they are separated; statuses use those of the first. Number of commands and
    /// statuses inside.
    credits: Vec<[Credits; 3]>,
    each: [u32; 3],
    is_apart: bool,
    inside: usize,
    /// Commands in the host-direct unit, and read requests of the off-cluster DMA engine that wait for the host.
    direct: VecDeque<(Cycle, Taken)>,
    reads: VecDeque<(Cycle, Issued)>,
    /// Read requests by tenant, which `reads` takes part by part, and the number of parts that may be at the host: as
    /// much data as fills its latency.
    read_lanes: Option<Lanes>,
    reads_at_host: u32,
    writing: Join,
    asking: Join,
    to_host: Rate,
    /// Writes at the host, with the cycle of the answer: from the off-cluster DMA engine, and from the host-direct
    /// unit.
    written: [VecDeque<(Cycle, Taken)>; 2],
    from_host: FromHost,
    /// Reads whose data is in memory, and commands that leave for a card without data.
    loaded: VecDeque<(Cycle, Issued, Answer)>,
    leaving: VecDeque<(Cycle, Issued)>,
    due: VecDeque<Due>,
    /// Responses by source ([`source`]), in order of time. The arbiter grants one per cycle.
    responses: [VecDeque<(Cycle, Response)>; 4],
    arbiter: RoundRobin,
    path_cycles: u64,
    start_cycles: u64,
    write_credit: u64,
    read_credit: u64,
    read_cycles: u64,
    response_cycles: u64,
    host_write: u64,
    host_read: u64,
}

impl CommandUnit {
    /// Creates a unit without commands.
    pub fn new(unit: &Pspin, clock: Clock) -> CommandUnit {
        let (commands, host) = (&unit.commands, &unit.host);
        let each = commands.in_flight_per_target;
        let translated = u64::from(host.iommu_cycles);
        CommandUnit {
            engines: Engines::new(unit, clock),
            path: VecDeque::new(),
            statuses: VecDeque::new(),
            undescribed: Cycle::NEVER,
            credits: vec![[unit.outbound.queue, each, each].map(Credits::new)],
            each: [unit.outbound.queue, each, each],
            is_apart: unit.sharing.separated().is_some(),
            inside: 0,
            direct: VecDeque::new(),
            reads: VecDeque::new(),
            read_lanes: Lanes::new(&unit.sharing),
            reads_at_host: reads_at_host(unit),
            writing: Join::default(),
            asking: Join::default(),
            to_host: Rate::new(host.gap_per_byte, clock),
            written: Default::default(),
            from_host: FromHost::new(unit, clock),
            loaded: VecDeque::new(),
            leaving: VecDeque::new(),
            due: VecDeque::new(),
            responses: Default::default(),
            arbiter: RoundRobin::default(),
            path_cycles: u64::from(commands.path_cycles),
            start_cycles: u64::from(unit.off_cluster.start_cycles),
            write_credit: u64::from(unit.off_cluster.write_credit_cycles),
            read_credit: u64::from(unit.off_cluster.read_credit_cycles),
            read_cycles: u64::from(commands.read_cycles),
            response_cycles: u64::from(commands.response_cycles),
            host_write: translated + u64::from(host.write_cycles),
            host_read: translated + u64::from(host.read_cycles),
        }
    }

    /// Returns the next active cycle.
    #[inline]
    pub fn wake(&self) -> Cycle {
        let responses = self.responses.iter().filter_map(VecDeque::front).map(|(at, _)| *at).min();
        let responses = responses.unwrap_or(Cycle::NEVER);
        if self.inside == 0 {
            return responses;
        }
        let first = |taken: &VecDeque<(Cycle, Taken)>| taken.front().map_or(Cycle::NEVER, |(at, _)| *at);
        let alone = |issued: &VecDeque<(Cycle, Issued)>| issued.front().map_or(Cycle::NEVER, |(at, _)| *at);
        let [dma, direct] = &self.written;
        let taken = first(&self.path).min(first(&self.direct)).min(first(dma)).min(first(direct));
        let loaded = self.loaded.front().map_or(Cycle::NEVER, |(at, ..)| *at);
        let lanes = self.read_lanes.as_ref().filter(|_| self.could_ask()).map_or(Cycle::NEVER, Lanes::wake);
        let issued = alone(&self.reads).min(lanes).min(alone(&self.leaving)).min(loaded);
        taken.min(issued).min(responses).min(self.engines.wake()).min(self.from_host.wake())
    }

    /// Returns true if an engine has room for a command in cycle `now`.
    pub fn has_room(&self, now: Cycle, tenant: u32, command: &Command) -> bool {
        let of_tenant = self.credits.get(if self.is_apart { tenant as usize } else { 0 });
        of_tenant.is_none_or(|credits| credits[engine(command)].has_one(now))
    }

    /// Returns the credits of a tenant's commands in an engine.
    fn credits(&mut self, tenant: u32, engine: usize) -> &mut Credits {
        let index = if self.is_apart { tenant as usize } else { 0 };
        if self.credits.len() <= index {
            let each = self.each;
            self.credits.resize_with(index + 1, || each.map(Credits::new));
        }
        &mut self.credits[index][engine]
    }

    /// Returns true if the next part of a read may go to the host.
    fn could_ask(&self) -> bool {
        self.reads.is_empty() && self.from_host.outstanding() < self.reads_at_host
    }

    /// Accepts a command from an HPU in cycle `now`.
    pub fn take(&mut self, now: Cycle, issued: Issued) {
        self.credits(issued.tenant, engine(&issued.command)).take(now);
        self.inside += 1;
        self.path.push_back((now + (self.path_cycles - 1), Taken::Command(issued)));
    }

    /// Returns true if another status may wait in cycle `now`.
    pub fn has_room_for_status(&self, now: Cycle) -> bool {
        self.statuses.len() + usize::from(self.undescribed == now) < STATUSES
    }

    /// Queues a status for the descriptor at this host address. Address 0 means no descriptor: the status occupies an
    /// entry for one cycle and is dropped.
    pub fn tell(&mut self, now: Cycle, descriptor: u64, status: Status) {
        match descriptor {
            0 => self.undescribed = now + 1_u64,
            _ => self.statuses.push_back((now + 1_u64, descriptor, status)),
        }
    }

    /// Returns true if a status waits.
    pub fn has_status(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// Returns true if a status can be taken in cycle `now`.
    pub fn could_take_status(&self, now: Cycle) -> bool {
        self.statuses.front().is_some_and(|(from, ..)| *from <= now) && self.credits[0][DIRECT].has_one(now)
    }

    /// Takes the first status in cycle `now`.
    pub fn take_status(&mut self, now: Cycle) {
        if let Some((_, descriptor, status)) = self.statuses.pop_front() {
            self.credits(0, DIRECT).take(now);
            self.inside += 1;
            self.path.push_back((now + (self.path_cycles - 1), Taken::Status(descriptor, status)));
        }
    }

    /// Returns the command whose read data starts arriving in cycle `now`.
    pub fn begins(&self, now: Cycle) -> Option<Issued> {
        self.from_host.begins(now)
    }

    /// Supplies the host's answer for that command.
    pub fn answer(&mut self, answer: Answer) {
        self.from_host.answer(answer);
    }

    /// Advances commands in the engines in cycle `now`. `is_ready` returns true if a beat may move through a port in a
    /// cycle; `write` returns true if memory accepts the word to which a beat of read data is written.
    pub fn move_data(&mut self, now: Cycle, is_ready: impl Fn(Cycle, Port) -> bool, write: impl FnOnce(u32) -> bool) {
        self.send(now, |at| is_ready(at, Port::Outbound));
        self.ask_host(now, is_ready(now, Port::HostRead));
        self.write_host(now, is_ready(now, Port::HostWrite));
        self.end_writes(now, is_ready(now, Port::HostData));
        if let Some((issued, answer)) = self.from_host.write(now, write)
            && issued.completes()
        {
            let at = now + self.read_credit;
            self.credits(issued.tenant, OFF_CLUSTER).give(at);
            self.loaded.push_back((now + 1_u64, issued, answer));
        }
    }

    fn is_due(at: Option<&(Cycle, Issued)>, now: Cycle) -> bool {
        at.is_some_and(|(at, _)| *at <= now)
    }

    /// Sends a beat of the outbound engine to the NIC, and commands without data to the card.
    fn send(&mut self, now: Cycle, is_ready: impl Fn(Cycle) -> bool) {
        if Self::is_due(self.leaving.front(), now)
            && let Some((_, issued)) = self.leaving.pop_front()
        {
            self.credits(issued.tenant, engine(&issued.command)).give(now);
            self.deliver(issued, now);
        }
        let Some(output) = self.engines.output(OUTBOUND, now) else { return };
        if output.bytes.is_some() && !is_ready(now) {
            return;
        }
        if output.ends && output.issued.completes() {
            // The last bytes of a packet may need one more beat.
            let rest = (1..).map(|cycles: u64| now + cycles).find(|at| is_ready(*at));
            self.deliver(output.issued, if output.is_last { now } else { rest.unwrap_or(now) });
        }
        self.engines.leave(OUTBOUND, now, &output);
    }

    fn deliver(&mut self, issued: Issued, at: Cycle) {
        self.inside -= 1;
        self.due.push_back(Due::Deliver(issued, at));
    }

    /// Sends one read request to the host: from the off-cluster DMA engine or the host-direct unit.
    fn ask_host(&mut self, now: Cycle, is_ready: bool) {
        let direct = match self.direct.front() {
            Some((at, Taken::Command(issued @ Issued { command: Command::HostDirectRead { size, .. }, .. })))
                if *at <= now =>
            {
                Some((*issued, *size))
            }
            _ => None,
        };
        if self.could_ask()
            && let Some(lanes) = &mut self.read_lanes
        {
            self.reads.extend(lanes.next(now));
        }
        let asks = u64::from(Self::is_due(self.reads.front(), now)) | u64::from(direct.is_some()) << 1;
        let choice = self.asking.offer(asks).filter(|_| is_ready);
        if choice.is_some() {
            self.asking.end();
        }
        let at = now + self.host_read;
        match (choice, direct) {
            (Some(1), Some((issued, size))) => {
                self.direct.pop_front();
                self.from_host.ask(at, issued, size.into(), None);
            }
            (Some(_), _) => {
                let Some((_, issued)) = self.reads.pop_front() else { return };
                let range = issued.range();
                self.from_host.ask(at, issued, range.size, Some(range));
            }
            (None, _) => {}
        }
    }

    /// Writes one beat to the host: from the off-cluster DMA engine, whose writes may have several, or from the
    /// host-direct unit.
    fn write_host(&mut self, now: Cycle, is_ready: bool) {
        let output = self.engines.output(OFF_CLUSTER, now);
        let is_read =
            |taken: &Taken| matches!(taken, Taken::Command(Issued { command: Command::HostDirectRead { .. }, .. }));
        let direct = self.direct.front().filter(|(at, taken)| *at <= now && !is_read(taken)).map(|(_, taken)| *taken);
        let mut writes = u64::from(direct.is_some()) << 1;
        if let Some(output) = &output {
            match (output.bytes, output.issued.command) {
                (Some(_), Command::ToHost { .. }) => writes |= 1,
                // Incomplete beats and commands for a card do not need the host.
                _ => {
                    if output.leaves_for_card() {
                        let at = now + self.write_credit;
                        self.credits(output.issued.tenant, OFF_CLUSTER).give(at);
                        self.deliver(output.issued, now);
                    }
                    self.engines.leave(OFF_CLUSTER, now, output);
                }
            }
        }
        let Some(choice) = self.writing.offer(writes) else { return };
        if self.to_host.free() > now || !is_ready {
            return;
        }
        let at = now + self.host_write;
        match (choice, output, direct) {
            (0, Some(output), _) => {
                self.to_host.take(now, output.bytes.unwrap_or_default());
                self.engines.leave(OFF_CLUSTER, now, &output);
                if output.is_last {
                    self.writing.end();
                    if output.issued.completes() {
                        self.written[0].push_back((at, Taken::Command(output.issued)));
                    }
                }
            }
            (_, _, Some(taken)) => {
                let bytes = match taken {
                    Taken::Command(Issued { command: Command::HostDirect { size, .. }, .. }) => size.into(),
                    _ => size_of::<Status>() as u32,
                };
                self.to_host.take(now, bytes);
                self.writing.end();
                self.direct.pop_front();
                self.written[1].push_back((at, taken));
            }
            _ => {}
        }
    }

    /// Completes answered writes, and receives a beat of read data. The host-direct unit completes one command per
    /// cycle, reads first.
    fn end_writes(&mut self, now: Cycle, is_ready: bool) {
        let [dma, direct] = &mut self.written;
        let answered = |written: &mut VecDeque<(Cycle, Taken)>| {
            let is_due = written.front().is_some_and(|(at, _)| *at <= now);
            if is_due { written.pop_front().map(|(_, taken)| taken) } else { None }
        };
        let is_direct = |issued: &Issued| matches!(issued.command, Command::HostDirectRead { .. });
        let dma = answered(dma);
        let brought = if is_ready { self.from_host.come(now, is_direct) } else { None };
        let direct = if brought.is_none() { answered(direct) } else { None };
        for (engine, taken) in [(OFF_CLUSTER, dma), (DIRECT, direct)] {
            let Some(taken) = taken else { continue };
            let at = now + if engine == OFF_CLUSTER { self.write_credit } else { 0 };
            let tenant = if let Taken::Command(issued) = taken { issued.tenant } else { 0 };
            self.credits(tenant, engine).give(at);
            match taken {
                Taken::Command(issued) => self.deliver(issued, now),
                Taken::Status(descriptor, status) => {
                    self.inside -= 1;
                    self.due.push_back(Due::Tell(descriptor, status));
                }
            }
        }
        if let Some((issued, answer)) = brought {
            self.credits(issued.tenant, DIRECT).give(now);
            self.inside -= 1;
            self.due.push_back(Due::Bring(issued, answer));
        }
        if self.loaded.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, issued, answer)) = self.loaded.pop_front()
        {
            self.inside -= 1;
            self.due.push_back(Due::Bring(issued, answer));
        }
    }

    /// Passes the commands that arrive in cycle `now` to their engines.
    #[inline]
    pub fn arrive(&mut self, now: Cycle) {
        while let Some((at, taken)) = self.path.front().copied()
            && at <= now
        {
            self.path.pop_front();
            let Taken::Command(issued) = taken else {
                self.direct.push_back((now + 1_u64, taken));
                continue;
            };
            match issued.command {
                Command::Send { .. } | Command::ToHost { .. } | Command::Card { data: Some(_), .. } => {
                    let engine = engine(&issued.command);
                    let from = if engine == OFF_CLUSTER { now + self.start_cycles } else { now };
                    self.engines.push(engine, from, issued);
                }
                Command::FromHost { .. } => {
                    let from = now + self.read_cycles;
                    match &mut self.read_lanes {
                        Some(lanes) => lanes.push(from, issued),
                        None => self.reads.push_back((from, issued)),
                    }
                }
                Command::Card { data: None, .. } => self.leaving.push_back((now + 1_u64, issued)),
                Command::HostDirect { .. } | Command::HostDirectRead { .. } => {
                    self.direct.push_back((now + 1_u64, taken));
                }
            }
        }
    }

    /// Reads beats of commands' data; `gives` returns true if a memory grants the resources for a beat.
    #[inline]
    pub fn read(&mut self, now: Cycle, gives: impl FnMut(u32, Need) -> bool) {
        // A packet returns its credit when all of it is read, in the cycle in which it leaves.
        if let Some(tenant) = self.engines.step(now, gives) {
            let at = now + self.read_cycles;
            self.credits(tenant, OUTBOUND).give(at);
        }
    }

    /// Returns the next effect that is due.
    #[inline]
    pub fn next_due(&mut self) -> Option<Due> {
        self.due.pop_front()
    }

    /// Completes a command in cycle `now` by sending its response.
    pub fn respond(&mut self, now: Cycle, response: Response) {
        let at = now + self.response_cycles;
        let responses = &mut self.responses[source(&response.issued.command)];
        // A card may complete its commands out of order.
        let place = responses.partition_point(|(other, _)| *other <= at);
        responses.insert(place, (at, response));
    }

    /// Returns the response that reaches its HPU in cycle `now`.
    #[inline]
    pub fn next_response(&mut self, now: Cycle) -> Option<Response> {
        let is_due = |responses: &VecDeque<(Cycle, Response)>| responses.front().is_some_and(|(at, _)| *at <= now);
        let due = self.responses.iter().rev().fold(0, |due, responses| due << 1 | u64::from(is_due(responses)));
        let choice = self.arbiter.choice(due)?;
        self.arbiter.grant(choice);
        self.responses[choice as usize].pop_front().map(|(_, response)| response)
    }
}

/// Returns the bytes that may be outstanding at the host before the next part of a read: twice those that fill its latency.
fn reads_at_host(unit: &Pspin) -> u32 {
    let latency = unit.host.read_cycles.saturating_add(unit.host.iommu_cycles);
    latency.saturating_mul(unit.nhi.width_bits / 8).saturating_mul(2).max(1)
}

/// Returns the engine that executes a command.
fn engine(command: &Command) -> usize {
    match command {
        Command::Send { .. } | Command::Card { through: Through::Outbound, .. } => OUTBOUND,
        Command::ToHost { .. } | Command::FromHost { .. } | Command::Card { through: Through::OffCluster, .. } => {
            OFF_CLUSTER
        }
        Command::HostDirect { .. } | Command::HostDirectRead { .. } => DIRECT,
    }
}

/// Returns the source of a command's response: the outbound engine, the host's answers to writes and to reads of the
/// off-cluster DMA engine, or the host-direct unit.
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
    use crate::command::Send;
    use crate::her::{HpuId, Range};
    use crate::testing::unit;

    const L2: u32 = 0x1c00_0000;

    fn commands() -> CommandUnit {
        CommandUnit::new(&unit(), Clock::from_khz(1_000_000))
    }

    fn issued(slot: u8, command: Command) -> Issued {
        Issued::new(HpuId { cluster: 0, hpu: 0 }, slot, command)
    }

    /// Two sends and one command of each other kind complete in one cycle. From 2 cycles later, the four sources send
    /// one response per cycle, round robin.
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

    /// Returns the effects of commands, cycle by cycle from 0 on, with all memories free. `act` runs before the path
    /// advances.
    fn run(commands: &mut CommandUnit, cycles: u64, mut act: impl FnMut(&mut CommandUnit, u64)) -> Vec<(u64, Due)> {
        let mut found = Vec::new();
        for now in 0..cycles {
            if commands.begins(Cycle(now)).is_some() {
                commands.answer(Answer::default());
            }
            commands.move_data(Cycle(now), |_, _| true, |_| true);
            found.extend(std::iter::from_fn(|| commands.next_due()).map(|due| (now, due)));
            act(commands, now);
            commands.arrive(Cycle(now));
            commands.read(Cycle(now), |_, _| true);
        }
        found
    }

    /// A command of cycle 0 is at its engine in 3. 128 B arrive over the link from 3 + 4 + 29 on, a beat per cycle.
    /// Each is written in the next cycle if the port is free, the third word with the rest of the second beat. The
    /// handler's data is complete after that.
    #[test]
    fn data_of_the_host_is_written_beat_by_beat() {
        let run = |is_free: fn(u64) -> bool| {
            let mut commands = commands();
            let data = Range { address: L2 + 32, size: 100 };
            commands.take(Cycle(0), issued(0, Command::FromHost { host: 0, data, event: None }));
            let mut written = Vec::new();
            for now in 0..100 {
                if commands.begins(Cycle(now)).is_some() {
                    assert_eq!(now, 3 + 4 + 29);
                    commands.answer(Answer::default());
                }
                commands.move_data(
                    Cycle(now),
                    |_, _| true,
                    |address| {
                        let is_free = is_free(now);
                        written.extend(is_free.then_some((now, address - L2)));
                        is_free
                    },
                );
                if let Some(Due::Bring(..)) = commands.next_due() {
                    assert_eq!(commands.wake(), Cycle::NEVER);
                    return (written, now);
                }
                commands.arrive(Cycle(now));
            }
            panic!("it is never delivered");
        };
        assert_eq!(run(|_| true), (vec![(37, 0), (38, 64), (39, 128)], 40));
        assert_eq!(run(|now| now % 4 == 0), (vec![(40, 0), (44, 64), (48, 128)], 49));
    }

    /// Writing starts with the first beat.
    #[test]
    fn a_long_read_is_written_while_it_comes() {
        let mut commands = commands();
        let data = Range { address: L2, size: 1_280 };
        commands.take(Cycle(0), issued(0, Command::FromHost { host: 0, data, event: None }));
        let found = run(&mut commands, 100, |_, _| {});
        assert!(matches!(found[..], [(at, Due::Bring(..))] if at == 36 + 1 + 20), "{}", found[0].0);
    }

    /// The channel to the host is shared: a host-direct write waits for all beats of a copy that has started.
    #[test]
    fn writes_to_the_host_take_turns() {
        let mut commands = commands();
        let (data, direct) =
            (Range { address: L2, size: 512 }, Command::HostDirect { host: 0, data: [0; 64], size: 8 });
        commands.take(Cycle(0), issued(0, Command::ToHost { host: 0, data, event: None }));
        let found = run(&mut commands, 60, |commands, now| {
            if now == 5 {
                commands.take(Cycle(now), issued(1, direct));
            }
        });
        let slots = found.iter().map(|(at, due)| match due {
            Due::Deliver(issued, _) => (*at, issued.slot),
            _ => panic!("no write"),
        });
        // The copy is at the engine in 3; its beats are read from 4 on and leave in 8 to 15. The write is ready in 9.
        assert_eq!(slots.collect::<Vec<_>>(), [(15 + 2, 0), (16 + 2, 1)]);
    }

    /// A range whose last bytes do not fit into the last full beat leaves in one more beat, after all of it is read.
    #[test]
    fn a_stream_may_have_a_beat_more() {
        for (offset, size, leaves) in [(0, 128, 9), (1, 100, 10), (32, 96, 10), (32, 64, 9), (1, 63, 8)] {
            let mut commands = commands();
            let send =
                Command::Send { data: Range { address: L2 + offset, size }, send: Send { node: 0, flow: 0, user: 0 } };
            commands.take(Cycle(0), issued(0, send));
            let found = run(&mut commands, 40, |_, _| {});
            let [(_, Due::Deliver(_, at))] = found[..] else { panic!("one packet") };
            assert_eq!(at, Cycle(leaves), "{size} B at {offset}");
        }
    }

    /// A bank conflict of a beat stalls all beats behind it.
    #[test]
    fn reads_stay_in_order() {
        let mut commands = commands();
        let data = Range { address: L2, size: 128 };
        let send = Command::Send { data, send: Send { node: 0, flow: 0, user: 0 } };
        commands.take(Cycle(0), issued(0, Command::ToHost { host: 0, data, event: None }));
        commands.take(Cycle(0), issued(1, send));
        let mut read = Vec::new();
        for now in 0..20 {
            commands.arrive(Cycle(now));
            commands.read(Cycle(now), |address, need| {
                let gives = need == Need::Next || now > 6;
                read.extend((gives && need == Need::Now).then_some((now, address - L2)));
                gives
            });
        }
        assert_eq!(read, [(7, 0), (8, 0), (9, 64), (10, 64)]);
    }

    /// Each memory has its own port, so a packet in the packet buffer and a copy from L1 are read in parallel. Beats of
    /// one memory alternate. A beat that stalls holds up only its own engine.
    #[test]
    fn memories_are_read_at_the_same_time() {
        const L1: u32 = 0x1000_0000;
        const PACKET: u32 = 0x1c40_0000;
        let send =
            |address, size| Command::Send { data: Range { address, size }, send: Send { node: 0, flow: 0, user: 0 } };
        let copy = |address, size| Command::ToHost { host: 0, data: Range { address, size }, event: None };
        let reads = |first: Command, second: Command, waits: u32| {
            let mut commands = commands();
            commands.take(Cycle(0), issued(0, first));
            commands.take(Cycle(0), issued(1, second));
            let mut read = Vec::new();
            for now in 0..30 {
                commands.arrive(Cycle(now));
                commands.read(Cycle(now), |address, need| {
                    let gives = need == Need::Next || address != waits || now > 8;
                    read.extend((gives && need == Need::Now).then_some((now, address)));
                    gives
                });
            }
            read
        };
        // Beats are chosen from cycle 3 on, and read in the next cycle.
        let apart = [(4, PACKET), (4, L1), (5, PACKET + 64), (5, L1 + 64), (6, PACKET + 128), (6, L1 + 128)];
        assert_eq!(reads(send(PACKET, 192), copy(L1, 192), 0), apart);
        let waiting = [(4, L1), (5, L1 + 64), (6, L1 + 128), (9, PACKET), (10, PACKET + 64), (11, PACKET + 128)];
        assert_eq!(reads(send(PACKET, 192), copy(L1, 192), PACKET), waiting);
        let in_turn = [(4, PACKET), (5, PACKET + 1024), (6, PACKET + 64), (7, PACKET + 1088)];
        assert_eq!(reads(send(PACKET, 128), copy(PACKET + 1024, 128), 0), in_turn);
    }

    /// Credits return one per cycle, whatever the order in which they are given.
    #[test]
    fn a_credit_comes_back_in_each_cycle() {
        let mut credits = Credits::new(0);
        [10, 12, 10, 9, 12].into_iter().for_each(|at| credits.give(Cycle(at)));
        assert_eq!(credits.back, [9, 10, 11, 12, 13].map(Cycle));
    }

    /// A status of cycle 0 is taken in 1. It is at the unit 3 cycles later, behind earlier commands, and at the host
    /// after another 1 + 2. Four may wait. They use the credits of the host-direct unit, which return with the host's
    /// answer.
    #[test]
    fn a_status_goes_the_way_of_a_host_direct_write() {
        let mut commands = commands();
        for count in 1..=4 {
            assert!(commands.has_room_for_status(Cycle(0)));
            commands.tell(Cycle(0), 0x1000 * count, Status { count, ..Status::default() });
        }
        assert!(!commands.has_room_for_status(Cycle(0)) && !commands.could_take_status(Cycle(0)));
        let direct = Command::HostDirect { host: 0, data: [0; 64], size: 8 };
        let others = unit().commands.in_flight_per_target - 2;
        let found = run(&mut commands, 30, |commands, now| {
            if now == 0 {
                (0..others).for_each(|slot| commands.take(Cycle(now), issued(slot as u8, direct)));
            }
            if commands.could_take_status(Cycle(now)) {
                commands.take_status(Cycle(now));
            }
        });
        let told = found.iter().filter_map(|(at, due)| match due {
            Due::Tell(descriptor, status) => Some((*at, *descriptor, status.count)),
            _ => None,
        });
        // The commands are at the host in 4 to 9 and done in 6 to 11; the third status takes the credit of cycle 6.
        assert_eq!(told.collect::<Vec<_>>(), [(12, 0x1000, 1), (13, 0x2000, 2), (14, 0x3000, 3), (15, 0x4000, 4)]);
    }
}
