// SPDX-License-Identifier: Apache-2.0
//! Calls that test for completions, once or until one occurs.

use abi::calls::{self, Op};
use abi::portals::{self as ptl, EventKind, Handle, NiFail, ReturnCode};
use bytemuck::Pod;
use nic::Nic;
use sim::Time;

use super::event::Cluster;
use super::outcome::{Action, Outcome, after, done};
use super::processes::Processes;
use super::wait::{Wait, counter_reply, event_reply, queue_reply};
use ranks::{Call, Reply};

impl Processes {
    /// Disables a portal table entry, and waits for the messages in flight to it.
    pub fn disable(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlPTDisable::read(&call.args));
        let (ni, pt_index) = (a.ni_handle, a.pt_index);
        cluster.card(rank).portals_mut().pt_disable(ni, pt_index)?;
        if cluster.card(rank).portals_mut().pt_idle(ni, pt_index) {
            return done(Reply::new(ReturnCode::Ok));
        }
        Ok(Action::Wait(Wait::Portal { ni, pt_index }, None))
    }

    /// Takes the next event of a queue.
    pub fn get_event(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlEQGet::read(&call.args));
        self.ranks[rank].watched.queue = Some(a.eq_handle);
        let event = cluster.card(rank).portals_mut().eq_take(a.eq_handle)?;
        let cost = cluster.charge(rank, [cluster.costs().poll()]);
        after(cost, event.map_or_else(|| Reply::new(ReturnCode::EqEmpty), |event| event_reply(a.event, event)))
    }

    /// Returns the value of a counter.
    pub fn get_counter(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlCTGet::read(&call.args));
        let value = cluster.card(rank).portals_mut().ct_value(a.ct_handle)?;
        after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::Ok).with(a.event, &value))
    }

    /// Takes an event from one of several queues, or waits for one.
    pub fn wait_for_event(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let rank = call.caller.rank as usize;
        self.refuse_aborted(rank)?;
        let (queues, event, limit) = match call.op {
            Op::PtlEQPoll => {
                let a = calls::PtlEQPoll::read(&call.args);
                let queues = match a.polled.map(|polled| self.job.structure(call.caller, polled)) {
                    Some(polled) => vec![polled.handle as Handle],
                    None => self.handles(rank, a.eq_handles, a.size)?,
                };
                (queues, a.event, time_limit(a.timeout))
            }
            _ => {
                let a = calls::PtlEQWait::read(&call.args);
                (vec![a.eq_handle], a.event, None)
            }
        };
        same_interface(cluster.card(rank), &queues, |card, eq| card.portals_mut().eq_interface(eq))?;
        if let [queue] = queues[..] {
            self.ranks[rank].watched.queue = Some(queue);
        }
        if let Some(reply) = queue_reply(cluster.card(rank), &queues, event, &mut self.ranks[rank].next_queue) {
            return after(cluster.charge(rank, [cluster.costs().poll()]), reply);
        }
        if limit == Some(Time::ZERO) {
            return after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::EqEmpty));
        }
        Ok(Action::Wait(Wait::Queues { call: call.op.c_name(), queues, event, number: 0 }, limit))
    }

    /// Returns the value of a counter that reached its threshold, or waits for one.
    pub fn wait_for_counter(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let rank = call.caller.rank as usize;
        self.refuse_aborted(rank)?;
        let (tests, value, limit) = match call.op {
            Op::PtlCTPoll => {
                let a = calls::PtlCTPoll::read(&call.args);
                let tests = match a.polled.map(|polled| self.job.structure(call.caller, polled)) {
                    Some(polled) => vec![(polled.handle as Handle, polled.test)],
                    None => {
                        let counters = self.handles(rank, a.ct_handles, a.size)?;
                        let tests = self.read_array(rank, a.tests, counters.len())?;
                        counters.into_iter().zip(tests).collect()
                    }
                };
                (tests, a.event, time_limit(a.timeout))
            }
            _ => {
                let a = calls::PtlCTWait::read(&call.args);
                (vec![(a.ct_handle, a.test)], a.event, None)
            }
        };
        let counters: Vec<Handle> = tests.iter().map(|(ct, _)| *ct).collect();
        same_interface(cluster.card(rank), &counters, |card, ct| card.portals_mut().ct_interface(ct))?;
        if call.op == Op::PtlCTWait {
            self.ranks[rank].watched.note_counter(counters[0]);
        }
        if let Some(reply) = counter_reply(cluster.card(rank), &tests, value) {
            return after(cluster.charge(rank, [cluster.costs().poll()]), reply);
        }
        if limit == Some(Time::ZERO) {
            return after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::CtNoneReached));
        }
        Ok(Action::Wait(Wait::Counters { call: call.op.c_name(), tests, value, number: 0 }, limit))
    }

    /// Fails waits of a rank that called `PtlAbort`.
    fn refuse_aborted(&self, rank: usize) -> Result<(), ReturnCode> {
        if self.ranks[rank].aborted { Err(ReturnCode::Aborted) } else { Ok(()) }
    }

    /// Takes the events in a queue, up to one that follows lost events, and writes them to the rank's memory
    /// (`spin_eq_take`).
    pub fn take_events(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::SpinEqTake::read(&call.args));
        if a.events == 0 || a.max == 0 {
            return Err(ReturnCode::ArgInvalid);
        }
        let (mut events, mut lost) = (Vec::new(), false);
        while !lost && events.len() < a.max as usize {
            let Some((event, gap)) = cluster.card(rank).portals_mut().eq_take(a.eq)? else { break };
            events.push(event);
            lost = gap;
        }
        let polls = std::iter::repeat_n(cluster.costs().poll(), events.len().max(1));
        let cost = cluster.charge(rank, polls);
        if events.is_empty() {
            return after(cost, Reply::new(ReturnCode::EqEmpty));
        }
        self.ranks[rank].has_taken_failures = events.iter().all(is_failed_search);
        self.job.write(rank, a.events, bytemuck::cast_slice(&events)).map_err(|_| ReturnCode::ArgInvalid)?;
        let code = if lost { ReturnCode::EqDropped } else { ReturnCode::Ok };
        after(cost, Reply { rc: code as i32, ..Reply::output(a.count, events.len() as u32) })
    }

    /// Reads the array of handles of a poll. An empty array is invalid.
    fn handles(&mut self, rank: usize, address: u64, count: u32) -> Result<Vec<Handle>, ReturnCode> {
        let count =
            usize::try_from(count).ok().filter(|count| (1..=1 << 20).contains(count)).ok_or(ReturnCode::ArgInvalid)?;
        self.read_array(rank, address, count)
    }

    /// Reads an array in the memory of a rank that waits for a reply.
    pub fn read_array<T: Pod>(&mut self, rank: usize, address: u64, count: usize) -> Result<Vec<T>, ReturnCode> {
        let mut values = vec![T::zeroed(); count];
        self.job.read(rank, address, bytemuck::cast_slice_mut(&mut values)).map_err(|_| ReturnCode::ArgInvalid)?;
        Ok(values)
    }
}

/// Returns true if an event reports an unsuccessful search.
pub fn is_failed_search(event: &ptl::Event) -> bool {
    event.kind == EventKind::Search as u8 && event.ni_fail_type == NiFail::NoMatch as u8
}

/// Converts the time-out of a poll from milliseconds; `None` for an unlimited poll.
fn time_limit(milliseconds: u32) -> Option<Time> {
    (milliseconds != ptl::TIME_FOREVER).then(|| Time::from_ns(u64::from(milliseconds) * 1_000_000))
}

/// Checks that the objects of one poll exist and belong to the same interface.
fn same_interface(
    card: &mut Nic,
    objects: &[Handle],
    interface: fn(&mut Nic, Handle) -> Result<u8, ReturnCode>,
) -> Result<(), ReturnCode> {
    let first = interface(card, objects[0])?;
    let all = objects.iter().all(|object| interface(card, *object) == Ok(first));
    if all { Ok(()) } else { Err(ReturnCode::ArgInvalid) }
}
