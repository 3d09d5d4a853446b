//! Calls that test for completions, once or until there is one.

use abi::mailbox::{Op, Polled};
use abi::portals::{self as ptl, Handle, ReturnCode};
use bytemuck::Pod;
use nic::Nic;
use sim::Time;

use super::event::Cluster;
use super::processes::Processes;
use super::step::{Outcome, Step, Words, after, done};
use super::wait::{Wait, counter_reply, event_reply, queue_reply};
use ranks::{Call, Reply};

impl Processes {
    /// Tests for the completion that the call asks for. If there is none, a call that waits begins to wait.
    pub fn look_or_wait(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let name = call.op.c_name();
        let waits = matches!(call.op, Op::PtlEQWait | Op::PtlEQPoll | Op::PtlCTWait | Op::PtlCTPoll);
        if waits && self.ranks[rank].aborted {
            return Err(ReturnCode::Aborted);
        }
        match call.op {
            Op::PtlPTDisable => {
                let (ni, pt_index) = (a.u32(0), a.u32(1));
                cluster.card(rank).pt_disable(ni, pt_index)?;
                if cluster.card(rank).pt_idle(ni, pt_index) {
                    return done(Reply::new(ReturnCode::Ok));
                }
                Ok(Step::Wait(Wait::Portal { ni, pt_index }, None))
            }
            Op::PtlEQGet => {
                self.ranks[rank].watched.queue = Some(a.u32(0));
                let event = cluster.card(rank).eq_take(a.u32(0))?;
                let cost = cluster.charge(rank, [cluster.costs().poll()]);
                after(cost, event.map_or_else(|| Reply::new(ReturnCode::EqEmpty), event_reply))
            }
            Op::SpinEqTake => self.take_events(cluster, call),
            Op::PtlCTGet => {
                let value = cluster.card(rank).ct_value(a.u32(0))?;
                after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::Ok).with(&value))
            }
            Op::PtlEQWait | Op::PtlEQPoll => {
                let poll = call.op == Op::PtlEQPoll;
                let queues = match self.polled(call, a.word(3)) {
                    Some(polled) => vec![polled.handle as Handle],
                    None if poll => self.handles(rank, a.word(0), a.word(1))?,
                    None => vec![a.u32(0)],
                };
                same_interface(cluster.card(rank), &queues, |card, eq| card.eq_interface(eq))?;
                let limit = if poll { time_limit(a.u32(2)) } else { None };
                if let [queue] = queues[..] {
                    self.ranks[rank].watched.queue = Some(queue);
                }
                if let Some(reply) = queue_reply(cluster.card(rank), &queues, &mut self.ranks[rank].next_queue) {
                    return after(cluster.charge(rank, [cluster.costs().poll()]), reply);
                }
                if limit == Some(Time::ZERO) {
                    return after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::EqEmpty));
                }
                Ok(Step::Wait(Wait::Queues { call: name, queues, number: 0 }, limit))
            }
            _ => {
                let poll = call.op == Op::PtlCTPoll;
                let tests = match self.polled(call, a.word(4)) {
                    Some(polled) => vec![(polled.handle as Handle, polled.test)],
                    None if poll => {
                        let counters = self.handles(rank, a.word(0), a.word(2))?;
                        let tests = self.read_array(rank, a.word(1), counters.len())?;
                        counters.into_iter().zip(tests).collect()
                    }
                    None => vec![(a.u32(0), a.word(1))],
                };
                let counters: Vec<Handle> = tests.iter().map(|(ct, _)| *ct).collect();
                same_interface(cluster.card(rank), &counters, |card, ct| card.ct_interface(ct))?;
                let limit = if poll { time_limit(a.u32(3)) } else { None };
                if !poll {
                    self.ranks[rank].watched.note_counter(counters[0]);
                }
                if let Some(reply) = counter_reply(cluster.card(rank), &tests) {
                    return after(cluster.charge(rank, [cluster.costs().poll()]), reply);
                }
                if limit == Some(Time::ZERO) {
                    return after(
                        cluster.charge(rank, [cluster.costs().poll()]),
                        Reply::new(ReturnCode::CtNoneReached),
                    );
                }
                Ok(Step::Wait(Wait::Counters { call: name, tests, number: 0 }, limit))
            }
        }
    }

    /// Takes the events that are in a queue, up to one before which events were lost, and writes them to the rank's memory
    /// (`spin_eq_take`).
    fn take_events(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let (eq, address, max) = (a.u32(0), a.word(1), a.u32(2));
        if address == 0 || max == 0 {
            return Err(ReturnCode::ArgInvalid);
        }
        let (mut events, mut lost) = (Vec::new(), false);
        while !lost && events.len() < max as usize {
            let Some((event, gap)) = cluster.card(rank).eq_take(eq)? else { break };
            events.push(event);
            lost = gap;
        }
        let polls = std::iter::repeat_n(cluster.costs().poll(), events.len().max(1));
        let cost = cluster.charge(rank, polls);
        if events.is_empty() {
            return after(cost, Reply::new(ReturnCode::EqEmpty));
        }
        self.job.write(rank, address, bytemuck::cast_slice(&events)).map_err(|_| ReturnCode::ArgInvalid)?;
        let code = if lost { ReturnCode::EqDropped } else { ReturnCode::Ok };
        after(cost, Reply { rc: code as i32, ..Reply::value(events.len() as u64) })
    }

    /// Returns the one object of a poll if it came with the call, which `is_there` says.
    fn polled(&self, call: &Call, is_there: u64) -> Option<Polled> {
        let is_poll = matches!(call.op, Op::PtlEQPoll | Op::PtlCTPoll);
        (is_poll && is_there != 0).then(|| self.job.data(call.caller))
    }

    /// Reads the array of handles of a poll. An empty one is invalid.
    fn handles(&mut self, rank: usize, address: u64, count: u64) -> Result<Vec<Handle>, ReturnCode> {
        let count =
            usize::try_from(count).ok().filter(|count| (1..=1 << 20).contains(count)).ok_or(ReturnCode::ArgInvalid)?;
        self.read_array(rank, address, count)
    }

    /// Reads an array in the memory of a rank that waits for an answer.
    pub fn read_array<T: Pod>(&mut self, rank: usize, address: u64, count: usize) -> Result<Vec<T>, ReturnCode> {
        let mut values = vec![T::zeroed(); count];
        self.job.read(rank, address, bytemuck::cast_slice_mut(&mut values)).map_err(|_| ReturnCode::ArgInvalid)?;
        Ok(values)
    }
}

/// Returns the time-out of a poll, which is given in milliseconds, or `None` for a poll that waits for ever.
fn time_limit(milliseconds: u32) -> Option<Time> {
    (milliseconds != ptl::TIME_FOREVER).then(|| Time::from_ns(u64::from(milliseconds) * 1_000_000))
}

/// Checks that the objects of one poll exist and belong to one interface.
fn same_interface(
    card: &mut Nic,
    objects: &[Handle],
    interface: fn(&mut Nic, Handle) -> Result<u8, ReturnCode>,
) -> Result<(), ReturnCode> {
    let first = interface(card, objects[0])?;
    let all = objects.iter().all(|object| interface(card, *object) == Ok(first));
    if all { Ok(()) } else { Err(ReturnCode::ArgInvalid) }
}
