// SPDX-License-Identifier: Apache-2.0
//! Exported functions, documented in `portals4.h` and `spin.h`.

use crate::argument::{Address, Argument, Consumed, In, OptionalIn, OptionalOut, Out, OutData, PlainMe};
use crate::attachment;
use crate::call::{self, Call};
use crate::known;
use crate::library_state::{self, Embedded, Image, process};
use crate::posting;
use crate::session::{self, Session};
use abi::calls::Op;
use abi::mailbox::env;
use abi::placement;
use abi::portals::{CtEvent, Event, Handle, Le, Md, Me, NiLimits, Process, ReturnCode};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Number of free time reads of a thread between two other calls. A thread that reads the time more often is polling
/// it, so each further read takes [`LOOK_PS`].
const FREE_LOOKS: u32 = 1000;
/// Simulated duration of a time read in picoseconds: about that of clock_gettime on a CPU.
const LOOK_PS: u64 = 25_000;

/// Defines the exported functions of [`abi::calls`] that only pack their arguments.
macro_rules! export {
    (exported { $($name:ident = $number:literal $(as $c_name:literal)? ($($argument:ident: $kind:ty),*)
        $(+ $more:tt)? [$($flag:ident)*];)+ } $($others:tt)*) => { $(
        #[doc = concat!("See `", stringify!($name), "` in the header.")]
        ///
        /// # Safety
        /// Pointers must be valid as the header requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
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
    let properties = op.properties();
    if properties.reads_handles {
        let polled = known::polled(op, &call.args());
        call.word(polled.is_some().into());
        if let Some(polled) = polled {
            call.data(&polled);
        }
    }
    if properties.passes {
        match call.pass(op) {
            Ok(answer) => return answer.rc(),
            Err(unanswered) => call = unanswered,
        }
    }
    let place = arguments.iter().map(|(_, argument)| argument.place()).find(|place| !place.is_null());
    if call.post(op, place.unwrap_or(std::ptr::null_mut())) {
        return ReturnCode::Ok as c_int;
    }
    if properties.takes_event {
        match call.take_known(op) {
            Ok(mut answer) => {
                arguments.iter().for_each(|(_, argument)| argument.take(&mut answer));
                return answer.rc();
            }
            Err(unanswered) => call = unanswered,
        }
    }
    let may_post = call.may_post();
    let says_more = properties.posted || properties.invalidates || properties.takes_event;
    let is_of_interest = properties.reads_handles || may_post && says_more;
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
    process().reported_no_init.call_once(|| {
        library_state::say(format_args!(
            "{} before PtlInit, or after the last PtlFini, returns PTL_NO_INIT",
            op.c_name()
        ));
    });
    refuse(op, ReturnCode::NoInit, "")
}

abi::calls!(export);

/// Defines the list of the functions that [`export`] defines.
macro_rules! list {
    (exported { $($name:ident = $number:literal $(as $c_name:literal)? ($($argument:ident: $kind:ty),*)
        $(+ $more:tt)? [$($flag:ident)*];)+ } $($others:tt)*) => {
        [$((stringify!($name), $name as *const c_void)),+]
    };
}

/// Returns an exported function by its name.
pub fn function(name: &str) -> Option<*const c_void> {
    let others = [
        ("PtlMDBind", PtlMDBind as *const c_void),
        ("PtlInit", PtlInit as *const c_void),
        ("PtlFini", PtlFini as *const c_void),
        ("PtlAbort", PtlAbort as *const c_void),
        ("PtlHandleIsEqual", PtlHandleIsEqual as *const c_void),
        ("spin_time_ps", spin_time_ps as *const c_void),
        ("spin_idle", spin_idle as *const c_void),
        ("spin_idle_events", spin_idle_events as *const c_void),
        ("spin_defer", spin_defer as *const c_void),
        ("spin_eq_take", spin_eq_take as *const c_void),
        ("spin_ct_await", spin_ct_await as *const c_void),
        ("spin_host_compute", spin_host_compute as *const c_void),
        ("spin_host_memory", spin_host_memory as *const c_void),
        ("spin_host_copy", spin_host_copy as *const c_void),
        ("spin_show", spin_show as *const c_void),
        ("spin_sleep_ps", spin_sleep_ps as *const c_void),
        ("spin_barrier", spin_barrier as *const c_void),
        ("spin_rank", spin_rank as *const c_void),
        ("spin_size", spin_size as *const c_void),
        ("spin_rank_of", spin_rank_of as *const c_void),
        ("spin_process_of", spin_process_of as *const c_void),
        ("spin_switches", spin_switches as *const c_void),
        ("spin_distance", spin_distance as *const c_void),
        ("spin_switch_alloc", spin_switch_alloc as *const c_void),
        ("spin_switch_attach", spin_switch_attach as *const c_void),
        ("spin_set_map", spin_set_map as *const c_void),
        ("spin_register_image", spin_register_image as *const c_void),
    ];
    let mut functions = abi::calls!(list).into_iter().chain(others);
    functions.find(|(other, _)| *other == name).map(|(_, function)| function)
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
    let is_live = Session::get().is_some_and(Session::is_live);
    if !is_live && call::looks_in_a_row() > FREE_LOOKS && !session::forked() {
        host_call(Op::SpinSleep, &[("ps", &LOOK_PS)]);
    }
    call::flush();
    Session::get().map_or(0, |session| session.now_ps().saturating_add(call::unanswered_ps(session)))
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_idle() {
    host_call(Op::SpinIdle, &[("has_read_time", &u32::from(call::has_looked_since_idle())), ("events_only", &0u32)]);
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_idle_events() {
    host_call(Op::SpinIdle, &[("has_read_time", &u32::from(call::has_looked_since_idle())), ("events_only", &1u32)]);
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
    host_call(Op::SpinHostCompute, &[("ps", &ns.saturating_mul(1000))]);
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

/// Returns nid and pid of each rank of a job whose ranks share nodes.
fn placed() -> Option<&'static Vec<Process>> {
    static PLACED: OnceLock<Option<Vec<Process>>> = OnceLock::new();
    if Embedded::selected().is_some() {
        return None; // the variables are those of the simulator; ranks that share nodes are processes
    }
    let read = || placement::processes(&std::env::var(env::NODES).ok()?, usize::try_from(spin_size()).ok()?);
    PLACED.get_or_init(read).as_ref()
}

/// See `spin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn spin_rank_of(nid: u32, pid: u32) -> c_int {
    static RANKS: OnceLock<BTreeMap<(u32, u32), c_int>> = OnceLock::new();
    let Some(placed) = placed() else {
        return if nid < spin_size() as u32 { nid as c_int } else { -1 };
    };
    let ranks = RANKS.get_or_init(|| placed.iter().map(|process| (process.nid, process.pid)).zip(0..).collect());
    ranks.get(&(nid, pid)).copied().unwrap_or(-1)
}

/// See `spin.h`.
///
/// # Safety
/// `process` must be NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_process_of(rank: c_int, pid: u32, process: *mut Process) -> c_int {
    let Some(number) = usize::try_from(rank).ok().filter(|_| rank < spin_size() && !process.is_null()) else {
        return ReturnCode::ArgInvalid as c_int;
    };
    let named = placed().map_or(Process { nid: number as u32, pid }, |placed| placed[number]);
    // SAFETY: not NULL, so valid for writing.
    unsafe { process.write(named) };
    ReturnCode::Ok as c_int
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
    // A program that chooses its pid has one rank on each node.
    let alone = || (0..nodes as u32).map(|node| Process { nid: node, pid: own.pid }).collect();
    let map: Vec<Process> = placed().cloned().unwrap_or_else(alone);
    // SAFETY: the length argument is the map's length.
    Embedded::lend(&map, || unsafe { PtlSetMap(ni, map.len() as u64, Address::new(map.as_ptr().cast())) })
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
    attachment::register(Image {
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
