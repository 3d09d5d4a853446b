// SPDX-License-Identifier: Apache-2.0
//! Prediction of calls that will succeed, so that the thread need not wait for the result.
//!
//! The library implements no rules of Portals. It remembers the calls that the simulator accepted: another put, get or
//! atomic operation through the same memory descriptor, with the same options, and with target, offset and index no
//! higher, is accepted again, until the descriptor, its interface or the map of ranks changes. (The argument checks are
//! those of Portals 4.3 §3.13: none depends on the card's state at that moment.) The same holds for such an operation
//! triggered by the same counter, and for an increment of the same counter, immediate or triggered, if it has room.
//!
//! A thread that defers its calls also posts calls without a result, and appends of entries like those accepted before.
//! It guarantees room for them.

use crate::accepted::{Extent, Known, Way};
use crate::library_state::process;
use abi::calls::{Op, PtlAtomic, PtlCTInc, PtlGet, PtlMEAppend, PtlPut, Trigger};
use abi::mailbox::PAYLOAD;
use abi::portals::{CtEvent, Handle, ME_HANDLER_IOVEC, Md, Me, md, me};
use std::mem::offset_of;
use std::sync::{MutexGuard, PoisonError};

fn known() -> MutexGuard<'static, Known> {
    process().accepted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Data to copy when a call is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// Nothing.
    Nothing,
    /// Memory, as address and length.
    Memory(u64, usize),
    /// Structure argument.
    Structure,
}

/// Size of the part of [`Me`] that describes an entry without handlers.
pub const PLAIN_ME: usize = offset_of!(Me, header_handler);
const _: () = assert!(PLAIN_ME <= PAYLOAD);

/// Returns the data to copy when the call is posted, or `None` if its acceptance is not known. `amount` is the
/// structure argument of a call that changes a counter.
pub fn accepts(op: Op, args: &[u64], amount: impl FnOnce() -> CtEvent) -> Option<Copied> {
    let (way, extent) = describe(op, args, amount)?;
    let known = known();
    if !extent.is_within(*known.accepted.get(&way)?) {
        return None;
    }
    if op.properties().changes_counter {
        return Some(Copied::Structure);
    }
    let descriptor = known.bound.get(&way.object)?;
    // Longer data are never volatile; the simulator asserts that.
    let reads = !matches!(op, Op::PtlGet | Op::PtlTriggeredGet);
    let is_volatile = reads && descriptor.options & md::VOLATILE != 0 && extent.length <= PAYLOAD as u64;
    if !is_volatile {
        return Some(Copied::Nothing);
    }
    // Scattered data, and data that a triggered operation reads later, are not copied.
    let is_whole = descriptor.options & md::IOVEC == 0 && way.trigger.is_none();
    let start = descriptor.start.wrapping_add(extent.end - extent.length);
    is_whole.then_some(Copied::Memory(start, extent.length as usize))
}

/// Like [`accepts`], for a thread that defers its calls. `me` is the structure argument of a call that appends an
/// entry.
pub fn defers(op: Op, args: &[u64], me: impl FnOnce() -> Me, amount: impl FnOnce() -> CtEvent) -> Option<Copied> {
    if !op.properties().deferred {
        return accepts(op, args, amount);
    }
    match op {
        Op::PtlMEAppend | Op::PtlMEAppendHandlers => {
            let way = entry(args, &me())?;
            known().appended.contains(&way).then_some(Copied::Structure)
        }
        _ => Some(Copied::Nothing),
    }
}

/// Records an appended entry.
pub fn append(args: &[u64], me: &Me) {
    if let Some(way) = entry(args, me) {
        known().appended.insert(way);
    }
}

