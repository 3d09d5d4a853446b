//! What each library call does, and what it costs the CPU.
//!
//! Handing an operation to the card costs LogGP's o; looking at a completion or a status register, and being told to
//! try again later, costs a poll; everything else is free until a program charges it (`spin_host_compute`). On rdma cards
//! entries and triggered operations live in the library, so describing them costs nothing and carrying them out costs
//! CPU time later.

use abi::mailbox::Op;
use abi::portals::{self as ptl, AtomicOp, CtEvent, Datatype, Handle, NiLimits, Plain, Process, Rc as Code};
use nic::{AtomicSpec, Card, DeviceProgram, MAX_OPERAND, NewEntry, Ports, Target, TriggeredOp};
use sim::Time;

use super::barrier::Meeting;
use super::waiting::{Wait, event_reply};
use super::{End, World};
use crate::job::{Call, Reply};

/// What a call leads to.
pub(super) enum Step {
    /// It answers after this time.
    Reply(Time, Reply),
    /// It waits, at most for this long.
    Wait(Wait, Option<Time>),
}

type Outcome = Result<Step, Code>;

/// Largest image that a program may register.
const MAX_IMAGE: u64 = 64 << 20;

impl World {
    /// Makes a call and those of the rank's other threads that came with it.
    pub(super) fn call(&mut self, call: Call) {
        let mut next = Some(call);
        while let Some(call) = next {
            let caller = call.caller;
            let rank = caller.rank as usize;
            if self.looks_at_completions(&call) {
                self.wait(caller, Wait::Completion(Box::new(call)), None);
            } else {
                match self.perform(&call) {
                    Ok(Step::Reply(after, reply)) => self.answer(caller, after, reply),
                    Ok(Step::Wait(wait, limit)) => self.wait(caller, wait, limit),
                    Err(code) => {
                        let after = self.refusal_cost(rank, code);
                        self.answer(caller, after, Reply::new(code));
                    }
                }
            }
            if self.end.is_some() {
                return;
            }
            next = self.job.pending(rank);
        }
    }

    /// Whether the CPU has to complete a message before this call can look at what has come (rdma cards).
    fn looks_at_completions(&self, call: &Call) -> bool {
        let looks = matches!(
            call.op,
            Op::PtlEQGet
                | Op::PtlEQPoll
                | Op::PtlCTGet
                | Op::PtlCTPoll
                | Op::PtlLEAppend
                | Op::PtlMEAppend
                | Op::PtlMEAppendHandlers
                | Op::PtlLESearch
                | Op::PtlMESearch
                | Op::PtlLEUnlink
                | Op::PtlMEUnlink
        );
        looks
            && !self.machine.nic.matches_on_card()
            && self.cards[call.caller.rank as usize].next_completion().is_some()
    }

    /// The cost of handing the card something that rdma cards leave to the library.
    fn describe_cost(&mut self, rank: usize) -> Time {
        if !self.machine.nic.matches_on_card() { Time::ZERO } else { self.post_cost(rank) }
    }

    /// The cost of handing the card an operation.
    fn post_cost(&mut self, rank: usize) -> Time {
        let overhead = self.machine.host.overhead;
        self.timeline.cpu(rank, self.now, self.now + overhead, "post");
        overhead
    }

    fn poll_cost(&mut self, rank: usize) -> Time {
        let poll = self.machine.host.poll;
        self.timeline.cpu(rank, self.now, self.now + poll, "poll");
        poll
    }

    /// Programs ask again until something is free, so time must pass.
    fn refusal_cost(&mut self, rank: usize, code: Code) -> Time {
        match code {
            Code::InUse | Code::PtInUse | Code::PtFull | Code::NoSpace => self.poll_cost(rank),
            _ => Time::ZERO,
        }
    }

