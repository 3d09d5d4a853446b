//! Calls whose answer is known before they are made, so that the thread need not wait for it.
//!
//! The library knows no rules of Portals. It remembers what the simulator has accepted: a put, a get or an atomic operation through
//! the same memory descriptor, in the same way, to no higher target, offset and index is accepted again, until the descriptor, its
//! interface or the map of ranks changes. (The checks are those of Portals 4.3 §3.13 on arguments: none looks at what the card
//! does at that moment.)

use abi::mailbox::{Op, PAYLOAD};
use abi::portals::{Handle, Md, md};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a posted call has in common with the accepted ones: it must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    op: u32,
    md: Handle,
    /// The request for an acknowledgement, the operation and the type of its items; 0 where the call has none.
    rest: [u64; 3],
    pid: u32,
}

/// What must not be more than it was in an accepted call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    length: u64,
    end: u64,
    nid: u32,
    pt_index: u32,
}

impl Extent {
    fn is_within(self, other: Extent) -> bool {
        self.length <= other.length && self.end <= other.end && self.nid <= other.nid && self.pt_index <= other.pt_index
    }

    fn cover(&mut self, other: Extent) {
        self.length = self.length.max(other.length);
        self.end = self.end.max(other.end);
        self.nid = self.nid.max(other.nid);
        self.pt_index = self.pt_index.max(other.pt_index);
    }
}

#[derive(Debug, Default)]
struct Known {
    /// The bound memory descriptors, by handle.
    bound: BTreeMap<Handle, Md>,
    accepted: BTreeMap<Way, Extent>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { bound: BTreeMap::new(), accepted: BTreeMap::new() });

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of a call that must be copied when it is posted: address and length.
pub type Copied = Option<(u64, usize)>;

/// Returns, if the call is known to be accepted, what must be copied when it is posted.
pub fn accepts(op: Op, args: &[u64]) -> Option<Copied> {
    let (way, extent) = describe(op, args)?;
    let known = known();
    let descriptor = known.bound.get(&way.md)?;
    if !extent.is_within(*known.accepted.get(&way)?) {
        return None;
    }
    // Longer data are never volatile: the simulator asserts that.
    let is_volatile = op != Op::PtlGet && descriptor.options & md::VOLATILE != 0 && extent.length <= PAYLOAD as u64;
    if !is_volatile {
        return Some(None);
    }
    // Data that lie in several pieces are not copied.
    let is_whole = descriptor.options & md::IOVEC == 0;
    let start = descriptor.start.wrapping_add(extent.end - extent.length);
    is_whole.then_some(Some((start, extent.length as usize)))
}

/// Whether the answer to a call says something about later ones.
pub fn is_of_interest(op: Op) -> bool {
    matches!(op, Op::PtlPut | Op::PtlGet | Op::PtlAtomic | Op::PtlMDRelease | Op::PtlNIFini | Op::PtlSetMap)
}

/// Takes note of a descriptor that was bound.
pub fn bind(handle: Handle, descriptor: Md) {
    known().bound.insert(handle, descriptor);
}

/// Takes note of a call that was accepted.
pub fn learn(op: Op, args: &[u64]) {
    if let Some((way, extent)) = describe(op, args) {
        known().accepted.entry(way).or_default().cover(extent);
        return;
    }
    match op {
        Op::PtlMDRelease => {
            let (mut known, md) = (known(), args[0] as Handle);
            known.bound.remove(&md);
            known.accepted.retain(|way, _| way.md != md);
        }
        Op::PtlNIFini | Op::SpinDetach => *known() = Known::default(),
        Op::PtlSetMap => known().accepted.clear(),
        _ => {}
    }
}

/// Returns how a call is described here, if it can be posted. Its arguments are in the order of the C prototype.
fn describe(op: Op, args: &[u64]) -> Option<(Way, Extent)> {
    let (target, rest) = match op {
        Op::PtlPut => (4, [args[3], 0, 0]),
        Op::PtlAtomic => (4, [args[3], args[10], args[11]]),
        Op::PtlGet => (3, [0; 3]),
        _ => return None,
    };
    let (offset, length) = (args[1], args[2]);
    let way = Way { op: op as u32, md: args[0] as Handle, rest, pid: (args[target] >> 32) as u32 };
    let end = offset.checked_add(length)?;
    Some((way, Extent { length, end, nid: args[target] as u32, pt_index: args[target + 1] as u32 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD: u64 = 7;

    fn put(md: u64, offset: u64, length: u64, ack: u64, target: u64, index: u64) -> [u64; 10] {
        [md, offset, length, ack, target, index, 1, 2, 3, 4]
    }

    /// One test, as what is known is the process's.
    #[test]
    fn what_was_accepted_is_accepted_until_something_changes() {
        let accepts = |args: [u64; 10]| accepts(Op::PtlPut, &args);
        let first = put(MD, 100, 20, 1, 5, 3);
        let plain = Md { start: 1000, length: 200, ..Md::default() };
        learn(Op::PtlPut, &first);
        assert_eq!(accepts(first), None, "nothing is known about the descriptor");
        bind(MD as Handle, plain);
        assert_eq!(accepts(first), Some(None));
        assert_eq!(accepts(put(MD, 0, 20, 1, 0, 0)), Some(None));
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
        assert_eq!(super::accepts(Op::PtlGet, &first), None);
        assert_eq!(super::accepts(Op::PtlCTWait, &first), None);
        // Extents grow with what is accepted.
        learn(Op::PtlPut, &put(MD, 0, 200, 1, 9, 0));
        assert_eq!(accepts(put(MD, 50, 150, 1, 8, 3)), Some(None));

        bind(MD as Handle, Md { options: md::VOLATILE, ..plain });
        assert_eq!(accepts(put(MD, 30, 20, 1, 5, 3)), Some(Some((1030, 20))));
        assert_eq!(accepts(put(MD, 30, 100, 1, 5, 3)), Some(None), "too long to be volatile");
        bind(MD as Handle, Md { options: md::VOLATILE | md::IOVEC, ..plain });
        assert_eq!(accepts(put(MD, 30, 20, 1, 5, 3)), None);

        bind(MD as Handle, plain);
        learn(Op::PtlSetMap, &[]);
        assert_eq!(accepts(first), None);
        learn(Op::PtlPut, &first);
        learn(Op::PtlMDRelease, &[MD + 1]);
        assert_eq!(accepts(first), Some(None));
        learn(Op::PtlMDRelease, &[MD]);
        bind(MD as Handle, plain);
        assert_eq!(accepts(first), None);
        learn(Op::PtlPut, &first);
        learn(Op::PtlNIFini, &[0]);
        learn(Op::PtlPut, &first);
        assert_eq!(accepts(first), None);
    }
}
