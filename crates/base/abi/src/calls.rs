// SPDX-License-Identifier: Apache-2.0
//! The contract of library calls: one row per operation, from which packing, decoding and predictions derive.
//!
//! A row has the arguments of the C prototype in its order, and the properties of the operation. A new call is one row
//! here and one function in the crate `world`.
//!
//! Scalar arguments take one word each of [`Slot::args`](crate::mailbox::Slot::args); `ptl_process_t` is one word (nid
//! or rank low, pid high). A structure argument ([`In`]) is in `data` and takes no word. An array is passed as its
//! address ([`Address`]) and read from the rank's memory. Output pointers take no word: a scalar result ([`Out`])
//! returns in `out`, a structure result ([`OutData`]) in `data`, with `PTL_OK` and `PTL_EQ_DROPPED` only.

use std::fmt;
use std::marker::PhantomData;

use crate::portals::{CtEvent, Event, Handle, Le, Md, Me, NiLimits, Process};

/// A scalar that takes one word of a call.
pub trait Word: Copy {
    /// Converts to a word.
    fn to_word(self) -> u64;
    /// Converts from a word, truncating to the type.
    fn from_word(word: u64) -> Self;
}

macro_rules! words {
    ($($type:ty),+) => { $(
        impl Word for $type {
            fn to_word(self) -> u64 {
                self as u64
            }

            fn from_word(word: u64) -> $type {
                word as $type
            }
        }
    )+ };
}
words!(u8, u32, i32, u64);

impl Word for Process {
    fn to_word(self) -> u64 {
        u64::from(self.nid) | u64::from(self.pid) << 32
    }

    fn from_word(word: u64) -> Process {
        Process { nid: word as u32, pid: (word >> 32) as u32 }
    }
}

/// A kind of argument, and its field in the decoded arguments.
pub trait Kind {
    /// Type of the field.
    type Field: Copy + fmt::Debug;
    /// Number of words of the argument.
    const WORDS: usize;
    /// Decodes the field from the words of this argument and later ones.
    fn read(words: &[u64]) -> Self::Field;
}

/// Field of a structure argument; `T` is the type of the structure.
#[derive(Debug)]
pub struct Data<T>(PhantomData<T>);

/// Field of an output pointer to a scalar; `T` is the type of its result.
#[derive(Debug)]
pub struct Output<T>(PhantomData<T>);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Data<T> {}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Output<T> {}

/// Field of an output pointer to a structure; `T` is the type of its result.
#[derive(Debug)]
pub struct StructureOutput<T>(PhantomData<T>);

impl<T> Clone for StructureOutput<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for StructureOutput<T> {}

/// An address in the rank's memory.
pub struct Address;
/// A pointer to a structure that the call reads.
pub struct In<T>(PhantomData<T>);
/// A pointer to a structure, or NULL. It takes one word, 0 for NULL.
pub struct OptionalIn<T>(PhantomData<T>);
/// A `ptl_me_t` without the P4sPIN fields.
pub struct PlainMe;
/// A pointer to a scalar that the call writes.
pub struct Out<T>(PhantomData<T>);
/// A pointer to a structure that the call writes.
pub struct OutData<T>(PhantomData<T>);
/// A pointer to a structure that the call writes, or NULL.
pub struct OptionalOut<T>(PhantomData<T>);
/// A pointer to a handle that the call invalidates. It takes one word, the handle.
pub struct Consumed;

/// Returns the first word, or 0 if the rank passed none.
fn first(words: &[u64]) -> u64 {
    words.first().copied().unwrap_or(0)
}

