// SPDX-License-Identifier: Apache-2.0
//! Pending requests of the driver.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use crate::types::Context;

/// Packet of the driver.
pub struct Packet {
    pub context: Context,
    pub message: u32,
    pub bytes: Vec<u8>,
    /// Number of its bytes copied to L1.
    pub transfer: u32,
    pub is_last: bool,
    /// Cycles to the next one.
    pub gap: u32,
    pub user: u64,
}

/// Request of the driver.
pub enum Request {
    /// Arrival of a packet.
    Packet(Packet),
    /// Write to the card.
    Write { address: u32, bytes: Vec<u8>, user: *mut c_void },
    /// Read from the card.
    Read { address: u32, data: *mut u8, size: u32, user: *mut c_void },
    /// New priority of a message queue.
    Priority { queue: u32, priority: u8 },
    /// No further packets.
    End,
}

thread_local! {
    /// Packet size limit of the card in bytes; 0 without a card.
    static LARGEST: Cell<u32> = const { Cell::new(0) };
    static REQUESTS: RefCell<Vec<Request>> = const { RefCell::new(Vec::new()) };
}

/// Adds a request.
pub fn add(request: Request) {
    REQUESTS.with_borrow_mut(|requests| requests.push(request));
}

/// Takes the requests since the last call, in order.
pub fn take() -> Vec<Request> {
    REQUESTS.take()
}

/// Returns true if no request is pending.
pub fn is_empty() -> bool {
    REQUESTS.with_borrow(Vec::is_empty)
}

/// Clears the requests; the next simulation takes packets of up to `largest` bytes.
pub fn start(largest: u32) {
    drop(take());
    LARGEST.set(largest);
}

/// Returns the packet size limit of the card in bytes; 0 without a card.
pub fn largest() -> u32 {
    LARGEST.get()
}
