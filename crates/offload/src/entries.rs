//! Portals and sPIN operations as commands of a card.

use abi::portals::{self as ptl, AckReq, CtEvent, Handle, List, Process, Rc as Code, md, me};
use goal::{Append, NicOp, Verb};
use nic::{NewEntry, Region, Target, TriggeredOp};

use crate::cpu::{Spans, Task};
use crate::error::RunError;
use crate::memory::buffer;
use crate::world::World;

/// Portal table index of Portals operations.
pub(crate) const PORTAL: u32 = 0;
/// Most bytes of a message or an entry.
pub(crate) const MOST: u64 = 1 << 32;

impl World<'_> {
    /// Hands an operation to its rank's card; the time that this costs the CPU.
    pub(crate) fn command(&mut self, op: u32, nic: &NicOp) -> Result<Spans, RunError> {
        let rank = self.schedule.rank(op);
        match &nic.verb {
            Verb::Append(append) => self.append(op, nic, append),
            Verb::Put { bytes, to } => {
                let ack = if nic.counter.is_some() { AckReq::Ct } else { AckReq::None };
                self.transfer(op, nic, *bytes, *to, Some(ack))
            }
            Verb::Get { bytes, from } => self.transfer(op, nic, *bytes, *from, None),
            Verb::Test { counter, .. } => {
                self.counter(op, rank, *counter)?;
                Ok(Vec::new())
            }
        }
    }

    fn append(&mut self, op: u32, nic: &NicOp, append: &Append) -> Result<Spans, RunError> {
        let (rank, ni) = (self.schedule.rank(op), self.ni);
        let ct = match nic.counter {
            Some(number) => self.counter(op, rank, number)?,
            None => ptl::CT_NONE,
        };
        let start = buffer(nic.tag);
        let mut handlers = None;
        if append.handlers.iter().any(Option::is_some) {
            let state = initial_state(nic);
            let memory = match append.memory.unwrap_or(state.len() as u64) {
                0 => ptl::INVALID_HANDLE,
                bytes => self.hpu_memory(op, rank, bytes)?,
            };
            let names = append.handlers.each_ref().map(|name| name.as_deref());
            let installed =
                self.cards[rank as usize].handlers_by_name(names, memory, &state, Region::range(start, MOST));
            handlers = Some(installed.map_err(|code| self.refused(op, "PtlMEAppend", code))?);
        }
        let once = if append.use_once { me::USE_ONCE } else { 0 };
        let le = ptl::Le {
            start,
            length: append.bytes,
            ct_handle: ct,
            uid: ptl::ID_ANY,
            options: me::OP_PUT | me::OP_GET | me::EVENT_CT_COMM | me::EVENT_CT_OVERFLOW | once,
            pad: 0,
        };
        let match_id = Process { nid: append.allowed.unwrap_or(ptl::ID_ANY), pid: 0 };
        let me = ptl::Me { le, match_id, match_bits: u64::from(nic.tag), ..ptl::Me::default() };
        let new = NewEntry { me, matching: true, pt_index: PORTAL, user_ptr: u64::from(op) };
        let list = match append.list {
            goal::List::Priority => List::Priority,
            goal::List::Overflow => List::Overflow,
        } as u64;
        let (call, appended) = match nic.when {
            None => ("PtlMEAppend", self.on_card(rank, |card, ports| card.append(ni, new, list, handlers, ports))),
            Some((counter, reaches)) => {
                let trigger = (self.counter(op, rank, counter)?, reaches);
                let appended =
                    self.on_card(rank, |card, ports| card.append_triggered(ni, new, list, handlers, trigger, ports));
                ("PtlTriggeredMEAppend", appended)
            }
        };
        appended.map_err(|code| self.refused(op, call, code))?;
        Ok(self.describe())
    }

    /// A put, with the acknowledgement that it asks for, or a get.
    fn transfer(
        &mut self,
        op: u32,
        nic: &NicOp,
        bytes: u64,
        peer: u32,
        put: Option<AckReq>,
    ) -> Result<Spans, RunError> {
        let rank = self.schedule.rank(op);
        let ct = match nic.counter {
            Some(number) => self.counter(op, rank, number)?,
            None => ptl::CT_NONE,
        };
        let trigger = match nic.when {
            Some((counter, reaches)) => Some((self.counter(op, rank, counter)?, reaches)),
            None => None,
        };
        let options = if put.is_some() { md::EVENT_CT_ACK } else { md::EVENT_CT_REPLY };
        let md = Memory { start: buffer(nic.tag), bytes, options, eq: ptl::EQ_NONE, ct };
        let target = Target {
            process: Process { nid: peer, pid: 0 },
            pt_index: PORTAL,
            match_bits: u64::from(nic.tag),
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: nic.args[0].unwrap_or(0),
        };
        match trigger {
            None => {
                self.move_data(op, md, put, target, sim::Time::ZERO)?;
                Ok(vec![self.post()])
            }
            Some((counter, reaches)) => {
                let transfer = self.bind(op, md, put, target)?;
                let (interface, action) = (transfer.interface, TriggeredOp::Transfer(transfer));
                self.on_card(rank, |card, ports| card.trigger(interface, counter, reaches, action, ports)).map_err(
                    |code| self.refused(op, if put.is_some() { "PtlTriggeredPut" } else { "PtlTriggeredGet" }, code),
                )?;
                Ok(self.describe())
            }
        }
    }

    /// Starts a put or get that the CPU hands over after `delay` and o.
    pub(crate) fn move_data(
        &mut self,
        op: u32,
        memory: Memory,
        put: Option<AckReq>,
        target: Target,
        delay: sim::Time,
    ) -> Result<(), RunError> {
        let transfer = self.bind(op, memory, put, target)?;
        let at = self.now + delay + self.machine.host.overhead;
        self.on_card(self.schedule.rank(op), |card, ports| card.start(transfer, at, ports));
        Ok(())
    }

    /// A put or get, ready to go. Its memory descriptor lasts as long as the operation.
    fn bind(
        &mut self,
        op: u32,
        memory: Memory,
        put: Option<AckReq>,
        target: Target,
    ) -> Result<nic::Transfer, RunError> {
        let (rank, ni) = (self.schedule.rank(op), self.ni);
        let Memory { start, bytes, options, eq, ct } = memory;
        let options = options | md::EVENT_SEND_DISABLE;
        let md = ptl::Md { start, length: bytes, options, eq_handle: eq, ct_handle: ct, pad: 0 };
        let bound = self.on_card(rank, |card, ports| card.md_bind(ni, md, ports));
        let md = bound.map_err(|code| self.refused(op, "PtlMDBind", code))?;
        let card = &mut self.cards[rank as usize];
        let (call, transfer) = match put {
            Some(ack) => ("PtlPut", card.put(md, 0, bytes, ack as u64, target)),
            None => ("PtlGet", card.get(md, 0, bytes, target)),
        };
        let released = card.md_release(md);
        debug_assert!(released.is_ok());
        transfer.map_err(|code| self.refused(op, call, code))
    }

    /// The card's counter of a number, which is made when it is first named.
    pub(crate) fn counter(&mut self, op: u32, rank: u32, number: u32) -> Result<Handle, RunError> {
        let counters = &self.ranks[rank as usize].counters;
        let place = counters.partition_point(|(other, _)| *other < number);
        if let Some((_, handle)) = counters.get(place).filter(|(other, _)| *other == number) {
            return Ok(*handle);
        }
        let handle = self.cards[rank as usize].ct_alloc(self.ni);
        let handle = handle.map_err(|code| self.refused(op, "PtlCTAlloc", code))?;
        self.ranks[rank as usize].counters.insert(place, (number, handle));
        Ok(handle)
    }

    /// What a counter has reached; zero if it was never named.
    pub(crate) fn counter_value(&mut self, rank: u32, number: u32) -> CtEvent {
        let counters = &self.ranks[rank as usize].counters;
        let Ok(place) = counters.binary_search_by_key(&number, |(other, _)| *other) else { return CtEvent::default() };
        let handle = counters[place].1;
        self.cards[rank as usize].ct_value(handle).unwrap_or_default()
    }

    /// A counter has changed: tests that have waited for it go on.
    pub(crate) fn look_at_tests(&mut self, rank: u32) -> Result<(), RunError> {
        let mut tests = std::mem::take(&mut self.ranks[rank as usize].tests);
        let mut reached = Vec::new();
        tests.retain(|&op| {
            let goal::Action::Nic(NicOp { verb: Verb::Test { counter, reaches }, .. }) = self.schedule.action(op)
            else {
                return false;
            };
            let waits = self.counter_value(rank, *counter).success < *reaches;
            if !waits {
                reached.push(op);
            }
            waits
        });
        self.ranks[rank as usize].tests = tests;
        for op in reached {
            self.enqueue(op, Task::Look(op))?;
        }
        Ok(())
    }

    /// HPU memory. When there is none left, that of entries which are gone is free again.
    fn hpu_memory(&mut self, op: u32, rank: u32, bytes: u64) -> Result<Handle, RunError> {
        let (card, memories) = (&mut self.cards[rank as usize], &mut self.ranks[rank as usize].memories);
        let mut memory = card.hpu_alloc(bytes, self.ni);
        if memory == Err(Code::NoSpace) {
            memories.retain(|memory| card.hpu_free(*memory).is_err());
            memory = card.hpu_alloc(bytes, self.ni);
        }
        let memory = memory.map_err(|code| self.refused(op, "PtlHPUAllocMem", code))?;
        self.ranks[rank as usize].memories.push(memory);
        Ok(memory)
    }

    pub(crate) fn refused(&self, op: u32, call: &'static str, code: Code) -> RunError {
        RunError::Refused { operation: self.schedule.describe(op), call, code, at: self.now }
    }
}

/// Local memory of a put or get, and who is told.
pub(crate) struct Memory {
    pub start: u64,
    pub bytes: u64,
    /// `PTL_MD_*`
    pub options: u32,
    pub eq: Handle,
    pub ct: Handle,
}

/// What handlers find in their memory: `arg1` to the last that is given as 64-bit words, those left out as 0.
pub(crate) fn initial_state(nic: &NicOp) -> Vec<u8> {
    let given = nic.args.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    nic.args[..given].iter().flat_map(|arg| arg.unwrap_or(0).to_le_bytes()).collect()
}
