// SPDX-License-Identifier: Apache-2.0
//! The unit: all parts, and the order in which they act in a cycle.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use bytemuck::bytes_of;
use machine::Pspin as Config;
use sim::Clock;

use crate::arbiter::RoundRobin;
use crate::command::{Answer, Command, CommandUnit, Due, Issued, Need, Port, Response, Send};
use crate::cores::{ClusterSide, Cores};
use crate::counters::Counters;
use crate::cycle::Cycle;
use crate::fabric::{
    Beat, DmaInterconnect, L2Ports, Landed, Owner, PeInterconnect, ProgramPort, Refill, Remote, Transfer,
};
use crate::her::{Busy, DriverEvent, ExecutionContext, Failure, Feedback, Her, HpuId, Range};
use crate::hpu_cluster::HpuCluster;
use crate::memory::{Arena, Place, Wide};
use crate::observe::{Noted, Observer};
use crate::schedule::{Completion, Dispatcher, Ended, Mpq, Selected, TaskId, choose_apart};
use crate::status::Status;

/// Surroundings of the unit: the NIC, the host, and the driver.
pub trait Outside {
    /// Offers the feedback of a finished packet. Returns true if the NIC accepts it; otherwise it is offered again in
    /// the next cycle.
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool;

    /// Delivers an event to the driver on the host.
    fn raise(&mut self, at: Cycle, event: DriverEvent);

    /// Returns true if a beat may move through `_port` in cycle `_at`; otherwise it is offered again in the next. Must
    /// return the same for repeated calls with the same arguments.
    fn is_ready(&self, _at: Cycle, _port: Port) -> bool {
        true
    }

    /// Sends a handler's packet, which has been read, to the network.
    fn send(&mut self, at: Cycle, hpu: HpuId, send: Send, packet: &[u8]);

    /// Hands a command to the card ([`Command::Card`]), which reports its completion with [`Pspin::complete`].
    fn leave(&mut self, _at: Cycle, _issued: Issued) {}

