// SPDX-License-Identifier: Apache-2.0
//! Executes library calls and charges their CPU costs.
//!
//! The costs are those of [`cluster::HostCosts`]. A call that tells the program to retry later costs a poll. All other
//! calls are free until a program charges the time for them (`spin_host_compute`).

use abi::calls::{self, Op};
use abi::portals::{Process, ReturnCode};
use cluster::{HostTraffic, Work};
use nic::Reason;
use sim::Time;

use super::barrier::BarrierKind;
use super::end::End;
use super::event::{Cluster, Event};
use super::outcome::{Action, Outcome, access, after, done, unit};
use super::processes::{Processes, answer};
use super::refusal_reasons;
use super::refusals::is_refusal;
use super::wait::Wait;
use ranks::{Call, Caller, Reply};

/// Maximum length of slice names; longer ones are truncated.
const LONGEST_NAME: usize = 256;
/// Maximum length of argument names.
const LONGEST_ARGUMENT: usize = 32;

impl Processes {
    /// Makes a call and the calls of the rank's other threads that arrived with it.
    pub fn call(&mut self, cluster: &mut Cluster, call: Call) {
        let mut next = Some(call);
        while let Some(call) = next {
            let caller = call.caller;
            let rank = caller.rank as usize;
            if call.op.properties().needs_completions && cluster.completion(rank).is_some() {
                self.wait(cluster, caller, Wait::Completion(Box::new(call)), None);
            } else if let Some(wait) = self.repeated_search(cluster, &call) {
                self.wait(cluster, caller, wait, None);
            } else {
                let last_poll_empty = self.ranks[rank].poll_state.last_poll_was_empty(caller.slot);
                let outcome = self.perform(cluster, &call).map(|step| self.charge_repeated_query(cluster, &call, step));
                self.note_outcome(cluster, &call, &outcome, last_poll_empty);
                match outcome {
                    Ok(Action::Reply(delay, reply)) if matches!(call.op, Op::SpinSleep | Op::SpinHostCompute) => {
                        cluster.schedule_timer(delay, Event::Resume(caller, Box::new(reply)));
                    }
                    Ok(Action::Reply(delay, reply)) => answer(cluster, caller, delay, reply),
                    Ok(Action::Access(delay, access)) => {
                        cluster.schedule(delay, Event::Accessed(caller, Box::new(access)))
                    }
                    Ok(Action::Wait(wait, limit)) => {
                        if let Some(message) = self.job.objection_to_wait(caller) {
                            self.end_job(cluster, rank, End::BadProgram { rank, message });
                            return;
                        }
                        self.wait(cluster, caller, wait, limit);
                    }
                    Err(code) => {
                        if is_refusal(code) {
                            let is_dead = cluster.is_dead(rank) && call.op.properties().uses_card;
                            let reason = if is_dead {
                                Some(refusal_reasons::of_dead_card())
                            } else {
                                self.reason(cluster, &call)
                            };
                            self.note_refusal(cluster, rank, call.op.c_name(), code, reason);
                        }
                        let delay = refusal_cost(cluster, rank, code);
                        answer(cluster, caller, delay, Reply::new(code));
                    }
                }
            }
            if self.is_over(rank) {
                return;
            }
            next = self.pending(cluster, rank);
        }
    }

    /// Charges repeated queries of objects. Queries are free, but a program that repeats them waits for something, so
    /// each query beyond the free ones at the same time costs a poll.
    fn charge_repeated_query(&mut self, cluster: &mut Cluster, call: &Call, step: Action) -> Action {
        let rank = call.caller.rank as usize;
        match step {
            Action::Reply(Time::ZERO, reply)
                if call.op.properties().question && self.ranks[rank].exceeds_free_queries(cluster.now()) =>
            {
                let delay = cluster.charge(rank, [cluster.costs().poll()]);
                self.ranks[rank].charge_query(cluster.now() + delay);
                Action::Reply(delay, reply)
            }
            step => step,
        }
    }

    /// Completes a message by the CPU (rdma cards). After the last one, makes the deferred calls.
    pub fn completed(&mut self, cluster: &mut Cluster, rank: usize) {
        self.finish_completion(cluster, rank);
        while let Some(call) = self.take_deferred_call(rank) {
            self.call(cluster, call);
        }
        self.start_completion(cluster, rank);
    }

