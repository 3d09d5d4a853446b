// SPDX-License-Identifier: Apache-2.0
//! Waits of threads inside the library.

use abi::calls::StructureOutput;
use abi::portals::{CtEvent, Event as FullEvent, Handle, ReturnCode};
use nic::{Nic, Notice};
use sim::Time;

use super::barrier::BarrierKind;
use super::poll_state::PollScope;
use ranks::{Call, Reply};

/// Wait of a thread inside the library.
pub enum Wait {
    /// Waits for a counter to reach a threshold.
    Counters {
        /// Name of the call.
        call: &'static str,
        /// Counters and their thresholds.
        tests: Vec<(Handle, u64)>,
        /// Result of the call: the counter's value.
        value: StructureOutput<CtEvent>,
        /// Number of the wait; a time limit ends only the wait with the same number.
        number: u64,
    },
    /// Waits for an event in a queue.
    Queues {
        /// Name of the call.
        call: &'static str,
        /// Queues, in the order in which they are tested.
        queues: Vec<Handle>,
        /// Result of the call.
        event: StructureOutput<FullEvent>,
        /// Number of the wait, as above.
        number: u64,
    },
    /// Waits for the messages in flight to a portal table entry (`PtlPTDisable`).
    Portal {
        /// Interface.
        ni: Handle,
        /// Portal table index.
        pt_index: u32,
    },
    /// Waits for the other ranks.
    Barrier(BarrierKind),
    /// Parked (`spin_idle`): the thread resumes polling as soon as something changes.
    Idle {
        /// Time at which it was parked.
        since: Time,
        /// Number of calls other than unsuccessful polls at that time.
        calls: u64,
        /// Scope of its polls.
        scope: PollScope,
    },
    /// Parked while repeating a search for a message: it resumes as soon as something changes.
    Search {
        /// Time at which the search would have been made.
        since: Time,
        /// Number of calls other than unsuccessful polls at that time.
        calls: u64,
        /// Time between two searches.
        period: Time,
        /// The search call.
        call: Box<Call>,
    },
    /// Waits until the CPU has completed messages (rdma cards), before the call is made.
    Completion(Box<Call>),
}

impl Wait {
    /// Returns true if a notice of the card may end the wait.
    pub fn concerns(&self, notice: Notice) -> bool {
        match (self, notice) {
            (Wait::Counters { tests, .. }, Notice::Counter(changed)) => tests.iter().any(|(ct, _)| *ct == changed),
            (Wait::Queues { queues, .. }, Notice::Queue(changed)) => queues.contains(&changed),
            (Wait::Portal { ni, pt_index }, Notice::Portal(index, drained)) => (*ni, *pt_index) == (index, drained),
            _ => false,
        }
    }

