// SPDX-License-Identifier: Apache-2.0
//! Functions of `pspinsim.h` and `spin.h`. Each returns `SPIN_SUCCESS`, or `SPIN_ERR` after a message that names it. A
//! defect of the simulator ends the process with a message: panics do not unwind into the driver.
//!
//! # Safety
//! Pointers must be valid as described in the headers, or null where the call reports an error.

#![allow(clippy::missing_safety_doc)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::callbacks::{self, HostAccess, PacketDone, PacketOut, TransferDone};
use crate::diagnostics::{Error, Result};
use crate::requests::{self, Request};
use crate::types::{Conf, Context, HANDLER_BYTES};
use crate::{packets, session};

const SPIN_SUCCESS: c_int = 0;
const SPIN_ERR: c_int = 1;

/// Converts the result of a call for C, after a message if it failed.
fn answer(call: &str, result: Result<()>) -> c_int {
    match result {
        Ok(()) => SPIN_SUCCESS,
        Err(error) => {
            eprintln!("libpspin: {call}: {error}");
            SPIN_ERR
        }
    }
}

fn null(name: &str) -> Error {
    Error::Argument(format!("{name} is null"))
}

/// Copies the bytes passed by the driver.
///
/// # Safety
/// `data` points to `size` bytes, unless it is null.
unsafe fn copied(name: &str, data: *const c_void, size: usize) -> Result<Vec<u8>> {
    match size {
        0 => Ok(Vec::new()),
        _ if data.is_null() => Err(null(name)),
        // SAFETY: as above.
        _ => Ok(unsafe { std::slice::from_raw_parts(data.cast(), size) }.to_vec()),
    }
}

/// Reads a path passed by the driver.
///
/// # Safety
/// `text` is a string, unless it is null.
unsafe fn path<'a>(name: &str, text: *const c_char) -> Result<&'a Path> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: as above; the driver keeps it during the call.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

fn size(name: &str, bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| Error::Argument(format!("{name} is {bytes} B, more than the card has addresses")))
}

/// `pspinsim_default_conf`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pspinsim_default_conf(conf: *mut Conf) -> c_int {
    // SAFETY: the driver's structure, if any.
    let result = unsafe { conf.as_mut() }.map(|conf| *conf = Conf::default());
    answer("pspinsim_default_conf", result.ok_or_else(|| null("conf")))
}

/// `pspinsim_init`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pspinsim_init(_argc: c_int, _argv: *mut *mut c_char, conf: *mut Conf) -> c_int {
    // SAFETY: the driver's structure, if any.
    let conf = unsafe { conf.as_ref() }.copied().unwrap_or_default();
    let folder = match conf.slm_files_path.is_null() {
        true => {
            std::env::var_os("PSPIN_HW").map(|home| PathBuf::from(home).join("sim_files/slm_files")).ok_or_else(|| {
                Error::Environment("slm_files_path is null, and PSPIN_HW is not set: spinkit pspin env".to_owned())
            })
        }
        // SAFETY: a string of the driver.
        false => unsafe { path("slm_files_path", conf.slm_files_path) }.map(Path::to_owned),
    };
    answer("pspinsim_init", folder.and_then(|folder| session::begin(&conf, folder)))
}

/// `pspinsim_run`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_run() -> c_int {
    answer("pspinsim_run", session::run())
}

/// `pspinsim_run_tick`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pspinsim_run_tick(done: *mut u8) -> c_int {
    let result = session::tick().map(|is_done| {
        // SAFETY: the driver's variable, if any.
        if let Some(done) = unsafe { done.as_mut() } {
            *done = is_done.into();
        }
    });
    answer("pspinsim_run_tick", result)
}

/// `pspinsim_fini`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_fini() -> c_int {
    answer("pspinsim_fini", session::end())
}

/// `pspinsim_time`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_time() -> u64 {
    callbacks::now_ps()
}

/// `pspinsim_packet_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pspinsim_packet_add(
    ec: *const Context,
    msgid: u32,
    pkt_data: *const u8,
    pkt_len: usize,
    pkt_l1_len: usize,
    eom: u8,
    wait_cycles: u32,
    user_ptr: u64,
) -> c_int {
    let add = || {
        // SAFETY: the driver's structure, if any; it may have any alignment.
        let context = if ec.is_null() { return Err(null("ec")) } else { unsafe { ec.read_unaligned() } };
        packets::check(pkt_len)?;
        // SAFETY: the driver's bytes.
        let bytes = unsafe { copied("pkt_data", pkt_data.cast(), pkt_len)? };
        packets::add(context, msgid, bytes, pkt_l1_len, eom != 0, wait_cycles, user_ptr);
        Ok(())
    };
    answer("pspinsim_packet_add", add())
}

