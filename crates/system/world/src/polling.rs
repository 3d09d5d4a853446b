// SPDX-License-Identifier: Apache-2.0
//! Ranks that wait for their own memory to change, without a library call (Portals 4.3 §2.2: progress needs none).
//!
//! Their simulated time advances with the events. When an event writes memory that a rank polls, the rank notices it
//! after the time of one poll, as if it waited in `PtlCTWait`, and then makes its next call.

use std::time::Duration;

use sim::Time;

use super::event::{Cluster, Event};
use super::processes::Processes;
use ranks::{FreeRunReport, Location, Pause, Polling};

/// Minimum idle simulated time that lets threads sleeping in real time make calls: the shortest time-out of a poll.
const IDLE: Time = Time::from_ns(1_000_000);

/// Number of further inspections of a rank whose threads wait for each other's locks.
const MAX_REINSPECTIONS: u32 = 50;

impl Processes {
    /// Handles a rank in a loop that waits for its memory. A loop that may also end by itself counts as polling only if
    /// a message, or a thread that waits in the library, may write that memory; otherwise the rank computes, and its
    /// next pause is returned.
    pub fn polls(&mut self, cluster: &mut Cluster, rank: usize) -> Option<Pause> {
        let card = &cluster.cards()[rank];
        let is_open = |place: Location| card.exposed().any(|region| region.overlaps(place.address, place.length));
        let may_change = self.job.has_callers(rank) || self.job.polled(rank).any(is_open);
        if self.job.polling(rank) == Some(Polling::Counting) && !may_change {
            return Some(self.job.resume_computing(rank));
        }
        self.start_completion(cluster, rank);
        None
    }

    /// Handles a rank without recent calls whose threads may not be inspected. Returns its next pause.
    pub fn uninspectable(&mut self, cluster: &mut Cluster, rank: usize) -> Pause {
        let message = "it may not be looked at (ptrace: another tracer has it, or there is no permission), so it is taken \
                       to compute while it makes no call. If it waits for its memory to change, or its threads wait for \
                       each other without sleeping, nothing else happens until it has used 400 times as much CPU time as --patience \
                       says, and no deadlock is found: --timeout ends such a run";
        self.warn(cluster, rank, message);
        self.job.wait(rank)
    }

    /// Schedules notices for ranks whose polled memory was written, after the time of one poll.
    pub fn notify_pollers(&mut self, cluster: &mut Cluster) {
        while let Some(rank) = self.job.touched() {
            let delay = cluster.charge_running(rank, cluster.costs().poll());
            cluster.schedule(delay, Event::Notice(rank as u32));
        }
    }

    /// Lets a polling rank notice a write to its memory, and runs it to its next pause. Returns `None` if the rank no
    /// longer polls.
    pub fn notice(&mut self, now: Time, rank: usize) -> Option<Pause> {
        self.job.polling(rank).is_some().then(|| self.job.resume_polling(rank, now))
    }

    /// Sets free the polling ranks that count retries or read a clock, so that they reach their limits. Used when no
    /// event is left. Returns false if there are no such ranks.
    pub fn poll_to_the_limit(&mut self, cluster: &mut Cluster) -> bool {
        let counts = |&rank: &usize| self.job.polling(rank) == Some(Polling::Counting);
        let counting: Vec<usize> = (0..self.ranks.len()).filter(counts).collect();
        let message = "it polls its memory with a limit of tries or of time, and nothing is left that could change that \
                       memory, so it goes on to its limit. How far it had come before depends on real time";
        if let Some(&first) = counting.first() {
            self.warn(cluster, first, message);
        }
        counting.iter().for_each(|&rank| self.job.free_counting_loops(rank));
        !counting.is_empty()
    }

    /// Warns the user about threads that no longer hold back simulated time.
    pub fn report_free_runs(&mut self, cluster: &mut Cluster) {
        for FreeRunReport { rank, thread, place, used_ms } in self.job.take_free_runs() {
            let ran = match used_ms {
                0 => "runs again where it has often waited".to_owned(),
                _ => format!("has run for {used_ms} ms of CPU time without a call"),
            };
            let message = format!(
                "thread {thread} {ran}, at {place}, and no longer holds simulated time back: it may wait for what others do. \
                 When it goes on depends on this computer, so another run may differ (--patience)"
            );
            self.warn(cluster, rank, &message);
        }
    }

    /// Returns the ranks to inspect again before a deadlock is declared: those that poll, once after each event, and
    /// [`MAX_REINSPECTIONS`] times if a thread may be stopped while it holds a lock that another one wants.
    pub fn ranks_to_reinspect(&mut self, cluster: &Cluster) -> Vec<usize> {
        let events = cluster.events();
        let inspections = match self.reinspected_after {
            Some((after, inspections)) if after == events => inspections + 1,
            _ => 0,
        };
        self.reinspected_after = Some((events, inspections));
        let polls = |&rank: &usize| self.job.polling(rank).is_some();
        let is_due =
            |rank: &usize| inspections == 0 || inspections < MAX_REINSPECTIONS && self.job.may_hold_lock(*rank);
        (0..self.ranks.len()).filter(polls).filter(is_due).collect()
    }

    /// Lets threads that sleep in real time make calls before simulated time passes without an event, or when no event
    /// is left. Returns a rank with a new call, and its pause.
    pub fn await_sleepers(&mut self, cluster: &mut Cluster) -> Option<(usize, Pause)> {
        // Events beyond the limit of simulated time never happen.
        let next = cluster.next_event().filter(|at| *at <= Time::LIMIT);
        let idle = next.map(|at| at - cluster.now());
        if idle.is_some_and(|idle| idle < IDLE) || !self.job.has_sleepers() {
            return None;
        }
        let span = idle.map(|idle| Duration::from_nanos(idle.as_ps() / 1000));
        let had_free_running = self.job.has_free_running();
        let (rank, pause) = self.job.await_sleepers(span)?;
        if had_free_running {
            return Some((rank, pause)); // these have their own warning
        }
        let message = "one of its threads has slept in real time, in a system call past the C library's sleeps; when it \
                       goes on in simulated time may vary from run to run";
        self.warn(cluster, rank, message);
        Some((rank, pause))
    }

    /// Describes the polled memory of a rank, for the report of a deadlock.
    pub fn describe_polling(&self, cluster: &Cluster, rank: usize) -> String {
        let polled = || self.job.polled(rank);
        let is_open = |place: &Location| {
            cluster.cards()[rank]
                .exposed()
                .any(|region| !region.is_everything() && region.overlaps(place.address, place.length))
        };
        let place = polled().find(is_open).or_else(|| polled().next());
        let place = place.map_or(String::new(), |place| format!(" at {:#x}", place.address));
        format!("{} spins on its own memory{place}, which nothing will change", cluster.name(rank))
    }
}