macro_rules! kinds {
    ($([$($generic:ident: $bound:path)?] $kind:ty => $field:ty, $words:literal, |$input:ident| $read:expr;)+) => { $(
        impl$(<$generic: $bound>)? Kind for $kind {
            type Field = $field;
            const WORDS: usize = $words;

            fn read($input: &[u64]) -> Self::Field {
                $read
            }
        }
    )+ };
}
kinds! {
    [] u8 => u8, 1, |words| u8::from_word(first(words));
    [] u32 => u32, 1, |words| u32::from_word(first(words));
    [] u64 => u64, 1, |words| first(words);
    [] Process => Process, 1, |words| Process::from_word(first(words));
    [] Address => u64, 1, |words| first(words);
    [] Consumed => Handle, 1, |words| Handle::from_word(first(words));
    [] CtEvent => Data<CtEvent>, 0, |_words| Data(PhantomData);
    [] PlainMe => Data<Me>, 0, |_words| Data(PhantomData);
    [T: fmt::Debug] In<T> => Data<T>, 0, |_words| Data(PhantomData);
    [T: fmt::Debug] OptionalIn<T> => Option<Data<T>>, 1, |words| (first(words) != 0).then_some(Data(PhantomData));
    [T: fmt::Debug] Out<T> => Output<T>, 0, |_words| Output(PhantomData);
    [T: fmt::Debug] OutData<T> => StructureOutput<T>, 0, |_words| StructureOutput(PhantomData);
    [T: fmt::Debug] OptionalOut<T> => StructureOutput<T>, 0, |_words| StructureOutput(PhantomData);
}

/// Decodes an argument at a word, and advances past it.
fn next<K: Kind>(words: &[u64], at: &mut usize) -> K::Field {
    let field = K::read(words.get(*at..).unwrap_or_default());
    *at += K::WORDS;
    field
}

/// Properties of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// True if the call needs the card; false if it works even when the card is dead.
    pub uses_card: bool,
    /// True if the CPU completes arrived messages before it makes the call (rdma cards).
    pub needs_completions: bool,
    /// True if the answer is constant during a run, so that a program repeating the call waits for something else.
    pub question: bool,
    /// True if the call takes one event of a queue.
    pub takes_event: bool,
    /// True if the call may wait for an event or a counter.
    pub waits: bool,
    /// True if arrays of handles are passed as addresses.
    pub reads_handles: bool,
    /// True if a call is posted when earlier accepted calls cover it.
    pub posted: bool,
    /// True if the call moves data between a memory descriptor and a target, now or when it is triggered.
    pub transfers: bool,
    /// True if the call may have no effect except its time, while nothing else happens in the simulation.
    pub passes: bool,
    /// True if a thread that defers its calls posts this one.
    pub deferred: bool,
    /// True if the call adds its structure argument to a counter, immediately or when triggered.
    pub changes_counter: bool,
    /// True if an accepted call invalidates facts about earlier accepted calls.
    pub invalidates: bool,
    /// True if a counter triggers the operation: its last two arguments are a [`Trigger`].
    pub triggered: bool,
}

impl Properties {
    const NONE: Properties = Properties {
        uses_card: true,
        needs_completions: false,
        question: false,
        takes_event: false,
        waits: false,
        reads_handles: false,
        posted: false,
        passes: false,
        transfers: false,
        deferred: false,
        changes_counter: false,
        invalidates: false,
        triggered: false,
    };
}

/// Last arguments of a triggered operation.
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    /// Counter that triggers the operation.
    pub ct: Handle,
    /// Number of successes that triggers it.
    pub threshold: u64,
}

impl Trigger {
    /// Decodes the trigger of a call whose other arguments take `words` words.
    pub fn read(args: &[u64], words: usize) -> Trigger {
        Trigger { ct: Handle::from_word(args[words]), threshold: args[words + 1] }
    }
}

/// The one object of a poll, if its handle and threshold are part of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Polled {
    /// Handle of a queue or a counter.
    pub handle: u64,
    /// Threshold of a counter; 0 for a queue.
    pub test: u64,
}