/// `pspinsim_packet_trace_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pspinsim_packet_trace_read(
    pkt_file_path: *const c_char,
    data_file_path: *const c_char,
) -> c_int {
    // SAFETY: strings of the driver.
    let paths =
        unsafe { path("pkt_file_path", pkt_file_path).and_then(|a| Ok((a, path("data_file_path", data_file_path)?))) };
    answer("pspinsim_packet_trace_read", paths.and_then(|(packets, data)| packets::read_trace(packets, data)))
}

/// `pspinsim_packet_eos`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_packet_eos() -> c_int {
    requests::add(Request::End);
    SPIN_SUCCESS
}

/// `pspinsim_set_fmq_prio`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_set_fmq_prio(fmq_id: u32, prio: u8) {
    if requests::largest() == 0 {
        eprintln!("libpspin: pspinsim_set_fmq_prio: there is no card: pspinsim_init was not called");
        return;
    }
    requests::add(Request::Priority { queue: fmq_id, priority: prio });
}

/// `pspinsim_cb_set_pkt_out`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pkt_out(cb: Option<PacketOut>) -> c_int {
    callbacks::set(|callbacks| callbacks.packet_out = cb);
    SPIN_SUCCESS
}

/// `pspinsim_cb_set_pkt_feedback`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pkt_feedback(cb: Option<PacketDone>) -> c_int {
    callbacks::set(|callbacks| callbacks.packet_done = cb);
    SPIN_SUCCESS
}

/// `pspinsim_cb_set_pcie_slv_write`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pcie_slv_write(cb: Option<HostAccess>) -> c_int {
    callbacks::set(|callbacks| callbacks.host_write = cb);
    SPIN_SUCCESS
}

/// `pspinsim_cb_set_pcie_slv_read`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pcie_slv_read(cb: Option<HostAccess>) -> c_int {
    callbacks::set(|callbacks| callbacks.host_read = cb);
    SPIN_SUCCESS
}

/// `pspinsim_cb_set_pcie_mst_write_completion`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pcie_mst_write_completion(cb: Option<TransferDone>) -> c_int {
    callbacks::set(|callbacks| callbacks.write_done = cb);
    SPIN_SUCCESS
}

/// `pspinsim_cb_set_pcie_mst_read_completion`
#[unsafe(no_mangle)]
pub extern "C" fn pspinsim_cb_set_pcie_mst_read_completion(cb: Option<TransferDone>) -> c_int {
    callbacks::set(|callbacks| callbacks.read_done = cb);
    SPIN_SUCCESS
}

/// `spin_nicmem_write`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_nicmem_write(addr: u32, data: *const c_void, len: usize, user_ptr: *mut c_void) -> c_int {
    let add = || {
        size("size", len)?;
        // SAFETY: the driver's bytes.
        let bytes = unsafe { copied("data", data, len)? };
        requests::add(Request::Write { address: addr, bytes, user: user_ptr });
        Ok(())
    };
    answer("spin_nicmem_write", add())
}

/// `spin_nicmem_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_nicmem_read(addr: u32, data: *mut c_void, len: usize, user_ptr: *mut c_void) -> c_int {
    let add = || {
        if data.is_null() && len > 0 {
            return Err(null("data"));
        }
        requests::add(Request::Read { address: addr, data: data.cast(), size: size("size", len)?, user: user_ptr });
        Ok(())
    };
    answer("spin_nicmem_read", add())
}

/// `spin_find_handler_by_name`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spin_find_handler_by_name(
    binfile: *const c_char,
    handler_name: *const c_char,
    handler_addr: *mut u32,
    handler_size: *mut usize,
) -> c_int {
    let find = || {
        // SAFETY: strings of the driver.
        let (file, name) = unsafe { (path("binfile", binfile)?, path("handler_name", handler_name)?) };
        let Some(address) = session::find(file, &name.to_string_lossy())? else { return Ok(()) };
        // SAFETY: variables of the driver, if any.
        if let Some(place) = unsafe { handler_addr.as_mut() } {
            *place = address;
        }
        // SAFETY: as above.
        if let Some(place) = unsafe { handler_size.as_mut() } {
            *place = HANDLER_BYTES as usize;
        }
        Ok(())
    };
    answer("spin_find_handler_by_name", find())
}
