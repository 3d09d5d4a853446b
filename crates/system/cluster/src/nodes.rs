// SPDX-License-Identifier: Apache-2.0
//! Cluster state: cards, interconnect, host CPUs, timeline and messages.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use machine::Machine;
use net::fabric::{self, Crossing};
use net::{Interconnect, Loss, NetError};
use nic::{CardModel, LinkSlice, Member, Nic, NicEvent, Notice, Packet, PacketId, Stats, Timeline};
use sim::noise::Noise;
use sim::trace::Trace;
use sim::{EventQueue, SharedBandwidth, Time};

use crate::access::Access;
use crate::cores::{Core, Cores};
use crate::costs::{HostCosts, HostTraffic, Work};
use crate::event::Event;
use crate::failure::InternalError;
use crate::memory::HostMemory;
use crate::places::Places;
use crate::ports::CardPorts;
use crate::progress::RunProgress;
use crate::real_time::RealTime;
use crate::user_messages::{Listener, Messages};

/// Cards, interconnect and host CPUs of a machine. `E` is the type of the events that ranks schedule for themselves.
pub struct Cluster<E> {
    machine: Rc<Machine>,
    pub(crate) places: Places,
    pub(crate) interconnect: Interconnect<Box<Packet>>,
    pub(crate) queue: EventQueue<Event<E>>,
    /// Real time, and the events of ranks that wait for it; `None` in a simulation.
    pub(crate) real_time: Option<RealTime<E>>,
    /// Cards of the ranks, followed by those of the switches with handlers.
    pub(crate) cards: Vec<Nic>,
    notices: Vec<(u32, Notice)>,
    costs: HostCosts,
    cores: Cores,
    traffic: Vec<HostTraffic>,
    /// Bandwidth of each host's memory, if CPU and card share it.
    bandwidths: Vec<SharedBandwidth>,
    timeline: Timeline,
    messages: Messages,
    pub(crate) failure: Option<InternalError>,
    pub(crate) now: Time,
    pub(crate) progress: Arc<RunProgress>,
    pub(crate) trims_cards: bool,
    /// Names of the nodes' processes for the user; empty for "rank N".
    pub(crate) names: Vec<String>,
    /// Nodes with dead cards, and their times of death.
    pub(crate) dead: BTreeMap<u32, Time>,
}

impl<E> Cluster<E> {
    /// Creates a cluster of `ranks` nodes of a machine, which serve the user `uid`. `listener` receives messages for
    /// the user.
    ///
    /// # Errors
    /// If the network does not support this number of nodes.
    pub fn new(
        model: CardModel,
        ranks: usize,
        uid: u32,
        trace: Trace,
        listener: Listener,
    ) -> Result<Cluster<E>, NetError> {
        Cluster::with_rows(model, Places::alone(ranks), uid, (trace, &[]), listener)
    }

    /// Creates a cluster like [`Cluster::new`] of ranks with these places, which have these names in the timeline; none for
    /// "rank N".
    ///
    /// # Errors
    /// If the network does not support this number of nodes.
    pub fn with_rows(
        model: CardModel,
        places: Places,
        uid: u32,
        (trace, rows): (Trace, &[String]),
        listener: Listener,
    ) -> Result<Cluster<E>, NetError> {
        let machine = model.machine().clone();
        let ranks = places.ranks();
        let mut interconnect = Interconnect::new(&machine.network, places.nodes())?;
        if trace.is_on() {
            interconnect.set_tracing();
        }
        let of_switch = Rc::new(model.of_switch());
        let timeline = Timeline::new(trace, ranks, rows, &machine, interconnect.switches(), of_switch.machine());
        let all = ranks + interconnect.switches().len();
        let model = Rc::new(model);
        let of_ranks = Nic::all(&model, 0..ranks as u32, all as u32, uid);
        let of_switches = (ranks..all).map(|card| Nic::of_switch(of_switch.clone(), card as u32, all as u32, uid));
        let cards = of_ranks.chain(of_switches).collect();
        let bandwidth = SharedBandwidth::new(machine.host.dram_gap_per_byte);
        Ok(Cluster {
            interconnect,
            queue: EventQueue::default(),
            real_time: None,
            cards,
            notices: Vec::new(),
            costs: HostCosts::new(&machine),
            cores: Cores::new(places.nodes(), machine.host.cores),
            traffic: vec![HostTraffic::default(); ranks],
            bandwidths: vec![bandwidth; if machine.host.shared_memory { places.nodes() } else { 0 }],
            timeline,
            messages: Messages::new(listener),
            failure: None,
            now: Time::ZERO,
            progress: Arc::default(),
            trims_cards: false,
            names: Vec::new(),
            dead: BTreeMap::new(),
            places,
            machine,
        })
    }

