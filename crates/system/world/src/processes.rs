// SPDX-License-Identifier: Apache-2.0
//! State of the ranks, and the threads that wait inside the library until an event resumes them.

use std::collections::VecDeque;
use std::process::ExitStatus;

use abi::calls::{Op, PtlMEAppend};
use abi::mailbox::COUNTERS;
use abi::portals::{self as ptl, Handle, ReturnCode};
use cluster::{CardPorts, Death};
use nic::{NewEntry, Nic, Notice, Reason};
use sim::Time;

use super::barrier::{Barrier, BarrierKind};
use super::computation::Computation;
use super::end::End;
use super::event::{Cluster, Event};
use super::poll_state::{Change, PollScope, PollState, next_poll};
use super::refusals::Refusals;
use super::search_streak::SearchStreak;
use super::stall_detection::{ParkedReleases, ParkingLimit, SleepMonitor, SleepStreak};
use super::tenants::Tenants;
use super::wait::{Wait, Waits};
use ranks::{Call, Caller, Job, Reply};

/// State of a rank other than its process and its card.
#[derive(Default)]
pub struct Rank {
    pub status: Option<ExitStatus>,
    /// Exit time; zero before.
    pub end: Time,
    /// Waits of its threads inside the library.
    pub waits: Waits,
    /// Unsuccessful polls of its threads, and changes since then.
    pub poll_state: PollState,
    /// Number of its last wait.
    wait_number: u64,
    /// Index of the queue that its next poll tests first.
    pub next_queue: usize,
    /// Queue and counters that its threads used last.
    pub watched: Watched,
    /// Number of consecutive queries, and the time up to which a further one is consecutive.
    queries: (Time, u32),
    /// True if the events of its last `spin_eq_take` all report unsuccessful searches.
    pub has_taken_failures: bool,
    /// Repeated unsuccessful searches.
    pub search_streak: SearchStreak,
    /// Consecutive sleeps of a thread that only sleeps and polls.
    pub sleep_streak: SleepStreak,
    /// True while its CPU completes a message of an rdma card.
    pub completing: bool,
    /// Set once a scheduled failure hits the rank or its card.
    pub is_doomed: bool,
    /// Set while `PtlAbort` ends all waits, until `PtlFini` (Portals 4.3 §3.3.3).
    pub aborted: bool,
}

/// Number of free queries of objects per rank at the same time.
const FREE_QUERIES: u32 = 1000;

impl Rank {
    /// Records a query of an object. Returns true if it is no longer free.
    pub fn exceeds_free_queries(&mut self, now: Time) -> bool {
        let (until, count) = &mut self.queries;
        *count = if now <= *until { (*count + 1).min(FREE_QUERIES + 1) } else { 1 };
        *until = now.max(*until);
        *count > FREE_QUERIES
    }

    /// Records that a query takes until `end`. A further query without delay is not free either.
    pub fn charge_query(&mut self, end: Time) {
        self.queries.0 = end.max(self.queries.0);
    }
}

/// Queue and counters whose contents accompany replies to a rank.
#[derive(Clone, Copy, Default)]
pub struct Watched {
    /// Queue from which the rank last took an event, or tried to.
    pub queue: Option<Handle>,
    /// Counters of the latest waits, the latest first.
    pub counters: [Option<Handle>; COUNTERS],
}

impl Watched {
    /// Records a wait for a counter.
    pub fn note_counter(&mut self, ct: Handle) {
        let place = self.counters.iter().position(|other| *other == Some(ct)).unwrap_or(COUNTERS - 1);
        self.counters[..=place].rotate_right(1);
        self.counters[0] = Some(ct);
    }
}

/// Ranks of a job.
pub struct Processes {
    pub job: Job,
    pub ranks: Vec<Rank>,
    /// Barriers of each job.
    barriers: Vec<[Barrier; 2]>,
    pub(super) tenants: Tenants,
    pub sleep_monitor: SleepMonitor,
    pub parked_releases: ParkedReleases,
    pub parking_limit: ParkingLimit,
    pub computation: Computation,
    pub refusals: Refusals,
    /// End of the run, once it is known.
    pub end: Option<End>,
    /// Scheduled failures, in order of time.
    pub deaths: VecDeque<Death>,
    /// Number of events at the latest inspection of polling ranks, and number of such inspections since the last event.
    pub reinspected_after: Option<(u64, u32)>,
}

