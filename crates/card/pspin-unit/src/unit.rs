//! The unit: all parts, and the order in which they act in a cycle.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use bytemuck::bytes_of;
use machine::Pspin as Config;
use sim::Clock;

use crate::arbiter::RoundRobin;
use crate::cluster::Cluster;
use crate::command::{Answer, Command, CommandUnit, Due, Issued, Need, Port, Response, Send};
use crate::cores::{ClusterSide, Cores};
use crate::counters::Counters;
use crate::cycle::Cycle;
use crate::fabric::{
    Beat, DmaInterconnect, L2Ports, Landed, Owner, PeInterconnect, ProgramPort, Refill, Remote, Transfer,
};
use crate::her::{Busy, DriverEvent, ExecutionContext, Failure, Feedback, Her, HpuId, Range};
use crate::memory::{Arena, Place, Wide};
use crate::observe::{Noted, Observer};
use crate::schedule::{Completion, Dispatcher, Ended, Mpq, Selected, TaskId};
use crate::status::Status;

/// What surrounds the unit: the NIC, the host, and the driver.
pub trait Outside {
    /// A packet is done. Returns whether the NIC takes the feedback now; otherwise it is offered again in the next cycle.
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool;

    /// The driver on the host is told something.
    fn raise(&mut self, at: Cycle, event: DriverEvent);

    /// Whether a beat may move through a port in a cycle; otherwise it is offered again in the next. The answer for a cycle is always
    /// the same.
    fn moves(&self, _at: Cycle, _port: Port) -> bool {
        true
    }

    /// A handler's packet has been read, and leaves for the network.
    fn send(&mut self, at: Cycle, hpu: HpuId, send: Send, packet: &[u8]);

    /// A command leaves for the card ([`Command::Card`]), which says by [`Pspin::complete`] when it is done.
    fn leave(&mut self, _at: Cycle, _issued: Issued) {}

