//! The hardware beside the model.
//!
//! * [`instructions`]: each instruction of the hardware against the instruction-set simulator

pub mod instructions;
