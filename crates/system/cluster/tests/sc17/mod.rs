// SPDX-License-Identifier: Apache-2.0
//! Times of machines/sc17-int.toml in ps, for tests with explicit sums. `DMA_8` and `PORT_8` are for 8 bytes.

pub const O: u64 = 65_000;
pub const POLL: u64 = 51_000;
pub const MATCH: u64 = 30_000;
pub const CAM: u64 = 2_000;
pub const DMA: u64 = 50_000;
pub const DMA_8: u64 = 54;
pub const PORT_8: u64 = 160;
pub const NETWORK: u64 = 2 * 33_400 + 50_000;

/// Time from the post of an 8-byte put until its data is in the other host's memory. Cards of every kind look up the
/// header packet.
pub const PUT_8: u64 = 2 * DMA + DMA_8 + PORT_8 + NETWORK + MATCH + DMA + DMA_8;
