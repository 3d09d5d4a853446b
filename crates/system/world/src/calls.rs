//! What each library call does, and what it costs the CPU.
//!
//! The costs are those of [`cluster::HostCosts`]. A call that tells the program to try again later costs a poll. All other
//! calls are free until a program charges the time for them (`spin_host_compute`).

use abi::mailbox::Op;
use abi::portals::{CtEvent, NiLimits, Process, ReturnCode};
use cluster::{HostTraffic, Work};
use nic::Reason;
use sim::Time;

use super::barrier::BarrierKind;
use super::end::End;
use super::event::{Cluster, Event};
use super::processes::{Processes, answer};
use super::reasons;
use super::refusals::is_refusal;
use super::step::{Outcome, Step, Words, access, after, done, pack, unit, value};
use super::wait::Wait;
use ranks::{Call, Caller, Reply};

/// Names of slices are cut to this length.
const LONGEST_NAME: usize = 256;
/// Names of arguments have at most this length.
const LONGEST_ARGUMENT: usize = 32;

impl Processes {
    /// Makes a call and the calls of the rank's other threads that came with it.
    pub fn call(&mut self, cluster: &mut Cluster, call: Call) {
        let mut next = Some(call);
        while let Some(call) = next {
            let caller = call.caller;
            let rank = caller.rank as usize;
            if needs_completions(call.op) && cluster.completion(rank).is_some() {
                self.wait(cluster, caller, Wait::Completion(Box::new(call)), None);
            } else {
                let polled_in_vain = self.ranks[rank].attention.polls_in_vain(caller.slot);
                let outcome = self.perform(cluster, &call).map(|step| self.charge_questions(cluster, &call, step));
                self.note_outcome(cluster, &call, &outcome, polled_in_vain);
                match outcome {
                    Ok(Step::Reply(delay, reply)) => answer(cluster, caller, delay, reply),
                    Ok(Step::Access(delay, access)) => {
                        cluster.schedule(delay, Event::Accessed(caller, Box::new(access)))
                    }
                    Ok(Step::Wait(wait, limit)) => {
                        if let Some(message) = self.job.objection_to_wait(caller) {
                            self.end = Some(End::BadProgram { rank, message });
                            return;
                        }
                        self.wait(cluster, caller, wait, limit);
                    }
                    Err(code) => {
                        if is_refusal(code) {
                            let is_dead = cluster.is_dead(rank) && uses_card(call.op);
                            let reason =
                                if is_dead { Some(reasons::of_dead_card()) } else { self.reason(cluster, &call) };
                            self.note_refusal(cluster, rank, name_in_c(call.op), code, reason);
                        }
                        let delay = refusal_cost(cluster, rank, code);
                        answer(cluster, caller, delay, Reply::new(code));
                    }
                }
            }
            if self.end.is_some() {
                return;
            }
            next = self.pending(cluster, rank);
        }
    }

    /// Questions about objects are free. A program that asks again and again waits for something else, so that each further question of
    /// a rank at the same time takes that of a poll.
    fn charge_questions(&mut self, cluster: &mut Cluster, call: &Call, step: Step) -> Step {
        let rank = call.caller.rank as usize;
        match step {
            Step::Reply(Time::ZERO, reply)
                if is_question(call.op) && self.ranks[rank].asks_too_often(cluster.now()) =>
            {
                let delay = cluster.charge(rank, [cluster.costs().poll()]);
                self.ranks[rank].charge_question(cluster.now() + delay);
                Step::Reply(delay, reply)
            }
            step => step,
        }
    }

    /// Takes note that the CPU has completed a message (rdma cards). After the last one, the calls that waited are made.
    pub fn completed(&mut self, cluster: &mut Cluster, rank: usize) {
        self.finish_completion(cluster, rank);
        while let Some(call) = self.take_deferred_call(rank) {
            self.call(cluster, call);
        }
        self.start_completion(cluster, rank);
    }

