//! Reasons of refused calls: [`Examination`] checks their arguments again, in the order of the header and by its names.

use abi::mailbox::Op;
use abi::portals::{self as ptl, Handle, Me, Process, StatusRegister};
use nic::{Examination, Object, Reason, interface_of};

use super::event::Cluster;
use super::processes::Processes;
use super::step::{Words, unpack};
use ranks::{Call, Caller};

/// The most objects of a poll.
const MOST_POLLED: u64 = 1 << 20;

/// The reason why a call of a rank whose card is dead was refused.
pub fn of_dead_card() -> Reason {
    Reason { argument: String::new(), why: "the rank's card is dead (--kill-card)".into() }
}

impl Processes {
    /// Returns the reason why a call was refused; the objects must be as they were then.
    pub fn reason(&mut self, cluster: &mut Cluster, call: &Call) -> Option<Reason> {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let (switches, most_mapped) = (cluster.switches().len(), self.ranks.len() as u64 * 64);
        let mut exam = Examination::of(cluster.card(rank));
        let x = &mut exam;
        match call.op {
            Op::PtlNIInit => x.ni_init(a.u32(0), a.u32(1), a.u32(2)),
            Op::PtlNIStatus => {
                x.ni("ni_handle", a.u32(0));
                x.refuse_if(StatusRegister::from_raw(a.word(1)).is_none(), "status_register", || {
                    format!("{} is no ptl_sr_index_t", a.word(1))
                });
            }
            Op::PtlNIHandle => x.any("handle", a.u32(0)),
            Op::PtlSetMap => {
                let size = a.word(1);
                let mapping = (size <= most_mapped).then(|| self.read_array::<Process>(rank, a.word(2), size as usize));
                x.set_map(a.u32(0), size, most_mapped, mapping.and_then(Result::ok).as_deref());
            }
            Op::PtlGetMap => {
                x.logical(a.u32(0));
                x.mapped("ni_handle", a.u32(0));
                x.wrong("mapping", format!("the memory at {:#x} cannot be written", a.word(2)));
            }
            Op::PtlGetId => x.mapped("ni_handle", a.u32(0)),
            Op::PtlPTAlloc => x.pt_alloc(a.u32(0), a.u32(1), a.u32(2), a.u32(3)),
            Op::PtlPTFree => x.pt_free(a.u32(0), a.u32(1)),
            Op::PtlPTEnable | Op::PtlPTDisable => {
                x.ni("ni_handle", a.u32(0));
                x.portal(a.u32(0), "pt_index", a.u32(1));
            }
            Op::PtlMDBind => {
                let md: ptl::Md = self.job.data(call.caller);
                x.md_bind(a.u32(0), md);
                if md.options & ptl::md::IOVEC != 0 {
                    self.elements(x, rank, "md->start", md.start, md.length);
                }
            }
            Op::PtlMDRelease => x.object("md_handle", Object::Md, a.u32(0)),
            Op::PtlLEAppend | Op::PtlMEAppend | Op::PtlTriggeredMEAppend => {
                self.entry(x, call, Some(a.word(2)));
                if call.op == Op::PtlTriggeredMEAppend {
                    x.trigger(a.u32(4), interface_of(a.u32(0)));
                }
            }
            Op::PtlMEAppendHandlers => {
                let me: Me = self.job.data(call.caller);
                if me.header_handler | me.payload_handler | me.completion_handler != 0 {
                    x.handlers(a.u32(0), &me);
                    let length = if me.hpu_initial_state == 0 { 0 } else { me.hpu_initial_state_length };
                    self.readable(x, rank, "me->hpu_initial_state", me.hpu_initial_state, length);
                }
                self.entry(x, call, Some(a.word(2)));
            }
            Op::PtlLESearch | Op::PtlMESearch => {
                x.search(a.word(2));
                self.entry(x, call, None);
            }
            Op::PtlLEUnlink => x.unlink("le_handle", a.u32(0)),
            Op::PtlMEUnlink => x.unlink("me_handle", a.u32(0)),
            Op::PtlTriggeredMEUnlink => {
                x.object("me_handle", Object::Entry, a.u32(0));
                x.trigger(a.u32(1), interface_of(a.u32(0)));
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
            | Op::PtlTriggeredSwap => self.transfer_reason(x, call),
            Op::PtlEQAlloc => x.eq_alloc(a.u32(0), a.word(1)),
            Op::PtlCTAlloc => x.ct_alloc(a.u32(0)),
            Op::PtlEQFree | Op::PtlEQGet | Op::PtlEQWait => x.object("eq_handle", Object::Eq, a.u32(0)),
            Op::PtlCTFree | Op::PtlCTCancelTriggered | Op::PtlCTGet | Op::PtlCTWait | Op::PtlCTSet => {
                x.object("ct_handle", Object::Ct, a.u32(0));
            }
            Op::PtlCTInc => {
                x.object("ct_handle", Object::Ct, a.u32(0));
                x.increment(self.job.data(call.caller));
            }
            Op::PtlTriggeredCTInc | Op::PtlTriggeredCTSet => {
                x.object("ct_handle", Object::Ct, a.u32(0));
                if call.op == Op::PtlTriggeredCTInc {
                    x.increment(self.job.data(call.caller));
                }
                x.trigger(a.u32(1), interface_of(a.u32(0)));
            }
            Op::SpinEqTake => {
                x.object("eq", Object::Eq, a.u32(0));
                x.refuse_if(a.word(1) == 0, "events", || "is NULL".to_owned());
                x.refuse_if(a.u32(2) == 0, "max", || "is 0".to_owned());
                x.wrong("events", format!("the memory at {:#x} cannot be written", a.word(1)));
            }
            Op::PtlEQPoll => {
                self.polled_objects(x, call, ("eq_handles", Object::Eq), (a.word(0), a.word(1)), a.word(3))
            }
            Op::PtlCTPoll => {
                self.polled_objects(x, call, ("ct_handles", Object::Ct), (a.word(0), a.word(2)), a.word(4));
                self.readable(x, rank, "tests", a.word(1), a.word(2).saturating_mul(8));
            }
            Op::PtlHPUAllocMem => x.hpu_alloc("ni", a.u32(1), a.word(0)),
            Op::PtlHPUFreeMem => x.hpu_free(a.u32(0)),
            Op::SpinSwitchAlloc | Op::SpinSwitchAttach => {
                x.refuse_if(switches == 0, "which", || {
                    "no switch of this network has handlers: see network.switch.handlers".to_owned()
                });
                x.refuse_if(a.u32(0) as usize >= switches, "which", || {
                    format!("switch {} of {switches}", a.u32(0) as i32)
                });
                x.mapped("ni", a.u32(1));
            }
            // All others have an interface as their only argument, or are never refused.
            Op::PtlNIFini | Op::PtlGetUid | Op::PtlGetPhysId | Op::PtlStartBundle | Op::PtlEndBundle => {
                x.ni("ni_handle", a.u32(0));
            }
            _ => {}
        }
        exam.found()
    }

    fn transfer_reason(&mut self, x: &mut Examination<'_>, call: &Call) {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let (md, put) = (("md_handle", a.u32(0)), ("put_md_handle", a.u32(2)));
        let (offset, put_offset) = (("local_offset", a.word(1)), ("local_put_offset", a.word(3)));
        // The words of the length, of the target, of the operation, and of the trigger.
        let (length, target, operation, trigger) = match call.op {
            Op::PtlPut | Op::PtlTriggeredPut => (2, 4, None, 10),
            Op::PtlGet | Op::PtlTriggeredGet => (2, 3, None, 8),
            Op::PtlAtomic | Op::PtlTriggeredAtomic => (2, 4, Some(10), 12),
            Op::PtlFetchAtomic | Op::PtlTriggeredFetchAtomic => (4, 5, Some(11), 13),
            _ => (4, 5, Some(12), 14),
        };
        let (process, pt_index, fetches) = (unpack(a.word(target)), a.u32(target + 1), length == 4);
        let swaps = matches!(call.op, Op::PtlSwap | Op::PtlTriggeredSwap);
        if fetches {
            x.transfer(("get_md_handle", md.1), ("local_get_offset", offset.1), a.word(length), process, pt_index);
            x.transfer(put, put_offset, a.word(length), process, pt_index);
            x.same_interface("put_md_handle", Object::Md, md.1, put.1);
        } else {
            x.transfer(md, offset, a.word(length), process, pt_index);
        }
        if target == 4 {
            x.ack(md.1, a.word(3));
        }
        if let Some(at) = operation {
            x.atomic(md.1, a.word(length), (a.word(at), a.word(at + 1)), fetches, swaps);
        }
        if swaps {
            self.readable(x, rank, "operand", a.word(11), 1);
        }
        let is_triggered =
            !matches!(call.op, Op::PtlPut | Op::PtlGet | Op::PtlAtomic | Op::PtlFetchAtomic | Op::PtlSwap);
        if is_triggered {
            x.trigger(a.u32(trigger), interface_of(md.1));
        }
    }

    /// The entry of an append or a search.
    fn entry(&mut self, x: &mut Examination<'_>, call: &Call, list: Option<u64>) {
        let new = self.new_entry(call, 0);
        let (mut me, name) = (new.me, if new.matching { "me->start" } else { "le->start" });
        if call.op == Op::PtlMEAppendHandlers {
            me.le.options &= !ptl::ME_HANDLER_IOVEC;
        }
        x.entry(call.args[0] as Handle, new.pt_index, &me, new.matching, list);
        if me.le.options & ptl::me::IOVEC != 0 {
            self.elements(x, call.caller.rank as usize, name, me.le.start, me.le.length);
        }
    }

    /// The objects of a poll, unless one came with the call.
    fn polled_objects(
        &mut self,
        x: &mut Examination<'_>,
        call: &Call,
        (argument, object): (&str, Object),
        (address, count): (u64, u64),
        is_there: u64,
    ) {
        let Caller { rank, .. } = call.caller;
        let (rank, size) = (rank as usize, std::mem::size_of::<Handle>() as u64);
        x.refuse_if(!(1..=MOST_POLLED).contains(&count), "size", || format!("{count} is not from 1 to {MOST_POLLED}"));
        if is_there != 0 {
            let polled: abi::mailbox::Polled = self.job.data(call.caller);
            return x.object(&format!("{argument}[0]"), object, polled.handle as Handle);
        }
        if !x.is_right() {
            return;
        }
        self.readable(x, rank, argument, address, count * size);
        let handles = self.read_array::<Handle>(rank, address, count as usize).unwrap_or_default();
        for (index, handle) in handles.iter().enumerate() {
            x.object(&format!("{argument}[{index}]"), object, *handle);
            x.same_interface(&format!("{argument}[{index}]"), object, handles[0], *handle);
        }
    }

    /// Memory of elements of `PTL_IOVEC`.
    fn elements(&mut self, x: &mut Examination<'_>, rank: usize, argument: &str, address: u64, count: u64) {
        self.readable(x, rank, argument, address, count.saturating_mul(16));
    }

    /// Memory that a call reads.
    fn readable(&mut self, x: &mut Examination<'_>, rank: usize, argument: &str, address: u64, length: u64) {
        if !x.is_right() || length == 0 {
            return;
        }
        // Its first and its last byte tell whether it is there.
        let mut byte = [0];
        let is_there = |at: u64, byte: &mut [u8; 1], job: &mut ranks::Job| job.read(rank, at, byte).is_ok();
        let last = address.saturating_add(length - 1);
        if !is_there(address, &mut byte, &mut self.job) || !is_there(last, &mut byte, &mut self.job) {
            x.wrong(argument, format!("{length} B at {address:#x} cannot be read"));
        }
    }
}
