//! The unit: all parts, and the order in which they act in a cycle.

use std::collections::VecDeque;
use std::rc::Rc;

use machine::Pspin as Config;

use crate::pspin::cluster::Cluster;
use crate::pspin::cores::{ClusterSide, Cores};
use crate::pspin::counters::Counters;
use crate::pspin::cycle::Cycle;
use crate::pspin::fabric::{DmaInterconnect, Transfer};
use crate::pspin::her::{Busy, DriverEvent, Feedback, Her, HpuId, Range, Task};
use crate::pspin::memory::Arena;
use crate::pspin::observe::{Noted, Observer};
use crate::pspin::schedule::{Completion, Dispatcher, Ended, Mpq, RoundRobin, Selected};

/// What surrounds the unit: the NIC, the host, and the driver.
pub trait Outside {
    /// A packet is done. Returns whether the NIC takes the feedback now; otherwise it is offered again in the next cycle.
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool;

    /// The driver on the host is told something.
    fn raise(&mut self, at: Cycle, event: DriverEvent);
}

/// The PsPIN unit, with cores `C`, watched by `O`.
pub struct Pspin<C, O = ()> {
    config: Rc<Config>,
    /// The next cycle that has not been simulated.
    now: Cycle,
    memory: Arena,
    mpq: Mpq,
    dispatcher: Dispatcher,
    dma: DmaInterconnect,
    clusters: Vec<Cluster>,
    cores: C,
    /// Feedback on its way to the queues and the NIC.
    feedback: VecDeque<Returning>,
    /// Packets for which no handler runs, which take their turn with the clusters.
    skipped: VecDeque<Completion>,
    arbiter: RoundRobin,
    inbound: Inbound,
    counters: Counters,
    observer: O,
}

/// A feedback that has left its cluster.
struct Returning {
    /// When it arrives, or is offered to the NIC again.
    at: Cycle,
    completion: Completion,
    /// What it means for the message, when the queue has learned it.
    ended: Option<Ended>,
}

/// The write channel by which the NIC fills the L2 packet buffer.
#[derive(Default)]
struct Inbound {
    /// The first cycle in which it is free.
    free: Cycle,
}