    /// Returns the name of the call, for waits for counters or events.
    pub fn call(&self) -> Option<&'static str> {
        match self {
            Wait::Counters { call, .. } | Wait::Queues { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Describes the wait, for the report of a deadlock.
    pub fn describe(&self, card: &mut Nic) -> String {
        let list = |handles: &mut dyn Iterator<Item = String>| handles.collect::<Vec<_>>().join(", ");
        match self {
            Wait::Counters { call, tests, .. } => {
                let counters = list(&mut tests.iter().map(|(ct, test)| {
                    let now = card
                        .portals_mut()
                        .ct_value(*ct)
                        .map_or(String::new(), |now| format!(", which is {}", now.success));
                    let silence = card.silence(*ct).map_or(String::new(), |why| format!(" ({why})"));
                    format!("counter {ct:#x} to reach {test}{now}{silence}")
                }));
                format!("{call} for {counters}")
            }
            Wait::Queues { call, queues, .. } => {
                format!("{call} for an event in {}", list(&mut queues.iter().map(|eq| format!("queue {eq:#x}"))))
            }
            Wait::Portal { pt_index, .. } => {
                format!("PtlPTDisable for the messages under way to portal table entry {pt_index}")
            }
            Wait::Barrier(kind) => kind.name().into(),
            Wait::Idle { .. } => "spin_idle".into(),
            Wait::Search { call, .. } => format!("{} for a message", call.op.c_name()),
            Wait::Completion(call) => format!("{} for a completion", call.op.c_name()),
        }
    }

    /// Returns the reply to the thread if its wait is over. `next_queue` is as for [`queue_reply`].
    pub fn reply(&self, card: &mut Nic, next_queue: &mut usize) -> Option<Reply> {
        match self {
            Wait::Counters { tests, value, .. } => counter_reply(card, tests, *value),
            Wait::Queues { queues, event, .. } => queue_reply(card, queues, *event, next_queue),
            Wait::Portal { ni, pt_index } => {
                card.portals_mut().pt_idle(*ni, *pt_index).then(|| Reply::new(ReturnCode::Ok))
            }
            Wait::Barrier(_) | Wait::Idle { .. } | Wait::Search { .. } | Wait::Completion(_) => None,
        }
    }
}

/// Waits of a rank's threads inside the library, by slot, in the order in which they began. The assignment of slots
/// depends on the real time of each thread's first call, so nothing may depend on the order of the slots.
#[derive(Default)]
pub struct Waits(Vec<(u32, Wait)>);

impl Waits {
    /// Begins a wait of the thread in a slot, which must not be waiting.
    pub fn begin(&mut self, slot: u32, wait: Wait) {
        self.0.push((slot, wait));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &(u32, Wait)> {
        self.0.iter()
    }

    pub fn of(&self, slot: u32) -> Option<&Wait> {
        self.iter().find(|(waiting, _)| *waiting == slot).map(|(_, wait)| wait)
    }

    /// Ends the wait of a slot's thread, if it waits.
    pub fn end(&mut self, slot: u32) -> Option<Wait> {
        let at = self.0.iter().position(|(waiting, _)| *waiting == slot)?;
        Some(self.0.remove(at).1)
    }

    /// Ends the waits for which `goes_on` returns false. It is called for each wait.
    pub fn retain(&mut self, mut goes_on: impl FnMut(u32, &mut Wait) -> bool) {
        self.0.retain_mut(|(slot, wait)| goes_on(*slot, wait));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the reply to a wait for counters if one reached its threshold. A failure ends every wait (Portals 4.3
/// §3.14.4).
pub fn counter_reply(card: &mut Nic, tests: &[(Handle, u64)], result: StructureOutput<CtEvent>) -> Option<Reply> {
    tests.iter().enumerate().find_map(|(which, (ct, test))| match card.portals_mut().ct_value(*ct) {
        Ok(value) => has_reached(value, *test).then(|| Reply::value(which as u64).with(result, &value)),
        Err(_) => Some(Reply::new(ReturnCode::Interrupted)),
    })
}

fn has_reached(value: CtEvent, test: u64) -> bool {
    value.success >= test || value.failure != 0
}

/// Returns the reply to a wait for events, and takes an event from its queue, if there is one. Round robin (Portals 4.3
/// §3.13.7): the search begins at index `next_queue`.
pub fn queue_reply(
    card: &mut Nic,
    queues: &[Handle],
    result: StructureOutput<FullEvent>,
    next_queue: &mut usize,
) -> Option<Reply> {
    let first = *next_queue % queues.len();
    let order = (first..queues.len()).chain(0..first);
    order.into_iter().find_map(|which| match card.portals_mut().eq_take(queues[which]) {
        Ok(event) => event.map(|event| {
            *next_queue = which + 1;
            let mut reply = event_reply(result, event);
            reply.out[0] = which as u64;
            reply
        }),
        Err(_) => Some(Reply::new(ReturnCode::Interrupted)),
    })
}

/// Returns a reply of `PTL_OK` or `PTL_EQ_DROPPED`, with the event.
pub fn event_reply(result: StructureOutput<FullEvent>, (event, lost): (FullEvent, bool)) -> Reply {
    Reply::new(if lost { ReturnCode::EqDropped } else { ReturnCode::Ok }).with(result, &event)
}