    /// Data reaches host memory: that of a handler of this context, or what the unit itself tells the host.
    ///
    /// # Errors
    /// When the IOMMU does not know the addresses, or they are not the context's.
    fn host_write(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault>;

    /// Data is read from host memory for a handler of this context.
    ///
    /// # Errors
    /// When the IOMMU does not know the addresses, or they are not the context's.
    fn host_read(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault>;
}

/// Whose access to host memory it is: that of a handler of a context, or, without one, of the unit itself.
pub type By<'a> = Option<&'a ExecutionContext>;

/// The host refuses an access: the addresses are not those of a registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFault;

/// The PsPIN unit, with cores `C`, watched by `O`.
pub struct Pspin<C, O = ()> {
    config: Rc<Config>,
    /// The next cycle that has not been simulated.
    now: Cycle,
    memory: Arena,
    mpq: Mpq,
    dispatcher: Dispatcher,
    dma: DmaInterconnect,
    /// The transfers that end in the cycle that is simulated.
    landed: Vec<Landed>,
    pe: PeInterconnect,
    program: ProgramPort,
    commands: CommandUnit,
    command_arbiter: RoundRobin,
    clusters: Vec<Cluster>,
    /// The clusters with a feedback that could be sent, and those with a command for the command unit.
    feeding: u64,
    issuing: u64,
    /// No watchdog bites before this cycle.
    watchdog: Cycle,
    cores: C,
    /// Feedback on its way to the queues and the NIC.
    feedback: VecDeque<Returning>,
    /// Packets for which no handler runs, which take their turn with the clusters.
    skipped: VecDeque<Completion>,
    /// What the feedback that was collected in the cycle that is simulated leaves empty at its end, and the HPU whose command was
    /// taken in it.
    leaving: Option<Leaving>,
    commanding: Option<HpuId>,
    arbiter: RoundRobin,
    l2: L2Ports,
    /// The number of errors of each descriptor.
    errors: HashMap<u64, u64>,
    /// What the driver on the host is told at the end of the cycle.
    events: Vec<DriverEvent>,
    counters: Counters,
    observer: O,
}

/// Packets for which no handler runs that may wait to be fed back.
const SKIPPED: usize = 4;

/// What a feedback leaves empty.
#[derive(Clone, Copy)]
enum Leaving {
    /// The first place in the driver of an HPU, and that in its cluster.
    Task(HpuId),
    /// An entry of the queue of packets for which no handler runs.
    Skipped,
}

/// A feedback that has left its cluster.
struct Returning {
    /// When it arrives, or is offered to the NIC again.
    at: Cycle,
    completion: Completion,
    /// What it means for the message, when the queue has learned it.
    ended: Option<Ended>,
    /// Host and driver have been told that the handler has failed.
    is_reported: bool,
}

impl<C: Cores, O: Observer> Pspin<C, O> {
    /// A unit without tasks.
    pub fn new(config: Rc<Config>, clock: Clock, cores: C, observer: O) -> Pspin<C, O> {
        let clusters = (0..config.units.clusters as u16).map(|index| Cluster::new(&config, index)).collect();
        Pspin {
            now: Cycle::ZERO,
            memory: Arena::new(&config),
            mpq: Mpq::new(&config.mpq),
            dispatcher: Dispatcher::new(&config.dispatch),
            dma: DmaInterconnect::new(&config),
            landed: Vec::new(),
            pe: PeInterconnect::new(&config),
            program: ProgramPort::new(&config),
            commands: CommandUnit::new(&config, clock),
            command_arbiter: RoundRobin::default(),
            clusters,
            feeding: 0,
            issuing: 0,
            watchdog: Cycle::NEVER,
            cores,
            feedback: VecDeque::new(),
            skipped: VecDeque::new(),
            leaving: None,
            commanding: None,
            arbiter: RoundRobin::default(),
            l2: L2Ports::new(&config),
            errors: HashMap::new(),
            events: Vec::new(),
            counters: Counters::default(),
            observer,
            config,
        }
    }

    /// The next cycle that has not been simulated.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of requests that have been accepted and not yet fed back.
    pub fn inside(&self) -> u64 {
        self.mpq.inside()
    }

    /// The bytes of all memories.
    pub fn memory(&mut self) -> &mut Arena {
        &mut self.memory
    }

    /// The bytes of all memories, for reading.
    pub fn arena(&self) -> &Arena {
        &self.memory
    }

    /// The cores.
    pub fn cores(&self) -> &C {
        &self.cores
    }

    /// The cores, which may be told something between two cycles.
    pub fn cores_mut(&mut self) -> &mut C {
        &mut self.cores
    }

    /// Takes the cores out of the unit.
    pub fn into_cores(self) -> C {
        self.cores
    }

    /// The cores, and the bytes of all memories.
    pub fn cores_and_memory(&mut self) -> (&mut C, &mut Arena) {
        (&mut self.cores, &mut self.memory)
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// All HPUs have booted and wait for their first task.
    pub fn boot(&mut self) {
        self.clusters.iter_mut().for_each(Cluster::boot);
    }

    /// The NIC writes a packet into L2 from cycle `at` on. Returns the first cycle in which its request can be submitted, if its beats
    /// do not wait for other writes; `None` when the bytes are not inside the packet buffer.
    pub fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle> {
        self.memory.write(address, bytes.len() as u32)?.copy_from_slice(bytes);
        let written = self.l2.write_packet(at, address, bytes.len() as u32);
        Some(written + self.config.inbound.write_cycles)
    }

    /// The NIC submits a request in the next cycle that has not been simulated.
    ///
    /// # Errors
    /// When the request has to wait.
    pub fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)> {
        if !self.l2.is_stored(self.now, her.packet.address) {
            return Err((Busy::Cycle, her));
        }
        let noted = self.observer_copy(&her);
        self.mpq.accept(self.now, her)?;
        self.counters.accepted += 1;
        if let Some(her) = noted {
            self.observer.note(self.now, Noted::HerAccepted(&her));
        }
        Ok(())
    }

    /// A copy of a request for the observer, if there is one.
    fn observer_copy(&self, her: &Her) -> Option<Her> {
        O::WATCHES.then(|| her.clone())
    }

    /// Whether the queue of a message number is free, so that it may name another message.
    pub fn is_free(&self, message: u32) -> bool {
        self.mpq.is_free(message)
    }

    /// Lets a message queue give `priority` tasks more in each of its turns. Returns whether there is the queue.
    pub fn set_priority(&mut self, queue: u32, priority: u8) -> bool {
        self.mpq.set_priority(queue, priority)
    }

    /// Gives up a message. Returns whether there is such a message.
    pub fn reset_message(&mut self, message: u32) -> bool {
        self.mpq.reset(self.now, message).is_some()
    }

    /// The card is done with a command in cycle `at`: its response goes back to the HPU.
    pub fn complete(&mut self, at: Cycle, issued: Issued) {
        self.commands.respond(at.max(self.now), Response { issued, data: [0; 64], is_refused: false });
    }

    /// The next cycle in which something happens inside; [`Cycle::NEVER`] when the unit is idle.
    pub fn next(&self) -> Cycle {
        let mut next =
            self.mpq.wake(self.now).min(self.dma.wake()).min(self.dispatcher_wake()).min(self.commands.wake());
        next = next.min(self.watchdog).min(self.pe.wake(self.now)).min(self.program.wake());
        if let Some(front) = self.feedback.front() {
            next = next.min(front.at);
        }
        for cluster in &self.clusters {
            next = next.min(cluster.wake()).min(self.cores.next(cluster.index()));
        }
        let has_feedback = self.feeding != 0 || !self.skipped.is_empty();
        let could_feed_back = has_feedback && self.feedback.len() < self.config.cluster.feedback_cycles as usize;
        let issues = self.issuing != 0 || self.commands.has_status();
        if issues || could_feed_back { self.now } else { next.max(self.now) }
    }

    fn dispatcher_wake(&self) -> Cycle {
        match self.mpq.out() {
            Some((since, _)) if !self.dispatcher.is_blocked => since + self.dispatcher.cycles,
            _ => Cycle::NEVER,
        }
    }

    /// Simulates the cycles before `until`, but no further than the end of the first in which something goes out. Returns the
    /// next cycle that has not been simulated; when nothing happens any more and `until` never comes, time stands still.
    pub fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle {
        loop {
            // With packets under way there is something to do in each cycle, and no need to find out when.
            let next = if self.dma.wake() <= self.now { self.now } else { self.next() };
            if next >= until {
                if until != Cycle::NEVER {
                    self.now = self.now.max(until);
                }
                return self.now;
            }
            self.now = next;
            let goes_out = self.step(out);
            self.now += 1;
            if goes_out {
                return self.now;
            }
        }
    }

    /// Simulates cycle `now`. Whoever receives acts before the one who sends, so what is sent in a cycle is seen in the next.
    /// Returns whether something went out.
    fn step(&mut self, out: &mut impl Outside) -> bool {
        let now = self.now;
        let gives_up = self.give_up_idle(out);
        let mut goes_out = gives_up | self.send_feedback(!gives_up, out);
        if self.commands.wake() <= now {
            goes_out |= self.move_commands(out);
        }
        if self.issuing != 0 || self.commands.has_status() {
            self.take_command();
        }
        if self.watchdog <= now {
            self.bite();
        }
        for index in 0..self.clusters.len() {
            if self.clusters[index].wake() <= now {
                self.assign(index);
            }
        }
        if self.dma.wake() <= now {
            self.read_beats();
        }
        if self.pe.wake(now) <= now {
            self.access();
        }
        for index in 0..self.clusters.len() as u16 {
            if self.cores.next(index) <= now {
                let cluster = &mut self.clusters[usize::from(index)];
                let mut side = ClusterSide {
                    cluster,
                    tasks: self.mpq.tasks(),
                    memory: &mut self.memory,
                    pe: &mut self.pe,
                    program: &mut self.program,
                    dma: &mut self.dma,
                    events: &mut self.events,
                    observer: &mut self.observer,
                };
                self.cores.step(index, now, &mut side);
                self.note_wishes(usize::from(index));
            }
        }
        self.pe.take(now);
        if self.program.wake() <= now {
            self.fetch();
        }
        if self.dispatcher_wake() <= now {
            self.dispatch();
        }
        // Dispatcher and HPUs see only in the next cycle what has become empty in this one.
        if let Some(leaving) = self.leaving.take() {
            self.leave(leaving);
        }
        if let Some(hpu) = self.commanding.take() {
            self.command_has_left(hpu);
        }
        self.mpq.step(now);
        for event in self.events.drain(..) {
            goes_out = true;
            out.raise(now, event);
        }
        goes_out
    }

    /// Gives up a message for which no packet has come for too long. Returns whether there is one.
    #[inline]
    fn give_up_idle(&mut self, out: &mut impl Outside) -> bool {
        if !self.commands.has_room_for_status(self.now) {
            return false;
        }
        let Some(event) = self.mpq.give_up_idle(self.now) else { return false };
        if let DriverEvent::Idle { message, descriptor, .. } = event {
            self.observer.note(self.now, Noted::Idle { message });
            let count = self.count_error(descriptor);
            self.tell_host(descriptor, Status::idle(message, count));
        }
        out.raise(self.now, event);
        true
    }

    /// Notes what a cluster wants of the parts that all share.
    #[inline]
    fn note_wishes(&mut self, index: usize) {
        let cluster = &self.clusters[index];
        let set = |set: u64, wants: bool| set & !(1 << index) | u64::from(wants) << index;
        self.feeding = set(self.feeding, cluster.has_feedback());
        self.issuing = set(self.issuing, cluster.has_command());
    }

    /// The feedback of one HPU leaves its cluster, and one that has left reaches the queues and the NIC; a failure, host and driver before
    /// that, if they listen in this cycle. Returns whether the NIC or the driver is told something.
    fn send_feedback(&mut self, listens: bool, out: &mut impl Outside) -> bool {
        let (now, cycles) = (self.now, self.config.cluster.feedback_cycles);
        if self.feedback.len() < cycles as usize
            && let Some(completion) = self.collect_feedback()
        {
            self.feedback.push_back(Returning { at: now + (cycles - 1), completion, ended: None, is_reported: false });
        }
        let Some(front) = self.feedback.front_mut().filter(|front| front.at <= now) else { return false };
        let (completion, mpq) = (front.completion, &mut self.mpq);
        let ended = *front.ended.get_or_insert_with(|| mpq.complete(now, completion.task, completion.outcome));
        let reports = completion.has_failed() && !front.is_reported;
        if reports {
            if !listens || !self.commands.has_room_for_status(now) {
                front.at = now + 1_u64;
                return false;
            }
            front.is_reported = true;
            self.report_failure(completion, out);
        }
        let task = &self.mpq.tasks()[completion.task];
        let goes_out = task.feeds_back;
        if goes_out {
            let feedback = Mpq::feedback(task, completion.outcome, ended);
            if !out.feedback(now, &feedback) {
                if let Some(front) = self.feedback.front_mut() {
                    front.at = now + 1_u64;
                }
                return true;
            }
            self.counters.count(completion.outcome);
            self.observer.note(now, Noted::Feedback(&feedback));
        }
        self.feedback.pop_front();
        self.mpq.forget(completion.task);
        goes_out | reports
    }

    /// Tells host and driver that a handler has failed (§III-B2).
    fn report_failure(&mut self, Completion { task, outcome, hpu }: Completion, out: &mut impl Outside) {
        let Some(hpu) = hpu else { return };
        let task = &self.mpq.tasks()[task];
        let (role, message, descriptor) = (task.role, task.her.message, task.her.context.descriptor);
        let count = self.count_error(descriptor);
        self.tell_host(descriptor, Status::of(outcome, role, message, count));
        out.raise(self.now, DriverEvent::Failed { hpu, role, message, outcome, descriptor });
    }

    fn count_error(&mut self, descriptor: u64) -> u64 {
        let count = self.errors.entry(descriptor).or_default();
        *count += 1;
        *count
    }

    /// Has the status written into the descriptor of a context, if it has one.
    fn tell_host(&mut self, descriptor: u64, status: Status) {
        self.commands.tell(self.now, descriptor, status);
    }

    /// Takes the next feedback from the clusters and from the packets without handlers, in turn.
    fn collect_feedback(&mut self) -> Option<Completion> {
        let skips = self.clusters.len();
        let choice = self.arbiter.choice(self.feeding | u64::from(!self.skipped.is_empty()) << skips)?;
        self.arbiter.grant(choice);
        if choice as usize == skips {
            self.leaving = Some(Leaving::Skipped);
            return self.skipped.front().copied();
        }
        let (hpu, task, outcome) = self.clusters[choice as usize].feed_back()?;
        let hpu = HpuId { cluster: choice as u16, hpu };
        self.leaving = Some(Leaving::Task(hpu));
        Some(Completion { task, outcome, hpu: Some(hpu) })
    }

    /// Places or an entry are empty from the next cycle on, in which the dispatcher and an HPU that waits try again.
    fn leave(&mut self, leaving: Leaving) {
        match leaving {
            Leaving::Task(hpu) => {
                let index = usize::from(hpu.cluster);
                if self.clusters[index].leave(hpu.hpu) {
                    self.cores.resume(hpu, self.now + 1_u64);
                }
                self.note_wishes(index);
            }
            Leaving::Skipped => _ = self.skipped.pop_front(),
        }
        self.dispatcher.is_blocked = false;
    }

    /// The place of a command that was taken is empty from the next cycle on.
    fn command_has_left(&mut self, hpu: HpuId) {
        let index = usize::from(hpu.cluster);
        if self.clusters[index].command_has_left(hpu.hpu) {
            self.cores.resume(hpu, self.now + 1_u64);
        }
        self.note_wishes(index);
    }

    /// Gives the next task of a cluster to an idle HPU.
    fn assign(&mut self, index: usize) {
        if let Some((hpu, place, at)) = self.clusters[index].assign(self.now, self.mpq.tasks()) {
            let id = HpuId { cluster: index as u16, hpu };
            self.watchdog = self.watchdog.min(self.clusters[index].watchdog());
            self.observer.note(at, Noted::Assigned { hpu: id, place });
            self.cores.task(id, at + self.config.cluster.driver_cycles);
        }
    }

    /// Kills the handlers that have run for too long (§III-B3).
    fn bite(&mut self) {
        self.watchdog = Cycle::NEVER;
        for cluster in &mut self.clusters {
            let mut bitten = if cluster.watchdog() <= self.now { cluster.bite(self.now) } else { 0 };
            while bitten != 0 {
                let hpu = bitten.trailing_zeros() as u16;
                bitten &= bitten - 1;
                self.cores.kill(HpuId { cluster: cluster.index(), hpu }, self.now);
            }
            self.watchdog = self.watchdog.min(cluster.watchdog());
        }
    }

    /// Beats are read from L2, on their way to L1, and those of other transfers of the clusters' DMA engines.
    fn read_beats(&mut self) {
        let (now, beat) = (self.now, self.dma.beat());
        let Pspin { dma, clusters, memory, l2, observer, landed, .. } = self;
        landed.clear();
        let moves = |Beat { read, write, at }: Beat| {
            if let Some(address) = read {
                let Some((cluster, offset)) = memory.locate_l1(address) else {
                    if l2.is_taken(now, address) {
                        return false;
                    }
                    l2.note_read(now, address);
                    return announce(clusters, memory, l2, write, at, beat);
                };
                // The word is read in the second cycle of its way.
                let (banks, at) = (&mut clusters[usize::from(cluster)].banks, now + 2_u64);
                if !banks.take_beat(at, offset, beat, Wide::Read) {
                    return false;
                }
            }
            announce(clusters, memory, l2, write, at, beat)
        };
        dma.step(now, moves, |transfer| landed.push(transfer));
        for landed in landed.iter() {
            let Transfer { owner, from, to } = landed.transfer;
            memory.copy(from.address, to, from.size);
            if let Owner::Packet(place) = owner {
                clusters[usize::from(landed.cluster)].land(place, landed.at);
                observer.note(landed.at, Noted::DmaDone { cluster: landed.cluster, place });
            }
        }
    }

    /// Words of HPUs reach memories that are not in their own L1.
    fn access(&mut self) {
        let now = self.now;
        let Pspin { pe, l2, program, clusters, cores, .. } = self;
        let is_free = |remote: Remote| match remote.place {
            Place::L1(cluster) => {
                let banks = &mut clusters[usize::from(cluster)].banks;
                banks.take_remote(now, remote.offset, remote.bytes, remote.is_atomic)
            }
            place @ (Place::Handler | Place::Packet) => {
                l2.take_word(now, Arena::start(place) + remote.offset, remote.is_atomic)
            }
            Place::Program => !program.is_reading(now),
        };
        pe.access(now, is_free, |hpu, taken, answer| cores.reach(hpu, now, taken, answer));
    }

    /// A line of code is read for a cache.
    fn fetch(&mut self) {
        if let Some(Refill { hpu, line, there }) = self.program.fetch(self.now) {
            let address = Arena::start(Place::Program) + line * self.config.icache.line;
            self.observer.note(self.now, Noted::Miss { hpu, address });
            self.cores.refill(hpu.cluster, line, there);
        }
    }

    /// The command unit takes a command of one HPU, or a status.
    fn take_command(&mut self) {
        let has_room = |command: &Command| self.commands.has_room(self.now, command);
        let mut requests = 0;
        for (index, cluster) in self.clusters.iter().enumerate() {
            let requests_one = cluster.has_command() && cluster.next_command(has_room).is_some();
            requests |= u64::from(requests_one) << index;
        }
        let statuses = self.clusters.len();
        requests |= u64::from(self.commands.could_take_status(self.now)) << statuses;
        let Some(index) = self.command_arbiter.choice(requests) else { return };
        if index as usize == statuses {
            self.command_arbiter.grant(index);
            return self.commands.take_status(self.now);
        }
        let cluster = &mut self.clusters[index as usize];
        let Some(hpu) = cluster.next_command(has_room) else { return };
        self.command_arbiter.grant(index);
        let Some((slot, command)) = cluster.take_command(hpu) else { return };
        let hpu = HpuId { cluster: index as u16, hpu };
        self.commands.take(self.now, Issued { hpu, slot, command });
        self.counters.commands += 1;
        self.observer.note(self.now, Noted::Command { hpu, slot, command: &command });
        self.commanding = Some(hpu);
    }

    /// Commands come to their engines, data is read, commands are done, responses come back. Returns whether something goes out.
    fn move_commands(&mut self, out: &mut impl Outside) -> bool {
        let now = self.now;
        let mut goes_out = false;
        if let Some(issued) = self.commands.begins(now) {
            goes_out = true;
            let answer = self.read_host(issued, out);
            self.commands.answer(answer);
        }
        let Pspin { commands, clusters, memory, l2, config, .. } = self;
        let width = config.nhi.width_bits / 8;
        // L1 is asked a cycle ahead.
        let mut take_l1 = |(cluster, offset): (u16, u32), port: Wide| {
            clusters[usize::from(cluster)].banks.take_beat(now + 1_u64, offset, width, port)
        };
        let write = |address| match memory.locate_l1(address) {
            Some(place) => take_l1(place, Wide::Write),
            None => l2.write(now, address),
        };
        commands.move_data(now, |at, port| out.moves(at, port), write);
        while let Some(due) = self.commands.next_due() {
            goes_out = true;
            match due {
                Due::Deliver(issued, at) => {
                    if let Some(response) = self.deliver(issued, at, out) {
                        self.commands.respond(now, response);
                    }
                }
                Due::Bring(issued, answer) => self.bring(issued, &answer, out),
                // A descriptor that the host has taken back is the driver's business, which has been told anyway.
                Due::Tell(descriptor, status) => {
                    let is_lost = out.host_write(now, None, descriptor, bytes_of(&status)).is_err();
                    self.counters.lost_status += u64::from(is_lost);
                }
            }
        }
        if let Some(response) = self.commands.next_response(now) {
            self.respond(response);
        }
        self.commands.arrive(now);
        let Pspin { commands, clusters, memory, l2, .. } = self;
        commands.read(now, |address, need| match (memory.locate_l1(address), need) {
            (Some((cluster, offset)), Need::Next) => {
                clusters[usize::from(cluster)].banks.take_beat(now + 1_u64, offset, width, Wide::Read)
            }
            (None, Need::Now) => l2.read(now, address),
            _ => true,
        });
        goes_out
    }

    /// A response reaches its HPU.
    fn respond(&mut self, Response { issued: Issued { hpu, slot, command }, data, is_refused }: Response) {
        let address = command.host();
        let refused = is_refused.then_some(Failure::Host { address });
        let goes_on = self.clusters[usize::from(hpu.cluster)].respond(hpu.hpu, slot, data, refused);
        self.note_wishes(hpu.cluster.into());
        self.observer.note(self.now, Noted::Response { hpu, slot });
        if goes_on {
            self.cores.resume(hpu, self.now);
        }
    }

    /// The context of the task whose command it is.
    fn context_of(&self, issued: &Issued) -> By<'_> {
        let cluster = &self.clusters[usize::from(issued.hpu.cluster)];
        let task = cluster.issuer(issued.hpu.hpu, issued.slot)?;
        Some(&*self.mpq.tasks()[task].her.context)
    }

    /// The host is asked for the data of a command.
    fn read_host(&self, issued: Issued, out: &mut impl Outside) -> Answer {
        let size = match issued.command {
            Command::HostDirectRead { size, .. } => u32::from(size),
            command => command.local().unwrap_or_default().size,
        };
        let mut bytes = vec![0; size as usize];
        let read = out.host_read(self.now, self.context_of(&issued), issued.command.host(), &mut bytes);
        Answer { bytes, is_refused: read.is_err() }
    }

    /// What a command has read from the host is where it goes.
    fn bring(&mut self, issued: Issued, Answer { bytes, is_refused }: &Answer, out: &mut impl Outside) {
        let mut data = [0; 64];
        let driver = &self.clusters[usize::from(issued.hpu.cluster)].drivers[usize::from(issued.hpu.hpu)];
        match issued.command.local() {
            Some(range) if !is_refused && !driver.is_orphan(issued.slot) => {
                if let Some(memory) = self.memory.write(range.address, range.size) {
                    memory.copy_from_slice(bytes);
                }
            }
            Some(_) => {}
            None => data.iter_mut().zip(bytes).for_each(|(data, byte)| *data = *byte),
        }
        if let (false, Some(user)) = (is_refused, issued.command.event()) {
            out.raise(self.now, DriverEvent::Command { user });
        }
        self.commands.respond(self.now, Response { issued, data, is_refused: *is_refused });
    }

    /// The data of a command leaves the unit: for the network in cycle `at`. Returns the response, if it is known already.
    fn deliver(&mut self, issued: Issued, at: Cycle, out: &mut impl Outside) -> Option<Response> {
        let (now, by) = (self.now, self.context_of(&issued));
        let read = |data: Range| self.memory.read(data.address, data.size).unwrap_or_default();
        let done = match issued.command {
            Command::Send { data, send } => {
                out.send(at, issued.hpu, send, read(data));
                Ok(())
            }
            Command::ToHost { host, data, .. } => out.host_write(now, by, host, read(data)),
            Command::HostDirect { host, data, size } => {
                out.host_write(now, by, host, &data[..usize::from(size).min(64)])
            }
            Command::Card { .. } => {
                out.leave(now, issued);
                return None;
            }
            // What is read is brought.
            Command::FromHost { .. } | Command::HostDirectRead { .. } => return None,
        };
        if let (Ok(()), Some(user)) = (done, issued.command.event()) {
            out.raise(now, DriverEvent::Command { user });
        }
        Some(Response { issued, data: [0; 64], is_refused: done.is_err() })
    }

    /// The dispatcher gives its task to a cluster, or waits until one has room: that of the end of the last cycle.
    fn dispatch(&mut self) {
        match self.mpq.out() {
            Some((_, Selected::Task(task))) => {
                let Some(index) = self.dispatcher.choose(&self.mpq.tasks()[task].her, &self.clusters) else {
                    self.dispatcher.is_blocked = true;
                    return;
                };
                self.send(self.now, index, task);
            }
            Some((_, Selected::Packet(completion))) => {
                if self.skipped.len() >= SKIPPED {
                    self.dispatcher.is_blocked = true;
                    return;
                }
                self.skipped.push_back(completion);
            }
            None => return,
        }
        self.mpq.take();
    }

    /// A task comes to a cluster, which has room for it and starts to copy its packet.
    fn send(&mut self, now: Cycle, index: usize, id: TaskId) {
        let task = &self.mpq.tasks()[id];
        let from = Range { address: task.her.packet.address, size: task.her.transfer };
        let Some((place, to)) = self.clusters[index].accept(now, id, from.size) else { return };
        let cluster = index as u16;
        self.observer.note(now, Noted::TaskSent { cluster, place, task });
        if from.size > 0 {
            self.observer.note(now, Noted::DmaStart { cluster, place });
            self.dma.start(cluster, now, Transfer { owner: Owner::Packet(place), from, to: to.address });
        }
    }
}

/// A word of a DMA engine's width will be written, if there is one. Its banks are announced.
#[inline]
fn announce(
    clusters: &mut [Cluster],
    memory: &Arena,
    l2: &mut L2Ports,
    write: Option<u32>,
    at: Cycle,
    bytes: u32,
) -> bool {
    if let Some(address) = write {
        match memory.locate_l1(address) {
            Some((cluster, offset)) => {
                clusters[usize::from(cluster)].banks.announce_beat(at, offset, bytes, Wide::Write)
            }
            None => l2.note_write(at, address),
        }
    }
    true
}
