// SPDX-License-Identifier: Apache-2.0
//! Functions of `pmix.h` that need a server; the header documents them.

use crate::buffer;
use crate::layout::{ALL_RANKS, Answered, Buffer, Completed, NAMESPACE, Process, Registered, Status, Value, status};
use crate::store::{Result, Store, complain};
use crate::value;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Variables that make Open MPI use libfabric for all messages between ranks, unless the user has set them.
const COMPONENTS: [(&CStr, &CStr); 4] =
    [(c"OMPI_MCA_pml", c"cm"), (c"OMPI_MCA_mtl", c"ofi"), (c"OMPI_MCA_btl", c"self,ofi"), (c"OMPI_MCA_osc", c"^ucx")];

/// Variable that keeps Open MPI from windows in shared memory, whose accesses no card would see.
const NO_SHARED_WINDOWS: (&CStr, &CStr) = (c"OMPI_MCA_osc", c"^ucx,sm");

/// Job of this process, and the number of its initialisations without finalisation.
struct Member {
    store: Store,
    uses: usize,
}

static MEMBER: Mutex<Option<Member>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Member>> {
    MEMBER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `act` with the store of this process.
fn with_store<T>(act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
    let mut member = lock();
    let member = member.as_mut().filter(|member| member.uses > 0).ok_or(status::NOT_INITIALISED)?;
    act(&mut member.store)
}

fn finish(result: Result) -> Status {
    result.err().unwrap_or(status::SUCCESS)
}

/// Reads a text argument.
fn text<'a>(from: *const c_char) -> Result<&'a str> {
    if from.is_null() {
        return Err(status::BAD_PARAMETER);
    }
    // SAFETY: the C caller guarantees a valid string.
    unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| status::BAD_PARAMETER)
}

/// Returns the rank of a process of this job: this process for NULL, and `None` for a process of another job.
fn rank_of(process: *const Process, store: &Store) -> Option<u32> {
    // SAFETY: the C caller guarantees that non-NULL pointers are valid.
    let Some(process) = (unsafe { process.as_ref() }) else { return Some(store.rank()) };
    // SAFETY: a namespace ends with a zero byte.
    let namespace = unsafe { CStr::from_ptr(process.namespace.as_ptr()) };
    (namespace.is_empty() || namespace.to_bytes() == store.namespace().as_bytes()).then_some(process.rank)
}

/// Waits until all of these processes call this. The job's barrier is for all ranks; a process alone needs none.
fn meet(processes: *const Process, count: usize) -> Result {
    with_store(|store| {
        let listed = if processes.is_null() { 0 } else { count };
        // SAFETY: the C caller guarantees `count` processes.
        let ranks = (0..listed).map(|k| rank_of(unsafe { processes.add(k) }, store)).collect::<Vec<_>>();
        let mut members = ranks.into_iter().collect::<Option<Vec<u32>>>().ok_or(status::NOT_FOUND)?;
        members.sort_unstable();
        members.dedup();
        match members[..] {
            [] | [.., ALL_RANKS] => store.meet_all(),
            _ if members.len() == store.size() as usize => store.meet_all(),
            [rank] if rank == store.rank() => Ok(()),
            _ => {
                complain("PMIx_Fence of some of the ranks: spinrun has only barriers of all ranks of a job");
                Err(status::NOT_SUPPORTED)
            }
        }
    })
}

/// See `pmix.h`. Outside of a job of spinrun no server exists.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Init(process: *mut Process, _info: *const c_void, _infos: usize) -> Status {
    let mut member = lock();
    if member.is_none() {
        let store = match Store::join() {
            Ok(store) => store,
            Err(why) => {
                complain(&why);
                return status::UNREACHABLE;
            }
        };
        let shared = store.shares_nodes().then_some(NO_SHARED_WINDOWS);
        *member = Some(Member { store, uses: 0 });
        for (name, value) in shared.into_iter().chain(COMPONENTS) {
            // SAFETY: both are strings. An MPI library initialises before the program's other threads read the
            // environment.
            unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
        }
    }
    let Some(Member { store, uses }) = member.as_mut() else { return status::UNREACHABLE };
    *uses += 1;
    if !process.is_null() {
        let mut namespace = [0; NAMESPACE];
        for (to, from) in namespace.iter_mut().zip(store.namespace().as_bytes().iter().take(NAMESPACE - 1)) {
            *to = *from as c_char;
        }
        // SAFETY: the caller guarantees a valid pointer.
        unsafe { process.write(Process { namespace, rank: store.rank() }) };
    }
    status::SUCCESS
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Finalize(_info: *const c_void, _infos: usize) -> Status {
    match lock().as_mut().filter(|member| member.uses > 0) {
        Some(member) => member.uses -= 1, // the connection stays for another session
        None => return status::NOT_INITIALISED,
    }
    status::SUCCESS
}

/// See `pmix.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PMIx_Initialized() -> c_int {
    c_int::from(lock().as_ref().is_some_and(|member| member.uses > 0))
}

/// See `pmix.h`. Ends the whole job, and does not return.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Abort(
    code: c_int,
    message: *const c_char,
    _processes: *mut Process,
    _count: usize,
) -> Status {
    if let Some(message) = text(message).ok().map(str::trim_end).filter(|message| !message.is_empty()) {
        abi::pmi::say(message);
    }
    let told = with_store(|store| {
        store.abort(code);
        Ok(())
    });
    if let Err(error) = told {
        return error;
    }
    std::process::exit(if code & 0xff == 0 { c_int::from(code != 0) } else { code });
}

