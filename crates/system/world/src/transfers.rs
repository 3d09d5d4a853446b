// SPDX-License-Identifier: Apache-2.0
//! Calls that move data, and calls that describe the treatment of arriving data.

use abi::calls::{self, Op, Trigger};
use abi::portals::{self as ptl, AtomicOp, Datatype, ReturnCode};
use nic::{AtomicSpec, MAX_OPERAND, Target, TriggeredOp};

use super::event::Cluster;
use super::outcome::{Outcome, after};
use super::processes::Processes;
use ranks::{Call, Reply};

/// Builds the target of a transfer from the common arguments; a get has no header data.
macro_rules! target {
    ($arguments:ident, $hdr_data:expr) => {
        Target {
            process: $arguments.target_id,
            pt_index: $arguments.pt_index,
            match_bits: $arguments.match_bits,
            remote_offset: $arguments.remote_offset,
            user_ptr: $arguments.user_ptr,
            hdr_data: $hdr_data,
        }
    };
}

impl Processes {
    /// Moves data, now or when a counter reaches a threshold.
    pub fn transfer(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, args) = (call.caller.rank as usize, &call.args);
        let (transfer, words) = match call.op {
            Op::PtlPut | Op::PtlTriggeredPut => {
                let a = calls::PtlPut::read(args);
                let target = target!(a, a.hdr_data);
                let put = cluster.card(rank).portals_mut().put(
                    a.md_handle,
                    a.local_offset,
                    a.length,
                    a.ack_req.into(),
                    target,
                );
                (put?, calls::PtlPut::WORDS)
            }
            Op::PtlGet | Op::PtlTriggeredGet => {
                let a = calls::PtlGet::read(args);
                let get = cluster.card(rank).portals_mut().get(a.md_handle, a.local_offset, a.length, target!(a, 0));
                (get?, calls::PtlGet::WORDS)
            }
            Op::PtlAtomic | Op::PtlTriggeredAtomic => {
                let a = calls::PtlAtomic::read(args);
                let (target, spec) = (target!(a, a.hdr_data), spec(a.operation, a.datatype)?);
                let ack = a.ack_req.into();
                let atomic =
                    cluster.card(rank).portals_mut().atomic(a.md_handle, a.local_offset, a.length, ack, target, spec);
                (atomic?, calls::PtlAtomic::WORDS)
            }
            Op::PtlFetchAtomic | Op::PtlTriggeredFetchAtomic => {
                let a = calls::PtlFetchAtomic::read(args);
                let (get, put) = ((a.get_md_handle, a.local_get_offset), (a.put_md_handle, a.local_put_offset));
                let (target, spec) = (target!(a, a.hdr_data), spec(a.operation, a.datatype)?);
                let fetch = cluster.card(rank).portals_mut().fetch_atomic(get, put, a.length, target, spec, None);
                (fetch?, calls::PtlFetchAtomic::WORDS)
            }
            _ => {
                let a = calls::PtlSwap::read(args);
                let (get, put) = ((a.get_md_handle, a.local_get_offset), (a.put_md_handle, a.local_put_offset));
                let (target, spec) = (target!(a, a.hdr_data), spec(a.operation, a.datatype)?);
                let operand = self.operand(rank, a.operand, spec)?;
                let swap =
                    cluster.card(rank).portals_mut().fetch_atomic(get, put, a.length, target, spec, Some(operand));
                (swap?, calls::PtlSwap::WORDS)
            }
        };
        if call.op.properties().triggered {
            let (interface, trigger) = (transfer.interface, Trigger::read(args, words));
            return self.trigger(cluster, rank, interface, trigger, TriggeredOp::Transfer(transfer));
        }
        let overhead = cluster.charge_post(rank);
        let start = cluster.now() + overhead;
        self.act(cluster, rank, |card, ports| card.start(transfer, start, ports));
        after(overhead, Reply::new(ReturnCode::Ok))
    }

    /// Reads the operand of a conditional swap, which is one item. A plain swap has none.
    fn operand(&mut self, rank: usize, address: u64, spec: AtomicSpec) -> Result<[u8; MAX_OPERAND], ReturnCode> {
        let mut operand = [0; MAX_OPERAND];
        if spec.is_conditional() {
            let size = nic::item_size(spec.datatype);
            self.job.read(rank, address, &mut operand[..size]).map_err(|_| ReturnCode::ArgInvalid)?;
        }
        Ok(operand)
    }

    /// Appends an operation that a counter triggers.
    fn trigger(
        &mut self,
        cluster: &mut Cluster,
        rank: usize,
        interface: u8,
        Trigger { ct, threshold }: Trigger,
        op: TriggeredOp,
    ) -> Outcome {
        self.act(cluster, rank, |card, ports| card.trigger(interface, ct, threshold, op, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }

    /// Unlinks an entry when a counter reaches a threshold (an extension of the reference implementation).
    pub fn triggered_unlink(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlMEUnlink::read(&call.args));
        let interface = cluster.card(rank).portals_mut().entry_interface(a.me_handle)?;
        let trigger = Trigger::read(&call.args, calls::PtlMEUnlink::WORDS);
        self.trigger(cluster, rank, interface, trigger, TriggeredOp::Unlink(a.me_handle))
    }

    /// Appends an entry when a counter reaches a threshold (an extension of the reference implementation).
    pub fn triggered_append(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlMEAppend::read(&call.args));
        let Trigger { ct, threshold } = Trigger::read(&call.args, calls::PtlMEAppend::WORDS);
        let (new, list) = (self.new_entry(call), a.ptl_list.into());
        let handle = self.act(cluster, rank, |card, ports| {
            card.append_triggered(a.ni_handle, new, list, None, (ct, threshold), ports)
        })?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::output(a.me_handle, handle))
    }

    /// Changes a counter when another one reaches a threshold.
    pub fn triggered_counter(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlCTInc::read(&call.args));
        let amount = self.job.structure(call.caller, a.increment);
        let trigger = Trigger::read(&call.args, calls::PtlCTInc::WORDS);
        let interface = cluster.card(rank).portals_mut().ct_interface(a.ct_handle)?;
        let op = match call.op {
            Op::PtlTriggeredCTSet => TriggeredOp::CtSet(a.ct_handle, amount),
            _ => {
                nic::api::check_increment(amount)?;
                TriggeredOp::CtInc(a.ct_handle, amount)
            }
        };
        self.trigger(cluster, rank, interface, trigger, op)
    }

    /// Appends an entry to a list.
    pub fn append(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlMEAppend::read(&call.args));
        let mut new = self.new_entry(call);
        let ni = a.ni_handle;
        let mut handlers = None;
        if call.op == Op::PtlMEAppendHandlers {
            let me = new.me;
            handlers = match self.act(cluster, rank, |card, ports| card.handlers(ni, &me, ports)) {
                Ok(handlers) => handlers,
                Err(code) => {
                    let reason = self.reason(cluster, call);
                    let has_program = cluster.card(rank).has_program();
                    let why = match reason {
                        Some(reason) if has_program => format!("{}: {reason}", call.op.c_name()),
                        _ => handlers_refused(call.op.c_name(), code, has_program),
                    };
                    self.warn(cluster, rank, &why);
                    return Err(code);
                }
            };
            new.me.le.options &= !ptl::ME_HANDLER_IOVEC;
        }
        let list = a.ptl_list.into();
        let handle = self.act(cluster, rank, |card, ports| card.append(ni, new, list, handlers, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::output(a.me_handle, handle))
    }

    /// Searches the unexpected headers.
    pub fn search(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, calls::PtlMESearch::read(&call.args));
        let (new, search) = (self.new_entry(call), a.ptl_search_op.into());
        self.act(cluster, rank, |card, ports| card.search(a.ni_handle, new, search, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }
}

/// Converts operation and data type of an atomic operation.
fn spec(operation: u8, datatype: u8) -> Result<AtomicSpec, ReturnCode> {
    Ok(AtomicSpec {
        op: AtomicOp::from_raw(operation.into()).ok_or(ReturnCode::ArgInvalid)?,
        datatype: Datatype::from_raw(datatype.into()).ok_or(ReturnCode::ArgInvalid)?,
    })
}

/// Describes to the user why a call could not install handlers.
pub fn handlers_refused(call: &str, code: ReturnCode, program: bool) -> String {
    let why = match (code, program) {
        (ReturnCode::Fail, _) => "handlers on a card without HPUs (--nic spin has)",
        (_, false) => {
            "handlers, but the program has no device code for this card: spincc has not linked it, or has found no __handler function"
        }
        (_, true) => {
            "a handler is not of this program, or its HPU memory, initial state or user header is out of range"
        }
    };
    format!("{call}: {why}")
}