impl Processes {
    /// Creates the state of a job's ranks, none of them started.
    pub fn new(job: Job) -> Processes {
        let (ranks, poll_limit) = (job.ranks(), job.poll_limit());
        let members = (0..job.seating().jobs()).map(|index| job.seating().members(index).len());
        let barriers = members.map(|members| std::array::from_fn(|_| Barrier::new(ranks, members))).collect();
        let mut processes = Processes {
            job,
            ranks: std::iter::repeat_with(Rank::default).take(ranks).collect(),
            barriers,
            tenants: Tenants::default(),
            sleep_monitor: SleepMonitor::default(),
            parked_releases: ParkedReleases::new(poll_limit),
            parking_limit: ParkingLimit::of(ranks),
            computation: Computation::default(),
            refusals: Refusals::default(),
            end: None,
            deaths: VecDeque::new(),
            reinspected_after: None,
        };
        for node in 0..ranks {
            let is_empty = processes.job.seating().at(node).is_none();
            processes.ranks[node].status = is_empty.then(ExitStatus::default);
        }
        processes
    }

    /// Executes an action of a rank's card, and then resumes the rank's threads whose waits are over.
    pub fn act<R>(
        &mut self,
        cluster: &mut Cluster,
        rank: usize,
        act: impl FnOnce(&mut Nic, &mut CardPorts<'_, Event, Job>) -> R,
    ) -> R {
        let result = cluster.act(rank, &mut self.job, act);
        self.take_notices(cluster, rank);
        result
    }

    /// Shows a warning about a rank to the user.
    pub fn warn(&self, cluster: &mut Cluster, rank: usize, message: &str) {
        cluster.warn(format!("{}: {message}", cluster.name(rank)));
    }

    /// Makes a thread wait, for at most `limit`.
    pub fn wait(&mut self, cluster: &mut Cluster, caller: Caller, mut wait: Wait, limit: Option<Time>) {
        let rank = &mut self.ranks[caller.rank as usize];
        rank.wait_number += 1;
        if let Wait::Counters { number, .. } | Wait::Queues { number, .. } = &mut wait {
            *number = rank.wait_number;
        }
        if let Some(limit) = limit {
            cluster.schedule_timer(limit, Event::Timeout(caller, rank.wait_number));
        }
        rank.waits.begin(caller.slot, wait);
        self.start_completion(cluster, caller.rank as usize);
    }

    /// Handles the notices of a rank's card to the processes of its node.
    pub fn take_notices(&mut self, cluster: &mut Cluster, rank: usize) {
        let notices = cluster.take_notices();
        self.take_notices_of(cluster, rank, &notices);
        // Handlers of the other processes may have run, too.
        for place in 0..cluster.places().beside(rank).len() {
            let other = cluster.places().beside(rank)[place] as usize;
            if other != rank {
                self.take_notices_of(cluster, other, &notices);
            }
        }
        cluster.recycle_notices(notices);
    }

    fn take_notices_of(&mut self, cluster: &mut Cluster, rank: usize, notices: &[(u32, Notice)]) {
        let has_written = self.job.take_card_write(rank);
        let own = || notices.iter().filter(|(other, _)| *other as usize == rank).map(|(_, notice)| *notice);
        if own().any(|notice| notice != Notice::Completion) {
            self.note_change(cluster, rank, Change::Other);
        } else if has_written {
            self.note_change(cluster, rank, Change::Memory);
        }
        if own().next().is_none() {
            return;
        }
        self.release_if(cluster, rank, |wait, _| own().any(|notice| wait.concerns(notice)));
        self.start_completion(cluster, rank);
    }

    /// Records a change that polls of a rank may find, and resumes its parked threads that can find it.
    pub fn note_change(&mut self, cluster: &mut Cluster, rank: usize, change: Change) {
        self.parked_releases.end();
        self.ranks[rank].poll_state.change(change);
        self.wake_parked(cluster, rank, |_, scope| scope.find(change));
    }

    /// Resumes the parked threads of a rank for which `are_woken` is true at their next polls. Its arguments are the
    /// number of calls when the thread was parked, and the scope of its polls.
    pub fn wake_parked(&mut self, cluster: &mut Cluster, rank: usize, are_woken: impl Fn(u64, PollScope) -> bool) {
        let (now, period) = (cluster.now(), cluster.costs().poll().span);
        let Rank { waits, search_streak, .. } = &mut self.ranks[rank];
        waits.retain(|slot, wait| {
            let (since, calls, scope) = match wait {
                Wait::Idle { since, calls, scope } => (*since, *calls, *scope),
                Wait::Search { since, calls, .. } => (*since, *calls, PollScope::All),
                _ => return true,
            };
            if !are_woken(calls, scope) {
                return true;
            }
            if let Wait::Search { period, call, .. } = wait {
                search_streak.end();
                cluster.schedule(next_poll(since, now, *period) - now, Event::Call(call.clone()));
                return false;
            }
            let delay = next_poll(since, now, period) - now;
            answer(cluster, Caller { rank: rank as u32, slot }, delay, Reply::new(ReturnCode::Ok));
            false
        });
    }

    /// Resumes every thread of a rank whose wait is over.
    pub fn release(&mut self, cluster: &mut Cluster, rank: usize) {
        self.release_if(cluster, rank, |_, _| true);
    }

    /// Resumes the threads of a rank whose waits are over and `is_concerned`, after the CPU time for noticing it.
    fn release_if(&mut self, cluster: &mut Cluster, rank: usize, is_concerned: impl Fn(&Wait, &Cluster) -> bool) {
        let Processes { ranks, refusals, .. } = self;
        let Rank { waits, next_queue, .. } = &mut ranks[rank];
        waits.retain(|slot, wait| {
            if !is_concerned(wait, cluster) {
                return true;
            }
            let Some(reply) = wait.reply(cluster.card(rank), next_queue) else { return true };
            if let (Some(call), true) = (wait.call(), reply.rc == ReturnCode::Interrupted as i32) {
                let why = "what the thread waits for was freed meanwhile, or its interface closed".to_owned();
                let reason = Reason { argument: String::new(), why };
                let told = refusals.note(rank, call, ReturnCode::Interrupted, Some(reason), cluster.now());
                told.into_iter().for_each(|text| cluster.tell_refusal(&text));
            }
            let delay = cluster.charge(rank, cluster.costs().notice());
            answer(cluster, Caller { rank: rank as u32, slot }, delay, reply);
            false
        });
    }

    /// Starts the completion of a message on rdma cards. Their CPU completes messages one after the other, whenever a
    /// thread is inside the library or polls: it finds the completion, matches the message, and starts the triggered
    /// operations (sPIN §4.4.1).
    pub fn start_completion(&mut self, cluster: &mut Cluster, rank: usize) {
        // A live rank may poll its memory at any time.
        let polls =
            self.job.polling(rank).is_some() || self.job.is_free_running(rank) || self.job.live_since().is_some();
        let can_complete = !self.ranks[rank].waits.is_empty() || polls;
        if self.ranks[rank].completing || !can_complete {
            return;
        }
        let Some(work) = cluster.completion(rank) else { return };
        let delay = cluster.charge(rank, work);
        self.ranks[rank].completing = true;
        cluster.schedule(delay, Event::Completed(rank as u32));
    }

    /// Completes a message after its CPU time.
    pub fn finish_completion(&mut self, cluster: &mut Cluster, rank: usize) {
        self.ranks[rank].completing = false;
        self.act(cluster, rank, |card, ports| card.process_completion(ports));
    }

    /// Returns a call that waited for the CPU's completions, once none is left.
    pub fn take_deferred_call(&mut self, rank: usize) -> Option<Call> {
        let Rank { completing, waits, .. } = &mut self.ranks[rank];
        if *completing {
            return None;
        }
        let slot = waits.iter().find(|(_, wait)| matches!(wait, Wait::Completion(_)))?.0;
        match waits.end(slot) {
            Some(Wait::Completion(call)) => Some(*call),
            _ => None,
        }
    }

    /// Executes `PtlAbort`: ends every wait for events or counters, now and until `PtlFini`.
    pub fn abort_waits(&mut self, cluster: &mut Cluster, rank: usize) {
        self.ranks[rank].aborted = true;
        self.ranks[rank].waits.retain(|slot, wait| {
            let ends = matches!(wait, Wait::Counters { .. } | Wait::Queues { .. });
            if ends {
                answer(cluster, Caller { rank: rank as u32, slot }, Time::ZERO, Reply::new(ReturnCode::Aborted));
            }
            !ends
        });
    }

    /// Returns true if an event is obsolete: its rank was killed, or it is the time limit of an ended wait.
    pub fn left_behind(&self, event: &Event) -> bool {
        let Rank { status, is_doomed, waits, .. } = &self.ranks[event.rank()];
        let is_dead = *is_doomed && status.is_some();
        let Event::Timeout(caller, due) = event else { return is_dead };
        let waits_for = match waits.of(caller.slot) {
            Some(Wait::Counters { number, .. } | Wait::Queues { number, .. }) => number == due,
            _ => false,
        };
        is_dead || !waits_for
    }

    /// Handles the expiry of a wait's time limit.
    pub fn time_out(&mut self, cluster: &mut Cluster, caller: Caller) {
        let code = match self.ranks[caller.rank as usize].waits.end(caller.slot) {
            Some(Wait::Counters { .. }) => ReturnCode::CtNoneReached,
            _ => ReturnCode::EqEmpty,
        };
        answer(cluster, caller, Time::ZERO, Reply::new(code));
    }

    /// Records the arrival of a thread at a barrier. Returns true if it completes the round, after resuming the other
    /// threads.
    pub fn arrive(&mut self, cluster: &mut Cluster, caller: Caller, kind: BarrierKind) -> bool {
        let job = self.job.seating().job_of(caller.rank as usize);
        let released = self.barriers[job][kind as usize].arrive(caller);
        for &other in &released {
            if other != caller && self.ranks[other.rank as usize].waits.end(other.slot).is_some() {
                answer(cluster, other, Time::ZERO, Reply::new(ReturnCode::Ok));
            }
        }
        !released.is_empty()
    }

    /// Returns the number of ranks that have arrived in the present round of the barrier of a rank's job, and of all.
    pub fn arrived(&self, rank: usize, kind: BarrierKind) -> (usize, usize) {
        let barrier = &self.barriers[self.job.seating().job_of(rank)][kind as usize];
        (barrier.arrived(), barrier.members())
    }

    /// Removes a rank with a scheduled failure from all barriers.
    pub fn leave_barriers(&mut self, cluster: &mut Cluster, rank: usize) {
        let job = self.job.seating().job_of(rank);
        for kind in 0..self.barriers[job].len() {
            for caller in self.barriers[job][kind].leave(rank as u32) {
                if self.ranks[caller.rank as usize].waits.end(caller.slot).is_some() {
                    answer(cluster, caller, Time::ZERO, Reply::new(ReturnCode::Ok));
                }
            }
        }
    }

    /// Returns the entry of an append or a search.
    pub fn new_entry(&mut self, call: &Call) -> NewEntry {
        let PtlMEAppend { pt_index, user_ptr, .. } = PtlMEAppend::read(&call.args);
        let matching = !matches!(call.op, Op::PtlLEAppend | Op::PtlLESearch);
        let me = match matching {
            true => self.job.data(call.caller),
            false => ptl::Me { le: self.job.data(call.caller), ..ptl::Me::default() },
        };
        NewEntry { me, matching, pt_index, user_ptr }
    }
}

/// Replies to a thread after `delay`.
pub fn answer(cluster: &mut Cluster, caller: Caller, delay: Time, reply: Reply) {
    cluster.schedule(delay, Event::Resume(caller, Box::new(reply)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_counters_are_watched() {
        let mut watched = Watched::default();
        for ct in [1, 2, 1, 3, 4, 2, 5] {
            watched.note_counter(ct);
        }
        assert_eq!(watched.counters, [5, 2, 4, 3].map(Some));
    }
}
