// SPDX-License-Identifier: Apache-2.0
//! Exported functions, documented in `portals4.h` and `spin.h`.

use crate::argument::{Address, Argument, Consumed, In, OptionalIn, OptionalOut, Out, OutData, PlainMe};
use crate::attachment;
use crate::call::{self, Call};
use crate::known;
use crate::posting;
use crate::session::{self, Session};
use abi::mailbox::Op;
use abi::portals::{CtEvent, Event, Handle, Le, Md, Me, NiLimits, Process, ReturnCode};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

/// Number of free time reads of a thread between two other calls. A thread that reads the time more often is polling
/// it, so each further read takes [`LOOK_PS`].
const FREE_LOOKS: u32 = 1000;
/// Simulated duration of a time read in picoseconds: about that of clock_gettime on a CPU.
const LOOK_PS: u64 = 25_000;

macro_rules! api {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)+) => { $(
        #[doc = concat!("See `", stringify!($name), "` in the header.")]
        ///
        /// # Safety
        /// Pointers must be valid as the header requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            perform_initialised(Op::$name, &[$((stringify!($argument), &$argument)),*])
        }
    )+ };
}

/// An argument and its name in the header.
type Named<'a> = (&'static str, &'a dyn Argument);

/// Performs a call and stores its results. `PTL_EQ_DROPPED` also delivers results.
fn perform(op: Op, arguments: &[Named<'_>]) -> c_int {
    let mut call = match Call::begin(op) {
        Ok(call) => call,
        Err(rc) => return rc as c_int,
    };
    for (name, argument) in arguments {
        if let Err(rc) = argument.give(&mut call) {
            drop(call);
            return refuse(op, rc, name);
        }
    }
    if known::is_poll(op) {
        let polled = known::polled(op, &call.args());
        call.word(polled.is_some().into());
        if let Some(polled) = polled {
            call.data(&polled);
        }
    }
    let place = arguments.iter().map(|(_, argument)| argument.place()).find(|place| !place.is_null());
    if call.post(op, place.unwrap_or(std::ptr::null_mut())) {
        return ReturnCode::Ok as c_int;
    }
    if known::takes_event(op) {
        match call.take_known(op) {
            Ok(mut answer) => {
                arguments.iter().for_each(|(_, argument)| argument.take(&mut answer));
                return answer.rc();
            }
            Err(unanswered) => call = unanswered,
        }
    }
    let may_post = call.may_post();
    let is_of_interest = known::is_poll(op) || may_post && (posting::is_of_interest(op) || known::takes_event(op));
    let learned = is_of_interest.then(|| (call.args(), call.structure()));
    let appended =
        (may_post && matches!(op, Op::PtlMEAppend | Op::PtlMEAppendHandlers)).then(|| (call.args(), call.structure()));
    let mut answer = call.perform();
    if answer.rc() == ReturnCode::Ok as c_int || answer.rc() == ReturnCode::EqDropped as c_int {
        if let Some((args, amount)) = learned {
            posting::learn(op, &args, amount);
            known::learn(op, &args);
        }
        if let Some((args, me)) = appended {
            posting::append(&args, &me);
        }
        for (_, argument) in arguments {
            argument.take(&mut answer);
        }
    }
    answer.rc()
}

/// Performs a call that requires `PtlInit`.
fn perform_initialised(op: Op, arguments: &[Named<'_>]) -> c_int {
    if attachment::initialised() { perform(op, arguments) } else { not_initialised(op) }
}

/// Returns the code of a call that the library itself refuses. First reports it to the simulator for the user, with the
/// name of a NULL argument.
#[cold]
fn refuse(op: Op, code: ReturnCode, argument: &str) -> c_int {
    if let Ok(mut call) = Call::begin(Op::SpinRefuse) {
        [op as u64, code as u64, argument.len() as u64].into_iter().for_each(|word| call.word(word));
        call.bytes(argument.as_bytes());
        call.perform();
    }
    code as c_int
}

/// Returns the code for a call without `PtlInit`. Prints a message once, for programs that ignore return codes.
#[cold]
fn not_initialised(op: Op) -> c_int {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        session::say(format_args!("{} before PtlInit, or after the last PtlFini, returns PTL_NO_INIT", op.c_name()));
    });
    refuse(op, ReturnCode::NoInit, "")
}

