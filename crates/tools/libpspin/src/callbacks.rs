// SPDX-License-Identifier: Apache-2.0
//! Callbacks of the driver, and the simulated time.

use std::cell::Cell;
use std::ffi::c_void;

use crate::types::BEAT;

/// `pkt_out_cb_t`
pub type PacketOut = unsafe extern "C" fn(*mut u8, usize);
/// `pkt_feedback_cb_t`
pub type PacketDone = unsafe extern "C" fn(u64, u64, u64, u64);
/// `pcie_slv_write_cb_t` and `pcie_slv_read_cb_t`
pub type HostAccess = unsafe extern "C" fn(u64, *mut u8, usize);
/// `pcie_mst_write_cb_t` and `pcie_mst_read_cb_t`
pub type TransferDone = unsafe extern "C" fn(*mut c_void);

/// Callback functions of the driver.
#[derive(Clone, Copy, Default)]
pub struct Callbacks {
    pub packet_out: Option<PacketOut>,
    pub packet_done: Option<PacketDone>,
    pub host_write: Option<HostAccess>,
    pub host_read: Option<HostAccess>,
    pub write_done: Option<TransferDone>,
    pub read_done: Option<TransferDone>,
}

thread_local! {
    static CALLBACKS: Cell<Callbacks> = Cell::default();
    static NOW_PS: Cell<u64> = const { Cell::new(0) };
}

/// Changes the callbacks of the driver.
pub fn set(change: impl FnOnce(&mut Callbacks)) {
    let mut callbacks = CALLBACKS.get();
    change(&mut callbacks);
    CALLBACKS.set(callbacks);
}

/// Returns the simulated time in picoseconds.
pub fn now_ps() -> u64 {
    NOW_PS.get()
}

/// Sets the simulated time in picoseconds.
pub fn set_now_ps(now: u64) {
    NOW_PS.set(now);
}

/// Reports a packet that left the card.
pub fn packet_out(mut bytes: Vec<u8>) {
    if let Some(function) = CALLBACKS.get().packet_out {
        // SAFETY: the driver's function, which may use these bytes until it returns.
        unsafe { function(bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// Reports a finished packet.
pub fn packet_done(user: u64, arrived_ps: u64, submitted_ps: u64, done_ps: u64) {
    if let Some(function) = CALLBACKS.get().packet_done {
        // SAFETY: the driver's function; its arguments are numbers.
        unsafe { function(user, arrived_ps, submitted_ps, done_ps) }
    }
}

/// Reports a write to the host.
pub fn host_write(address: u64, data: &[u8]) {
    let Some(function) = CALLBACKS.get().host_write else { return };
    let mut data = data.to_vec();
    for (address, part) in beats(address, data.len()) {
        // SAFETY: the driver's function, which may use these bytes until it returns.
        unsafe { function(address, data[part.clone()].as_mut_ptr(), part.len()) }
    }
}

/// Reports a read from the host: the driver may replace `data`.
pub fn host_read(address: u64, data: &mut [u8]) {
    let Some(function) = CALLBACKS.get().host_read else { return };
    for (address, part) in beats(address, data.len()) {
        // SAFETY: the driver's function, which may write these bytes until it returns.
        unsafe { function(address, data[part.clone()].as_mut_ptr(), part.len()) }
    }
}

/// Reports a finished transfer; `select` returns the callback.
pub fn transfer_done(select: fn(&Callbacks) -> Option<TransferDone>, user: *mut c_void) {
    if let Some(function) = select(&CALLBACKS.get()) {
        // SAFETY: the driver's function; its argument is the driver's own pointer.
        unsafe { function(user) }
    }
}

/// Splits an access at multiples of [`BEAT`]: the address of each part, and its range in the data. Addresses wrap.
pub fn beats(address: u64, size: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = address.wrapping_add(done as u64);
        let part = done..size.min(done + BEAT - (at % BEAT as u64) as usize);
        done = part.end;
        (!part.is_empty()).then_some((at, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kilobyte_at_an_odd_address_comes_in_17_parts() {
        let parts: Vec<_> = beats(0xdead_beef_dead_beef, 1_024).collect();
        assert_eq!(parts.len(), 17);
        assert_eq!((parts[0].0, parts[0].1.clone()), (0xdead_beef_dead_beef, 0..17));
        assert_eq!((parts[1].0, parts[1].1.clone()), (0xdead_beef_dead_bf00, 17..81));
        assert_eq!((parts[16].0, parts[16].1.clone()), (0xdead_beef_dead_c2c0, 977..1_024));
        assert_eq!(beats(7, 0).count(), 0);
    }
}
