//! The unit of the sPIN paper, alone: handlers of a few instructions, and an environment that the test plays.
//!
//! How many cycles a handler takes is asked of its usage; everything else follows from 0.4 ns a cycle.

mod calls;
mod ends;
mod memory;
mod rig;
mod schedule;