api! {
    PtlNIInit(iface: u32, options: u32, pid: u32, desired: OptionalIn<NiLimits>, actual: OptionalOut<NiLimits>, ni_handle: Out<Handle>);
    PtlNIFini(ni_handle: Handle);
    PtlNIStatus(ni_handle: Handle, status_register: u32, status: Out<i32>);
    PtlNIHandle(handle: Handle, ni_handle: Out<Handle>);
    PtlSetMap(ni_handle: Handle, map_size: u64, mapping: Address);
    PtlGetMap(ni_handle: Handle, map_size: u64, mapping: Address, actual_map_size: Out<u64>);
    PtlGetUid(ni_handle: Handle, uid: Out<u32>);
    PtlGetId(ni_handle: Handle, id: Out<Process>);
    PtlGetPhysId(ni_handle: Handle, id: Out<Process>);

    PtlPTAlloc(ni_handle: Handle, options: u32, eq_handle: Handle, pt_index_req: u32, pt_index: Out<u32>);
    PtlPTFree(ni_handle: Handle, pt_index: u32);
    PtlPTDisable(ni_handle: Handle, pt_index: u32);
    PtlPTEnable(ni_handle: Handle, pt_index: u32);

    PtlMDRelease(md_handle: Handle);

    PtlLEAppend(ni_handle: Handle, pt_index: u32, le: In<Le>, ptl_list: u8, user_ptr: Address, le_handle: Out<Handle>);
    PtlLEUnlink(le_handle: Handle);
    PtlLESearch(ni_handle: Handle, pt_index: u32, le: In<Le>, ptl_search_op: u8, user_ptr: Address);
    PtlMEAppend(ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_list: u8, user_ptr: Address, me_handle: Out<Handle>);
    PtlMEAppendHandlers(ni: Handle, pt_index: u32, me: In<Me>, list: u8, user_ptr: Address, me_handle: Out<Handle>);
    PtlMEUnlink(me_handle: Handle);
    PtlMESearch(ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_search_op: u8, user_ptr: Address);

    PtlPut(md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64);
    PtlGet(md_handle: Handle, local_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address);
    PtlAtomic(md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8);
    PtlFetchAtomic(get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8);
    PtlSwap(get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operand: Address, operation: u8, datatype: u8);
    PtlAtomicSync();
    PtlStartBundle(ni_handle: Handle);
    PtlEndBundle(ni_handle: Handle);

    PtlEQAlloc(ni_handle: Handle, count: u64, eq_handle: Out<Handle>);
    PtlEQFree(eq_handle: Handle);
    PtlEQGet(eq_handle: Handle, event: OutData<Event>);
    PtlEQWait(eq_handle: Handle, event: OutData<Event>);
    PtlEQPoll(eq_handles: Address, size: u32, timeout: u32, event: OutData<Event>, which: Out<u32>);

    PtlCTAlloc(ni_handle: Handle, ct_handle: Out<Handle>);
    PtlCTFree(ct_handle: Handle);
    PtlCTCancelTriggered(ct_handle: Handle);
    PtlCTGet(ct_handle: Handle, event: OutData<CtEvent>);
    PtlCTWait(ct_handle: Handle, test: u64, event: OutData<CtEvent>);
    PtlCTPoll(ct_handles: Address, tests: Address, size: u32, timeout: u32, event: OutData<CtEvent>, which: Out<u32>);
    PtlCTSet(ct_handle: Handle, new_ct: CtEvent);
    PtlCTInc(ct_handle: Handle, increment: CtEvent);

    PtlTriggeredPut(md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredGet(md_handle: Handle, local_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredAtomic(md_handle: Handle, local_offset: u64, length: u64, ack_req: u8, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredFetchAtomic(get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredSwap(get_md_handle: Handle, local_get_offset: u64, put_md_handle: Handle, local_put_offset: u64, length: u64, target_id: Process, pt_index: u32, match_bits: u64, remote_offset: u64, user_ptr: Address, hdr_data: u64, operand: Address, operation: u8, datatype: u8, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredCTInc(ct_handle: Handle, increment: CtEvent, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredCTSet(ct_handle: Handle, new_ct: CtEvent, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredMEAppend(ni_handle: Handle, pt_index: u32, me: PlainMe, ptl_list: u8, user_ptr: Address, me_handle: Out<Handle>, trig_ct_handle: Handle, threshold: u64);
    PtlTriggeredMEUnlink(me_handle: Handle, trig_ct_handle: Handle, threshold: u64);

    PtlHPUAllocMem(length: u64, ni: Handle, hpu_mem: Out<Handle>);
    PtlHPUFreeMem(hpu_mem: Consumed);
}

/// See `portals4.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDBind(ni: Handle, md: In<Md>, handle: Out<Handle>) -> c_int {
    let rc = perform_initialised(Op::PtlMDBind, &[("ni_handle", &ni), ("md", &md), ("md_handle", &handle)]);
    if rc == ReturnCode::Ok as c_int
        && let (Some(md), Some(handle)) = (md.get(), handle.get())
    {
        posting::bind(handle, md);
    }
    rc
}

/// See `portals4.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PtlInit() -> c_int {
    attachment::init() as c_int
}

/// See `portals4.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PtlFini() {
    attachment::fini();
}

/// See `portals4.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PtlAbort() {
    if attachment::initialised() {
        perform(Op::PtlAbort, &[]);
    }
}

/// See `portals4.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PtlHandleIsEqual(a: Handle, b: Handle) -> c_int {
    c_int::from(a == b)
}

/// See `spin.h`. Returns 0 outside of spinrun.
#[unsafe(no_mangle)]
pub extern "C" fn spin_time_ps() -> u64 {
    if call::looks_in_a_row() > FREE_LOOKS && !session::forked() {
        host_call(Op::SpinSleep, &[("ps", &LOOK_PS)]);
    }
    call::flush();
    Session::get().map_or(0, |session| session.now_ps().saturating_add(call::unanswered_ps(session)))
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_idle() {
    host_call(Op::SpinIdle, &[("has_looked", &u32::from(call::has_looked_since_idle())), ("events_only", &0)]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_idle_events() {
    host_call(Op::SpinIdle, &[("has_looked", &u32::from(call::has_looked_since_idle())), ("events_only", &1)]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_defer(on: c_int) -> c_int {
    c_int::from(call::defer(on != 0))
}

/// See `spin.h`.
///
/// # Safety
/// `events` must have room for `max` events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_eq_take(eq: Handle, events: Address, max: u32, count: Out<u32>) -> c_int {
    perform_initialised(Op::SpinEqTake, &[("eq", &eq), ("events", &events), ("max", &max), ("count", &count)])
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_ct_await(ct: Handle, test: u64) -> c_int {
    if !attachment::initialised() {
        return not_initialised(Op::PtlCTWait);
    }
    let mut call = match Call::begin(Op::PtlCTWait) {
        Ok(call) => call,
        Err(rc) => return rc as c_int,
    };
    call.word(u64::from(ct));
    call.word(test);
    if call.post_reached() {
        return ReturnCode::Ok as c_int;
    }
    let answer = call.perform();
    let has_failed = answer.rc() == ReturnCode::Ok as c_int && answer.data::<CtEvent>().success < test;
    if has_failed { ReturnCode::Fail as c_int } else { answer.rc() }
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_host_compute(ns: u64) {
    host_call(Op::SpinHostCompute, &[("ns", &ns.saturating_mul(1000))]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_host_memory(read_bytes: u64, written_bytes: u64) {
    host_call(Op::SpinHostMemory, &[("read_bytes", &read_bytes), ("written_bytes", &written_bytes)]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_host_copy(bytes: u64) {
    host_call(Op::SpinHostCopy, &[("bytes", &bytes)]);
}

/// See `spin.h`.
///
/// # Safety
/// `name` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_show(name: *const c_char, start_ps: u64) {
    if !name.is_null() {
        // SAFETY: the caller guarantees a valid string.
        let length = unsafe { CStr::from_ptr(name) }.count_bytes() as u64;
        host_call(Op::SpinShow, &[("name", &Address::new(name.cast())), ("length", &length), ("start_ps", &start_ps)]);
    }
}

/// Sleeps in simulated time. `libsimclock.so`, which `spinrun` preloads, calls it for the C library's sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn spin_sleep_ps(ps: u64) {
    host_call(Op::SpinSleep, &[("ps", &ps)]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_barrier() -> c_int {
    host_call(Op::SpinBarrier, &[])
}

/// See `spin.h`. Returns 0 outside of spinrun.
#[unsafe(no_mangle)]
pub extern "C" fn spin_rank() -> c_int {
    Session::get().map_or(0, |session| session.rank as c_int)
}

/// See `spin.h`. Returns 1 outside of spinrun.
#[unsafe(no_mangle)]
pub extern "C" fn spin_size() -> c_int {
    Session::get().map_or(1, |session| session.ranks as c_int)
}

/// See `spin.h`. Returns 0 outside of spinrun.
#[unsafe(no_mangle)]
pub extern "C" fn spin_switches() -> c_int {
    let mut count = 0u32;
    host_call(Op::SpinSwitches, &[("count", &Out::new(&raw mut count))]);
    count as c_int
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_distance(from: c_int, to: c_int) -> c_int {
    let mut links = 0u32;
    match host_call(
        Op::SpinDistance,
        &[("from", &(from as u32)), ("to", &(to as u32)), ("links", &Out::new(&raw mut links))],
    ) {
        0 => links as c_int,
        _ => -1,
    }
}

/// See `spin.h`.
///
/// # Safety
/// `memory` must be valid for writing a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_switch_alloc(which: c_int, ni: Handle, length: u64, memory: Out<Handle>) -> c_int {
    perform_initialised(
        Op::SpinSwitchAlloc,
        &[("which", &(which as u32)), ("ni", &ni), ("length", &length), ("hpu_mem", &memory)],
    )
}

/// See `spin.h`.
///
/// # Safety
/// `me` must be a valid pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_switch_attach(which: c_int, ni: Handle, index: u32, me: In<Me>) -> c_int {
    perform_initialised(
        Op::SpinSwitchAttach,
        &[("which", &(which as u32)), ("ni", &ni), ("pt_index", &index), ("me", &me)],
    )
}

/// See `spin.h`.
///
/// # Safety
/// The requirements of `PtlSetMap`, which it calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_set_map(ni: Handle) -> c_int {
    let mut own = Process::default();
    // SAFETY: `own` is valid for writing.
    let rc = unsafe { PtlGetPhysId(ni, Out::new(&raw mut own)) };
    if rc != ReturnCode::Ok as c_int {
        return rc;
    }
    let nodes = spin_size() + spin_switches();
    let map: Vec<Process> = (0..nodes as u32).map(|node| Process { nid: node, pid: own.pid }).collect();
    // SAFETY: the length argument is the map's length.
    unsafe { PtlSetMap(ni, map.len() as u64, Address::new(map.as_ptr().cast())) }
}

/// Registers the handlers of a program; called by the constructor that `spincc` adds to it. The image must stay in
/// place for the life of the process.
///
/// # Safety
/// `image` must point to a complete [`abi::device::image`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_register_image(image: *const c_void, handlers_start: *const c_void) {
    // SAFETY: an image starts with its preamble.
    let preamble = unsafe { image.cast::<abi::device::image::Preamble>().read_unaligned() };
    attachment::register(attachment::Image {
        address: image as u64,
        length: preamble.length,
        handlers_start: handlers_start as u64,
    });
}

/// Performs a call that needs the simulator but no `PtlInit`.
fn host_call(op: Op, arguments: &[Named<'_>]) -> c_int {
    match attachment::attach() {
        ReturnCode::Ok => perform(op, arguments),
        rc => rc as c_int,
    }
}