    fn perform(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        if call.op != Op::SpinSleep {
            self.idleness.end();
        }
        match call.op {
            Op::SpinAttach => done(Reply::new(Code::Ok)),
            Op::SpinDetach => {
                self.ranks[rank].aborted = false;
                self.on_card(rank, |card, ports| card.reset(ports));
                self.wake(rank); // threads that wait for what is gone
                done(Reply::new(Code::Ok))
            }
            Op::SpinRegisterImage => self.register_image(rank, a.word(0), a.word(1), a.word(2)),
            Op::SpinHostCompute => {
                let span = Time::from_ps(a.word(0));
                self.timeline.cpu(rank, self.now, self.now.saturating_add(span), "compute");
                Ok(Step::Reply(span, Reply::new(Code::Ok)))
            }
            Op::SpinHostMemory => {
                let span = self.machine.host.memory_time(a.word(0), a.word(1));
                self.timeline.cpu(rank, self.now, self.now + span, "memory");
                Ok(Step::Reply(span, Reply::new(Code::Ok)))
            }
            Op::SpinSleep => {
                self.note_sleep(rank);
                Ok(Step::Reply(Time::from_ps(a.word(0)), Reply::new(Code::Ok)))
            }
            Op::SpinYield => done(Reply::new(Code::Ok)),
            Op::SpinBarrier => Ok(self.barrier(call.caller, Meeting::Spin)),
            Op::PmiBarrier => Ok(self.barrier(call.caller, Meeting::Pmi)),
            Op::PtlPut
            | Op::PtlGet
            | Op::PtlAtomic
            | Op::PtlFetchAtomic
            | Op::PtlSwap
            | Op::PtlTriggeredPut
            | Op::PtlTriggeredGet
            | Op::PtlTriggeredAtomic
            | Op::PtlTriggeredFetchAtomic
            | Op::PtlTriggeredSwap => self.transfer(call),
            Op::PtlTriggeredMEAppend | Op::PtlTriggeredMEUnlink => self.triggered_entry(call),
            Op::PtlAbort => {
                self.abort_waits(rank);
                done(Reply::new(Code::Ok))
            }
            Op::PtlTriggeredCTInc | Op::PtlTriggeredCTSet => self.triggered_counter(call),
            Op::PtlLEAppend | Op::PtlMEAppend | Op::PtlMEAppendHandlers => self.append(call),
            Op::PtlLESearch | Op::PtlMESearch => self.search(call),
            Op::PtlEQGet
            | Op::PtlEQWait
            | Op::PtlEQPoll
            | Op::PtlCTGet
            | Op::PtlCTWait
            | Op::PtlCTPoll
            | Op::PtlPTDisable => self.look_or_wait(call),
            _ => self.object_call(call),
        }
    }

