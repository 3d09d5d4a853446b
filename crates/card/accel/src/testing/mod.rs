//! Utilities that tests of accelerators and of cards share.

pub mod code;
