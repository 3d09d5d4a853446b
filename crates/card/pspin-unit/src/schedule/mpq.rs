// SPDX-License-Identifier: Apache-2.0
//! Engine of the message processing queues (§III-B1, B3): it keeps the order of handlers within a message.
//!
//! A queue passes through `Header` (the header handler has not run), `HeaderRunning` (it runs alone, on the first
//! packet), `Payload` (all packets, including the first, in parallel), `Draining` (the last packet is sent, payload
//! handlers still run), `CompletionRunning` (alone, on the last packet) and back to free.

use machine::{Pspin as Config, Scheduler};

use super::lru::IdleOrder;
use super::tasks::{List, TaskId, Tasks};
use crate::arbiter::first_from;
use crate::cycle::Cycle;
use crate::her::{Busy, DriverEvent, Feedback, Her, HpuId, Role, Task, TaskOutcome};
use accel::shares::{Shared, Shares};

/// State of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Header,
    HeaderRunning,
    Payload,
    Draining,
    Completion,
    CompletionRunning,
    /// The message is abandoned: running handlers end, and its packets are fed back.
    Reset,
}

struct Queue {
    state: State,
    /// Message number, compared with that of each request, so numbers never alias.
    message: u32,
    waiting: List,
    /// Handlers present in the context of the message's first request, by role.
    handlers: [bool; 3],
    /// First cycle in which the selection sees the state.
    from: Cycle,
    /// Number of tasks sent and packets skipped that have not ended.
    running: u32,
    /// Number of skipped packets among them.
    skipped: u32,
    /// Set when the header handler failed: no other handler of the message runs.
    failed: bool,
    /// Task of the completion handler, on the last packet.
    last: Option<TaskId>,
    /// Set when the last packet has arrived.
    ended: bool,
    idle_cycles: u64,
    descriptor: u64,
    tenant: u32,
}

/// Output of a queue: a task for a cluster, or a packet without a handler to run.
#[derive(Clone, Copy, Debug)]
pub enum Selected {
    /// Task that runs a handler.
    Task(TaskId),
    /// Packet that is done without a handler.
    Packet(Completion),
}

/// The end of a task, in flight to the queue and the NIC.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Task that ended.
    pub task: TaskId,
    /// Outcome of the task.
    pub outcome: TaskOutcome,
    /// HPU that ran it, if any.
    pub hpu: Option<HpuId>,
}

impl Completion {
    /// Returns true if its handler failed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, TaskOutcome::Faulted(_) | TaskOutcome::TimedOut)
    }
}

/// Effect of the end of a task on the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Set when the message has ended and its queue is free.
    pub last: bool,
}

/// All message queues.
pub struct Mpq {
    queues: Vec<Queue>,
    tasks: Tasks,
    /// Set of queues with something to select.
    ready: Vec<u64>,
    /// First queue in round-robin order: the successor of the queue selected last.
    next: u32,
    /// Number of times that the queue selected last may be selected again before the next in turn.
    again: u8,
    /// Additional selections of each queue per turn.
    priorities: Vec<u8>,
    scheduler: Scheduler,
    shares: Option<Shares>,
    /// Cycles in which queues must be updated, in ascending order.
    pending: std::collections::VecDeque<(Cycle, u16)>,
    select_cycles: u64,
    /// Selected task waiting for the dispatcher, and the cycle of its selection.
    out: Option<(Cycle, Selected)>,
    accepted: Option<Cycle>,
    order: IdleOrder,
    /// No queue exceeds its idle limit before this cycle.
    idle_from: Cycle,
    /// Number of accepted requests not yet fed back.
    inside: u64,
}