    /// Calls that make, change or ask about objects.
    fn object_call(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let card = &mut self.cards[rank];
        let value = |value: u32| done(Reply::value(u64::from(value)));
        match call.op {
            Op::PtlNIInit => {
                let desired: Option<NiLimits> = (a.word(3) != 0).then(|| self.job.data(call.caller));
                let (ni, limits) = card.ni_init(a.u32(0), a.u32(1), a.u32(2), desired)?;
                done(Reply::value(u64::from(ni)).with(&limits))
            }
            // Programs wait for a register to change.
            Op::PtlNIStatus => {
                let value = card.ni_status(a.u32(0), a.word(1))?;
                Ok(Step::Reply(self.poll_cost(rank), Reply::value(u64::from(value as u32))))
            }
            Op::PtlNIHandle => value(card.ni_handle(a.u32(0))?),
            Op::PtlGetUid => value(card.uid(a.u32(0))?),
            Op::PtlGetId => done(Reply::value(pack(card.id(a.u32(0))?))),
            Op::PtlGetPhysId => done(Reply::value(pack(card.physical_id(a.u32(0))?))),
            Op::PtlSetMap => {
                let count = usize::try_from(a.word(1)).ok().filter(|count| *count <= self.ranks.len() * 64);
                let count = count.ok_or(Code::ArgInvalid)?;
                let map = self.read_array::<Process>(rank, a.word(2), count)?;
                unit(self.cards[rank].set_map(a.u32(0), map.into()))
            }
            Op::PtlGetMap => {
                let map = card.map(a.u32(0))?;
                let count = usize::try_from(a.word(1)).unwrap_or(usize::MAX).min(map.len());
                let bytes: Vec<u8> = map[..count].iter().flat_map(|process| process.as_bytes().to_vec()).collect();
                self.job.write(rank, a.word(2), &bytes).map_err(|_| Code::ArgInvalid)?;
                done(Reply::value(map.len() as u64))
            }
            Op::PtlPTAlloc => value(card.pt_alloc(a.u32(0), a.u32(1), a.u32(2), a.u32(3))?),
            Op::PtlPTFree => unit(card.pt_free(a.u32(0), a.u32(1))),
            Op::PtlPTEnable => unit(card.pt_enable(a.u32(0), a.u32(1))),
            Op::PtlMDBind => {
                let md = self.job.data(call.caller);
                value(self.on_card(rank, |card, ports| card.md_bind(a.u32(0), md, ports))?)
            }
            Op::PtlMDRelease => unit(card.md_release(a.u32(0))),
            Op::PtlLEUnlink | Op::PtlMEUnlink => unit(card.unlink(a.u32(0))),
            Op::PtlEQAlloc => value(card.eq_alloc(a.u32(0), a.word(1))?),
            Op::PtlCTAlloc => value(card.ct_alloc(a.u32(0))?),
            Op::PtlNIFini | Op::PtlEQFree | Op::PtlCTFree => {
                self.on_card(rank, |card, ports| match call.op {
                    Op::PtlNIFini => card.ni_fini(a.u32(0), ports),
                    Op::PtlEQFree => card.eq_free(a.u32(0)),
                    _ => card.ct_free(a.u32(0)),
                })?;
                self.wake(rank); // threads that wait for what is gone
                done(Reply::new(Code::Ok))
            }
            Op::PtlCTCancelTriggered => unit(card.ct_cancel(a.u32(0))),
            Op::PtlCTSet | Op::PtlCTInc => {
                let amount: CtEvent = self.job.data(call.caller);
                let ct = a.u32(0);
                let set = call.op == Op::PtlCTSet;
                self.on_card(rank, |card, ports| match set {
                    true => card.ct_set(ct, amount, ports),
                    false => card.ct_inc(ct, amount, ports),
                })?;
                Ok(Step::Reply(self.describe_cost(rank), Reply::new(Code::Ok)))
            }
            Op::PtlStartBundle | Op::PtlEndBundle => unit(card.bundle(a.u32(0))),
            Op::PtlAtomicSync => done(Reply::new(Code::Ok)),
            Op::PtlHPUAllocMem => {
                let memory = card.hpu_alloc(a.word(0), a.u32(1));
                if memory == Err(Code::Fail) {
                    self.warn(rank, "PtlHPUAllocMem: this card has no HPUs (--nic spin has)");
                }
                value(memory?)
            }
            Op::PtlHPUFreeMem => unit(card.hpu_free(a.u32(0))),
            other => unreachable!("{} is handled by perform", other.c_name()),
        }
    }

    /// Warns, once, of ranks that sleep again and again while nothing else happens.
    fn note_sleep(&mut self, rank: usize) {
        if let Some(since) = self.idleness.sleep(self.now) {
            let message = format!(
                "nothing but sleeps and looks at the clock has happened since {since}: what a rank waits for may never come \
                 (--timeout ends such a run)"
            );
            self.warn(rank, &message);
        }
    }

    pub(super) fn warn(&mut self, rank: usize, message: &str) {
        self.on_card(rank, |_, ports| ports.warn(format!("rank {rank}: {message}")));
    }

    /// Loads the program's device code onto its card.
    fn register_image(&mut self, rank: usize, address: u64, length: u64, handlers_start: u64) -> Outcome {
        if !self.machine.nic.runs_handlers() {
            return done(Reply::new(Code::Ok)); // no HPUs, no device code
        }
        let loaded = self.load_image(rank, address, length, handlers_start);
        if let Err(message) = loaded {
            self.end = Some(End::BadProgram { rank, message });
        }
        done(Reply::new(Code::Ok))
    }

    fn load_image(&mut self, rank: usize, address: u64, length: u64, handlers_start: u64) -> Result<(), String> {
        if self.cards[rank].has_program() {
            return Err("it brings a second device program (of a library?), and a card holds one".into());
        }
        if length > MAX_IMAGE {
            return Err(format!("its device image of {length} bytes is damaged"));
        }
        let mut bytes = vec![0; length as usize];
        self.job.read(rank, address, &mut bytes).map_err(|fault| fault.to_string())?;
        let kind = self.machine.hpu.kind.clone();
        let program = DeviceProgram::from_image(&bytes, handlers_start, &kind).map_err(|error| error.to_string())?;
        self.cards[rank].load_program(program).map_err(|error| error.to_string())
    }

