//! Threads that wait inside the library, and what lets them go on.

use abi::portals::{CtEvent, Event as FullEvent, Handle, Rc as Code};
use nic::Notice;
use sim::Time;

use super::barrier::Meeting;
use super::{Event, World};
use crate::job::{Call, Caller, Reply};

/// What a thread waits for.
pub enum Wait {
    /// A counter to reach a value.
    Counters {
        /// The call, for people.
        call: &'static str,
        /// Counters and their thresholds.
        tests: Vec<(Handle, u64)>,
        /// Tells this wait from others of the thread.
        epoch: u64,
    },
    /// An event in a queue.
    Queues {
        /// The call, for people.
        call: &'static str,
        /// The queues, in the order in which they are looked at.
        queues: Vec<Handle>,
        /// Tells this wait from others of the thread.
        epoch: u64,
    },
    /// The messages under way to a portal table entry (`PtlPTDisable`).
    Portal {
        /// Interface.
        ni: Handle,
        /// Index.
        pt_index: u32,
    },
    /// The other ranks.
    Barrier(Meeting),
    /// The CPU, which completes a message first (rdma cards); the call is made then.
    Completion(Box<Call>),
}

impl Wait {
    /// Whether the news of a card may end the wait.
    pub fn is_for(&self, notice: Notice) -> bool {
        match (self, notice) {
            (Wait::Counters { tests, .. }, Notice::Counter(changed)) => tests.iter().any(|(ct, _)| *ct == changed),
            (Wait::Queues { queues, .. }, Notice::Queue(changed)) => queues.contains(&changed),
            (Wait::Portal { ni, pt_index }, Notice::Portal(index, drained)) => (*ni, *pt_index) == (index, drained),
            _ => false,
        }
    }

    /// For the report of a deadlock.
    pub fn describe(&self) -> String {
        let list = |handles: &mut dyn Iterator<Item = String>| handles.collect::<Vec<_>>().join(", ");
        match self {
            Wait::Counters { call, tests, .. } => {
                let counters = list(&mut tests.iter().map(|(ct, test)| format!("counter {ct:#x} to reach {test}")));
                format!("{call} for {counters}")
            }
            Wait::Queues { call, queues, .. } => {
                format!("{call} for an event in {}", list(&mut queues.iter().map(|eq| format!("queue {eq:#x}"))))
            }
            Wait::Portal { pt_index, .. } => {
                format!("PtlPTDisable for the messages under way to portal table entry {pt_index}")
            }
            Wait::Barrier(meeting) => meeting.name().into(),
            Wait::Completion(call) => format!("{} for a completion", call.op.c_name()),
        }
    }
}

impl World {
    /// Puts a thread to wait, at most for `limit`.
    pub(super) fn wait(&mut self, caller: Caller, mut wait: Wait, limit: Option<Time>) {
        let rank = &mut self.ranks[caller.rank as usize];
        rank.epoch += 1;
        if let Wait::Counters { epoch, .. } | Wait::Queues { epoch, .. } = &mut wait {
            *epoch = rank.epoch;
        }
        if let Some(limit) = limit {
            self.queue.push(self.now.saturating_add(limit), Event::Timeout(caller, rank.epoch));
        }
        rank.waits.insert(caller.slot, wait);
        self.progress(caller.rank as usize);
    }

    /// Answers a thread at `after` from now.
    pub(super) fn answer(&mut self, caller: Caller, after: Time, reply: Reply) {
        self.queue.push(self.now + after, Event::Resume(caller, Box::new(reply)));
    }

    /// Lets every thread of a rank go on whose wait is over.
    pub(super) fn wake(&mut self, rank: usize) {
        self.wake_if(rank, |_| true);
    }

    /// The same for those threads whose wait is one of `concerned`. A call that one of them can make at last may wake
    /// others: these join the queue, and the outermost call of this function serves it, one thread after the other.
    pub(super) fn wake_if(&mut self, rank: usize, concerned: impl Fn(&Wait) -> bool) {
        let waits = self.ranks[rank].waits.iter().filter(|(_, wait)| concerned(wait));
        self.wakes.extend(waits.map(|(slot, _)| Caller { rank: rank as u32, slot: *slot }));
        if self.waking {
            return;
        }
        self.waking = true;
        while let Some(caller) = self.wakes.pop_front() {
            self.wake_thread(caller);
        }
        self.waking = false;
    }

