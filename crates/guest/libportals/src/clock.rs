//! Connects `libsimclock.so` to the simulated time of this process.

use crate::api::{spin_sleep_ps, spin_time_ps};
use crate::session::WHEN_OPEN;

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = prepare;

extern "C" fn prepare() {
    // Only this function sets it, once.
    let _ = WHEN_OPEN.set(begin_simulated_clock);
}

/// Tells `libsimclock.so`, if `spinrun` has preloaded it, that this process is a rank. By itself it finds only a
/// `libportals.so` that the program is linked to, not one that a plug-in loads.
fn begin_simulated_clock() {
    type Begin = unsafe extern "C" fn(extern "C" fn() -> u64, extern "C" fn(u64));
    // SAFETY: a valid string; the symbol, when it is there, is the function of this type.
    unsafe {
        let begin = libc::dlsym(libc::RTLD_DEFAULT, c"simclock_begin".as_ptr());
        if !begin.is_null() {
            std::mem::transmute::<*mut libc::c_void, Begin>(begin)(spin_time_ps, spin_sleep_ps);
        }
    }
}