/// Passes all rows to the macro `$callback`: those whose C function only packs its arguments (`exported`), then all
/// others.
///
/// A row: `NAME = NUMBER as "name in C" (arguments of the C prototype) + (further words) [properties];`
#[macro_export]
macro_rules! calls {
    ($callback:ident) => {
        $callback! {
            exported {
                PtlNIInit = 20 (iface: u32, options: u32, pid: u32, desired: OptionalIn<NiLimits>, actual: OptionalOut<NiLimits>, ni_handle: Out<Handle>) [];
                PtlNIFini = 21 (ni_handle: Handle) [no_card invalidates];
                PtlNIStatus = 22 (ni_handle: Handle, status_register: u32, status: Out<i32>) [];
                PtlNIHandle = 23 (handle: Handle, ni_handle: Out<Handle>) [question];
                PtlSetMap = 24 (ni_handle: Handle, map_size: u64, mapping: Address) [invalidates];
                PtlGetMap = 25 (ni_handle: Handle, map_size: u64, mapping: Address, actual_map_size: Out<u64>) [question];
                PtlGetUid = 26 (ni_handle: Handle, uid: Out<u32>) [question];
                PtlGetId = 27 (ni_handle: Handle, id: Out<Process>) [question];
                PtlGetPhysId = 28 (ni_handle: Handle, id: Out<Process>) [question];

                PtlPTAlloc = 30 (ni_handle: Handle, options: u32, eq_handle: Handle, pt_index_req: u32, pt_index: Out<u32>) [];
                PtlPTFree = 31 (ni_handle: Handle, pt_index: u32) [invalidates];
                PtlPTDisable = 32 (ni_handle: Handle, pt_index: u32) [];
                PtlPTEnable = 33 (ni_handle: Handle, pt_index: u32) [];

                PtlMDRelease = 41 (md_handle: Handle) [invalidates];

                PtlLEAppend = 42 (ni_handle: Handle, pt_index: u32, le: In<Le>, ptl_list: u8, user_ptr: Address, le_handle: Out<Handle>) [completions];
                PtlLEUnlink = 43 (le_handle: Handle) [completions];
                PtlLESearch = 44 (ni_handle: Handle, pt_index: u32, le: In<Le>, ptl_search_op: u8, user_ptr: Address) [completions];
                PtlMEAppend = 45 (ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_list: u8, user_ptr: Address, me_handle: Out<Handle>) [completions deferred];
                PtlMEUnlink = 46 (me_handle: Handle) [completions];
                PtlMESearch = 47 (ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_search_op: u8, user_ptr: Address) [completions];
                PtlMEAppendHandlers = 48 as "PtlMEAppend" (ni: Handle, pt_index: u32, me: In<Me>, list: u8, user_ptr: Address, me_handle: Out<Handle>) [completions deferred];

                PtlPut = 60 (md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64) [posted transfers];
                PtlGet = 61 (md_handle: Handle, local_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address) [posted transfers];
                PtlAtomic = 62 (md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8) [posted transfers];
                PtlFetchAtomic = 63 (get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8) [transfers];
                PtlSwap = 64 (get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operand: Address, operation: u8, datatype: u8) [transfers];
                PtlAtomicSync = 65 () [question];
                PtlStartBundle = 66 (ni_handle: Handle) [];
                PtlEndBundle = 67 (ni_handle: Handle) [];

                PtlEQAlloc = 80 (ni_handle: Handle, count: u64, eq_handle: Out<Handle>) [];
                PtlEQFree = 81 (eq_handle: Handle) [];
                PtlEQGet = 82 (eq_handle: Handle, event: OutData<Event>) [completions takes_event passes];
                PtlEQWait = 83 (eq_handle: Handle, event: OutData<Event>) [takes_event waits];
                PtlEQPoll = 84 (eq_handles: Address, size: u32, timeout: u32, event: OutData<Event>, which: Out<u32>) + (polled: OptionalIn<Polled>) [completions takes_event waits reads_handles passes];

                PtlCTAlloc = 90 (ni_handle: Handle, ct_handle: Out<Handle>) [];
                PtlCTFree = 91 (ct_handle: Handle) [invalidates];
                PtlCTCancelTriggered = 92 (ct_handle: Handle) [];
                PtlCTGet = 93 (ct_handle: Handle, event: OutData<CtEvent>) [completions];
                PtlCTWait = 94 (ct_handle: Handle, test: u64, event: OutData<CtEvent>) [waits];
                PtlCTPoll = 95 (ct_handles: Address, tests: Address, size: u32, timeout: u32, event: OutData<CtEvent>, which: Out<u32>) + (polled: OptionalIn<Polled>) [completions waits reads_handles];
                PtlCTSet = 96 (ct_handle: Handle, new_ct: CtEvent) [];
                PtlCTInc = 97 (ct_handle: Handle, increment: CtEvent) [posted changes_counter];

                PtlTriggeredPut = 110 (md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, trig_ct_handle: Handle, threshold: u64) [posted triggered transfers];
                PtlTriggeredGet = 111 (md_handle: Handle, local_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, trig_ct_handle: Handle, threshold: u64) [posted triggered transfers];
                PtlTriggeredAtomic = 112 (md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64) [posted triggered transfers];
                PtlTriggeredFetchAtomic = 113 (get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64) [triggered transfers];
                PtlTriggeredSwap = 114 (get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operand: Address, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64) [triggered transfers];
                PtlTriggeredCTInc = 115 (ct_handle: Handle, increment: CtEvent, trig_ct_handle: Handle, threshold: u64) [posted changes_counter triggered];
                PtlTriggeredCTSet = 116 (ct_handle: Handle, new_ct: CtEvent, trig_ct_handle: Handle, threshold: u64) [triggered];
                PtlTriggeredMEAppend = 117 (ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_list: u8, user_ptr: Address, me_handle: Out<Handle>, trig_ct_handle: Handle, threshold: u64) [triggered];
                PtlTriggeredMEUnlink = 118 (me_handle: Handle, trig_ct_handle: Handle, threshold: u64) [triggered];

                PtlHPUAllocMem = 130 (length: u64, ni: Handle, hpu_mem: Out<Handle>) [];
                PtlHPUFreeMem = 131 (hpu_mem: Consumed) [];
            }
            other {
                // First call of a process, with the number of this layout. The last PtlFini makes SpinDetach; another
                // SpinAttach may follow.
                SpinAttach = 1 (magic: u64) [no_card];
                SpinDetach = 2 () [no_card invalidates];
                // Simulated time and work of the host.
                SpinHostCompute = 3 (ps: u64) [no_card deferred];
                SpinHostMemory = 4 (read_bytes: u64, written_bytes: u64) [no_card];
                SpinSleep = 5 (ps: u64) [no_card passes];
                SpinYield = 6 () [no_card];
                SpinHostCopy = 10 (bytes: u64) [no_card deferred];
                // Barriers of all ranks outside of Portals: that of the library, and that of PMI, which arrives on the
                // PMI socket.
                SpinBarrier = 7 () [no_card];
                PmiBarrier = 9 () [no_card];
                // Device code: an image (`device::image`), and the address of the first handler.
                SpinRegisterImage = 8 (image: Address, length: u64, handlers_start: Address) [];
                // Switches with handlers. Their HPU memory has separate handles.
                SpinSwitches = 11 (count: Out<u32>) [no_card question];
                SpinDistance = 12 as "spin_distance" (from: u32, to: u32, links: Out<u32>) [no_card question];
                SpinSwitchAlloc = 13 as "spin_switch_alloc" (which: u32, ni: Handle, length: u64, hpu_mem: Out<Handle>) [];
                SpinSwitchAttach = 14 as "spin_switch_attach" (which: u32, ni: Handle, pt_index: u32, me: In<Me>) [];
                // A poll without a result. `has_read_time` is set if the thread has read the time since its last one,
                // `events_only` if it polls only queues and counters.
                SpinIdle = 15 (has_read_time: u32, events_only: u32) [no_card deferred];
                // Takes up to `max` events at once.
                SpinEqTake = 16 as "spin_eq_take" (eq: Handle, events: Address, max: u32, count: Out<u32>) [completions];
                // A slice for the timeline, from `start_ps` until now.
                SpinShow = 17 (name: Address, length: u64, start_ps: u64) [no_card];
                // Returns once all posted calls are complete.
                SpinFlush = 18 () [no_card];
                // Reports a call that the library refuses: its operation, the return code, and the length of an
                // argument's name in `data`, which is 0 except in PtlInit and PtlFini.
                SpinRefuse = 19 (operation: u32, code: u64, name_length: u64) [no_card];

                PtlAbort = 29 () [];
                PtlMDBind = 40 (ni_handle: Handle, md: In<Md>, md_handle: Out<Handle>) [];
            }
        }
    };
}

