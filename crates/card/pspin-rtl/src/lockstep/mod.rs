//! The hardware beside the model.
//!
//! * [`run`](mod@run): the same packets on both; [`traffic`]: random packets
//! * [`tape`]: what happens in a unit, to be compared cycle by cycle; [`loaded`]: packet by packet
//! * [`instructions`]: each instruction of the hardware against the instruction-set simulator

pub mod instructions;
pub mod loaded;
pub mod run;
pub mod tape;
pub mod traffic;
