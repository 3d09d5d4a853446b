//! hpu