    fn perform(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        if cluster.is_dead(rank) && uses_card(call.op) {
            return Err(ReturnCode::Fail);
        }
        match call.op {
            Op::SpinAttach => done(Reply::new(ReturnCode::Ok)),
            Op::SpinDetach => {
                self.ranks[rank].aborted = false;
                self.act(cluster, rank, |card, ports| card.reset(ports));
                self.release(cluster, rank); // threads that wait for what is gone
                done(Reply::new(ReturnCode::Ok))
            }
            Op::SpinRegisterImage => self.register_image(cluster, rank, [a.word(0), a.word(1), a.word(2)]),
            Op::SpinHostCompute => {
                let work = Work::compute(Time::from_ps(a.word(0)));
                after(cluster.charge(rank, [work]), Reply::new(ReturnCode::Ok))
            }
            Op::SpinHostMemory => {
                let moved = HostTraffic { read: a.word(0), written: a.word(1) };
                access(cluster.charge_memory(rank, moved))
            }
            Op::SpinHostCopy => access(cluster.charge_copy(rank, a.word(0))),
            Op::SpinSleep => {
                self.note_sleep(cluster, rank);
                after(Time::from_ps(a.word(0)), Reply::new(ReturnCode::Ok))
            }
            Op::SpinRefuse => self.refused_by_library(cluster, call),
            Op::SpinYield | Op::SpinFlush => done(Reply::new(ReturnCode::Ok)),
            Op::SpinShow => self.show(cluster, rank, [a.word(0), a.word(1), a.word(2)]),
            Op::SpinIdle => self.idle(cluster, call),
            Op::SpinBarrier => self.barrier(cluster, call.caller, BarrierKind::Spin),
            Op::PmiBarrier => self.barrier(cluster, call.caller, BarrierKind::Pmi),
            Op::SpinSwitches | Op::SpinDistance | Op::SpinSwitchAlloc | Op::SpinSwitchAttach => {
                self.switch_call(cluster, call)
            }
            Op::PtlPut
            | Op::PtlGet
            | Op::PtlAtomic
            | Op::PtlFetchAtomic
            | Op::PtlSwap
            | Op::PtlTriggeredPut
            | Op::PtlTriggeredGet
            | Op::PtlTriggeredAtomic
            | Op::PtlTriggeredFetchAtomic
            | Op::PtlTriggeredSwap => self.transfer(cluster, call),
            Op::PtlTriggeredMEAppend | Op::PtlTriggeredMEUnlink => self.triggered_entry(cluster, call),
            Op::PtlAbort => {
                self.abort_waits(cluster, rank);
                done(Reply::new(ReturnCode::Ok))
            }
            Op::PtlTriggeredCTInc | Op::PtlTriggeredCTSet => self.triggered_counter(cluster, call),
            Op::PtlLEAppend | Op::PtlMEAppend | Op::PtlMEAppendHandlers => self.append(cluster, call),
            Op::PtlLESearch | Op::PtlMESearch => self.search(cluster, call),
            Op::PtlEQGet
            | Op::SpinEqTake
            | Op::PtlEQWait
            | Op::PtlEQPoll
            | Op::PtlCTGet
            | Op::PtlCTWait
            | Op::PtlCTPoll
            | Op::PtlPTDisable => self.look_or_wait(cluster, call),
            _ => self.object_call(cluster, call),
        }
    }

