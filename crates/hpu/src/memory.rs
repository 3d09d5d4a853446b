/// A range of card addresses that a handler may touch, and where its bytes are in the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First card address.
    pub base: u32,
    /// Bytes.
    pub len: u32,
    /// Where the bytes start in [`Memory::arena`].
    pub offset: usize,
    /// Whether stores are allowed.
    pub write: bool,
}

/// What one handler invocation may touch; an access to anything else, or across the end of a window, is a fault.
pub struct Memory<'a> {
    /// The card's bytes.
    pub arena: &'a mut [u8],
    /// Few, and not overlapping; searched in order, the last hit first.
    pub windows: &'a [Window],
}

/// A [`Memory`] in use: it remembers the last window that was read and the last that was written.
pub(crate) struct View<'a> {
    arena: &'a mut [u8],
    windows: &'a [Window],
    read: Window,
    written: Window,
    /// Address and bytes of the access that failed.
    pub denied: (u32, u32),
}

impl<'a> View<'a> {
    pub fn new(memory: &'a mut Memory<'_>) -> View<'a> {
        View {
            arena: memory.arena,
            windows: memory.windows,
            read: Window::default(),
            written: Window::default(),
            denied: (0, 0),
        }
    }

    /// The bytes at `address`; `None` (and [`View::denied`] is set) when they are not the handler's.
    #[inline(always)]
    pub fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        if !holds(&self.read, address, N) {
            self.read = self.find(address, N, false)?;
        }
        let start = self.read.offset + address.wrapping_sub(self.read.base) as usize;
        self.arena.get(start..)?.first_chunk().copied()
    }

    /// Writes `bytes` at `address`; `None` (and [`View::denied`] is set) when that is not allowed.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> Option<()> {
        if !holds(&self.written, address, N) {
            self.written = self.find(address, N, true)?;
        }
        let start = self.written.offset + address.wrapping_sub(self.written.base) as usize;
        *self.arena.get_mut(start..)?.first_chunk_mut()? = bytes;
        Some(())
    }

    #[cold]
    fn find(&mut self, address: u32, len: usize, write: bool) -> Option<Window> {
        let arena = self.arena.len();
        let inside = |w: &&Window| w.offset.checked_add(w.len as usize).is_some_and(|end| end <= arena);
        let allowed = |w: &&Window| holds(w, address, len) && (w.write || !write);
        self.denied = (address, len as u32);
        self.windows.iter().filter(inside).find(allowed).copied()
    }
}

#[inline(always)]
fn holds(window: &Window, address: u32, len: usize) -> bool {
    u64::from(address.wrapping_sub(window.base)) + len as u64 <= u64::from(window.len)
}