impl Mpq {
    /// Creates free queues.
    pub fn new(unit: &Config) -> Mpq {
        let config = &unit.mpq;
        let queue = |_| Queue {
            state: State::Free,
            message: 0,
            waiting: List::EMPTY,
            handlers: [false; 3],
            from: Cycle::ZERO,
            running: 0,
            skipped: 0,
            failed: false,
            last: None,
            ended: false,
            idle_cycles: 0,
            descriptor: 0,
            tenant: 0,
        };
        Mpq {
            queues: (0..config.queues).map(queue).collect(),
            tasks: Tasks::new(config.queues, config.cells_per_queue, config.shared_cells),
            ready: vec![0; config.queues.div_ceil(64) as usize],
            next: 0,
            again: 0,
            priorities: vec![0; config.queues as usize],
            scheduler: unit.sharing.scheduler.unwrap_or(Scheduler::RoundRobin),
            shares: Shares::new(
                &unit.sharing,
                Shared {
                    hpus: unit.hpus(),
                    places: unit.units.clusters * unit.cluster.tasks,
                    cells: config.shared_cells,
                },
            ),
            pending: std::collections::VecDeque::new(),
            select_cycles: u64::from(config.select_cycles),
            out: None,
            accepted: None,
            order: IdleOrder::new(config.lru, config.queues),
            idle_from: Cycle::NEVER,
            inside: 0,
        }
    }

    /// Returns the next active cycle of the engine.
    #[inline]
    pub fn wake(&self, now: Cycle) -> Cycle {
        let pending = self.pending.front().map_or(Cycle::NEVER, |(at, _)| *at);
        let select = if self.out.is_none() && self.ready.iter().any(|set| *set != 0) { now } else { Cycle::NEVER };
        pending.min(select).min(self.idle_from)
    }

    /// Returns true if the queue of a message number is free.
    pub fn is_free(&self, message: u32) -> bool {
        self.queues[message as usize % self.queues.len()].state == State::Free
    }

    /// Returns the number of messages with a queue.
    pub fn messages(&self) -> usize {
        self.order.active().count()
    }

    /// Returns the number of accepted requests without feedback so far.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// Accepts a request in cycle `now`.
    ///
    /// # Errors
    /// If the request has to wait.
    #[inline]
    pub fn accept(&mut self, now: Cycle, her: Her) -> Result<(), (Busy, Her)> {
        if self.accepted == Some(now) {
            return Err((Busy::Cycle, her));
        }
        let index = her.message % self.queues.len() as u32;
        let queue = &mut self.queues[index as usize];
        let is_new = queue.state == State::Free;
        // A message that has ended or is abandoned keeps its queue until its handlers end.
        if !is_new && (queue.message != her.message || queue.ended || queue.state == State::Reset) {
            return Err((Busy::Queue, her));
        }
        let may_wait = |shares: &Shares| queue.waiting.is_empty() || shares.may_wait(now.0, her.context.tenant);
        if !self.tasks.has_room(&queue.waiting) || !self.shares.as_ref().is_none_or(may_wait) {
            return Err((Busy::Cells, her));
        }
        if let Some(shares) = &mut self.shares {
            let context = &her.context;
            shares.accept(now.0, context.tenant, context.share, self.priorities[index as usize]);
        }
        if is_new {
            let context = &her.context;
            queue.handlers = Role::ALL.map(|role| context.entry(role).is_some());
            (queue.message, queue.failed, queue.from) = (her.message, false, now);
            queue.state = if queue.runs(Role::Header) { State::Header } else { State::Payload };
            (queue.idle_cycles, queue.descriptor) = (context.idle_cycles, context.descriptor);
            queue.tenant = context.tenant;
            self.idle_from = self.idle_from.min(now + context.idle_cycles);
        }
        queue.ended = her.eom;
        let from = now + self.select_cycles;
        let task = Task { role: Role::Payload, queue: index as u16, feeds_back: true, her };
        self.tasks.push(&mut queue.waiting, from, task);
        self.pending.push_back((from, index as u16));
        self.order.touch(index, now);
        self.accepted = Some(now);
        self.inside += 1;
        Ok(())
    }

    /// Returns true if a queue has something to select in cycle `now`.
    #[inline]
    fn could_give(&self, queue: &Queue, now: Cycle) -> bool {
        match queue.state {
            _ if queue.from > now => false,
            State::Header | State::Payload => self.tasks.is_ready(&queue.waiting, now),
            State::Reset => queue.running == queue.skipped && queue.has_packets(),
            State::Completion => true,
            State::Free | State::HeaderRunning | State::Draining | State::CompletionRunning => false,
        }
    }