    /// Data movement, now or when a counter is there.
    fn transfer(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        // The target's words are alike everywhere; `first` is the word of its id. A get has no header data.
        let target = |first: usize, hdr_data: bool| Target {
            process: unpack(a.word(first)),
            pt_index: a.u32(first + 1),
            match_bits: a.word(first + 2),
            remote_offset: a.word(first + 3),
            user_ptr: a.word(first + 4),
            hdr_data: if hdr_data { a.word(first + 5) } else { 0 },
        };
        let spec = |first: usize| -> Result<AtomicSpec, Code> {
            Ok(AtomicSpec {
                op: AtomicOp::from_raw(a.word(first)).ok_or(Code::ArgInvalid)?,
                datatype: Datatype::from_raw(a.word(first + 1)).ok_or(Code::ArgInvalid)?,
            })
        };
        let (get, put) = ((a.u32(0), a.word(1)), (a.u32(2), a.word(3)));
        let (transfer, words) = match call.op {
            Op::PtlPut | Op::PtlTriggeredPut => {
                (self.cards[rank].put(get.0, get.1, a.word(2), a.word(3), target(4, true))?, 10)
            }
            Op::PtlGet | Op::PtlTriggeredGet => (self.cards[rank].get(get.0, get.1, a.word(2), target(3, false))?, 8),
            Op::PtlAtomic | Op::PtlTriggeredAtomic => {
                (self.cards[rank].atomic(get.0, get.1, a.word(2), a.word(3), target(4, true), spec(10)?)?, 12)
            }
            Op::PtlFetchAtomic | Op::PtlTriggeredFetchAtomic => {
                (self.cards[rank].fetch_atomic(get, put, a.word(4), target(5, true), spec(11)?, None)?, 13)
            }
            _ => {
                let spec = spec(12)?;
                let operand = self.operand(rank, a.word(11), spec)?;
                (self.cards[rank].fetch_atomic(get, put, a.word(4), target(5, true), spec, Some(operand))?, 14)
            }
        };
        if matches!(call.op, Op::PtlPut | Op::PtlGet | Op::PtlAtomic | Op::PtlFetchAtomic | Op::PtlSwap) {
            let overhead = self.post_cost(rank);
            let start = self.now + overhead;
            self.on_card(rank, |card, ports| card.start(transfer, start, ports));
            return Ok(Step::Reply(overhead, Reply::new(Code::Ok)));
        }
        let (interface, ct, threshold) = (transfer.interface, a.u32(words), a.word(words + 1));
        self.trigger(rank, interface, ct, threshold, TriggeredOp::Transfer(transfer))
    }

    /// The operand of a swap: one item, read during the call; a plain swap needs none.
    fn operand(&mut self, rank: usize, address: u64, spec: AtomicSpec) -> Result<[u8; MAX_OPERAND], Code> {
        let mut operand = [0; MAX_OPERAND];
        if spec.is_conditional() {
            let size = nic::item_size(spec.datatype);
            self.job.read(rank, address, &mut operand[..size]).map_err(|_| Code::ArgInvalid)?;
        }
        Ok(operand)
    }

    fn trigger(&mut self, rank: usize, interface: u8, ct: Handle, threshold: u64, op: TriggeredOp) -> Outcome {
        self.on_card(rank, |card, ports| card.trigger(interface, ct, threshold, op, ports))?;
        Ok(Step::Reply(self.describe_cost(rank), Reply::new(Code::Ok)))
    }

    /// Entries that join or leave their list when a counter is there (an extension of the reference implementation).
    fn triggered_entry(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        if call.op == Op::PtlTriggeredMEUnlink {
            let interface = self.cards[rank].entry_interface(a.u32(0))?;
            return self.trigger(rank, interface, a.u32(1), a.word(2), TriggeredOp::Unlink(a.u32(0)));
        }
        let (new, trigger) = (self.new_entry(call, a.word(3)), (a.u32(4), a.word(5)));
        let handle =
            self.on_card(rank, |card, ports| card.append_triggered(a.u32(0), new, a.word(2), None, trigger, ports))?;
        Ok(Step::Reply(self.describe_cost(rank), Reply::value(u64::from(handle))))
    }

