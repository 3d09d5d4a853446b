// SPDX-License-Identifier: Apache-2.0
//! Handlers as machine code of this computer: the native engine of live cards.
//!
//! Handlers and a small runtime (`sdk/pspin/rt/native`) are an executable without a C library. Each execution context is
//! a process of it, which maps only the memories of its context and may only wait, write to the port, and ring the
//! card's bell. Pointers have 32 bits (x32), so that all structures have the layout of the card's, and memories have the
//! card's addresses.
//!
//! * [`layout`]: the memory shared with such a process
//! * [`image`]: the executable
//! * [`process`]: one process: its memories, tasks, watchdog, and end
//! * [`engine`]: messages on processes: header handler first, completion handler last
//! * [`clock`]: the time-stamp counter as a clock

pub mod clock;
pub mod engine;
pub mod image;
pub mod layout;
pub mod process;