    #[inline]
    fn update(&mut self, index: u16, now: Cycle) {
        let ready = self.could_give(&self.queues[usize::from(index)], now);
        let (word, bit) = (usize::from(index / 64), index % 64);
        self.ready[word] = self.ready[word] & !(1 << bit) | u64::from(ready) << bit;
    }

    /// Returns the accounts of tenants, if the scheduler separates them.
    #[inline]
    pub fn shares(&self) -> Option<&Shares> {
        self.shares.as_ref()
    }

    /// Returns the accounts of tenants, to record the use of HPUs.
    #[inline]
    pub fn shares_mut(&mut self) -> Option<&mut Shares> {
        self.shares.as_mut()
    }

    /// Updates the queues that are due, and selects a task. `fits` returns true if a cluster has room for a request; only
    /// schedulers that separate tenants ask, so that a task without room does not block those of others.
    #[inline]
    pub fn step(&mut self, now: Cycle, fits: impl Fn(&Her, &Shares) -> bool) {
        while let Some((at, index)) = self.pending.front().copied()
            && at <= now
        {
            self.pending.pop_front();
            self.update(index, now);
        }
        if self.out.is_none()
            && let Some(index) = self.next_queue(now, fits)
        {
            let selected = self.select(index as u16, now);
            self.next = (index + 1) % self.queues.len() as u32;
            self.update(index as u16, now);
            self.out = selected.map(|selected| (now, selected));
        }
    }

    /// Lets a queue be selected `priority` additional times per turn (weighted round robin). Returns false if the queue
    /// does not exist.
    pub fn set_priority(&mut self, queue: u32, priority: u8) -> bool {
        self.priorities.get_mut(queue as usize).map(|old| *old = priority).is_some()
    }

    /// Returns the queue to select in the order of the scheduler.
    #[inline]
    fn next_queue(&mut self, now: Cycle, fits: impl Fn(&Her, &Shares) -> bool) -> Option<u32> {
        match self.scheduler {
            Scheduler::RoundRobin => self.in_turn(),
            Scheduler::Fifo => self.oldest(),
            Scheduler::Weighted | Scheduler::Strict => self.best(now, fits),
        }
    }

    /// Iterates over the ready queues, from the successor of the queue selected last.
    fn all_ready(&self) -> impl Iterator<Item = u32> {
        let count = self.queues.len() as u32;
        let all = (self.next..count).chain(0..self.next);
        all.filter(|index| self.ready[*index as usize / 64] >> (index % 64) & 1 == 1)
    }

    /// Returns the ready queue whose first packet was accepted first; completion handlers go before packets.
    #[cold]
    fn oldest(&self) -> Option<u32> {
        let first = |index: &u32| self.tasks.first_from(&self.queues[*index as usize].waiting);
        self.all_ready().min_by_key(|index| (first(index), *index))
    }

    /// Returns the ready queue of the tenant that goes first, among those whose task may go to a cluster.
    #[cold]
    fn best(&self, now: Cycle, fits: impl Fn(&Her, &Shares) -> bool) -> Option<u32> {
        let shares = self.shares.as_ref()?;
        let may = |index: &u32| {
            let queue = &self.queues[*index as usize];
            let task = match queue.state {
                State::Reset => return true,
                State::Completion => queue.last,
                _ => self.tasks.front(&queue.waiting),
            };
            shares.may_send(now.0, queue.tenant) && task.is_some_and(|task| fits(&self.tasks[task].her, shares))
        };
        let tenant = |index: u32| self.queues[index as usize].tenant;
        // Within a tenant, and among equals, queues take turns.
        self.all_ready()
            .filter(may)
            .reduce(|best, next| if shares.precedes(now.0, tenant(next), tenant(best)) { next } else { best })
    }