    fn triggered_counter(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let amount: CtEvent = self.job.data(call.caller);
        let (ct, trigger, threshold) = (a.u32(0), a.u32(1), a.word(2));
        let interface = self.cards[rank].ct_interface(ct)?;
        let op = match call.op {
            Op::PtlTriggeredCTSet => TriggeredOp::CtSet(ct, amount),
            _ => {
                nic::api::check_increment(amount)?;
                TriggeredOp::CtInc(ct, amount)
            }
        };
        self.trigger(rank, interface, trigger, threshold, op)
    }

    fn append(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let mut new = self.new_entry(call, a.word(3));
        let ni = a.u32(0);
        let mut handlers = None;
        if call.op == Op::PtlMEAppendHandlers {
            let me = new.me;
            handlers = match self.on_card(rank, |card, ports| card.handlers(ni, &me, ports)) {
                Ok(handlers) => handlers,
                Err(code) => {
                    self.warn(rank, handlers_refused(code, self.cards[rank].has_program()));
                    return Err(code);
                }
            };
            new.me.le.options &= !ptl::ME_HANDLER_IOVEC;
        }
        let handle = self.on_card(rank, |card, ports| card.append(ni, new, a.word(2), handlers, ports))?;
        Ok(Step::Reply(self.describe_cost(rank), Reply::value(u64::from(handle))))
    }

    fn search(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let new = self.new_entry(call, a.word(3));
        self.on_card(rank, |card, ports| card.search(a.u32(0), new, a.word(2), ports))?;
        Ok(Step::Reply(self.describe_cost(rank), Reply::new(Code::Ok)))
    }

    fn new_entry(&mut self, call: &Call, user_ptr: u64) -> NewEntry {
        let matching = !matches!(call.op, Op::PtlLEAppend | Op::PtlLESearch);
        let me = match matching {
            true => self.job.data(call.caller),
            false => ptl::Me { le: self.job.data(call.caller), ..ptl::Me::default() },
        };
        NewEntry { me, matching, pt_index: call.args[1] as u32, user_ptr }
    }

    /// Calls that look at what has come, once or until it is there.
    fn look_or_wait(&mut self, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let name = call.op.c_name();
        let waits = matches!(call.op, Op::PtlEQWait | Op::PtlEQPoll | Op::PtlCTWait | Op::PtlCTPoll);
        if waits && self.ranks[rank].aborted {
            return Err(Code::Aborted);
        }
        match call.op {
            Op::PtlPTDisable => {
                let (ni, pt_index) = (a.u32(0), a.u32(1));
                self.cards[rank].pt_disable(ni, pt_index)?;
                if self.cards[rank].pt_idle(ni, pt_index) {
                    return done(Reply::new(Code::Ok));
                }
                Ok(Step::Wait(Wait::Portal { ni, pt_index }, None))
            }
            Op::PtlEQGet => {
                let event = self.cards[rank].eq_take(a.u32(0))?;
                let cost = self.poll_cost(rank);
                Ok(Step::Reply(cost, event.map_or_else(|| Reply::new(Code::EqEmpty), event_reply)))
            }
            Op::PtlCTGet => {
                let value = self.cards[rank].ct_value(a.u32(0))?;
                Ok(Step::Reply(self.poll_cost(rank), Reply::new(Code::Ok).with(&value)))
            }
            Op::PtlEQWait | Op::PtlEQPoll => {
                let poll = call.op == Op::PtlEQPoll;
                let queues = if poll { self.handles(rank, a.word(0), a.word(1))? } else { vec![a.u32(0)] };
                self.same_interface(rank, &queues, |card, eq| card.eq_interface(eq))?;
                let limit = if poll { time_limit(a.u32(2)) } else { None };
                if let Some(reply) = self.queue_reply(rank, &queues) {
                    return Ok(Step::Reply(self.poll_cost(rank), reply));
                }
                if limit == Some(Time::ZERO) {
                    return Ok(Step::Reply(self.poll_cost(rank), Reply::new(Code::EqEmpty)));
                }
                Ok(Step::Wait(Wait::Queues { call: name, queues, epoch: 0 }, limit))
            }
            _ => {
                let poll = call.op == Op::PtlCTPoll;
                let tests = if poll {
                    let counters = self.handles(rank, a.word(0), a.word(2))?;
                    let tests = self.read_array::<Word>(rank, a.word(1), counters.len())?;
                    counters.into_iter().zip(tests.into_iter().map(|test| test.0)).collect()
                } else {
                    vec![(a.u32(0), a.word(1))]
                };
                let counters: Vec<Handle> = tests.iter().map(|(ct, _)| *ct).collect();
                self.same_interface(rank, &counters, |card, ct| card.ct_interface(ct))?;
                let limit = if poll { time_limit(a.u32(3)) } else { None };
                if let Some(reply) = self.counter_reply(rank, &tests) {
                    return Ok(Step::Reply(self.poll_cost(rank), reply));
                }
                if limit == Some(Time::ZERO) {
                    return Ok(Step::Reply(self.poll_cost(rank), Reply::new(Code::CtNoneReached)));
                }
                Ok(Step::Wait(Wait::Counters { call: name, tests, epoch: 0 }, limit))
            }
        }
    }