    /// Restricts ranks, each with a place in its partition and a user id, to their partitions.
    pub fn separate(&mut self, members: impl IntoIterator<Item = (usize, Member, u32)>) {
        let mut nodes: BTreeSet<u32> = BTreeSet::new();
        for (rank, member, uid) in members {
            self.cards[rank].portals_mut().join(member, uid);
            nodes.extend(self.places.beside(rank).first());
        }
        // The first rank of a node has the engines until another one uses them.
        for first in nodes {
            let quota = |rank: &u32| self.cards[*rank as usize].portals().quota();
            let quotas: Vec<_> = self.places.beside(first as usize).iter().map(quota).collect();
            self.cards[first as usize].divide(&quotas);
        }
    }

    /// Returns the places of the ranks.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Gives the engines of a shared card to one of its ranks.
    fn lend(&mut self, rank: usize) {
        let holder = self.places.holder(rank);
        if holder != rank
            && let Ok([from, to]) = self.cards.get_disjoint_mut([holder, rank])
        {
            from.hand_over(to);
            self.places.hold(rank);
        }
    }

    /// Names the processes of the nodes in messages for the user.
    pub fn set_names(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// Returns the name of a node's process for the user, such as "rank 3".
    pub fn name(&self, rank: usize) -> String {
        self.names.get(rank).cloned().unwrap_or_else(|| format!("rank {rank}"))
    }

    /// Makes cards release memory after each message, for simulations of many cards with few messages each.
    pub fn trim_cards(&mut self) {
        self.trims_cards = true;
    }

    /// Adds noise to the CPUs of the hosts. It delays their work, but never that of cards (sPIN §4.4.1).
    pub fn set_noise(&mut self, noise: &Noise) {
        self.cores.set_noise(noise);
    }

    /// Loses packets from now on. Equal seeds lose the same packets.
    ///
    /// # Errors
    /// If a link or a node does not exist.
    pub fn set_losses(&mut self, losses: &[Loss], seed: u64) -> Result<(), NetError> {
        self.interconnect.set_losses(losses, seed)
    }

    /// Returns the number of packets lost by each of `losses` losses.
    pub fn lost(&self, losses: usize) -> Vec<u64> {
        self.interconnect.lost(losses)
    }

    /// Advances simulated time to `at` without an event. No event may be due earlier.
    pub fn pass_until(&mut self, at: Time) {
        debug_assert!(self.next_event().is_none_or(|next| next >= at) && at >= self.now);
        self.now = at;
    }

    /// Kills the card of a rank's node. Other cards detect it by missing answers.
    pub fn kill_card(&mut self, rank: usize) {
        let found_out = self.now + self.machine.network.patience();
        let node = self.places.node(rank);
        let ranks = (0..self.ranks()).filter(|other| self.places.node(*other) == node).collect::<Vec<_>>();
        for rank in ranks {
            self.dead.insert(rank as u32, self.now);
            for other in (0..self.cards.len()).filter(|other| self.places.node(*other) != node) {
                self.queue.push(found_out, Event::Card(other as u32, NicEvent::PeerIsDead(rank as u32)));
            }
        }
    }

    /// Returns true if the card of a rank is dead.
    pub fn is_dead(&self, rank: usize) -> bool {
        self.dead.contains_key(&(rank as u32))
    }

    /// Returns the total delay of the CPU work on each rank's node by noise.
    pub fn noise_delays(&self) -> impl Iterator<Item = Time> {
        let delays: Vec<Time> = self.cores.delays().collect();
        (0..self.ranks()).map(move |rank| delays[self.places.node(rank)])
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.places.ranks()
    }

    /// Returns the names of the switches with handlers. Their cards follow those of the ranks.
    pub fn switches(&self) -> &[String] {
        self.interconnect.switches()
    }

    /// Returns the number of links of the shortest path between two ranks or switches; `None` if one of them does not
    /// exist, or if the network model has no links.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        if from.max(to) as usize >= self.cards.len() {
            return None;
        }
        let [from, to] = [from, to].map(|card| self.places.node(card as usize) as u32);
        self.interconnect.distance(from, to)
    }

    /// Returns packets and bytes of each used link; `None` if the network model has no links.
    pub fn traffic_of_links(&self) -> Option<Vec<fabric::Traffic>> {
        self.interconnect.traffic()
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> Option<Time> {
        self.queue.peek_time()
    }

    /// Returns the number of handled and waiting events.
    pub fn events(&self) -> u64 {
        self.queue.inserted()
    }

    /// Returns the progress of [`Cluster::run`], for another thread.
    pub fn progress(&self) -> Arc<RunProgress> {
        self.progress.clone()
    }

    /// Schedules `event` for the ranks after `delay`.
    pub fn schedule(&mut self, delay: Time, event: E) {
        self.queue.push(self.now + delay, Event::Rank(event));
    }

    /// Schedules `event` for the ranks after a delay that a program has asked for, such as a sleep or a time limit. It is
    /// real time in a live cluster.
    pub fn schedule_timer(&mut self, delay: Time, event: E) {
        match &mut self.real_time {
            Some(real_time) => real_time.schedule(self.now, delay, event),
            None => self.schedule(delay, event),
        }
    }

    /// Returns the card of a rank or of a switch, for calls that do not affect its surroundings.
    pub fn card(&mut self, rank: usize) -> &mut Nic {
        self.lend(rank);
        &mut self.cards[rank]
    }

    /// Returns all cards.
    pub fn cards(&self) -> &[Nic] {
        &self.cards
    }

    /// Lets a card act on its surroundings. Adds its notices for the host to [`Cluster::notices`].
    pub fn act<M: HostMemory, R>(
        &mut self,
        rank: usize,
        memory: &mut M,
        act: impl FnOnce(&mut Nic, &mut CardPorts<'_, E, M>) -> R,
    ) -> R {
        self.lend(rank);
        let result = self.act_with_engines(rank, memory, act);
        // The accelerator may also have work for the other processes of the node.
        let mut holder = rank;
        while let Some(next) = self.awaited(holder) {
            self.lend(next);
            self.act_with_engines(next, memory, |card, ports| card.catch_up(ports));
            holder = next;
        }
        result
    }

    /// Returns the rank beside `holder` for which the accelerator has queued work.
    fn awaited(&self, holder: usize) -> Option<usize> {
        let process = self.cards[holder].awaited()?;
        self.places.beside(holder).get(process as usize).map(|rank| *rank as usize)
    }

    fn act_with_engines<M: HostMemory, R>(
        &mut self,
        rank: usize,
        memory: &mut M,
        act: impl FnOnce(&mut Nic, &mut CardPorts<'_, E, M>) -> R,
    ) -> R {
        let Cluster {
            queue,
            real_time,
            interconnect,
            notices,
            timeline,
            messages,
            failure,
            now,
            bandwidths,
            dead,
            places,
            names,
            ..
        } = self;
        let (now, card, node) = (*now, rank as u32, places.node(rank));
        let (is_dead, bandwidth) = (dead.contains_key(&card), bandwidths.get_mut(node));
        let mut ports = CardPorts {
            now,
            rank: card,
            node: node as u32,
            is_dead,
            is_live: real_time.is_some(),
            places,
            names,
            memory,
            bandwidth,
            queue,
            interconnect,
            notices,
            timeline,
            messages,
            failure,
        };
        act(&mut self.cards[rank], &mut ports)
    }

    /// Returns the notices of cards to their hosts, with the rank. The ranks handle and then
    /// [clear](Cluster::clear_notices) them.
    pub fn notices(&self) -> &[(u32, Notice)] {
        &self.notices
    }

    /// Takes the notices, for ranks that [return](Cluster::recycle_notices) their list.
    pub fn take_notices(&mut self) -> Vec<(u32, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the list of handled notices, so that its memory is used again.
    pub fn recycle_notices(&mut self, mut handled: Vec<(u32, Notice)>) {
        handled.clear();
        if self.notices.is_empty() {
            self.notices = handled;
        }
    }

    /// Clears the notices.
    pub fn clear_notices(&mut self) {
        self.notices.clear();
    }

    /// Returns the CPU costs of using a card.
    pub fn costs(&self) -> &HostCosts {
        &self.costs
    }

    /// Returns true if work of a rank starts now, and takes the same time whenever it begins.
    pub fn is_free(&self, rank: usize) -> bool {
        self.cores.is_free(self.places.node(rank), self.now)
    }

    /// Charges a thread of a rank with some work, on a core of its host. Returns the time from now until it is done,
    /// which includes the time until a core is free, and noise.
    pub fn charge(&mut self, rank: usize, work: impl IntoIterator<Item = Work, IntoIter: Clone>) -> Time {
        self.charge_on(rank, work, None)
    }

    /// Charges a thread of a rank with posting an operation. The card must start it next: in the timeline, the arrows
    /// of its message begin here. Returns the time from now until the end of the post.
    pub fn charge_post(&mut self, rank: usize) -> Time {
        let packet = self.cards[rank].upcoming_packet();
        self.charge_on(rank, [self.costs.post()], Some(packet))
    }

    fn charge_on(
        &mut self,
        rank: usize,
        work: impl IntoIterator<Item = Work, IntoIter: Clone>,
        packet: Option<PacketId>,
    ) -> Time {
        let work = work.into_iter();
        if work.clone().all(|work| work.span == Time::ZERO) {
            return Time::ZERO;
        }
        let (core, start) = self.cores.choose(self.places.node(rank), self.now);
        self.work((rank, core), start, work, packet) - self.now
    }

    /// Shows an activity of a rank's program from `start` until now in the timeline.
    pub fn show(&mut self, rank: usize, start: Time, name: &str) {
        self.timeline.cpu(rank, start, self.now, name, None);
    }

    /// Charges a thread of a rank with its program's memory traffic, like [`charge`](Cluster::charge).
    pub fn charge_memory(&mut self, rank: usize, moved: HostTraffic) -> (Time, Option<Access>) {
        self.access(rank, moved, self.costs.memory(moved.read, moved.written))
    }

    /// Charges a thread of a rank with the copy of a contiguous block, like [`charge`](Cluster::charge).
    pub fn charge_copy(&mut self, rank: usize, bytes: u64) -> (Time, Option<Access>) {
        self.access(rank, HostTraffic { read: bytes, written: bytes }, self.costs.copy(bytes))
    }

    /// Charges a thread with a memory access. If CPU and card share the memory bandwidth, it may take longer than the
    /// returned time: it ends when [`time_left`](Cluster::time_left) returns `None`.
    fn access(&mut self, rank: usize, moved: HostTraffic, work: Work) -> (Time, Option<Access>) {
        self.traffic[rank].add(moved);
        if work.span == Time::ZERO || self.bandwidths.is_empty() {
            return (self.charge(rank, [work]), None);
        }
        let node = self.places.node(rank);
        let (core, start) = self.cores.choose(node, self.now);
        let end = self.work((rank, core), start, [work], None);
        let flows = end.min(start + self.costs.memory_latency());
        let bytes = moved.read.saturating_add(moved.written);
        let work = self.bandwidths[node].begin(self.now, flows, end - flows, bytes);
        (end - self.now, Some(Access { rank, core, work }))
    }

    /// Returns the remaining time of an access that contention has delayed; `None` if it has ended. The core is busy
    /// for that time.
    pub fn time_left(&mut self, access: Access) -> Option<Time> {
        let Access { rank, core, work } = access;
        let end = self.bandwidths[self.places.node(rank)].end(self.now, work)?;
        let wait = Work { name: "contention", span: end - self.now };
        Some(self.work((rank, core), self.now, [wait], None) - self.now)
    }

    /// Returns the memory traffic of each host's CPU.
    pub fn traffic(&self) -> &[HostTraffic] {
        &self.traffic
    }

    /// Charges a thread that already has a core because it polls memory. Returns the duration of the work, with noise.
    pub fn charge_running(&mut self, rank: usize, work: Work) -> Time {
        let core = self.cores.polling(self.places.node(rank));
        self.work((rank, core), self.now, [work], None) - self.now
    }

    /// Executes pieces of work on a core in sequence, and shows them in the timeline. Returns the end of the work.
    fn work(
        &mut self,
        (rank, core): (usize, Core),
        start: Time,
        work: impl IntoIterator<Item = Work>,
        packet: Option<PacketId>,
    ) -> Time {
        work.into_iter().fold(start, |at, work| {
            let end = self.cores.work(core, at, work.span);
            self.timeline.cpu(rank, at, end, work.name, packet);
            end
        })
    }

    /// Returns the cost of the next completion that the rank's card leaves to the CPU (rdma cards), if any.
    pub fn completion(&self, rank: usize) -> Option<impl Iterator<Item = Work> + Clone + use<E>> {
        if !self.costs.cpu_completes() {
            return None;
        }
        self.cards[rank].next_completion().map(|completion| self.costs.complete(completion))
    }

    /// Passes a message to the user.
    pub fn warn(&mut self, message: String) {
        self.messages.warn(self.now, message);
    }

    /// Reports a refused call to the user.
    pub fn tell_refusal(&mut self, text: &str) {
        self.messages.refused(text);
    }

    /// Returns the messages for the user.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Returns the statistics of each card: those of the ranks, followed by those of switches.
    pub fn stats(&self) -> impl Iterator<Item = Stats> {
        self.cards.iter().enumerate().map(|(rank, card)| card.stats_beside(&self.cards[self.places.holder(rank)]))
    }

    /// Returns the busy time of the sending port of each card's node, in the same order.
    pub fn sending_ports_busy(&self) -> impl Iterator<Item = Time> {
        (0..self.cards.len()).map(|card| self.interconnect.port_busy(self.places.node(card)))
    }

    /// Returns statistics of the links so far, with at most `busiest` links of highest utilization; `None` if the
    /// network model has no links.
    pub fn links(&self, busiest: usize) -> Option<fabric::Report> {
        self.interconnect.report(self.now, busiest)
    }

    /// Writes the timeline, if requested, with a row for each used link.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_trace(mut self) -> std::io::Result<()> {
        for Crossing { link, from, to, bytes, start, end } in self.interconnect.crossings() {
            let name =
                || self.interconnect.link_name(*link).map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
            self.timeline.link(
                *link,
                name,
                LinkSlice { start: *start, end: *end, from: *from, to: *to, bytes: *bytes },
            );
        }
        self.timeline.finish()
    }
}
