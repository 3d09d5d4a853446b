/// How concurrent handlers use the bytes of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Only this handler uses the bytes, or they are constant: its stack, its arguments, the program.
    #[default]
    Private,
    /// Only this handler uses the bytes, and reading them is progress: its packet.
    Input,
    /// Other handlers read and write the bytes too.
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
    /// Whether stores are allowed.
    pub write: bool,
    /// Whether other handlers may access these bytes.
    pub sharing: Sharing,
}