    fn perform(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let rank = call.caller.rank as usize;
        if cluster.is_dead(rank) && call.op.properties().uses_card {
            return Err(ReturnCode::Fail);
        }
        let args = &call.args;
        match call.op {
            Op::SpinAttach => done(Reply::new(ReturnCode::Ok)),
            Op::SpinDetach => {
                self.ranks[rank].aborted = false;
                self.act(cluster, rank, |card, ports| card.reset(ports));
                self.release(cluster, rank); // threads that wait for freed objects
                done(Reply::new(ReturnCode::Ok))
            }
            Op::SpinRegisterImage => self.register_image(cluster, rank, calls::SpinRegisterImage::read(args)),
            Op::SpinHostCompute => {
                let work = Work::compute(Time::from_ps(calls::SpinHostCompute::read(args).ps));
                after(cluster.charge(rank, [work]), Reply::new(ReturnCode::Ok))
            }
            Op::SpinHostMemory => {
                let a = calls::SpinHostMemory::read(args);
                access(cluster.charge_memory(rank, HostTraffic { read: a.read_bytes, written: a.written_bytes }))
            }
            Op::SpinHostCopy => access(cluster.charge_copy(rank, calls::SpinHostCopy::read(args).bytes)),
            Op::SpinSleep => {
                self.note_sleep(cluster, rank);
                after(Time::from_ps(calls::SpinSleep::read(args).ps), Reply::new(ReturnCode::Ok))
            }
            Op::SpinRefuse => self.refused_by_library(cluster, call),
            Op::SpinYield | Op::SpinFlush | Op::PtlAtomicSync => done(Reply::new(ReturnCode::Ok)),
            Op::SpinShow => self.show(cluster, rank, calls::SpinShow::read(args)),
            Op::SpinIdle => self.idle(cluster, call),
            Op::SpinBarrier => self.barrier(cluster, call.caller, BarrierKind::Spin),
            Op::PmiBarrier => self.barrier(cluster, call.caller, BarrierKind::Pmi),
            Op::SpinSwitches => {
                let a = calls::SpinSwitches::read(args);
                done(Reply::output(a.count, cluster.switches().len() as u32))
            }
            Op::SpinDistance => {
                let a = calls::SpinDistance::read(args);
                let [from, to] = [a.from, a.to].map(|number| self.place_of(rank, number));
                let links = from.zip(to).and_then(|(from, to)| cluster.distance(from, to));
                let links = links.ok_or(ReturnCode::ArgInvalid)?;
                done(Reply::output(a.links, links))
            }
            Op::SpinSwitchAlloc => self.switch_alloc(cluster, call),
            Op::SpinSwitchAttach => self.switch_attach(cluster, call),
            Op::PtlNIInit
            | Op::PtlNIFini
            | Op::PtlNIStatus
            | Op::PtlNIHandle
            | Op::PtlSetMap
            | Op::PtlGetMap
            | Op::PtlGetUid
            | Op::PtlGetId
            | Op::PtlGetPhysId
            | Op::PtlStartBundle
            | Op::PtlEndBundle => self.interface_call(cluster, call),
            Op::PtlAbort => {
                self.abort_waits(cluster, rank);
                done(Reply::new(ReturnCode::Ok))
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
            Op::PtlTriggeredMEAppend => self.triggered_append(cluster, call),
            Op::PtlTriggeredMEUnlink => self.triggered_unlink(cluster, call),
            Op::PtlTriggeredCTInc | Op::PtlTriggeredCTSet => self.triggered_counter(cluster, call),
            Op::PtlLEAppend | Op::PtlMEAppend | Op::PtlMEAppendHandlers => self.append(cluster, call),
            Op::PtlLESearch | Op::PtlMESearch => self.search(cluster, call),
            Op::PtlPTDisable => self.disable(cluster, call),
            Op::PtlEQGet => self.get_event(cluster, call),
            Op::SpinEqTake => self.take_events(cluster, call),
            Op::PtlEQWait | Op::PtlEQPoll => self.wait_for_event(cluster, call),
            Op::PtlCTGet => self.get_counter(cluster, call),
            Op::PtlCTWait | Op::PtlCTPoll => self.wait_for_counter(cluster, call),
            Op::PtlPTAlloc
            | Op::PtlPTFree
            | Op::PtlPTEnable
            | Op::PtlMDBind
            | Op::PtlMDRelease
            | Op::PtlLEUnlink
            | Op::PtlMEUnlink
            | Op::PtlEQAlloc
            | Op::PtlEQFree
            | Op::PtlCTAlloc
            | Op::PtlCTFree
            | Op::PtlCTCancelTriggered
            | Op::PtlCTSet
            | Op::PtlCTInc
            | Op::PtlHPUAllocMem
            | Op::PtlHPUFreeMem => self.object_call(cluster, call),
        }
    }

    /// Opens, closes, describes or queries an interface.
    fn interface_call(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, args) = (call.caller.rank as usize, &call.args);
        let card = cluster.card(rank);
        match call.op {
            Op::PtlNIInit => {
                let a = calls::PtlNIInit::read(args);
                let desired = a.desired.map(|desired| self.job.structure(call.caller, desired));
                let (ni, limits) = card.portals_mut().ni_init(a.iface, a.options, a.pid, desired)?;
                done(Reply::output(a.ni_handle, ni).with(a.actual, &limits))
            }
            Op::PtlNIFini => {
                let a = calls::PtlNIFini::read(args);
                self.act(cluster, rank, |card, ports| card.ni_fini(a.ni_handle, ports))?;
                self.release(cluster, rank); // threads that wait for freed objects
                done(Reply::new(ReturnCode::Ok))
            }
            // Costs a poll, because programs wait for a register to change.
            Op::PtlNIStatus => {
                let a = calls::PtlNIStatus::read(args);
                let value = card.portals_mut().ni_status(a.ni_handle, a.status_register.into())?;
                after(cluster.charge(rank, [cluster.costs().poll()]), Reply::output(a.status, value))
            }
            Op::PtlNIHandle => {
                let a = calls::PtlNIHandle::read(args);
                done(Reply::output(a.ni_handle, card.ni_handle(a.handle)?))
            }
            Op::PtlGetUid => {
                let a = calls::PtlGetUid::read(args);
                done(Reply::output(a.uid, card.portals_mut().uid(a.ni_handle)?))
            }
            Op::PtlGetId => {
                let a = calls::PtlGetId::read(args);
                done(Reply::output(a.id, card.portals_mut().id(a.ni_handle)?))
            }
            Op::PtlGetPhysId => {
                let a = calls::PtlGetPhysId::read(args);
                done(Reply::output(a.id, card.portals_mut().physical_id(a.ni_handle)?))
            }
            Op::PtlSetMap => {
                let a = calls::PtlSetMap::read(args);
                let count = usize::try_from(a.map_size).ok().filter(|count| *count <= self.ranks.len() * 64);
                let count = count.ok_or(ReturnCode::ArgInvalid)?;
                let map = self.read_array::<Process>(rank, a.mapping, count)?;
                unit(cluster.card(rank).portals_mut().set_map(a.ni_handle, map.into()))
            }
            Op::PtlGetMap => {
                let a = calls::PtlGetMap::read(args);
                let map = card.portals_mut().map(a.ni_handle)?;
                let count = usize::try_from(a.map_size).unwrap_or(usize::MAX).min(map.len());
                let bytes = bytemuck::cast_slice(&map[..count]);
                self.job.write(rank, a.mapping, bytes).map_err(|_| ReturnCode::ArgInvalid)?;
                done(Reply::output(a.actual_map_size, map.len() as u64))
            }
            Op::PtlStartBundle | Op::PtlEndBundle => {
                unit(card.portals_mut().bundle(calls::PtlStartBundle::read(args).ni_handle))
            }
            other => unreachable!("{} is no call about interfaces", other.c_name()),
        }
    }

