// SPDX-License-Identifier: Apache-2.0
//! Memory windows of handlers.

/// Use of a window's bytes by concurrent handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Constant, or used only by this handler: its stack, its arguments, the program.
    #[default]
    Private,
    /// Used only by this handler, and reading them is progress: its packet.
    Input,
    /// Also read and written by other handlers.
    Shared,
}

/// A range of card addresses that a handler may access, and the position of its bytes in the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First card address.
    pub base: u32,
    /// Size in bytes.
    pub len: u32,
    /// Offset of the first byte in [`Memory::arena`](crate::Memory::arena).
    pub offset: usize,
    /// True if stores are allowed.
    pub write: bool,
    /// Use by other handlers.
    pub sharing: Sharing,
}