    /// Returns the next ready queue in weighted round-robin order.
    #[inline]
    fn in_turn(&mut self) -> Option<u32> {
        if self.again > 0 {
            let last = self.next.checked_sub(1).unwrap_or(self.queues.len() as u32 - 1);
            if self.ready[last as usize / 64] >> (last % 64) & 1 == 1 {
                self.again -= 1;
                return Some(last);
            }
        }
        let index = first_from(&self.ready, self.next)?;
        self.again = self.priorities[index as usize];
        Some(index)
    }

    #[inline]
    fn select(&mut self, index: u16, now: Cycle) -> Option<Selected> {
        let Mpq { queues, tasks, shares, .. } = self;
        let queue = &mut queues[usize::from(index)];
        let waits_no_more = |shares: &mut Option<Shares>, tenant| {
            if let Some(shares) = shares {
                shares.pop(tenant);
            }
        };
        // Creates a task for another handler on the same packet.
        let also = |tasks: &mut Tasks, task: TaskId, role: Role| {
            let task = Task { role, feeds_back: role == Role::Completion, ..tasks[task].clone() };
            tasks.add(now, task)
        };
        let selected = match queue.state {
            State::Header => {
                let first = tasks.front(&queue.waiting)?;
                queue.state = State::HeaderRunning;
                Selected::Task(also(tasks, first, Role::Header))
            }
            State::Payload => {
                let id = tasks.pop(&mut queue.waiting)?;
                waits_no_more(shares, queue.tenant);
                let eom = tasks[id].her.eom;
                let (runs, waits) = (queue.runs(Role::Payload), eom && queue.runs(Role::Completion));
                if eom {
                    let idle = queue.running == 0 && !runs;
                    queue.state = if waits && idle { State::Completion } else { State::Draining };
                }
                match (runs, waits) {
                    (true, false) => Selected::Task(id),
                    (true, true) => {
                        tasks[id].feeds_back = false;
                        queue.last = Some(also(tasks, id, Role::Completion));
                        Selected::Task(id)
                    }
                    (false, false) => queue.skip(id, TaskOutcome::Skipped),
                    (false, true) => {
                        tasks[id].role = Role::Completion;
                        queue.last = Some(id);
                        return None;
                    }
                }
            }
            State::Completion => {
                queue.state = State::CompletionRunning;
                Selected::Task(queue.last.take()?)
            }
            State::Reset => {
                let id = match tasks.pop(&mut queue.waiting) {
                    Some(id) => {
                        waits_no_more(shares, queue.tenant);
                        id
                    }
                    None => queue.last.take()?,
                };
                tasks[id].role = Role::Payload;
                queue.skip(id, TaskOutcome::MessageReset)
            }
            State::Free | State::HeaderRunning | State::Draining | State::CompletionRunning => return None,
        };
        queue.running += 1;
        Some(selected)
    }

    /// Returns the task waiting for the dispatcher, and the cycle of its selection.
    #[inline]
    pub fn out(&self) -> Option<(Cycle, Selected)> {
        self.out
    }

    /// Returns all requests and tasks.
    #[inline]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Removes a task whose feedback is complete.
    #[inline]
    pub fn forget(&mut self, task: TaskId) {
        self.tasks.remove(task);
    }

    /// Takes the selected task for the dispatcher.
    #[inline]
    pub fn take(&mut self) -> Option<Selected> {
        self.out.take().map(|(_, selected)| selected)
    }