    /// Writes to host memory: data of a handler of context `by`, or the unit's own status.
    ///
    /// # Errors
    /// If the IOMMU does not map the addresses, or they do not belong to the context.
    fn host_write(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault>;

    /// Reads from host memory for a handler of context `by`.
    ///
    /// # Errors
    /// If the IOMMU does not map the addresses, or they do not belong to the context.
    fn host_read(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault>;
}

/// Originator of a host memory access: the context of a handler, or `None` for the unit itself.
pub type By<'a> = Option<&'a ExecutionContext>;

/// Host access refused: the addresses are not in registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFault;

/// The PsPIN unit with cores `C`, watched by observer `O`.
pub struct Pspin<C, O = ()> {
    config: Rc<Config>,
    /// Next cycle to simulate.
    now: Cycle,
    memory: Arena,
    mpq: Mpq,
    dispatcher: Dispatcher,
    dma: DmaInterconnect,
    /// Transfers that end in the present cycle.
    landed: Vec<Landed>,
    pe: PeInterconnect,
    program: ProgramPort,
    commands: CommandUnit,
    command_arbiter: RoundRobin,
    clusters: Vec<HpuCluster>,
    /// Set of clusters with feedback to send, and set of clusters with a command for the command unit.
    feeding: u64,
    issuing: u64,
    /// No watchdog expires before this cycle.
    watchdog: Cycle,
    cores: C,
    /// Feedback in flight to the queues and the NIC.
    feedback: VecDeque<Returning>,
    /// Packets without a handler to run; their feedback competes with that of the clusters.
    skipped: VecDeque<Completion>,
    /// Space to free at the end of the present cycle: that of the feedback collected in it, and the HPU whose command
    /// was taken.
    leaving: Option<Leaving>,
    commanding: Option<HpuId>,
    arbiter: RoundRobin,
    l2: L2Ports,
    /// Error count of each descriptor.
    errors: HashMap<u64, u64>,
    /// Events that the host driver receives at the end of the cycle.
    events: Vec<DriverEvent>,
    counters: Counters,
    observer: O,
}

/// Capacity of the queue of skipped packets.
const SKIPPED: usize = 4;

/// Space that a collected feedback frees.
#[derive(Clone, Copy)]
enum Leaving {
    /// First entry in the driver of this HPU, and the task's place in its cluster.
    Task(HpuId),
    /// Entry of the queue of skipped packets.
    Skipped,
}

/// Feedback that has left its cluster.
struct Returning {
    /// Arrival, or next offer to the NIC.
    at: Cycle,
    completion: Completion,
    /// Effect on the message, once the queue has processed the feedback.
    ended: Option<Ended>,
    /// Set when host and driver are informed of the handler's failure.
    is_reported: bool,
}

impl<C: Cores, O: Observer> Pspin<C, O> {
    /// Creates a unit without tasks.
    pub fn new(config: Rc<Config>, clock: Clock, cores: C, observer: O) -> Pspin<C, O> {
        let clusters = (0..config.units.clusters as u16).map(|index| HpuCluster::new(&config, index)).collect();
        Pspin {
            now: Cycle::ZERO,
            memory: Arena::new(&config),
            mpq: Mpq::new(&config),
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

    /// Returns the next cycle to simulate.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of accepted requests without feedback so far.
    pub fn inside(&self) -> u64 {
        self.mpq.inside()
    }

    /// Returns the contents of all memories.
    pub fn memory(&mut self) -> &mut Arena {
        &mut self.memory
    }

    /// Returns the contents of all memories, for reading.
    pub fn arena(&self) -> &Arena {
        &self.memory
    }

    /// Returns the cores.
    pub fn cores(&self) -> &C {
        &self.cores
    }

    /// Returns the cores, for changes between two cycles.
    pub fn cores_mut(&mut self) -> &mut C {
        &mut self.cores
    }

    /// Consumes the unit and returns its cores.
    pub fn into_cores(self) -> C {
        self.cores
    }

    /// Returns the cores and the contents of all memories.
    pub fn cores_and_memory(&mut self) -> (&mut C, &mut Arena) {
        (&mut self.cores, &mut self.memory)
    }

    /// Returns the observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Boots all HPUs; they wait for their first task.
    pub fn boot(&mut self) {
        self.clusters.iter_mut().for_each(HpuCluster::boot);
    }

    /// Writes a packet of the NIC into L2 from cycle `at` on. Returns the first cycle in which its request can be
    /// submitted if no beat stalls behind other writes; `None` if the bytes are not inside the packet buffer.
    pub fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle> {
        self.memory.write(address, bytes.len() as u32)?.copy_from_slice(bytes);
        let written = self.l2.write_packet(at, address, bytes.len() as u32);
        Some(written + self.config.inbound.write_cycles)
    }

    /// Submits a request in the next cycle to simulate.
    ///
    /// # Errors
    /// If the request has to wait.
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

    /// Clones a request for the observer, if the observer watches.
    fn observer_copy(&self, her: &Her) -> Option<Her> {
        O::WATCHES.then(|| her.clone())
    }

    /// Returns true if the queue of this message number is free for another message.
    pub fn is_free(&self, message: u32) -> bool {
        self.mpq.is_free(message)
    }

    /// Lets a message queue issue `priority` additional tasks per turn. Returns false if the queue does not exist.
    pub fn set_priority(&mut self, queue: u32, priority: u8) -> bool {
        self.mpq.set_priority(queue, priority)
    }

    /// Abandons a message. Returns false if no such message exists.
    pub fn reset_message(&mut self, message: u32) -> bool {
        self.mpq.reset(self.now, message).is_some()
    }

    /// Completes a command of the card in cycle `at`: its response returns to the HPU.
    pub fn complete(&mut self, at: Cycle, issued: Issued) {
        self.commands.respond(at.max(self.now), Response { issued, data: [0; 64], is_refused: false });
    }

    /// Returns the next active cycle; [`Cycle::NEVER`] if the unit is idle.
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

    /// Simulates the cycles before `until`, but stops after the first with an output to the surroundings. Returns the
    /// next cycle to simulate. If the unit is idle and `until` is [`Cycle::NEVER`], time does not advance.
    pub fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle {
        loop {
            // With packets in flight every cycle is active, so skip the search for the next one.
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

    /// Simulates cycle `now`. Receivers act before senders, so data sent in one cycle is visible in the next. Returns
    /// true if the unit had an output to its surroundings.
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
                self.note_stopped(usize::from(index));
            }
        }
        self.pe.take(now);
        if self.program.wake() <= now {
            self.fetch();
        }
        if self.dispatcher_wake() <= now {
            self.dispatch();
        }
        // Dispatcher and HPUs see the space that this cycle frees only in the next.
        if let Some(leaving) = self.leaving.take() {
            self.leave(leaving);
        }
        if let Some(hpu) = self.commanding.take() {
            self.command_has_left(hpu);
        }
        self.select();
        for event in self.events.drain(..) {
            goes_out = true;
            out.raise(now, event);
        }
        goes_out
    }

    /// Abandons a message that received no packet for too long. Returns true if one was found.
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

    /// Records a cluster's requests for the shared feedback path and command unit.
    #[inline]
    fn note_wishes(&mut self, index: usize) {
        let cluster = &self.clusters[index];
        let set = |set: u64, wants: bool| set & !(1 << index) | u64::from(wants) << index;
        self.feeding = set(self.feeding, cluster.has_feedback());
        self.issuing = set(self.issuing, cluster.has_command());
    }

    /// Selects a task in the message queues.
    #[inline]
    fn select(&mut self) {
        let Pspin { now, mpq, dispatcher, clusters, .. } = self;
        match mpq.shares().is_some() {
            false => mpq.step(*now, |_, _| true),
            true => mpq.step(*now, |her, shares| choose_apart(dispatcher, *now, her, clusters, shares).is_some()),
        }
    }

    /// Records the tenants of a cluster whose task has left its HPU.
    #[inline]
    fn note_stopped(&mut self, index: usize) {
        if let Some(shares) = self.mpq.shares_mut() {
            for tenant in self.clusters[index].take_stopped() {
                shares.stop(self.now.0, tenant);
            }
        }
    }

    /// Collects the feedback of one HPU, and delivers the oldest one in flight to the queues and the NIC. A failure is
    /// first reported to host and driver, in a cycle in which `listens` is true. Returns true if the NIC or the driver
    /// is informed.
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

    /// Reports a failed handler to host and driver (§III-B2).
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

    /// Queues a write of the status to the descriptor of a context, if it has one.
    fn tell_host(&mut self, descriptor: u64, status: Status) {
        self.commands.tell(self.now, descriptor, status);
    }

    /// Takes the next feedback from the clusters and the skipped packets, round robin.
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

    /// Frees space from the next cycle on, and lets the dispatcher and a waiting HPU retry then.
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

    /// Frees the slot of a command from the next cycle on.
    fn command_has_left(&mut self, hpu: HpuId) {
        let index = usize::from(hpu.cluster);
        if self.clusters[index].command_has_left(hpu.hpu) {
            self.cores.resume(hpu, self.now + 1_u64);
        }
        self.note_wishes(index);
    }

    /// Assigns a cluster's next task to an idle HPU.
    fn assign(&mut self, index: usize) {
        let Pspin { mpq, clusters, .. } = self;
        if let Some((hpu, place, at)) = clusters[index].assign(self.now, mpq.tasks(), mpq.shares()) {
            self.note_started(index, place);
            let id = HpuId { cluster: index as u16, hpu };
            self.watchdog = self.watchdog.min(self.clusters[index].watchdog());
            self.observer.note(at, Noted::Assigned { hpu: id, place });
            self.cores.task(id, at + self.config.cluster.driver_cycles);
        }
    }

    /// Records the tenant of a task that got an HPU.
    #[inline]
    fn note_started(&mut self, index: usize, place: u8) {
        if self.mpq.shares().is_some()
            && let Some((task, _)) = self.clusters[index].task(place)
        {
            let tenant = self.mpq.tasks()[task].her.context.tenant;
            self.mpq.shares_mut().into_iter().for_each(|shares| shares.start(self.now.0, tenant));
        }
    }

    /// Kills handlers that exceed their watchdog limit (§III-B3).
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

    /// Reads beats from L2 for packets, and beats of other transfers of the clusters' DMA engines.
    fn read_beats(&mut self) {
        let (now, beat) = (self.now, self.dma.beat());
        let Pspin { dma, clusters, memory, l2, observer, landed, .. } = self;
        landed.clear();
        let is_ready = |Beat { read, write, at }: Beat| {
            if let Some(address) = read {
                let Some((cluster, offset)) = memory.locate_l1(address) else {
                    if l2.is_taken(now, address) {
                        return false;
                    }
                    l2.note_read(now, address);
                    return announce(clusters, memory, l2, write, at, beat);
                };
                // The DMA engine reads the word two cycles later.
                let (banks, at) = (&mut clusters[usize::from(cluster)].banks, now + 2_u64);
                if !banks.take_beat(at, offset, beat, Wide::Read) {
                    return false;
                }
            }
            announce(clusters, memory, l2, write, at, beat)
        };
        dma.step(now, is_ready, |transfer| landed.push(transfer));
        for landed in landed.iter() {
            let Transfer { owner, from, to } = landed.transfer;
            memory.copy(from.address, to, from.size);
            if let Owner::Packet(place) = owner {
                clusters[usize::from(landed.cluster)].land(place, landed.at);
                observer.note(landed.at, Noted::DmaDone { cluster: landed.cluster, place });
            }
        }
    }

    /// Performs the HPUs' accesses to remote memories.
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

    /// Starts the refill of a line of an instruction cache.
    fn fetch(&mut self) {
        if let Some(Refill { hpu, line, there }) = self.program.fetch(self.now) {
            let address = Arena::start(Place::Program) + line * self.config.icache.line;
            self.observer.note(self.now, Noted::Miss { hpu, address });
            self.cores.refill(hpu.cluster, line, there);
        }
    }

    /// Takes a command of one HPU, or a status, into the command unit.
    fn take_command(&mut self) {
        let has_room = |tenant, command: &Command| self.commands.has_room(self.now, tenant, command);
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
        let issuer =
            self.clusters[index as usize].issuer(hpu.hpu, slot).map(|task| &self.mpq.tasks()[task].her.context);
        let (tenant, share) = issuer.map(|context| (context.tenant, context.share)).unwrap_or_default();
        self.commands.take(self.now, Issued { tenant, share, ..Issued::new(hpu, slot, command) });
        self.counters.commands += 1;
        self.observer.note(self.now, Noted::Command { hpu, slot, command: &command, tenant: Some(tenant) });
        self.commanding = Some(hpu);
    }

    /// Advances commands: accepts them in their engines, reads their data, completes them, and returns responses.
    /// Returns true if the unit has an output to its surroundings.
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
        // L1 banks are requested a cycle ahead.
        let mut take_l1 = |(cluster, offset): (u16, u32), port: Wide| {
            clusters[usize::from(cluster)].banks.take_beat(now + 1_u64, offset, width, port)
        };
        let write = |address| match memory.locate_l1(address) {
            Some(place) => take_l1(place, Wide::Write),
            None => l2.write(now, address),
        };
        commands.move_data(now, |at, port| out.is_ready(at, port), write);
        while let Some(due) = self.commands.next_due() {
            goes_out = true;
            match due {
                Due::Deliver(issued, at) => {
                    if let Some(response) = self.deliver(issued, at, out) {
                        self.commands.respond(now, response);
                    }
                }
                Due::Bring(issued, answer) => self.bring(issued, &answer, out),
                // The host may have withdrawn the descriptor. The driver receives the event in any case.
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

    /// Delivers a response to its HPU.
    fn respond(&mut self, Response { issued: Issued { hpu, slot, command, .. }, data, is_refused }: Response) {
        let address = command.host();
        let refused = is_refused.then_some(Failure::Host { address });
        let goes_on = self.clusters[usize::from(hpu.cluster)].respond(hpu.hpu, slot, data, refused);
        self.note_wishes(hpu.cluster.into());
        self.observer.note(self.now, Noted::Response { hpu, slot });
        if goes_on {
            self.cores.resume(hpu, self.now);
        }
    }

    /// Returns the context of the task that issued the command.
    fn context_of(&self, issued: &Issued) -> By<'_> {
        let cluster = &self.clusters[usize::from(issued.hpu.cluster)];
        let task = cluster.issuer(issued.hpu.hpu, issued.slot)?;
        Some(&*self.mpq.tasks()[task].her.context)
    }

    /// Reads the data of a command from host memory.
    fn read_host(&self, issued: Issued, out: &mut impl Outside) -> Answer {
        // The last part of a read brings all of its data.
        if !issued.completes() {
            return Answer::default();
        }
        let size = match issued.command {
            Command::HostDirectRead { size, .. } => u32::from(size),
            command => command.local().unwrap_or_default().size,
        };
        let mut bytes = vec![0; size as usize];
        let read = out.host_read(self.now, self.context_of(&issued), issued.command.host(), &mut bytes);
        Answer { bytes, is_refused: read.is_err() }
    }

    /// Stores the data that a command read from the host at its destination, and responds.
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

    /// Passes the data of a command out of the unit; packets enter the network in cycle `at`. Returns the response, if
    /// it is already known.
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
            // `bring` handles reads.
            Command::FromHost { .. } | Command::HostDirectRead { .. } => return None,
        };
        if let (Ok(()), Some(user)) = (done, issued.command.event()) {
            out.raise(now, DriverEvent::Command { user });
        }
        Some(Response { issued, data: [0; 64], is_refused: done.is_err() })
    }

    /// Sends the selected task to a cluster, or waits until one has room, as of the end of the previous cycle.
    fn dispatch(&mut self) {
        match self.mpq.out() {
            Some((_, Selected::Task(task))) => {
                let her = &self.mpq.tasks()[task].her;
                let chosen = match self.mpq.shares() {
                    Some(shares) => choose_apart(&self.dispatcher, self.now, her, &self.clusters, shares),
                    None => self.dispatcher.choose(her, &self.clusters),
                };
                let Some(index) = chosen else {
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

    /// Sends a task to a cluster that has room for it, and starts the DMA of its packet.
    fn send(&mut self, now: Cycle, index: usize, id: TaskId) {
        let task = &self.mpq.tasks()[id];
        let tenant = task.her.context.tenant;
        let from = Range { address: task.her.packet.address, size: task.her.transfer };
        let Some((place, to)) = self.clusters[index].accept(now, id, tenant, from.size) else { return };
        let cluster = index as u16;
        self.observer.note(now, Noted::TaskSent { cluster, place, task });
        if from.size > 0 {
            self.observer.note(now, Noted::DmaStart { cluster, place });
            self.dma.start(cluster, now, Transfer { owner: Owner::Packet(place), from, to: to.address });
        }
        if let Some(shares) = self.mpq.shares_mut() {
            shares.send(tenant);
        }
    }
}

/// Announces the write of a beat, if any, to the banks or ports of its destination. Always returns true.
#[inline]
fn announce(
    clusters: &mut [HpuCluster],
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
