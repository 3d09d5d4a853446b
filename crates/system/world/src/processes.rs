//! The state of the ranks, and the threads that wait inside the library until something resumes them.

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
use super::wait::{Wait, Waits};
use ranks::{Call, Caller, Job, Reply};

/// The state of a rank other than its process and its card.
#[derive(Default)]
pub struct Rank {
    pub status: Option<ExitStatus>,
    /// When it ended; zero before.
    pub end: Time,
    /// What its threads inside the library wait for.
    pub waits: Waits,
    /// What its threads have found.
    pub poll_state: PollState,
    /// The number of its last wait.
    wait_number: u64,
    /// The queue that its next poll looks at first.
    pub next_queue: usize,
    /// What its threads have looked at last.
    pub watched: Watched,
    /// The number of queries that it has asked until a time, with no other time between them than theirs.
    queries: (Time, u32),
    /// Whether the events that its last `spin_eq_take` has taken say that searches have found nothing.
    pub has_taken_failures: bool,
    /// The searches that have found nothing.
    pub search_streak: SearchStreak,
    /// The sleeps of a thread that does nothing but sleep and poll.
    pub sleep_streak: SleepStreak,
    /// Whether its CPU is completing what an rdma card has left to it.
    pub completing: bool,
    /// Whether it, or its card, was to fail and has.
    pub is_doomed: bool,
    /// Whether `PtlAbort` has ended all waits until `PtlFini` (Portals 4.3 §3.3.3).
    pub aborted: bool,
}

/// The number of queries about objects that a rank may ask at the same time for nothing.
const FREE_QUERIES: u32 = 1000;

impl Rank {
    /// Takes note of a question about an object. Returns whether it is no longer free.
    pub fn exceeds_free_queries(&mut self, now: Time) -> bool {
        let (until, count) = &mut self.queries;
        *count = if now <= *until { (*count + 1).min(FREE_QUERIES + 1) } else { 1 };
        *until = now.max(*until);
        *count > FREE_QUERIES
    }

    /// Takes note that a question takes until `end`. The next one is not free either if it comes at once.
    pub fn charge_query(&mut self, end: Time) {
        self.queries.0 = end.max(self.queries.0);
    }
}

/// What a rank may be told with an answer.
#[derive(Clone, Copy, Default)]
pub struct Watched {
    /// The queue from which it has taken an event last, or has tried to.
    pub queue: Option<Handle>,
    /// The counters for which it has waited last, the latest first.
    pub counters: [Option<Handle>; COUNTERS],
}

impl Watched {
    /// Takes note of a wait for a counter.
    pub fn note_counter(&mut self, ct: Handle) {
        let place = self.counters.iter().position(|other| *other == Some(ct)).unwrap_or(COUNTERS - 1);
        self.counters[..=place].rotate_right(1);
        self.counters[0] = Some(ct);
    }
}

/// The ranks of a job.
pub struct Processes {
    pub job: Job,
    pub ranks: Vec<Rank>,
    barriers: [Barrier; 2],
    pub sleep_monitor: SleepMonitor,
    pub parked_releases: ParkedReleases,
    pub parking_limit: ParkingLimit,
    pub computation: Computation,
    pub refusals: Refusals,
    /// How the run has ended, once it has.
    pub end: Option<End>,
    /// What is still to die, in the order of time.
    pub deaths: VecDeque<Death>,
    /// The number of events when ranks that poll were last inspected again, and the number of such inspections since the latest event.
    pub reinspected_after: Option<(u64, u32)>,
}

impl Processes {
    /// The ranks of `job`, none of them started.
    pub fn new(job: Job) -> Processes {
        let (ranks, poll_limit) = (job.ranks(), job.poll_limit());
        Processes {
            job,
            ranks: std::iter::repeat_with(Rank::default).take(ranks).collect(),
            barriers: std::array::from_fn(|_| Barrier::new(ranks)),
            sleep_monitor: SleepMonitor::default(),
            parked_releases: ParkedReleases::new(poll_limit),
            parking_limit: ParkingLimit::of(ranks),
            computation: Computation::default(),
            refusals: Refusals::default(),
            end: None,
            deaths: VecDeque::new(),
            reinspected_after: None,
        }
    }

    /// Lets the card of a rank act, and then resumes the threads of the rank whose waits are over.
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

    /// Tells the user something about a rank.
    pub fn warn(&self, cluster: &mut Cluster, rank: usize, message: &str) {
        cluster.warn(format!("rank {rank}: {message}"));
    }

