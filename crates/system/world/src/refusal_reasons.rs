// SPDX-License-Identifier: Apache-2.0
//! Reasons of refused calls: [`Examination`] checks their arguments again, in the order and with the names of the
//! header.

use abi::calls::{self, Data, Op, Polled, Trigger};
use abi::portals::{self as ptl, Handle, Process, StatusRegister};
use nic::{Examination, Object, Reason, interface_of};

use super::event::Cluster;
use super::processes::Processes;
use ranks::{Call, Caller};

/// Maximum number of objects of a poll.
const MOST_POLLED: u32 = 1 << 20;

/// Returns the reason why calls of a rank with a dead card fail.
pub fn of_dead_card() -> Reason {
    Reason { argument: String::new(), why: "the rank's card is dead (--kill-card)".into() }
}

impl Processes {
    /// Returns the reason why a call was refused, provided the objects have not changed since.
    pub fn reason(&mut self, cluster: &mut Cluster, call: &Call) -> Option<Reason> {
        let (rank, args) = (call.caller.rank as usize, &call.args);
        let (switches, most_mapped) = (cluster.switches().len(), self.ranks.len() as u64 * 64);
        let mut exam = Examination::of(cluster.card(rank));
        let x = &mut exam;
        match call.op {
            Op::PtlNIInit => {
                let a = calls::PtlNIInit::read(args);
                x.ni_init(a.iface, a.options, a.pid);
            }
            Op::PtlNIStatus => {
                let a = calls::PtlNIStatus::read(args);
                x.ni("ni_handle", a.ni_handle);
                let register = a.status_register;
                x.refuse_if(StatusRegister::from_raw(register.into()).is_none(), "status_register", || {
                    format!("{register} is no ptl_sr_index_t")
                });
            }
            Op::PtlNIHandle => x.any("handle", calls::PtlNIHandle::read(args).handle),
            Op::PtlSetMap => {
                let a = calls::PtlSetMap::read(args);
                let mapping = (a.map_size <= most_mapped)
                    .then(|| self.read_array::<Process>(rank, a.mapping, a.map_size as usize));
                x.set_map(a.ni_handle, a.map_size, most_mapped, mapping.and_then(Result::ok).as_deref());
            }
            Op::PtlGetMap => {
                let a = calls::PtlGetMap::read(args);
                x.logical(a.ni_handle);
                x.mapped("ni_handle", a.ni_handle);
                x.wrong("mapping", format!("the memory at {:#x} cannot be written", a.mapping));
            }
            Op::PtlGetId => x.mapped("ni_handle", calls::PtlGetId::read(args).ni_handle),
            Op::PtlPTAlloc => {
                let a = calls::PtlPTAlloc::read(args);
                x.pt_alloc(a.ni_handle, a.options, a.eq_handle, a.pt_index_req);
            }
            Op::PtlPTFree => {
                let a = calls::PtlPTFree::read(args);
                x.pt_free(a.ni_handle, a.pt_index);
            }
            Op::PtlPTEnable | Op::PtlPTDisable => {
                let a = calls::PtlPTEnable::read(args);
                x.ni("ni_handle", a.ni_handle);
                x.portal(a.ni_handle, "pt_index", a.pt_index);
            }
            Op::PtlMDBind => {
                let a = calls::PtlMDBind::read(args);
                let md = self.job.structure(call.caller, a.md);
                x.md_bind(a.ni_handle, md);
                if md.options & ptl::md::IOVEC != 0 {
                    self.elements(x, rank, "md->start", md.start, md.length);
                }
            }
            Op::PtlMDRelease => x.object("md_handle", Object::Md, calls::PtlMDRelease::read(args).md_handle),
            Op::PtlLEAppend | Op::PtlMEAppend => self.entry(x, call, true),
            Op::PtlTriggeredMEAppend => {
                self.entry(x, call, true);
                let a = calls::PtlTriggeredMEAppend::read(args);
                x.trigger(a.trig_ct_handle, interface_of(a.ni_handle));
            }
            Op::PtlMEAppendHandlers => {
                let a = calls::PtlMEAppendHandlers::read(args);
                let me = self.job.structure(call.caller, a.me);
                if me.header_handler | me.payload_handler | me.completion_handler != 0 {
                    x.handlers(a.ni, &me);
                    let length = if me.hpu_initial_state == 0 { 0 } else { me.hpu_initial_state_length };
                    self.readable(x, rank, "me->hpu_initial_state", me.hpu_initial_state, length);
                }
                self.entry(x, call, true);
            }
            Op::PtlLESearch | Op::PtlMESearch => {
                x.search(calls::PtlMESearch::read(args).ptl_search_op.into());
                self.entry(x, call, false);
            }
            Op::PtlLEUnlink => x.unlink("le_handle", calls::PtlLEUnlink::read(args).le_handle),
            Op::PtlMEUnlink => x.unlink("me_handle", calls::PtlMEUnlink::read(args).me_handle),
            Op::PtlTriggeredMEUnlink => {
                let a = calls::PtlTriggeredMEUnlink::read(args);
                x.object("me_handle", Object::Entry, a.me_handle);
                x.trigger(a.trig_ct_handle, interface_of(a.me_handle));
            }
            op if op.properties().transfers => self.transfer_reason(x, call),
            Op::PtlEQAlloc => {
                let a = calls::PtlEQAlloc::read(args);
                x.eq_alloc(a.ni_handle, a.count);
            }
            Op::PtlCTAlloc => x.ct_alloc(calls::PtlCTAlloc::read(args).ni_handle),
            Op::PtlEQFree | Op::PtlEQGet | Op::PtlEQWait => {
                x.object("eq_handle", Object::Eq, calls::PtlEQGet::read(args).eq_handle);
            }
            Op::PtlCTFree | Op::PtlCTCancelTriggered | Op::PtlCTGet | Op::PtlCTWait | Op::PtlCTSet => {
                x.object("ct_handle", Object::Ct, calls::PtlCTGet::read(args).ct_handle);
            }
            Op::PtlCTInc => {
                let a = calls::PtlCTInc::read(args);
                x.object("ct_handle", Object::Ct, a.ct_handle);
                x.increment(self.job.structure(call.caller, a.increment));
            }
            Op::PtlTriggeredCTInc | Op::PtlTriggeredCTSet => {
                let a = calls::PtlTriggeredCTInc::read(args);
                x.object("ct_handle", Object::Ct, a.ct_handle);
                if call.op == Op::PtlTriggeredCTInc {
                    x.increment(self.job.structure(call.caller, a.increment));
                }
                x.trigger(a.trig_ct_handle, interface_of(a.ct_handle));
            }
            Op::SpinEqTake => {
                let a = calls::SpinEqTake::read(args);
                x.object("eq", Object::Eq, a.eq);
                x.refuse_if(a.events == 0, "events", || "is NULL".to_owned());
                x.refuse_if(a.max == 0, "max", || "is 0".to_owned());
                x.wrong("events", format!("the memory at {:#x} cannot be written", a.events));
            }
            Op::PtlEQPoll => {
                let a = calls::PtlEQPoll::read(args);
                self.polled_objects(x, call, ("eq_handles", Object::Eq), (a.eq_handles, a.size), a.polled);
            }
            Op::PtlCTPoll => {
                let a = calls::PtlCTPoll::read(args);
                self.polled_objects(x, call, ("ct_handles", Object::Ct), (a.ct_handles, a.size), a.polled);
                self.readable(x, rank, "tests", a.tests, u64::from(a.size) * 8);
            }
            Op::PtlHPUAllocMem => {
                let a = calls::PtlHPUAllocMem::read(args);
                x.hpu_alloc("ni", a.ni, a.length);
            }
            Op::PtlHPUFreeMem => x.hpu_free(calls::PtlHPUFreeMem::read(args).hpu_mem),
            Op::SpinSwitchAlloc | Op::SpinSwitchAttach => {
                let a = calls::SpinSwitchAlloc::read(args);
                x.refuse_if(switches == 0, "which", || {
                    "no switch of this network has handlers: see network.switch.handlers".to_owned()
                });
                x.refuse_if(a.which as usize >= switches, "which", || {
                    format!("switch {} of {switches}", a.which as i32)
                });
                x.mapped("ni", a.ni);
            }
            Op::PtlNIFini | Op::PtlGetUid | Op::PtlGetPhysId | Op::PtlStartBundle | Op::PtlEndBundle => {
                x.ni("ni_handle", calls::PtlStartBundle::read(args).ni_handle);
            }
            // Other calls are never refused.
            _ => {}
        }
        exam.found()
    }