    /// Objects of one poll live, and on one interface.
    fn same_interface(
        &mut self,
        rank: usize,
        objects: &[Handle],
        interface: fn(&mut Card, Handle) -> Result<u8, Code>,
    ) -> Result<(), Code> {
        let card = &mut self.cards[rank];
        let first = interface(card, objects[0])?;
        let all = objects.iter().all(|object| interface(card, *object) == Ok(first));
        if all { Ok(()) } else { Err(Code::ArgInvalid) }
    }

    /// An array of handles of a poll; an empty one is invalid.
    fn handles(&mut self, rank: usize, address: u64, count: u64) -> Result<Vec<Handle>, Code> {
        let count =
            usize::try_from(count).ok().filter(|count| (1..=1 << 20).contains(count)).ok_or(Code::ArgInvalid)?;
        Ok(self.read_array::<HandleWord>(rank, address, count)?.into_iter().map(|word| word.0).collect())
    }

    fn read_array<T: Plain>(&mut self, rank: usize, address: u64, count: usize) -> Result<Vec<T>, Code> {
        let mut bytes = vec![0; count * size_of::<T>()];
        self.job.read(rank, address, &mut bytes).map_err(|_| Code::ArgInvalid)?;
        Ok(bytes.chunks_exact(size_of::<T>()).filter_map(T::from_bytes).collect())
    }
}

/// Why handlers could not be installed, for people.
fn handlers_refused(code: Code, program: bool) -> &'static str {
    match (code, program) {
        (Code::Fail, _) => "PtlMEAppend: handlers on a card without HPUs (--nic spin has)",
        (_, false) => "PtlMEAppend: handlers, but the program has no device code for this card (compile with spincc)",
        (_, true) => {
            "PtlMEAppend: a handler is not of this program, or its HPU memory, initial state or user header is out of range"
        }
    }
}

/// A time-out in milliseconds.
fn time_limit(milliseconds: u32) -> Option<Time> {
    (milliseconds != ptl::TIME_FOREVER).then(|| Time::from_ns(u64::from(milliseconds) * 1_000_000))
}

fn done(reply: Reply) -> Outcome {
    Ok(Step::Reply(Time::ZERO, reply))
}

fn unit(result: Result<(), Code>) -> Outcome {
    result?;
    done(Reply::new(Code::Ok))
}

fn pack(process: Process) -> u64 {
    u64::from(process.nid) | u64::from(process.pid) << 32
}

fn unpack(word: u64) -> Process {
    Process { nid: word as u32, pid: (word >> 32) as u32 }
}

/// The arguments of a call.
struct Words<'a>(&'a [u64]);

impl Words<'_> {
    fn word(&self, index: usize) -> u64 {
        self.0[index]
    }

    fn u32(&self, index: usize) -> u32 {
        self.0[index] as u32
    }
}

#[derive(Clone, Copy, Default)]
#[repr(transparent)]
struct Word(u64);

#[derive(Clone, Copy, Default)]
#[repr(transparent)]
struct HandleWord(Handle);

// SAFETY: transparent over integers.
unsafe impl Plain for Word {}
// SAFETY: transparent over integers.
unsafe impl Plain for HandleWord {}