    /// Creates, changes or destroys an object of an interface.
    fn object_call(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, args) = (call.caller.rank as usize, &call.args);
        let card = cluster.card(rank);
        match call.op {
            Op::PtlPTAlloc => {
                let a = calls::PtlPTAlloc::read(args);
                done(Reply::output(
                    a.pt_index,
                    card.portals_mut().pt_alloc(a.ni_handle, a.options, a.eq_handle, a.pt_index_req)?,
                ))
            }
            Op::PtlPTFree => {
                let a = calls::PtlPTFree::read(args);
                unit(card.portals_mut().pt_free(a.ni_handle, a.pt_index))
            }
            Op::PtlPTEnable => {
                let a = calls::PtlPTEnable::read(args);
                unit(card.portals_mut().pt_enable(a.ni_handle, a.pt_index))
            }
            Op::PtlMDBind => {
                let a = calls::PtlMDBind::read(args);
                let md = self.job.structure(call.caller, a.md);
                let handle = self.act(cluster, rank, |card, ports| card.md_bind(a.ni_handle, md, ports))?;
                done(Reply::output(a.md_handle, handle))
            }
            Op::PtlMDRelease => unit(card.portals_mut().md_release(calls::PtlMDRelease::read(args).md_handle)),
            Op::PtlLEUnlink => unit(card.portals_mut().unlink(calls::PtlLEUnlink::read(args).le_handle)),
            Op::PtlMEUnlink => unit(card.portals_mut().unlink(calls::PtlMEUnlink::read(args).me_handle)),
            Op::PtlEQAlloc => {
                let a = calls::PtlEQAlloc::read(args);
                done(Reply::output(a.eq_handle, card.portals_mut().eq_alloc(a.ni_handle, a.count)?))
            }
            Op::PtlEQFree => {
                let a = calls::PtlEQFree::read(args);
                self.act(cluster, rank, |card, _| card.portals_mut().eq_free(a.eq_handle))?;
                self.release(cluster, rank); // threads that wait for the freed queue
                done(Reply::new(ReturnCode::Ok))
            }
            Op::PtlCTAlloc => {
                let a = calls::PtlCTAlloc::read(args);
                done(Reply::output(a.ct_handle, card.portals_mut().ct_alloc(a.ni_handle)?))
            }
            Op::PtlCTFree => {
                let a = calls::PtlCTFree::read(args);
                self.act(cluster, rank, |card, _| card.portals_mut().ct_free(a.ct_handle))?;
                self.release(cluster, rank); // threads that wait for the freed counter
                done(Reply::new(ReturnCode::Ok))
            }
            Op::PtlCTCancelTriggered => {
                unit(card.portals_mut().ct_cancel(calls::PtlCTCancelTriggered::read(args).ct_handle))
            }
            Op::PtlCTSet => {
                let a = calls::PtlCTSet::read(args);
                let value = self.job.structure(call.caller, a.new_ct);
                self.act(cluster, rank, |card, ports| card.ct_set(a.ct_handle, value, ports))?;
                after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
            }
            Op::PtlCTInc => {
                let a = calls::PtlCTInc::read(args);
                let amount = self.job.structure(call.caller, a.increment);
                self.act(cluster, rank, |card, ports| card.ct_inc(a.ct_handle, amount, ports))?;
                after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
            }
            Op::PtlHPUAllocMem => {
                let a = calls::PtlHPUAllocMem::read(args);
                let memory = card.hpu_alloc(a.length, a.ni);
                if memory == Err(ReturnCode::Fail) {
                    self.warn(cluster, rank, "PtlHPUAllocMem: this card has no HPUs (--nic spin has)");
                }
                done(Reply::output(a.hpu_mem, memory?))
            }
            Op::PtlHPUFreeMem => unit(card.hpu_free(calls::PtlHPUFreeMem::read(args).hpu_mem)),
            other => unreachable!("{} is no call about objects", other.c_name()),
        }
    }

    /// Records a call that the rank's library refused by itself, given its function number, return code, and the name
    /// of the NULL argument.
    fn refused_by_library(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::SpinRefuse::read(&call.args));
        let name: [u8; LONGEST_ARGUMENT] = self.job.data(call.caller);
        let argument = String::from_utf8_lossy(&name[..(a.name_length as usize).min(LONGEST_ARGUMENT)]).into_owned();
        let why = match argument.is_empty() {
            true => "the process is not between PtlInit and the last PtlFini",
            false => "is NULL",
        };
        if let (Some(op), Some(code)) = (Op::from_raw(a.operation), ReturnCode::from_raw(a.code)) {
            self.note_refusal(cluster, rank, op.c_name(), code, Some(Reason { argument, why: why.into() }));
        }
        done(Reply::new(ReturnCode::Ok))
    }

    /// Records a refused call, and reports the first of its kind to the user.
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

    /// Shows a slice in the timeline, from its start time to now. Ignores slices with unreadable names.
    fn show(&mut self, cluster: &mut Cluster, rank: usize, slice: calls::SpinShow) -> Outcome {
        let length = usize::try_from(slice.length).unwrap_or(usize::MAX).min(LONGEST_NAME);
        let name = self.read_array::<u8>(rank, slice.name, length)?;
        let start = Time::from_ps(slice.start_ps).min(cluster.now());
        cluster.show(rank, start, &String::from_utf8_lossy(&name));
        done(Reply::new(ReturnCode::Ok))
    }

    /// Records the arrival of a thread at a barrier.
    fn barrier(&mut self, cluster: &mut Cluster, caller: Caller, kind: BarrierKind) -> Outcome {
        match self.arrive(cluster, caller, kind) {
            true => done(Reply::new(ReturnCode::Ok)),
            false => Ok(Action::Wait(Wait::Barrier(kind), None)),
        }
    }
}

/// Returns the duration of a refused call: that of a poll if programs retry the call until a resource is free, so that
/// time advances.
fn refusal_cost(cluster: &mut Cluster, rank: usize, code: ReturnCode) -> Time {
    match code {
        ReturnCode::InUse | ReturnCode::PtInUse | ReturnCode::PtFull | ReturnCode::NoSpace => {
            cluster.charge(rank, [cluster.costs().poll()])
        }
        _ => Time::ZERO,
    }
}