    /// Examines the arguments of a transfer in their order.
    fn transfer_reason(&mut self, x: &mut Examination<'_>, call: &Call) {
        let (rank, args) = (call.caller.rank as usize, &call.args);
        let (md, words) = match call.op {
            Op::PtlPut | Op::PtlTriggeredPut => {
                let a = calls::PtlPut::read(args);
                let local = (("md_handle", a.md_handle), ("local_offset", a.local_offset));
                x.transfer(local.0, local.1, a.length, a.target_id, a.pt_index);
                x.ack(a.md_handle, a.ack_req.into());
                (a.md_handle, calls::PtlPut::WORDS)
            }
            Op::PtlGet | Op::PtlTriggeredGet => {
                let a = calls::PtlGet::read(args);
                let local = (("md_handle", a.md_handle), ("local_offset", a.local_offset));
                x.transfer(local.0, local.1, a.length, a.target_id, a.pt_index);
                (a.md_handle, calls::PtlGet::WORDS)
            }
            Op::PtlAtomic | Op::PtlTriggeredAtomic => {
                let a = calls::PtlAtomic::read(args);
                let local = (("md_handle", a.md_handle), ("local_offset", a.local_offset));
                x.transfer(local.0, local.1, a.length, a.target_id, a.pt_index);
                x.ack(a.md_handle, a.ack_req.into());
                x.atomic(a.md_handle, a.length, (a.operation.into(), a.datatype.into()), false, false);
                (a.md_handle, calls::PtlAtomic::WORDS)
            }
            Op::PtlFetchAtomic | Op::PtlTriggeredFetchAtomic => {
                let a = calls::PtlFetchAtomic::read(args);
                let (get, put) = ((a.get_md_handle, a.local_get_offset), (a.put_md_handle, a.local_put_offset));
                fetch_reason(x, get, put, a.length, (a.target_id, a.pt_index));
                x.atomic(a.get_md_handle, a.length, (a.operation.into(), a.datatype.into()), true, false);
                (a.get_md_handle, calls::PtlFetchAtomic::WORDS)
            }
            _ => {
                let a = calls::PtlSwap::read(args);
                let (get, put) = ((a.get_md_handle, a.local_get_offset), (a.put_md_handle, a.local_put_offset));
                fetch_reason(x, get, put, a.length, (a.target_id, a.pt_index));
                x.atomic(a.get_md_handle, a.length, (a.operation.into(), a.datatype.into()), true, true);
                self.readable(x, rank, "operand", a.operand, 1);
                (a.get_md_handle, calls::PtlSwap::WORDS)
            }
        };
        if call.op.properties().triggered {
            x.trigger(Trigger::read(args, words).ct, interface_of(md));
        }
    }

