// SPDX-License-Identifier: Apache-2.0
//! What the driver has asked for and the simulation has not taken.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use crate::types::Context;

/// A packet.
pub struct Packet {
    pub context: Context,
    pub message: u32,
    pub bytes: Vec<u8>,
    /// How many of its bytes are copied to L1.
    pub transfer: u32,
    pub is_last: bool,
    /// Cycles to the next one.
    pub gap: u32,
    pub user: u64,
}

/// What the driver asks for.
pub enum Request {
    /// A packet arrives.
    Packet(Packet),
    /// Data is written to the card.
    Write { address: u32, bytes: Vec<u8>, user: *mut c_void },
    /// Data is read from the card.
    Read { address: u32, data: *mut u8, size: u32, user: *mut c_void },
    /// A message queue gets a priority.
    Priority { queue: u32, priority: u8 },
    /// No packet comes any more.
    End,
}

thread_local! {
    /// Bytes of the largest packet that the card takes; 0 without a card.
    static LARGEST: Cell<u32> = const { Cell::new(0) };
    static REQUESTS: RefCell<Vec<Request>> = const { RefCell::new(Vec::new()) };
}

/// The driver asks for something.
pub fn add(request: Request) {
    REQUESTS.with_borrow_mut(|requests| requests.push(request));
}

/// Takes what the driver has asked for since the last time, in its order.
pub fn take() -> Vec<Request> {
    REQUESTS.take()
}

/// Whether there is nothing to take.
pub fn is_empty() -> bool {
    REQUESTS.with_borrow(Vec::is_empty)
}

/// Forgets what was asked for: the next simulation takes packets of up to this many bytes.
pub fn start(largest: u32) {
    drop(take());
    LARGEST.set(largest);
}

/// Bytes of the largest packet that the card takes; 0 without a card.
pub fn largest() -> u32 {
    LARGEST.get()
}