/// Returns the properties that an entry must share with an accepted one: interface, index, list, counter and options.
/// `None` for an entry with handlers or scattered memory, which the simulator must read.
fn entry(args: &[u64], me: &Me) -> Option<[u64; 5]> {
    let handlers = me.header_handler | me.payload_handler | me.completion_handler;
    let in_pieces = me.le.options & (me::IOVEC | ME_HANDLER_IOVEC) != 0;
    let append = PtlMEAppend::read(args);
    let place = [append.ni_handle.into(), append.pt_index.into(), append.ptl_list.into()];
    (handlers == 0 && !in_pieces).then_some([
        place[0],
        place[1],
        place[2],
        me.le.ct_handle.into(),
        me.le.options.into(),
    ])
}

/// Records a bound descriptor.
pub fn bind(handle: Handle, descriptor: Md) {
    known().bound.insert(handle, descriptor);
}

/// Takes note of a call that was accepted. `amount` is as for [`accepts`].
pub fn learn(op: Op, args: &[u64], amount: CtEvent) {
    if let Some((way, extent)) = describe(op, args, || amount) {
        known().accepted.entry(way).or_default().cover(extent);
        return;
    }
    match op {
        Op::PtlMDRelease => {
            let (mut known, md) = (known(), args[0] as Handle);
            known.bound.remove(&md);
            known.accepted.retain(|way, _| way.object != md);
        }
        Op::PtlNIFini | Op::SpinDetach => *known() = Known::default(),
        Op::PtlSetMap => known().accepted.clear(),
        Op::PtlPTFree => known().appended.clear(),
        Op::PtlCTFree => {
            let (mut known, ct) = (known(), args[0] as Handle);
            known.appended.clear();
            known.accepted.retain(|way, _| way.object != ct && way.trigger != Some(ct));
        }
        _ => {}
    }
}