    /// Processes the end of a task, which the queue sees in cycle `now`.
    #[inline]
    pub fn complete(&mut self, now: Cycle, task: TaskId, outcome: TaskOutcome) -> Ended {
        let task = &self.tasks[task];
        if let Some(shares) = &mut self.shares {
            let is_sent = !matches!(outcome, TaskOutcome::Skipped | TaskOutcome::MessageReset);
            shares.end(now.0, task.her.context.tenant, is_sent, task.feeds_back);
        }
        let queue = &mut self.queues[usize::from(task.queue)];
        let ran_nothing = queue.running == queue.skipped;
        queue.running -= 1;
        queue.skipped -= u32::from(matches!(outcome, TaskOutcome::Skipped | TaskOutcome::MessageReset));
        let failed = matches!(outcome, TaskOutcome::Faulted(_) | TaskOutcome::TimedOut);
        let is_last = queue.running == 0;
        let next = match queue.state {
            State::HeaderRunning => {
                queue.failed |= failed;
                State::Payload
            }
            State::Draining if is_last && queue.last.is_some() => State::Completion,
            State::Draining | State::CompletionRunning if is_last => State::Free,
            State::Reset if is_last && !queue.has_packets() => State::Free,
            State::Reset => State::Reset,
            state => {
                self.inside -= u64::from(task.feeds_back);
                debug_assert!(matches!(state, State::Payload | State::Draining));
                return Ended { last: false };
            }
        };
        let gives = match next {
            State::Free => false,
            // Waiting packets are fed back once no handler runs.
            State::Reset => queue.running == queue.skipped && !ran_nothing,
            _ => true,
        };
        queue.state = next;
        self.inside -= u64::from(task.feeds_back);
        if gives {
            queue.from = now + self.select_cycles;
            self.pending.push_back((queue.from, task.queue));
        }
        if next == State::Free {
            self.order.retire(u32::from(task.queue));
        }
        Ended { last: next == State::Free }
    }

    /// Returns the feedback for the packet of a task that has ended.
    #[inline]
    pub fn feedback(task: &Task, outcome: TaskOutcome, ended: Ended) -> Feedback {
        let Her { packet, transfer, message, user, .. } = task.her;
        Feedback { packet, transfer, message, user, outcome, last: ended.last }
    }

    /// Abandons the message of the least recently used queue, if it exceeds its idle limit.
    #[inline]
    pub fn give_up_idle(&mut self, now: Cycle) -> Option<DriverEvent> {
        if self.idle_from <= now { self.find_idle(now) } else { None }
    }

    #[cold]
    fn find_idle(&mut self, now: Cycle) -> Option<DriverEvent> {
        let queues = &self.queues;
        let due = |queue: u32, touched: Cycle| touched + queues[queue as usize].idle_cycles;
        let ages = self.order.active().map(|(queue, touched)| (due(queue, touched), queue));
        let Some((at, first)) = ages.min() else {
            self.idle_from = Cycle::NEVER;
            return None;
        };
        self.idle_from = at;
        if self.idle_from > now {
            return None;
        }
        // Some queue is due. The hardware compares the age of one candidate per cycle.
        let victim = self.order.candidate(first);
        let is_due = due(victim, self.order.touched(victim)) <= now;
        self.idle_from = now + 1_u64;
        if !is_due {
            return None;
        }
        let Queue { message, descriptor, .. } = self.queues[victim as usize];
        let is_free = self.reset(now, message)?;
        Some(DriverEvent::Idle { message, descriptor, is_free })
    }

    /// Abandons a message: running handlers end as usual, its waiting packets are fed back, and then the queue is free.
    /// The queue issues nothing from this cycle on, and its packets only once the selection sees the state. Returns
    /// true if the queue is free at once; `None` if no such message exists.
    pub fn reset(&mut self, now: Cycle, message: u32) -> Option<bool> {
        let index = message % self.queues.len() as u32;
        let queue = &mut self.queues[index as usize];
        if queue.message != message || matches!(queue.state, State::Free | State::Reset) {
            return None;
        }
        let is_free = queue.running == 0 && !queue.has_packets();
        queue.state = if is_free { State::Free } else { State::Reset };
        queue.from = now + self.select_cycles;
        self.pending.push_back((queue.from, index as u16));
        self.order.retire(index);
        self.update(index as u16, now);
        Some(is_free)
    }
}

impl Queue {
    /// Returns true if packets wait, in cells or for the completion handler.
    fn has_packets(&self) -> bool {
        !self.waiting.is_empty() || self.last.is_some()
    }

    /// Returns true if the handler of a role runs for packets of the message.
    #[inline]
    fn runs(&self, role: Role) -> bool {
        self.handlers[role as usize] && !self.failed
    }

    /// Feeds back a packet without running a handler.
    #[inline]
    fn skip(&mut self, task: TaskId, outcome: TaskOutcome) -> Selected {
        self.skipped += 1;
        Selected::Packet(Completion { task, outcome, hpu: None })
    }
}