impl<C: Cores, O: Observer> Pspin<C, O> {
    /// A unit without tasks.
    pub fn new(config: Rc<Config>, cores: C, observer: O) -> Pspin<C, O> {
        let clusters = (0..config.units.clusters as u16).map(|index| Cluster::new(&config, index)).collect();
        Pspin {
            now: Cycle::ZERO,
            memory: Arena::new(&config),
            mpq: Mpq::new(&config.mpq),
            dispatcher: Dispatcher::new(&config.dispatch),
            dma: DmaInterconnect::new(&config),
            clusters,
            cores,
            feedback: VecDeque::new(),
            skipped: VecDeque::new(),
            arbiter: RoundRobin::default(),
            inbound: Inbound::default(),
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

    /// Who watches.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// All HPUs have booted and wait for their first task.
    pub fn boot(&mut self) {
        self.clusters.iter_mut().for_each(Cluster::boot);
    }

    /// The NIC writes a packet into L2 from cycle `at` on. Returns the cycle in which its request can be submitted; `None` when
    /// the bytes are not inside the packet buffer.
    pub fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle> {
        self.memory.write(address, bytes.len() as u32)?.copy_from_slice(bytes);
        let width = self.config.nhi.width_bits / 8;
        let beats = (address + (bytes.len() as u32).max(1) - 1) / width - address / width + 1;
        let start = at.max(self.inbound.free);
        self.inbound.free = start + beats;
        Some(start + beats + self.config.inbound.write_cycles)
    }

    /// The NIC submits a request in the next cycle that has not been simulated.
    ///
    /// # Errors
    /// When the request has to wait.
    pub fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)> {
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

    /// Gives up a message. Returns whether there is such a message.
    pub fn reset_message(&mut self, message: u32) -> bool {
        self.mpq.reset(self.now, message).is_some()
    }

    /// The next cycle in which something happens inside; [`Cycle::NEVER`] when the unit is idle.
    pub fn next(&self) -> Cycle {
        let mut next = self.mpq.wake(self.now).min(self.dma.wake()).min(self.dispatcher_wake());
        if let Some(front) = self.feedback.front() {
            next = next.min(front.at);
        }
        let mut has_feedback = !self.skipped.is_empty();
        for cluster in &self.clusters {
            next = next.min(cluster.wake()).min(cluster.watchdog()).min(self.cores.next(cluster.index()));
            has_feedback |= cluster.has_feedback();
        }
        if has_feedback && self.feedback.len() < self.config.cluster.feedback_cycles as usize {
            next = self.now;
        }
        next.max(self.now)
    }

    fn dispatcher_wake(&self) -> Cycle {
        match self.mpq.out() {
            Some((since, _)) if !self.dispatcher.is_blocked => *since + self.dispatcher.cycles,
            _ => Cycle::NEVER,
        }
    }

    /// Simulates the cycles before `until`, but no further than the end of the first in which something goes out. Returns the
    /// next cycle that has not been simulated.
    pub fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle {
        loop {
            let next = self.next();
            if next >= until {
                self.now = self.now.max(until);
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
        let mut goes_out = self.send_feedback(out);
        for index in 0..self.clusters.len() {
            if self.clusters[index].watchdog() <= now {
                self.bite(index);
            }
            self.assign(index);
        }
        if self.dma.wake() <= now {
            self.read_beat();
        }
        for index in 0..self.clusters.len() as u16 {
            if self.cores.next(index) <= now {
                let cluster = &mut self.clusters[usize::from(index)];
                let mut side = ClusterSide { cluster, memory: &mut self.memory, observer: &mut self.observer };
                self.cores.step(index, now, &mut side);
            }
        }
        if self.dispatcher_wake() <= now {
            self.dispatch();
        }
        self.mpq.step(now, |event| {
            goes_out = true;
            out.raise(now, event);
        });
        goes_out
    }

    /// The feedback of one HPU leaves its cluster, and one that has left reaches the queues and the NIC. Returns whether the NIC
    /// or the driver is told something.
    fn send_feedback(&mut self, out: &mut impl Outside) -> bool {
        let (now, cycles) = (self.now, self.config.cluster.feedback_cycles);
        if self.feedback.len() < cycles as usize
            && let Some(completion) = self.collect_feedback()
        {
            self.feedback.push_back(Returning { at: now + (cycles - 1), completion, ended: None });
        }
        let Some(front) = self.feedback.front_mut().filter(|front| front.at <= now) else { return false };
        let Completion { task, outcome } = &front.completion;
        let mpq = &mut self.mpq;
        let ended = *front.ended.get_or_insert_with(|| mpq.complete(now, task, *outcome));
        if task.feeds_back {
            let feedback = Mpq::feedback(task, *outcome, ended);
            if !out.feedback(now, &feedback) {
                front.at = now + 1_u64;
                return true;
            }
            self.counters.count(*outcome);
            self.observer.note(now, Noted::Feedback(&feedback));
        }
        let goes_out = task.feeds_back;
        self.feedback.pop_front();
        goes_out
    }

    /// Takes the next feedback from the clusters and from the packets without handlers, in turn.
    fn collect_feedback(&mut self) -> Option<Completion> {
        let skips = self.clusters.len();
        let mut requests = u64::from(!self.skipped.is_empty()) << skips;
        for (index, cluster) in self.clusters.iter().enumerate() {
            requests |= u64::from(cluster.has_feedback()) << index;
        }
        let choice = self.arbiter.choice(requests)?;
        self.arbiter.grant(choice);
        if choice as usize == skips {
            return self.skipped.pop_front();
        }
        let (task, outcome, woken) = self.clusters[choice as usize].feed_back()?;
        self.dispatcher.is_blocked = false;
        if let Some(hpu) = woken {
            self.cores.resume(HpuId { cluster: choice as u16, hpu }, self.now + 1_u64, 0);
        }
        Some(Completion { task, outcome })
    }

    /// Gives the next task of a cluster to an idle HPU.
    fn assign(&mut self, index: usize) {
        if let Some((hpu, place, at)) = self.clusters[index].assign(self.now) {
            let id = HpuId { cluster: index as u16, hpu };
            self.observer.note(at, Noted::Assigned { hpu: id, place });
            self.cores.task(id, at + self.config.cluster.driver_cycles);
        }
    }

    /// Kills the handlers of a cluster that have run for too long (§III-B3).
    fn bite(&mut self, index: usize) {
        let mut bitten = self.clusters[index].bite(self.now);
        while bitten != 0 {
            let hpu = bitten.trailing_zeros() as u16;
            bitten &= bitten - 1;
            self.cores.kill(HpuId { cluster: index as u16, hpu }, self.now);
        }
    }

    /// A beat of a packet is read from L2, on its way to L1.
    fn read_beat(&mut self) {
        let Some(landed) = self.dma.step(self.now, |_| false) else { return };
        let Transfer { place, from, to } = landed.transfer;
        self.memory.copy(from.address, to, from.size);
        self.clusters[usize::from(landed.cluster)].land(place, landed.at);
        self.observer.note(landed.at, Noted::DmaDone { cluster: landed.cluster, place });
    }

    /// The dispatcher gives its task to a cluster, or waits until one has room.
    fn dispatch(&mut self) {
        let now = self.now;
        if let Some((_, Selected::Task(task))) = self.mpq.out() {
            let Some(index) = self.dispatcher.choose(task, &self.clusters) else {
                self.dispatcher.is_blocked = true;
                return;
            };
            if let Some(Selected::Task(task)) = self.mpq.take() {
                self.send(now, index, task);
            }
        } else if let Some(Selected::Packet(completion)) = self.mpq.take() {
            self.skipped.push_back(completion);
        }
    }

    /// A task comes to a cluster, which has room for it and starts to copy its packet.
    fn send(&mut self, now: Cycle, index: usize, task: Task) {
        let from = Range { address: task.her.packet.address, size: task.her.transfer };
        let watched = O::WATCHES.then(|| task.clone());
        let Some((place, to)) = self.clusters[index].accept(now, task) else { return };
        let cluster = index as u16;
        if let Some(task) = watched {
            self.observer.note(now, Noted::TaskSent { cluster, place, task: &task });
        }
        if from.size > 0 {
            self.observer.note(now, Noted::DmaStart { cluster, place });
            self.dma.start(cluster, now, Transfer { place, from, to: to.address });
        } else {
            // Nothing is copied: the scheduler may assign the task in the cycle in which it comes.
            self.assign(index);
        }
    }
}