    /// Lets a thread go on if it still waits and its wait is over. The CPU needs a moment to see that; on rdma cards it
    /// has spent it on the completion already.
    fn wake_thread(&mut self, caller: Caller) {
        let rank = caller.rank as usize;
        let Some(wait) = self.ranks[rank].waits.remove(&caller.slot) else { return };
        let reply = match wait {
            Wait::Counters { ref tests, .. } => self.counter_reply(rank, tests),
            Wait::Queues { ref queues, .. } => self.queue_reply(rank, queues),
            Wait::Portal { ni, pt_index } => self.cards[rank].pt_idle(ni, pt_index).then(|| Reply::new(Code::Ok)),
            Wait::Completion(call) if !self.ranks[rank].progressing => return self.call(*call),
            Wait::Completion(_) | Wait::Barrier(_) => None,
        };
        match reply {
            Some(reply) => {
                let spent = self.look(rank);
                self.answer(caller, spent, reply);
            }
            None => drop(self.ranks[rank].waits.insert(caller.slot, wait)),
        }
    }

    /// Charges the look at a completion that has just appeared.
    fn look(&mut self, rank: usize) -> Time {
        if !self.machine.nic.matches_on_card() {
            return Time::ZERO;
        }
        let poll = self.machine.host.poll;
        self.timeline.cpu(rank, self.now, self.now + poll, "poll");
        poll
    }

    /// The answer of a wait for counters, if one of them is there. A failure ends every wait (Portals 4.3 §3.14.4).
    pub(super) fn counter_reply(&mut self, rank: usize, tests: &[(Handle, u64)]) -> Option<Reply> {
        tests.iter().enumerate().find_map(|(which, (ct, test))| match self.cards[rank].ct_value(*ct) {
            Ok(value) => reached(value, *test).then(|| Reply::value(which as u64).with(&value)),
            Err(_) => Some(Reply::new(Code::Interrupted)),
        })
    }

    /// The answer of a wait for events, if there is one. It takes the event; the queues have turns (Portals 4.3 §3.13.7).
    pub(super) fn queue_reply(&mut self, rank: usize, queues: &[Handle]) -> Option<Reply> {
        let first = self.ranks[rank].next_queue % queues.len();
        let order = (first..queues.len()).chain(0..first);
        order.into_iter().find_map(|which| match self.cards[rank].eq_take(queues[which]) {
            Ok(event) => event.map(|event| {
                self.ranks[rank].next_queue = which + 1;
                event_reply(event).at(which)
            }),
            Err(_) => Some(Reply::new(Code::Interrupted)),
        })
    }

    /// `PtlAbort`: every wait for events or counters is over, now and until `PtlFini`.
    pub(super) fn abort_waits(&mut self, rank: usize) {
        self.ranks[rank].aborted = true;
        let ends = |wait: &Wait| matches!(wait, Wait::Counters { .. } | Wait::Queues { .. });
        let ended: Vec<u32> =
            self.ranks[rank].waits.iter().filter(|(_, wait)| ends(wait)).map(|(slot, _)| *slot).collect();
        for slot in ended {
            self.ranks[rank].waits.remove(&slot);
            self.answer(Caller { rank: rank as u32, slot }, Time::ZERO, Reply::new(Code::Aborted));
        }
    }

    pub(super) fn timed_out(&mut self, caller: Caller, due: u64) {
        let rank = &mut self.ranks[caller.rank as usize];
        let code = match rank.waits.get(&caller.slot) {
            Some(Wait::Counters { epoch, .. }) if *epoch == due => Code::CtNoneReached,
            Some(Wait::Queues { epoch, .. }) if *epoch == due => Code::EqEmpty,
            _ => return,
        };
        rank.waits.remove(&caller.slot);
        self.answer(caller, Time::ZERO, Reply::new(code));
    }
}

/// Whether a wait for `test` is over.
fn reached(value: CtEvent, test: u64) -> bool {
    value.success >= test || value.failure != 0
}

/// `PTL_OK` or `PTL_EQ_DROPPED`, with the event.
pub(super) fn event_reply((event, lost): (FullEvent, bool)) -> Reply {
    Reply::new(if lost { Code::EqDropped } else { Code::Ok }).with(&event)
}

impl Reply {
    fn at(mut self, which: usize) -> Reply {
        self.out[0] = which as u64;
        self
    }
}
