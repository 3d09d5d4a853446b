//! The layouts and numbers on which both sides of a boundary must agree: those shared by user programs (C), the library that
//! they link (`libportals.so`), the simulator, and the code on the card.
//!
//! * [`portals`]: the Portals 4 and P4sPIN constants and structures of `sdk/include/portals4.h` and `spin.h`
//! * [`mailbox`]: the shared memory through which a rank's library calls reach the simulator
//! * [`calls`]: the contract of these calls: arguments, results and properties
//! * [`pmi`]: a rank's connection to the simulator, over which it speaks PMI-1
//! * [`fork`]: how a process of the program makes the ranks as copies of itself
//! * [`device`]: what a handler sees (arguments, commands) and how device code is embedded in a host executable
//! * [`pspin`]: addresses and registers of the PsPIN unit, which the hardware shares too
//!
//! This crate is the source; the C headers repeat it, and tests compile C `_Static_assert`s generated from here.

pub mod calls;
pub mod device;
pub mod fork;
pub mod mailbox;
pub mod pmi;
pub mod portals;
pub mod pspin;
