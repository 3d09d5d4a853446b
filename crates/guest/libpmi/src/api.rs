// SPDX-License-Identifier: Apache-2.0
//! C functions documented in `pmi.h`.

use crate::code;
use abi::pmi::{Answer, environment, lost};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Job of this process, set by `PMI_Init`.
struct Job {
    /// Connection and limits. [`abi::pmi::Job::maxes`] is valid with or without the final zero byte.
    wire: abi::pmi::Job,
    /// Index of the pair that `PMI_KVS_Iter_next` returns next.
    next_pair: u64,
}

static JOB: Mutex<Option<Job>> = Mutex::new(None);

/// Result of a C function: a value, or an error code other than [`code::SUCCESS`].
type Result<T = ()> = std::result::Result<T, c_int>;

fn finish(result: Result) -> c_int {
    result.err().unwrap_or(code::SUCCESS)
}

fn lock() -> MutexGuard<'static, Option<Job>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `act` with the job of this process.
fn with_job<T>(act: impl FnOnce(&mut Job) -> Result<T>) -> Result<T> {
    act(lock().as_mut().ok_or(code::NOT_INITIALISED)?)
}

fn complain(what: &str) -> c_int {
    abi::pmi::say(&format!("libpmi: {what}"));
    code::FAIL
}

/// Writes a result to the pointer that the C caller passed.
fn give<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    // SAFETY: the C caller guarantees that non-NULL pointers are valid.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a text and its final zero byte to a buffer of `length` bytes.
fn give_text(to: *mut c_char, length: usize, text: &str) -> Result {
    if to.is_null() {
        return Err(code::INVALID_ARGUMENT);
    }
    if length <= text.len() {
        return Err(code::INVALID_LENGTH);
    }
    // SAFETY: the C caller guarantees `length` bytes.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Reads a one-line text argument.
fn text<'a>(from: *const c_char, otherwise: c_int) -> Result<&'a str> {
    if from.is_null() {
        return Err(otherwise);
    }
    // SAFETY: the C caller guarantees a valid string.
    let text = unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| otherwise)?;
    if text.contains(['\n', '\0']) { Err(otherwise) } else { Ok(text) }
}

/// Reads a text argument without blanks.
fn word<'a>(from: *const c_char, otherwise: c_int) -> Result<&'a str> {
    text(from, otherwise).and_then(|word| if word.contains([' ', '=']) { Err(otherwise) } else { Ok(word) })
}

fn usable(length: c_int) -> Result<usize> {
    usize::try_from(length).map_err(|_| code::INVALID_LENGTH)
}

impl Job {
    fn join() -> Result<Job> {
        let wire = abi::pmi::Job::join().map_err(|why| complain(&why))?;
        Ok(Job { wire, next_pair: 0 })
    }

    fn ask(&mut self, line: &str, expected: &str) -> Result<Answer> {
        self.wire.connection.ask(line, expected).map_err(|error| complain(&lost(&error)))
    }

    /// Sends a line and waits for its answer, like [`Connection::ask`]. An answer other than success is an error.
    fn demand(&mut self, line: &str, expected: &str) -> Result<Answer> {
        Some(self.ask(line, expected)?).filter(Answer::is_ok).ok_or(code::FAIL)
    }

    fn key<'a>(&self, key: *const c_char) -> Result<&'a str> {
        let key = word(key, code::INVALID_KEY)?;
        if key.is_empty() || key.len() > self.wire.maxes[1] { Err(code::INVALID_KEY_LENGTH) } else { Ok(key) }
    }

    /// Writes the next pair of the iteration, or an empty key at the end.
    fn pair(
        &mut self,
        space: *const c_char,
        key: *mut c_char,
        keys: c_int,
        value: *mut c_char,
        values: c_int,
    ) -> Result {
        let space = word(space, code::INVALID_ARGUMENT)?;
        let line = format!("cmd=getbyidx kvsname={space} idx={}", self.next_pair);
        let answer = self.ask(&line, "getbyidx_results")?;
        let (keys, values) = (usable(keys)?, usable(values)?);
        if !answer.is_ok() {
            return give_text(key, keys, "").and(give_text(value, values, ""));
        }
        give_text(key, keys, answer.text("key").unwrap_or_default())?;
        give_text(value, values, answer.text("val").unwrap_or_default())?;
        self.next_pair = answer.number("nextidx").ok_or(code::FAIL)?;
        Ok(())
    }
}