    /// Calls that make, change or ask about objects.
    fn object_call(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let card = cluster.card(rank);
        match call.op {
            Op::PtlNIInit => {
                let desired: Option<NiLimits> = (a.word(3) != 0).then(|| self.job.data(call.caller));
                let (ni, limits) = card.ni_init(a.u32(0), a.u32(1), a.u32(2), desired)?;
                done(Reply::value(u64::from(ni)).with(&limits))
            }
            // Programs wait for a register to change.
            Op::PtlNIStatus => {
                let value = card.ni_status(a.u32(0), a.word(1))?;
                after(cluster.charge(rank, [cluster.costs().poll()]), Reply::value(u64::from(value as u32)))
            }
            Op::PtlNIHandle => value(card.ni_handle(a.u32(0))?),
            Op::PtlGetUid => value(card.uid(a.u32(0))?),
            Op::PtlGetId => done(Reply::value(pack(card.id(a.u32(0))?))),
            Op::PtlGetPhysId => done(Reply::value(pack(card.physical_id(a.u32(0))?))),
            Op::PtlSetMap => {
                let count = usize::try_from(a.word(1)).ok().filter(|count| *count <= self.ranks.len() * 64);
                let count = count.ok_or(ReturnCode::ArgInvalid)?;
                let map = self.read_array::<Process>(rank, a.word(2), count)?;
                unit(cluster.card(rank).set_map(a.u32(0), map.into()))
            }
            Op::PtlGetMap => {
                let map = card.map(a.u32(0))?;
                let count = usize::try_from(a.word(1)).unwrap_or(usize::MAX).min(map.len());
                self.job
                    .write(rank, a.word(2), bytemuck::cast_slice(&map[..count]))
                    .map_err(|_| ReturnCode::ArgInvalid)?;
                done(Reply::value(map.len() as u64))
            }
            Op::PtlPTAlloc => value(card.pt_alloc(a.u32(0), a.u32(1), a.u32(2), a.u32(3))?),
            Op::PtlPTFree => unit(card.pt_free(a.u32(0), a.u32(1))),
            Op::PtlPTEnable => unit(card.pt_enable(a.u32(0), a.u32(1))),
            Op::PtlMDBind => {
                let md = self.job.data(call.caller);
                value(self.act(cluster, rank, |card, ports| card.md_bind(a.u32(0), md, ports))?)
            }
            Op::PtlMDRelease => unit(card.md_release(a.u32(0))),
            Op::PtlLEUnlink | Op::PtlMEUnlink => unit(card.unlink(a.u32(0))),
            Op::PtlEQAlloc => value(card.eq_alloc(a.u32(0), a.word(1))?),
            Op::PtlCTAlloc => value(card.ct_alloc(a.u32(0))?),
            Op::PtlNIFini | Op::PtlEQFree | Op::PtlCTFree => {
                self.act(cluster, rank, |card, ports| match call.op {
                    Op::PtlNIFini => card.ni_fini(a.u32(0), ports),
                    Op::PtlEQFree => card.eq_free(a.u32(0)),
                    _ => card.ct_free(a.u32(0)),
                })?;
                self.release(cluster, rank); // threads that wait for what is gone
                done(Reply::new(ReturnCode::Ok))
            }
            Op::PtlCTCancelTriggered => unit(card.ct_cancel(a.u32(0))),
            Op::PtlCTSet | Op::PtlCTInc => {
                let amount: CtEvent = self.job.data(call.caller);
                let ct = a.u32(0);
                let set = call.op == Op::PtlCTSet;
                self.act(cluster, rank, |card, ports| match set {
                    true => card.ct_set(ct, amount, ports),
                    false => card.ct_inc(ct, amount, ports),
                })?;
                after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
            }
            Op::PtlStartBundle | Op::PtlEndBundle => unit(card.bundle(a.u32(0))),
            Op::PtlAtomicSync => done(Reply::new(ReturnCode::Ok)),
            Op::PtlHPUAllocMem => {
                let memory = card.hpu_alloc(a.word(0), a.u32(1));
                if memory == Err(ReturnCode::Fail) {
                    self.warn(cluster, rank, "PtlHPUAllocMem: this card has no HPUs (--nic spin has)");
                }
                value(memory?)
            }
            Op::PtlHPUFreeMem => unit(card.hpu_free(a.u32(0))),
            other => unreachable!("{} is handled by perform", other.c_name()),
        }
    }