macro_rules! set {
    ($set:ident no_card) => {
        $set.uses_card = false
    };
    ($set:ident completions) => {
        $set.needs_completions = true
    };
    ($set:ident $flag:ident) => {
        $set.$flag = true
    };
}

macro_rules! name_in_c {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $as:literal) => {
        $as
    };
}

macro_rules! define {
    ($($group:ident { $($name:ident = $number:literal $(as $as:literal)? ($($argument:ident: $kind:ty),*)
        $(+ ($($more:ident: $more_kind:ty),*))? [$($flag:ident)*];)+ })+) => {
        /// Operation of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum Op { $($($name = $number),+),+ }

        impl Op {
            /// All operations.
            pub const ALL: &'static [Op] = &[$($(Op::$name),+),+];

            /// Returns the operation with this number.
            pub fn from_raw(raw: u32) -> Option<Op> {
                match raw { $($($number => Some(Op::$name),)+)+ _ => None }
            }

            /// Returns the name of the C function that programs call.
            pub fn c_name(self) -> &'static str {
                match self { $($(Op::$name => name_in_c!($name $($as)?)),+),+ }
            }

            /// Returns its properties.
            pub const fn properties(self) -> Properties {
                match self { $($(Op::$name => {
                    #[allow(unused_mut)]
                    let mut set = Properties::NONE;
                    $(set!(set $flag);)*
                    set
                }),+),+ }
            }

            /// Returns the names and kinds of its arguments.
            pub const fn arguments(self) -> &'static [(&'static str, &'static str)] {
                match self { $($(Op::$name => &[
                    $((stringify!($argument), stringify!($kind)),)* $($((stringify!($more), stringify!($more_kind)),)*)?
                ]),+),+ }
            }
        }

        $($(
            #[doc = concat!("Arguments of `", stringify!($name), "`, named as in the header.")]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs)]
            pub struct $name {
                $(pub $argument: <$kind as Kind>::Field,)*
                $($(pub $more: <$more_kind as Kind>::Field,)*)?
            }

            impl $name {
                /// Number of words of the arguments.
                pub const WORDS: usize = 0 $(+ <$kind as Kind>::WORDS)* $($(+ <$more_kind as Kind>::WORDS)*)?;

                /// Decodes the arguments.
                #[inline]
                pub fn read(words: &[u64]) -> $name {
                    #[allow(unused_mut, unused_variables)]
                    let mut at = 0;
                    let _ = words;
                    $name {
                        $($argument: next::<$kind>(words, &mut at),)*
                        $($($more: next::<$more_kind>(words, &mut at),)*)?
                    }
                }
            }
        )+)+
    };
}
calls!(define);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{ARGS, POST_ARGS};

    const _: () = assert!(PtlTriggeredSwap::WORDS <= ARGS);

    #[test]
    fn a_call_decodes_to_its_arguments() {
        let words: Vec<u64> = (0..ARGS as u64).map(|word| word | (word + 100) << 32).collect();
        let put = PtlPut::read(&words);
        assert_eq!((put.md_handle, put.local_offset, put.length, put.ack_req), (0, words[1], words[2], 3));
        assert_eq!(put.target_id, Process { nid: 4, pid: 104 });
        assert_eq!((put.pt_index, put.match_bits, put.remote_offset), (5, words[6], words[7]));
        assert_eq!((put.user_ptr, put.hdr_data, PtlPut::WORDS), (words[8], words[9], 10));
        let trigger = Trigger::read(&words, PtlPut::WORDS);
        assert_eq!((trigger.ct, trigger.threshold), (10, words[11]));
        let poll = PtlEQPoll::read(&[7, 2, 30, 1]);
        assert_eq!((poll.eq_handles, poll.size, poll.timeout, poll.polled.is_some()), (7, 2, 30, true));
        assert!(PtlEQPoll::read(&[7, 2, 30, 0]).polled.is_none());
        assert_eq!((PtlMDBind::WORDS, PtlMEAppend::WORDS, PtlHPUFreeMem::WORDS), (1, 4, 1));
    }

    #[test]
    fn triggered_operations_have_the_arguments_of_the_plain_ones_and_a_trigger() {
        let triggered: Vec<Op> = Op::ALL.iter().copied().filter(|op| op.properties().triggered).collect();
        assert_eq!(triggered.len(), 9);
        for op in triggered {
            let name = op.c_name().replace("Triggered", "");
            let plain = Op::ALL.iter().find(|op| op.c_name() == name).unwrap();
            let (own, trigger) = op.arguments().split_at(op.arguments().len() - 2);
            assert_eq!(own, plain.arguments(), "{name}");
            assert_eq!(trigger, [("trig_ct_handle", "Handle"), ("threshold", "u64")], "{name}");
        }
    }

    #[test]
    fn posted_calls_fit_into_a_post() {
        for op in Op::ALL.iter().filter(|op| op.properties().posted || op.properties().takes_event) {
            let words = op.arguments().iter().filter(|(_, kind)| !kind.starts_with("Out") && *kind != "CtEvent");
            assert!(words.count() <= POST_ARGS, "{}", op.c_name());
        }
    }
}
