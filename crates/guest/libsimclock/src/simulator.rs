//! The simulator, as this process reaches it.

use std::ptr::{self, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_long, clockid_t, time_t, timespec};

/// The start of simulated time unless the user names another: 2017-11-12 00:00:00 UTC, the first day of SC'17, in seconds of the Unix epoch.
pub const EPOCH_S: u64 = 1_510_444_800;
/// Picoseconds of a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// The functions of `libportals.so` that read simulated time and sleep in it.
pub struct Simulator {
    /// Returns the simulated time in picoseconds.
    pub time_ps: TimePs,
    /// Sleeps for a number of picoseconds.
    pub sleep_ps: SleepPs,
    /// Whether clocks show simulated time too.
    pub has_clocks: bool,
    /// The date at which wall clocks start, in seconds of the Unix epoch.
    pub start_s: u64,
}

/// The type of `spin_time_ps`.
pub type TimePs = unsafe extern "C" fn() -> u64;
/// The type of `spin_sleep_ps`.
pub type SleepPs = unsafe extern "C" fn(u64);

/// The simulator; null while it is not known that this process is a rank.
static SIMULATOR: AtomicPtr<Simulator> = AtomicPtr::new(null_mut());
/// The value that it points to. All that clocks read is in the data of this library, so that spinrun knows it.
static PLACE: OnceLock<Simulator> = OnceLock::new();

impl Simulator {
    /// Sets the simulator of this process. The first one stays.
    pub fn set(simulator: Option<Simulator>) {
        let place = simulator.map_or(null_mut(), |simulator| ptr::from_ref(PLACE.get_or_init(|| simulator)).cast_mut());
        SIMULATOR.store(place, Ordering::Release);
    }

    /// Returns the simulator, if this process is a rank.
    pub fn get() -> Option<&'static Simulator> {
        // SAFETY: null, or never freed.
        unsafe { SIMULATOR.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the simulator, if clocks show simulated time.
    pub fn clocks() -> Option<&'static Simulator> {
        Simulator::get().filter(|simulator| simulator.has_clocks)
    }

    /// Returns the simulated time in picoseconds.
    pub fn now_ps(&self) -> u64 {
        // SAFETY: the function of this type, see `simclock_begin`.
        unsafe { (self.time_ps)() }
    }

    /// Returns the simulated time of a clock: since the epoch for wall clocks, since the start of the job for others.
    pub fn time(&self, clock: clockid_t) -> timespec {
        let ps = self.now_ps();
        let start = if wall(clock) { self.start_s } else { 0 };
        timespec { tv_sec: (start + ps / PS_PER_S) as time_t, tv_nsec: (ps % PS_PER_S / 1000) as c_long }
    }

    /// Sleeps for a number of picoseconds of simulated time.
    pub fn sleep(&self, ps: u64) {
        // SAFETY: the function of this type, see `simclock_begin`.
        unsafe { (self.sleep_ps)(ps) };
    }
}

fn wall(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI)
}