    /// Makes a thread wait, at most for `limit`.
    pub fn wait(&mut self, cluster: &mut Cluster, caller: Caller, mut wait: Wait, limit: Option<Time>) {
        let rank = &mut self.ranks[caller.rank as usize];
        rank.wait_number += 1;
        if let Wait::Counters { number, .. } | Wait::Queues { number, .. } = &mut wait {
            *number = rank.wait_number;
        }
        if let Some(limit) = limit {
            cluster.schedule(limit, Event::Timeout(caller, rank.wait_number));
        }
        rank.waits.begin(caller.slot, wait);
        self.start_completion(cluster, caller.rank as usize);
    }

    /// Handles what the card of a rank has told its host.
    pub fn take_notices(&mut self, cluster: &mut Cluster, rank: usize) {
        let has_written = self.job.take_card_write();
        let is_news = |(node, notice): &(u32, Notice)| *node as usize == rank && *notice != Notice::Completion;
        if cluster.notices().iter().any(is_news) {
            self.note_change(cluster, rank, Change::Other);
        } else if has_written {
            self.note_change(cluster, rank, Change::Memory);
        }
        if cluster.notices().is_empty() {
            return;
        }
        self.release_if(cluster, rank, |wait, cluster| {
            cluster.notices().iter().any(|(node, notice)| *node as usize == rank && wait.concerns(*notice))
        });
        cluster.clear_notices();
        self.start_completion(cluster, rank);
    }

    /// Takes note that something has changed for a rank which its polls may find: its parked threads go on polling.
    pub fn note_change(&mut self, cluster: &mut Cluster, rank: usize, change: Change) {
        self.parked_releases.end();
        self.ranks[rank].poll_state.change(change);
        self.wake_parked(cluster, rank, |_, scope| scope.find(change));
    }

    /// Lets those parked threads of a rank continue at their next polls that `are_woken`, by how many calls there had been when they were
    /// parked, and by what they look at.
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

    /// Resumes the threads of a rank whose waits are over and `is_concerned`, after the time in which the CPU notices it.
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

    /// On rdma cards the CPU completes messages, one after the other, whenever a thread is inside the library or polls:
    /// it finds the completion, matches the message, and starts what the message triggers (sPIN §4.4.1).
    pub fn start_completion(&mut self, cluster: &mut Cluster, rank: usize) {
        let polls = self.job.polling(rank).is_some() || self.job.is_free_running(rank);
        let can_complete = !self.ranks[rank].waits.is_empty() || polls;
        if self.ranks[rank].completing || !can_complete {
            return;
        }
        let Some(work) = cluster.completion(rank) else { return };
        let delay = cluster.charge(rank, work);
        self.ranks[rank].completing = true;
        cluster.schedule(delay, Event::Completed(rank as u32));
    }

    /// Completes a message for which the CPU has spent the time.
    pub fn finish_completion(&mut self, cluster: &mut Cluster, rank: usize) {
        self.ranks[rank].completing = false;
        self.act(cluster, rank, |card, ports| card.process_completion(ports));
    }

    /// Returns a call that waited for the CPU's completions, if none is left.
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

    /// Performs `PtlAbort`: ends every wait for events or counters, now and until `PtlFini`.
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

    /// Whether nobody waits for an event any more: its rank was killed, or it is the time limit of a wait that is over.
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

    /// Handles the end of a wait's time limit.
    pub fn time_out(&mut self, cluster: &mut Cluster, caller: Caller) {
        let code = match self.ranks[caller.rank as usize].waits.end(caller.slot) {
            Some(Wait::Counters { .. }) => ReturnCode::CtNoneReached,
            _ => ReturnCode::EqEmpty,
        };
        answer(cluster, caller, Time::ZERO, Reply::new(code));
    }

    /// Lets a thread arrive at a barrier. Returns whether it is the last one; the others are then resumed.
    pub fn arrive(&mut self, cluster: &mut Cluster, caller: Caller, kind: BarrierKind) -> bool {
        let released = self.barriers[kind as usize].arrive(caller);
        for &other in &released {
            if other != caller && self.ranks[other.rank as usize].waits.end(other.slot).is_some() {
                answer(cluster, other, Time::ZERO, Reply::new(ReturnCode::Ok));
            }
        }
        !released.is_empty()
    }

    /// Returns the number of ranks that have arrived at a barrier in its present round.
    pub fn arrived(&self, kind: BarrierKind) -> usize {
        self.barriers[kind as usize].arrived()
    }

    /// Takes note that a rank has failed because the user wants it: nobody waits for it at barriers any more.
    pub fn leave_barriers(&mut self, cluster: &mut Cluster, rank: usize) {
        for kind in 0..self.barriers.len() {
            for caller in self.barriers[kind].leave(rank as u32) {
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

/// Answers a thread after `delay`.
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