/// Returns the properties of a call, if it can be posted. `args` are in the order of the C prototype.
fn describe(op: Op, args: &[u64], amount: impl FnOnce() -> CtEvent) -> Option<(Way, Extent)> {
    let properties = op.properties();
    if !properties.posted {
        return None;
    }
    let object = args[0] as Handle;
    let trigger = |words| properties.triggered.then(|| Trigger::read(args, words).ct);
    let way = |trigger, rest, pid| Way { op: op as u32, object, trigger, rest, pid };
    if properties.changes_counter {
        let CtEvent { success, failure } = amount();
        let rest = [u64::from(success != 0), u64::from(failure != 0), 0];
        return Some((way(trigger(PtlCTInc::WORDS), rest, 0), Extent::default()));
    }
    let (offset, length, target, pt_index, rest, words) = match op {
        Op::PtlGet | Op::PtlTriggeredGet => {
            let get = PtlGet::read(args);
            (get.local_offset, get.length, get.target_id, get.pt_index, [0; 3], PtlGet::WORDS)
        }
        Op::PtlPut | Op::PtlTriggeredPut => {
            let put = PtlPut::read(args);
            let rest = [put.ack_req.into(), 0, 0];
            (put.local_offset, put.length, put.target_id, put.pt_index, rest, PtlPut::WORDS)
        }
        _ => {
            let atomic = PtlAtomic::read(args);
            let rest = [atomic.ack_req, atomic.operation, atomic.datatype].map(u64::from);
            (atomic.local_offset, atomic.length, atomic.target_id, atomic.pt_index, rest, PtlAtomic::WORDS)
        }
    };
    let end = offset.checked_add(length)?;
    Some((way(trigger(words), rest, target.pid), Extent { length, end, nid: target.nid, pt_index }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::portals::Le;

    const MD: u64 = 7;

    fn put(md: u64, offset: u64, length: u64, ack: u64, target: u64, index: u64) -> [u64; 10] {
        [md, offset, length, ack, target, index, 1, 2, 3, 4]
    }

    #[test]
    fn entries_are_alike_whatever_they_match() {
        let le = Le { start: 1000, length: 8, ct_handle: 5, options: me::OP_PUT, ..Le::default() };
        let me = Me { le, match_bits: 7, hpu_memory: 9, ..Me::default() };
        let way = entry(&[1, 2, 0, 77], &me);
        assert_eq!(way, Some([1, 2, 0, 5, me::OP_PUT.into()]));
        assert_eq!(entry(&[1, 2, 0, 78], &Me { match_bits: 8, ignore_bits: 1, le: Le { start: 1, ..le }, ..me }), way);
        for args in [[2, 2, 0, 77], [1, 3, 0, 77], [1, 2, 1, 77]] {
            assert_ne!(entry(&args, &me), way);
        }
        for other in [Le { ct_handle: 6, ..le }, Le { options: me::OP_GET, ..le }] {
            assert_ne!(entry(&[1, 2, 0, 77], &Me { le: other, ..me }), way);
        }
        let in_pieces = Le { options: me::OP_PUT | me::IOVEC, ..le };
        let with_handler = [
            Me { header_handler: 1, ..me },
            Me { payload_handler: 1, ..me },
            Me { completion_handler: 1, ..me },
            Me { le: in_pieces, ..me },
        ];
        assert!(with_handler.iter().all(|me| entry(&[1, 2, 0, 77], me).is_none()));
    }

    /// A single test, as the recorded calls belong to the whole process.
    #[test]
    fn what_was_accepted_is_accepted_until_something_changes() {
        let none = CtEvent::default;
        let learn = |op, args: &[u64]| super::learn(op, args, none());
        let accepts = |args: [u64; 10]| accepts(Op::PtlPut, &args, none);
        let first = put(MD, 100, 20, 1, 5, 3);
        let plain = Md { start: 1000, length: 200, ..Md::default() };
        learn(Op::PtlPut, &first);
        assert_eq!(accepts(first), None, "nothing is known about the descriptor");
        bind(MD as Handle, plain);
        assert_eq!(accepts(first), Some(Copied::Nothing));
        assert_eq!(accepts(put(MD, 0, 20, 1, 0, 0)), Some(Copied::Nothing));
        for other in [
            put(MD + 1, 100, 20, 1, 5, 3),
            put(MD, 101, 20, 1, 5, 3),
            put(MD, 0, 21, 1, 5, 3),
            put(MD, 100, 20, 2, 5, 3),
            put(MD, 100, 20, 1, 6, 3),
            put(MD, 100, 20, 1, 1 << 32, 3),
            put(MD, 100, 20, 1, 5, 4),
            put(MD, u64::MAX, 20, 1, 5, 3),
        ] {
            assert_eq!(accepts(other), None, "{other:?}");
        }
        assert_eq!(super::accepts(Op::PtlGet, &first, none), None);
        assert_eq!(super::accepts(Op::PtlCTWait, &first, none), None);
        // Extents grow with the accepted calls.
        assert_eq!(super::defers(Op::PtlPut, &first, Me::default, none), Some(Copied::Nothing));
        learn(Op::PtlPut, &put(MD, 0, 200, 1, 9, 0));
        assert_eq!(accepts(put(MD, 50, 150, 1, 8, 3)), Some(Copied::Nothing));

        bind(MD as Handle, Md { options: md::VOLATILE, ..plain });
        assert_eq!(accepts(put(MD, 30, 20, 1, 5, 3)), Some(Copied::Memory(1030, 20)));
        assert_eq!(accepts(put(MD, 30, 100, 1, 5, 3)), Some(Copied::Nothing), "too long to be volatile");
        bind(MD as Handle, Md { options: md::VOLATILE | md::IOVEC, ..plain });
        assert_eq!(accepts(put(MD, 30, 20, 1, 5, 3)), None);

        bind(MD as Handle, plain);
        learn(Op::PtlSetMap, &[]);
        assert_eq!(accepts(first), None);
        learn(Op::PtlPut, &first);
        learn(Op::PtlMDRelease, &[MD + 1]);
        assert_eq!(accepts(first), Some(Copied::Nothing));
        learn(Op::PtlMDRelease, &[MD]);
        bind(MD as Handle, plain);
        assert_eq!(accepts(first), None);
        learn(Op::PtlPut, &first);
        let deferred = |op| super::defers(op, &[1, 2, 0, 77], Me::default, none);
        assert_eq!(deferred(Op::PtlMEAppend), None);
        append(&[1, 2, 0, 3], &Me::default());
        assert_eq!(deferred(Op::PtlMEAppend), Some(Copied::Structure));
        assert_eq!(deferred(Op::PtlMEAppendHandlers), Some(Copied::Structure));
        assert_eq!(
            super::accepts(Op::PtlMEAppend, &[1, 2, 0, 77], none),
            None,
            "only a thread that defers posts entries"
        );
        learn(Op::PtlPTFree, &[1, 2]);
        assert_eq!(deferred(Op::PtlMEAppend), None);
        assert_eq!([Op::SpinIdle, Op::SpinHostCopy, Op::SpinHostCompute].map(deferred), [Some(Copied::Nothing); 3]);
        assert_eq!(deferred(Op::PtlEQGet), None);
        learn(Op::PtlNIFini, &[0]);
        learn(Op::PtlPut, &first);
        assert_eq!(accepts(first), None);

        // Triggered operations, and increments of a counter.
        learn(Op::PtlPut, &first);
        let gets = |args: [u64; 10]| super::accepts(Op::PtlTriggeredGet, &args, none);
        let get = [MD, 0, 8, 1, 2, 0, 0, 0, 5, 70];
        learn(Op::PtlTriggeredGet, &get);
        bind(MD as Handle, Md { options: md::VOLATILE, ..plain });
        assert_eq!(gets([MD, 0, 8, 1, 2, 0, 0, 0, 5, 71]), Some(Copied::Nothing));
        assert_eq!(gets([MD, 0, 8, 1, 2, 0, 0, 0, 6, 70]), None, "another counter");
        let put = [MD, 0, 8, 1, 1, 2, 0, 0, 0, 0, 5, 70];
        learn(Op::PtlTriggeredPut, &put);
        assert_eq!(super::accepts(Op::PtlTriggeredPut, &put, none), None, "data are copied when it is triggered");
        bind(MD as Handle, plain);
        assert_eq!(super::accepts(Op::PtlTriggeredPut, &put, none), Some(Copied::Nothing));
        let atomic = |kind| [MD, 0, 8, 1, 1, 2, 0, 0, 0, 0, kind, 3, 5, 70];
        learn(Op::PtlTriggeredAtomic, &atomic(1));
        let adds = |kind| super::accepts(Op::PtlTriggeredAtomic, &atomic(kind), none);
        assert_eq!((adds(1), adds(2)), (Some(Copied::Nothing), None));
        let one = CtEvent { success: 1, failure: 0 };
        let changes = |op, args: &[u64], amount| super::accepts(op, args, || amount);
        super::learn(Op::PtlCTInc, &[5], one);
        super::learn(Op::PtlCTSet, &[5], one);
        super::learn(Op::PtlTriggeredCTInc, &[6, 5, 70], one);
        assert_eq!(changes(Op::PtlCTInc, &[5], CtEvent { success: 9, failure: 0 }), Some(Copied::Structure));
        assert_eq!(changes(Op::PtlCTInc, &[5], CtEvent { success: 1, failure: 1 }), None, "it may not change both");
        assert_eq!((changes(Op::PtlCTInc, &[6], one), changes(Op::PtlCTSet, &[5], one)), (None, None));
        assert_eq!(changes(Op::PtlTriggeredCTInc, &[6, 5, 71], one), Some(Copied::Structure));
        assert_eq!(changes(Op::PtlTriggeredCTInc, &[6, 6, 70], one), None);
        learn(Op::PtlCTFree, &[5]);
        assert_eq!((gets(get), adds(1), changes(Op::PtlCTInc, &[5], one)), (None, None, None));
        assert_eq!(changes(Op::PtlTriggeredCTInc, &[6, 5, 70], one), None);
        assert_eq!(accepts(first), Some(Copied::Nothing), "it needs no counter");
    }
}
