//! Calls that move data and that describe what is to be done with arriving data.

use abi::mailbox::Op;
use abi::portals::{self as ptl, AtomicOp, CtEvent, Datatype, Handle, ReturnCode};
use nic::{AtomicSpec, MAX_OPERAND, Target, TriggeredOp};

use super::event::Cluster;
use super::processes::Processes;
use super::step::{Outcome, Words, after, unpack};
use ranks::{Call, Reply};

impl Processes {
    /// Moves data, now or when a counter has reached a value.
    pub fn transfer(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        // All calls describe the target in the same way, from the word `first` on. A get has no header data.
        let target = |first: usize, hdr_data: bool| Target {
            process: unpack(a.word(first)),
            pt_index: a.u32(first + 1),
            match_bits: a.word(first + 2),
            remote_offset: a.word(first + 3),
            user_ptr: a.word(first + 4),
            hdr_data: if hdr_data { a.word(first + 5) } else { 0 },
        };
        let spec = |first: usize| -> Result<AtomicSpec, ReturnCode> {
            Ok(AtomicSpec {
                op: AtomicOp::from_raw(a.word(first)).ok_or(ReturnCode::ArgInvalid)?,
                datatype: Datatype::from_raw(a.word(first + 1)).ok_or(ReturnCode::ArgInvalid)?,
            })
        };
        let (get, put) = ((a.u32(0), a.word(1)), (a.u32(2), a.word(3)));
        let (transfer, words) = match call.op {
            Op::PtlPut | Op::PtlTriggeredPut => {
                (cluster.card(rank).put(get.0, get.1, a.word(2), a.word(3), target(4, true))?, 10)
            }
            Op::PtlGet | Op::PtlTriggeredGet => (cluster.card(rank).get(get.0, get.1, a.word(2), target(3, false))?, 8),
            Op::PtlAtomic | Op::PtlTriggeredAtomic => {
                (cluster.card(rank).atomic(get.0, get.1, a.word(2), a.word(3), target(4, true), spec(10)?)?, 12)
            }
            Op::PtlFetchAtomic | Op::PtlTriggeredFetchAtomic => {
                (cluster.card(rank).fetch_atomic(get, put, a.word(4), target(5, true), spec(11)?, None)?, 13)
            }
            _ => {
                let spec = spec(12)?;
                let operand = self.operand(rank, a.word(11), spec)?;
                (cluster.card(rank).fetch_atomic(get, put, a.word(4), target(5, true), spec, Some(operand))?, 14)
            }
        };
        if matches!(call.op, Op::PtlPut | Op::PtlGet | Op::PtlAtomic | Op::PtlFetchAtomic | Op::PtlSwap) {
            let overhead = cluster.charge_post(rank);
            let start = cluster.now() + overhead;
            self.act(cluster, rank, |card, ports| card.start(transfer, start, ports));
            return after(overhead, Reply::new(ReturnCode::Ok));
        }
        let (interface, ct, threshold) = (transfer.interface, a.u32(words), a.word(words + 1));
        self.trigger(cluster, rank, interface, ct, threshold, TriggeredOp::Transfer(transfer))
    }

    /// Reads the operand of a conditional swap, which is one item. A plain swap needs none.
    fn operand(&mut self, rank: usize, address: u64, spec: AtomicSpec) -> Result<[u8; MAX_OPERAND], ReturnCode> {
        let mut operand = [0; MAX_OPERAND];
        if spec.is_conditional() {
            let size = nic::item_size(spec.datatype);
            self.job.read(rank, address, &mut operand[..size]).map_err(|_| ReturnCode::ArgInvalid)?;
        }
        Ok(operand)
    }

    pub fn trigger(
        &mut self,
        cluster: &mut Cluster,
        rank: usize,
        interface: u8,
        ct: Handle,
        threshold: u64,
        op: TriggeredOp,
    ) -> Outcome {
        self.act(cluster, rank, |card, ports| card.trigger(interface, ct, threshold, op, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }

    /// Appends or unlinks entries when a counter has reached a value (an extension of the reference
    /// implementation).
    pub fn triggered_entry(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        if call.op == Op::PtlTriggeredMEUnlink {
            let interface = cluster.card(rank).entry_interface(a.u32(0))?;
            return self.trigger(cluster, rank, interface, a.u32(1), a.word(2), TriggeredOp::Unlink(a.u32(0)));
        }
        let (new, trigger) = (self.new_entry(call, a.word(3)), (a.u32(4), a.word(5)));
        let handle = self
            .act(cluster, rank, |card, ports| card.append_triggered(a.u32(0), new, a.word(2), None, trigger, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::value(u64::from(handle)))
    }

    pub fn triggered_counter(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let amount: CtEvent = self.job.data(call.caller);
        let (ct, trigger, threshold) = (a.u32(0), a.u32(1), a.word(2));
        let interface = cluster.card(rank).ct_interface(ct)?;
        let op = match call.op {
            Op::PtlTriggeredCTSet => TriggeredOp::CtSet(ct, amount),
            _ => {
                nic::api::check_increment(amount)?;
                TriggeredOp::CtInc(ct, amount)
            }
        };
        self.trigger(cluster, rank, interface, trigger, threshold, op)
    }

    pub fn append(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let mut new = self.new_entry(call, a.word(3));
        let ni = a.u32(0);
        let mut handlers = None;
        if call.op == Op::PtlMEAppendHandlers {
            let me = new.me;
            handlers = match self.act(cluster, rank, |card, ports| card.handlers(ni, &me, ports)) {
                Ok(handlers) => handlers,
                Err(code) => {
                    let reason = self.reason(cluster, call);
                    let has_program = cluster.card(rank).has_program();
                    let why = match reason {
                        Some(reason) if has_program => format!("PtlMEAppend: {reason}"),
                        _ => handlers_refused("PtlMEAppend", code, has_program),
                    };
                    self.warn(cluster, rank, &why);
                    return Err(code);
                }
            };
            new.me.le.options &= !ptl::ME_HANDLER_IOVEC;
        }
        let handle = self.act(cluster, rank, |card, ports| card.append(ni, new, a.word(2), handlers, ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::value(u64::from(handle)))
    }

    pub fn search(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, Words(&call.args));
        let new = self.new_entry(call, a.word(3));
        self.act(cluster, rank, |card, ports| card.search(a.u32(0), new, a.word(2), ports))?;
        after(cluster.charge(rank, cluster.costs().describe()), Reply::new(ReturnCode::Ok))
    }
}

/// Describes, for the user, why a call could not install handlers.
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
