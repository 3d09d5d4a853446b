// SPDX-License-Identifier: Apache-2.0
//! Layouts and constants shared by user programs (C), the library that they link (`libportals.so`), the simulator, and
//! the code on the card.
//!
//! * [`portals`]: Portals 4 and P4sPIN constants and structures of `sdk/include/portals4.h` and `spin.h`
//! * [`mailbox`]: shared memory that carries a rank's library calls to the simulator
//! * [`calls`]: contract of these calls: arguments, results and properties
//! * [`placement`]: nodes of ranks that share them
//! * [`pmi`]: PMI-1 connection of a rank to the simulator
//! * [`fork`]: protocol of the fork server, which starts ranks as copies of one process
//! * [`device`]: handler arguments, handler commands, and the embedding of device code in a host executable
//! * [`pspin`]: addresses and registers of the PsPIN unit, shared with the hardware
//!
//! This crate is the source; the C headers repeat it, and tests compile C `_Static_assert`s generated from here.

pub mod calls;
pub mod device;
pub mod fork;
pub mod mailbox;
pub mod placement;
pub mod pmi;
pub mod portals;
pub mod pspin;
