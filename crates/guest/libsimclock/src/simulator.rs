// SPDX-License-Identifier: Apache-2.0
//! Access to the simulator through `libportals.so`.

use std::ptr::{self, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_long, clockid_t, time_t, timespec};

/// Default start of simulated time: 2017-11-12 00:00:00 UTC, the first day of SC'17, in seconds of the Unix epoch.
pub const EPOCH_S: u64 = 1_510_444_800;
/// Picoseconds per second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// Functions of `libportals.so` that read simulated time and sleep in it.
pub struct Simulator {
    /// Returns the simulated time in picoseconds.
    pub time_ps: TimePs,
    /// Sleeps for a duration in picoseconds.
    pub sleep_ps: SleepPs,
    /// True if clocks show simulated time, too.
    pub has_clocks: bool,
    /// Start date of wall clocks, in seconds of the Unix epoch.
    pub start_s: u64,
}

/// Type of `spin_time_ps`.
pub type TimePs = unsafe extern "C" fn() -> u64;
/// Type of `spin_sleep_ps`.
pub type SleepPs = unsafe extern "C" fn(u64);

/// Pointer to the simulator; null until this process is known to be a rank.
static SIMULATOR: AtomicPtr<Simulator> = AtomicPtr::new(null_mut());
/// Target of that pointer. All data that clocks read are in this library's data segment, so that spinrun can locate
/// them.
static PLACE: OnceLock<Simulator> = OnceLock::new();

impl Simulator {
    /// Sets the simulator of this process; only the first one has an effect.
    pub fn set(simulator: Option<Simulator>) {
        let place = simulator.map_or(null_mut(), |simulator| ptr::from_ref(PLACE.get_or_init(|| simulator)).cast_mut());
        SIMULATOR.store(place, Ordering::Release);
    }

    /// Returns the simulator, if this process is a rank.
    pub fn get() -> Option<&'static Simulator> {
        // SAFETY: null, or a pointer that is never freed.
        unsafe { SIMULATOR.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the simulator, if clocks show simulated time.
    pub fn clocks() -> Option<&'static Simulator> {
        Simulator::get().filter(|simulator| simulator.has_clocks)
    }

    /// Returns the simulated time in picoseconds.
    pub fn now_ps(&self) -> u64 {
        // SAFETY: a function of this type, see `simclock_begin`.
        unsafe { (self.time_ps)() }
    }

    /// Returns the simulated time of a clock: since the epoch for wall clocks, since the start of the job for others.
    pub fn time(&self, clock: clockid_t) -> timespec {
        let ps = self.now_ps();
        let start = if wall(clock) { self.start_s } else { 0 };
        timespec { tv_sec: (start + ps / PS_PER_S) as time_t, tv_nsec: (ps % PS_PER_S / 1000) as c_long }
    }

    /// Sleeps for `ps` picoseconds of simulated time.
    pub fn sleep(&self, ps: u64) {
        // SAFETY: a function of this type, see `simclock_begin`.
        unsafe { (self.sleep_ps)(ps) };
    }
}

fn wall(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI)
}