    /// Takes note of a call that the rank's library has refused by itself: with the number of its function and the return code, and the name
    /// of the argument that is NULL.
    fn refused_by_library(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let name: [u8; LONGEST_ARGUMENT] = self.job.data(call.caller);
        let argument = String::from_utf8_lossy(&name[..(a.word(2) as usize).min(LONGEST_ARGUMENT)]).into_owned();
        let why = match argument.is_empty() {
            true => "the process is not between PtlInit and the last PtlFini",
            false => "is NULL",
        };
        if let (Some(op), Some(code)) = (Op::from_raw(a.u32(0)), ReturnCode::from_raw(a.word(1))) {
            self.note_refusal(cluster, rank, name_in_c(op), code, Some(Reason { argument, why: why.into() }));
        }
        done(Reply::new(ReturnCode::Ok))
    }

    /// Takes note of a refused call, and tells the user if it is the first of its kind.
    fn note_refusal(
        &mut self,
        cluster: &mut Cluster,
        rank: usize,
        name: &'static str,
        code: ReturnCode,
        reason: Option<Reason>,
    ) {
        if let Some(text) = self.refusals.note(rank, name, code, reason, cluster.now()) {
            cluster.tell_refusal(&text);
        }
    }

    /// Shows in the timeline what the program has done since a time. A name that cannot be read is not shown.
    fn show(&mut self, cluster: &mut Cluster, rank: usize, [name, length, start_ps]: [u64; 3]) -> Outcome {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(LONGEST_NAME);
        let name = self.read_array::<u8>(rank, name, length)?;
        let start = Time::from_ps(start_ps).min(cluster.now());
        cluster.show(rank, start, &String::from_utf8_lossy(&name));
        done(Reply::new(ReturnCode::Ok))
    }

    /// Lets a thread arrive at a barrier.
    fn barrier(&mut self, cluster: &mut Cluster, caller: Caller, kind: BarrierKind) -> Outcome {
        match self.arrive(cluster, caller, kind) {
            true => done(Reply::new(ReturnCode::Ok)),
            false => Ok(Step::Wait(Wait::Barrier(kind), None)),
        }
    }
}

/// The name of the function that programs call: `spin.h` maps `PtlMEAppend` to another one.
pub fn name_in_c(op: Op) -> &'static str {
    match op {
        Op::PtlMEAppendHandlers => "PtlMEAppend",
        Op::SpinEqTake => "spin_eq_take",
        Op::SpinDistance => "spin_distance",
        Op::SpinSwitchAlloc => "spin_switch_alloc",
        Op::SpinSwitchAttach => "spin_switch_attach",
        op => op.c_name(),
    }
}

/// Whether a call asks for what does not change.
fn is_question(op: Op) -> bool {
    matches!(
        op,
        Op::PtlGetUid
            | Op::PtlGetId
            | Op::PtlGetPhysId
            | Op::PtlGetMap
            | Op::PtlNIHandle
            | Op::PtlAtomicSync
            | Op::SpinSwitches
            | Op::SpinDistance
    )
}

/// Whether a call needs the card.
fn uses_card(op: Op) -> bool {
    !matches!(
        op,
        Op::SpinAttach
            | Op::SpinDetach
            | Op::SpinHostCompute
            | Op::SpinHostMemory
            | Op::SpinHostCopy
            | Op::SpinSleep
            | Op::SpinYield
            | Op::SpinFlush
            | Op::SpinRefuse
            | Op::SpinIdle
            | Op::SpinShow
            | Op::SpinBarrier
            | Op::PmiBarrier
            | Op::SpinSwitches
            | Op::SpinDistance
            | Op::PtlNIFini
    )
}

/// Whether the CPU has to complete the messages that have arrived before it can make this call (rdma cards).
fn needs_completions(op: Op) -> bool {
    matches!(
        op,
        Op::PtlEQGet
            | Op::SpinEqTake
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
    )
}

/// Returns the time that a refused call takes: that of a poll if programs repeat the call until something is free, so that
/// time passes.
fn refusal_cost(cluster: &mut Cluster, rank: usize, code: ReturnCode) -> Time {
    match code {
        ReturnCode::InUse | ReturnCode::PtInUse | ReturnCode::PtFull | ReturnCode::NoSpace => {
            cluster.charge(rank, [cluster.costs().poll()])
        }
        _ => Time::ZERO,
    }
}
