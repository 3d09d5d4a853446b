//! The hardware beside the model.
//!
//! * [`run`](mod@run): the same packets on both; [`tape`]: what happens in a unit, to be compared; [`traffic`]: random packets
//! * [`instructions`]: each instruction of the hardware against the instruction-set simulator

pub mod instructions;
pub mod run;
pub mod tape;
pub mod traffic;