/// Writes a number that is the same for all ranks.
fn number(to: *mut c_int, of: impl FnOnce(&mut Job) -> Result<c_int>) -> c_int {
    finish(with_job(|job| of(job)).and_then(|value| give(to, value)))
}

fn own(number: u32) -> Result<c_int> {
    c_int::try_from(number).map_err(|_| code::FAIL)
}

/// Writes the maximum length of one of the texts in [`abi::pmi::Job::maxes`].
fn room(to: *mut c_int, which: usize) -> c_int {
    number(to, |job| c_int::try_from(job.wire.maxes[which]).map_err(|_| code::FAIL))
}

fn space_name(to: *mut c_char, length: c_int) -> c_int {
    finish(with_job(|job| give_text(to, usable(length)?, &job.wire.space)))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Init(spawned: *mut c_int) -> c_int {
    let mut job = lock();
    if job.is_none() {
        match Job::join() {
            Ok(joined) => *job = Some(joined),
            Err(why) => return why,
        }
    }
    finish(give(spawned, environment("PMI_SPAWNED").unwrap_or(0)))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Initialized(initialized: *mut c_int) -> c_int {
    finish(give(initialized, c_int::from(lock().is_some())))
}

/// See `pmi.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Finalize() -> c_int {
    let done = with_job(|job| job.demand("cmd=finalize", "finalize_ack").map(drop));
    *lock() = None;
    finish(done)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_size(size: *mut c_int) -> c_int {
    number(size, |job| own(job.wire.size))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_rank(rank: *mut c_int) -> c_int {
    number(rank, |job| own(job.wire.rank))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_universe_size(size: *mut c_int) -> c_int {
    number(size, |job| job.demand("cmd=get_universe_size", "universe_size")?.number("size").ok_or(code::FAIL))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_appnum(appnum: *mut c_int) -> c_int {
    number(appnum, |job| job.demand("cmd=get_appnum", "appnum")?.number("appnum").ok_or(code::FAIL))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_clique_size(size: *mut c_int) -> c_int {
    number(size, |_| Ok(1))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_clique_ranks(ranks: *mut c_int, length: c_int) -> c_int {
    if length < 1 {
        return code::INVALID_LENGTH;
    }
    number(ranks, |job| own(job.wire.rank))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_id(id: *mut c_char, length: c_int) -> c_int {
    space_name(id, length)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_kvs_domain_id(id: *mut c_char, length: c_int) -> c_int {
    space_name(id, length)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Get_id_length_max(length: *mut c_int) -> c_int {
    room(length, 0)
}

/// See `pmi.h`.
#[unsafe(no_mangle)]
pub extern "C" fn PMI_Barrier() -> c_int {
    finish(with_job(|job| job.demand("cmd=barrier_in", "barrier_out").map(drop)))
}

/// See `pmi.h`. It does not return.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Abort(status: c_int, message: *const c_char) -> c_int {
    if !message.is_null() {
        // SAFETY: the C caller guarantees a valid string.
        let message = unsafe { CStr::from_ptr(message) };
        abi::pmi::say(message.to_string_lossy().trim_end());
    }
    // The process ends even if the simulator is unreachable.
    let _ = with_job(|job| job.wire.connection.tell(&format!("cmd=abort exitcode={status}")).map_err(|_| code::FAIL));
    std::process::exit(if status & 0xff == 0 { c_int::from(status != 0) } else { status });
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_my_name(name: *mut c_char, length: c_int) -> c_int {
    space_name(name, length)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_name_length_max(length: *mut c_int) -> c_int {
    room(length, 0)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_key_length_max(length: *mut c_int) -> c_int {
    room(length, 1)
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get_value_length_max(length: *mut c_int) -> c_int {
    room(length, 2)
}

/// See `pmi.h`. Fails, as a job has one space.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Create(_name: *mut c_char, _length: c_int) -> c_int {
    complain("PMI_KVS_Create: a job has one key-value space, that of PMI_KVS_Get_my_name")
}

/// See `pmi.h`. Fails, as a job has one space.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Destroy(_name: *const c_char) -> c_int {
    complain("PMI_KVS_Destroy: the key-value space of a job stays until the job ends")
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Put(space: *const c_char, key: *const c_char, value: *const c_char) -> c_int {
    finish(with_job(|job| {
        let (space, key) = (word(space, code::INVALID_ARGUMENT)?, job.key(key)?);
        let value = text(value, code::INVALID_VALUE)?;
        if value.len() > job.wire.maxes[2] {
            return Err(code::INVALID_VALUE_LENGTH);
        }
        job.demand(&format!("cmd=put kvsname={space} key={key} value={value}"), "put_result").map(drop)
    }))
}

/// See `pmi.h`. Does nothing, as `PMI_KVS_Put` makes values visible at once.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Commit(space: *const c_char) -> c_int {
    finish(with_job(|_| word(space, code::INVALID_ARGUMENT).map(drop)))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Get(
    space: *const c_char,
    key: *const c_char,
    value: *mut c_char,
    length: c_int,
) -> c_int {
    finish(with_job(|job| {
        let (space, key) = (word(space, code::INVALID_ARGUMENT)?, job.key(key)?);
        let answer = job.ask(&format!("cmd=get kvsname={space} key={key}"), "get_result")?;
        if !answer.is_ok() {
            return Err(code::INVALID_KEY);
        }
        give_text(value, usable(length)?, answer.text("value").unwrap_or_default())
    }))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Iter_first(
    space: *const c_char,
    key: *mut c_char,
    key_length: c_int,
    value: *mut c_char,
    value_length: c_int,
) -> c_int {
    finish(with_job(|job| {
        job.next_pair = 0;
        job.pair(space, key, key_length, value, value_length)
    }))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_KVS_Iter_next(
    space: *const c_char,
    key: *mut c_char,
    key_length: c_int,
    value: *mut c_char,
    value_length: c_int,
) -> c_int {
    finish(with_job(|job| job.pair(space, key, key_length, value, value_length)))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Publish_name(service: *const c_char, port: *const c_char) -> c_int {
    finish(with_job(|job| {
        let (service, port) = (word(service, code::INVALID_ARGUMENT)?, text(port, code::INVALID_ARGUMENT)?);
        job.demand(&format!("cmd=publish_name service={service} port={port}"), "publish_result").map(drop)
    }))
}

/// See `pmi.h`.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Unpublish_name(service: *const c_char) -> c_int {
    finish(with_job(|job| {
        let service = word(service, code::INVALID_ARGUMENT)?;
        job.demand(&format!("cmd=unpublish_name service={service}"), "unpublish_result").map(drop)
    }))
}

/// See `pmi.h`. `port` must have room for a key's value.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Lookup_name(service: *const c_char, port: *mut c_char) -> c_int {
    finish(with_job(|job| {
        let service = word(service, code::INVALID_ARGUMENT)?;
        let answer = job.demand(&format!("cmd=lookup_name service={service}"), "lookup_result")?;
        give_text(port, job.wire.maxes[2], answer.text("port").unwrap_or_default())
    }))
}

/// See `pmi.h`. Always fails.
///
/// # Safety
/// Pointers must be valid as the header requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMI_Spawn_multiple(
    _count: c_int,
    _commands: *const *const c_char,
    _arguments: *const *const *const c_char,
    _processes: *const c_int,
    _pair_counts: *const c_int,
    _pairs: *const *const c_void,
    _preput_count: c_int,
    _preput_pairs: *const c_void,
    _errors: *mut c_int,
) -> c_int {
    complain("PMI_Spawn_multiple: a simulated job has a fixed number of ranks")
}