/// See `pmix.h`. Values are visible to all ranks at once.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Put(_scope: u8, key: *const c_char, value: *const Value) -> Status {
    finish(with_store(|store| {
        // SAFETY: the caller guarantees that non-NULL pointers are valid.
        let bytes = unsafe { packed(value) }?;
        store.publish(text(key)?, &bytes)
    }))
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Store_internal(
    process: *const Process,
    key: *const c_char,
    value: *const Value,
) -> Status {
    finish(with_store(|store| {
        // SAFETY: the caller guarantees that non-NULL pointers are valid.
        let bytes = unsafe { packed(value) }?;
        let rank = rank_of(process, store).ok_or(status::NOT_FOUND)?;
        store.keep(rank, text(key)?, bytes);
        Ok(())
    }))
}

/// Serialises a value of the program.
///
/// # Safety
/// `value` must be NULL or valid.
unsafe fn packed(value: *const Value) -> Result<Vec<u8>> {
    // SAFETY: the caller guarantees that non-NULL pointers are valid.
    let value = unsafe { value.as_ref() }.ok_or(status::BAD_PARAMETER)?;
    // SAFETY: as above.
    unsafe { value::pack(value) }.ok_or(status::NOT_SUPPORTED)
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Data_pack(
    _target: *const Process,
    buffer: *mut Buffer,
    values: *const c_void,
    count: i32,
    kind: u16,
) -> Status {
    // SAFETY: the caller guarantees that non-NULL pointers are valid.
    let (Some(buffer), Ok(count)) = (unsafe { buffer.as_mut() }, usize::try_from(count)) else {
        return status::BAD_PARAMETER;
    };
    // SAFETY: the caller guarantees `count` values.
    finish(unsafe { buffer::pack(values, count, kind) }.and_then(|bytes| buffer.add(&bytes)))
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Data_unpack(
    _source: *const Process,
    buffer: *mut Buffer,
    values: *mut c_void,
    count: *mut i32,
    kind: u16,
) -> Status {
    // SAFETY: the caller guarantees that non-NULL pointers are valid.
    let (Some(buffer), Some(count)) = (unsafe { buffer.as_mut() }, unsafe { count.as_mut() }) else {
        return status::BAD_PARAMETER;
    };
    let all = buffer.left();
    let mut left = all;
    // SAFETY: the caller guarantees room for `count` values.
    let found = unsafe { buffer::unpack(&mut left, values, usize::try_from(*count).unwrap_or(0), kind) };
    let read = all.len() - left.len();
    finish(found.map(|found| {
        *count = found as i32;
        // SAFETY: `read` bytes were read.
        buffer.next = unsafe { buffer.next.add(read) };
    }))
}

/// See `pmix.h`. Does nothing, as [`PMIx_Put`] makes values visible at once.
#[unsafe(no_mangle)]
pub extern "C" fn PMIx_Commit() -> Status {
    finish(with_store(|_| Ok(())))
}

/// See `pmix.h`. Does not wait for missing values.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Get(
    process: *const Process,
    key: *const c_char,
    _info: *const c_void,
    _infos: usize,
    to: *mut *mut Value,
) -> Status {
    finish(text(key).and_then(|key| {
        let bytes = with_store(|store| {
            let rank = rank_of(process, store).ok_or(status::NOT_FOUND)?;
            store.get(rank, key)
        })?;
        let value = value::unpack(&bytes).ok_or(status::NOT_FOUND)?;
        // SAFETY: the caller guarantees a valid pointer.
        unsafe { to.write(value) };
        Ok(())
    }))
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Fence(
    processes: *const Process,
    count: usize,
    _info: *const c_void,
    _infos: usize,
) -> Status {
    finish(meet(processes, count))
}

/// See `pmix.h`. Blocks, so that its completion needs no thread.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Fence_nb(
    processes: *const Process,
    count: usize,
    _info: *const c_void,
    _infos: usize,
    completed: Option<Completed>,
    data: *mut c_void,
) -> Status {
    let Some(completed) = completed else { return status::BAD_PARAMETER };
    finish(meet(processes, count).map(|()| {
        // SAFETY: a call of the program's callback with its argument.
        unsafe { completed(status::SUCCESS, data) };
    }))
}

/// See `pmix.h`. No events occur: a job ends if a rank fails.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Register_event_handler(
    _codes: *const Status,
    _count: usize,
    _info: *const c_void,
    _infos: usize,
    _handler: *const c_void,
    registered: Option<Registered>,
    data: *mut c_void,
) -> Status {
    if let Some(registered) = registered {
        // SAFETY: a call of the program's callback with its argument.
        unsafe { registered(status::SUCCESS, 0, data) };
    }
    status::SUCCESS
}

/// See `pmix.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Deregister_event_handler(
    _handler: usize,
    completed: Option<Completed>,
    data: *mut c_void,
) -> Status {
    if let Some(completed) = completed {
        // SAFETY: a call of the program's callback with its argument.
        unsafe { completed(status::SUCCESS, data) };
    }
    status::SUCCESS
}

/// See `pmix.h`. Queries are not supported.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Query_info_nb(
    _queries: *const c_void,
    _count: usize,
    answered: Option<Answered>,
    data: *mut c_void,
) -> Status {
    if let Some(answered) = answered {
        // SAFETY: a call of the program's callback with its argument.
        unsafe { answered(status::NOT_SUPPORTED, ptr::null_mut(), 0, data, None, ptr::null_mut()) };
    }
    status::SUCCESS
}

/// See `pmix.h`. spinrun refuses it, with the reason for the user.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMIx_Spawn(
    _info: *const c_void,
    _infos: usize,
    _programs: *const c_void,
    _count: usize,
    _namespace: *mut c_char,
) -> Status {
    finish(with_store(Store::spawn))
}