    /// Examines the entry of an append (`to_list`) or a search.
    fn entry(&mut self, x: &mut Examination<'_>, call: &Call, to_list: bool) {
        let (new, a) = (self.new_entry(call), calls::PtlMEAppend::read(&call.args));
        let list = to_list.then_some(a.ptl_list.into());
        let (mut me, name) = (new.me, if new.matching { "me->start" } else { "le->start" });
        if call.op == Op::PtlMEAppendHandlers {
            me.le.options &= !ptl::ME_HANDLER_IOVEC;
        }
        x.entry(a.ni_handle, new.pt_index, &me, new.matching, list);
        if me.le.options & ptl::me::IOVEC != 0 {
            self.elements(x, call.caller.rank as usize, name, me.le.start, me.le.length);
        }
    }

    /// Examines the objects of a poll, or the single one passed with the call.
    fn polled_objects(
        &mut self,
        x: &mut Examination<'_>,
        call: &Call,
        (argument, object): (&str, Object),
        (address, count): (u64, u32),
        polled: Option<Data<Polled>>,
    ) {
        let Caller { rank, .. } = call.caller;
        let (rank, size) = (rank as usize, std::mem::size_of::<Handle>() as u64);
        x.refuse_if(!(1..=MOST_POLLED).contains(&count), "size", || format!("{count} is not from 1 to {MOST_POLLED}"));
        if let Some(polled) = polled {
            let polled = self.job.structure(call.caller, polled);
            return x.object(&format!("{argument}[0]"), object, polled.handle as Handle);
        }
        if !x.is_right() {
            return;
        }
        self.readable(x, rank, argument, address, u64::from(count) * size);
        let handles = self.read_array::<Handle>(rank, address, count as usize).unwrap_or_default();
        for (index, handle) in handles.iter().enumerate() {
            x.object(&format!("{argument}[{index}]"), object, *handle);
            x.same_interface(&format!("{argument}[{index}]"), object, handles[0], *handle);
        }
    }

    /// Examines the memory of the elements of a `PTL_IOVEC`.
    fn elements(&mut self, x: &mut Examination<'_>, rank: usize, argument: &str, address: u64, count: u64) {
        self.readable(x, rank, argument, address, count.saturating_mul(16));
    }

    /// Examines memory that a call reads.
    fn readable(&mut self, x: &mut Examination<'_>, rank: usize, argument: &str, address: u64, length: u64) {
        if !x.is_right() || length == 0 {
            return;
        }
        // Only the first and the last byte are checked.
        let mut byte = [0];
        let is_there = |at: u64, byte: &mut [u8; 1], job: &mut ranks::Job| job.read(rank, at, byte).is_ok();
        let last = address.saturating_add(length - 1);
        if !is_there(address, &mut byte, &mut self.job) || !is_there(last, &mut byte, &mut self.job) {
            x.wrong(argument, format!("{length} B at {address:#x} cannot be read"));
        }
    }
}

/// Examines the two descriptors and the target of a fetching operation.
fn fetch_reason(
    x: &mut Examination<'_>,
    get: (Handle, u64),
    put: (Handle, u64),
    length: u64,
    (process, pt_index): (Process, u32),
) {
    x.transfer(("get_md_handle", get.0), ("local_get_offset", get.1), length, process, pt_index);
    x.transfer(("put_md_handle", put.0), ("local_put_offset", put.1), length, process, pt_index);
    x.same_interface("put_md_handle", Object::Md, get.0, put.0);
}
