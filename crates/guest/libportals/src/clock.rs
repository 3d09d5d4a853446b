// SPDX-License-Identifier: Apache-2.0
//! Connects `libsimclock.so` to the simulated time of this process.

use crate::api::{spin_sleep_ps, spin_time_ps};
use crate::session::WHEN_OPEN;

/// Load-time constructor.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = prepare;

extern "C" fn prepare() {
    // Cannot fail: only this function sets it, once.
    let _ = WHEN_OPEN.set(begin_simulated_clock);
}

/// Informs `libsimclock.so`, if `spinrun` preloaded it, that this process is a rank. `libsimclock.so` itself finds
/// `libportals.so` only if the program is linked to it, not if a plug-in loads it.
fn begin_simulated_clock() {
    type Begin = unsafe extern "C" fn(extern "C" fn() -> u64, extern "C" fn(u64));
    // SAFETY: a valid string; the symbol, if present, is the function of this type.
    unsafe {
        let begin = libc::dlsym(libc::RTLD_DEFAULT, c"simclock_begin".as_ptr());
        if !begin.is_null() {
            std::mem::transmute::<*mut libc::c_void, Begin>(begin)(spin_time_ps, spin_sleep_ps);
        }
    }
}
