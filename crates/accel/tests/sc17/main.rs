//! The unit of the sPIN paper, alone: handlers of a few instructions, and an environment that the test provides.
//!
//! The number of cycles of a handler is taken from its usage; everything else follows from 0.4 ns per cycle.

mod calls;
mod ends;
mod memory;
mod rig;
mod schedule;
