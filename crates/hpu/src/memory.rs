use crate::watch::{Attention, Watched};

/// What a window's bytes are to handlers that run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The handler's own, or constant: its stack, its arguments, the program.
    #[default]
    Private,
    /// The handler's own, and reading it is work: its packet.
    Input,
    /// Others read and write them too.
    Shared,
}

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
    /// Whether other handlers may touch these bytes.
    pub sharing: Sharing,
}

/// What one handler invocation may touch; an access to anything else, or across the end of a window, is a fault.
pub struct Memory<'a> {
    /// The card's bytes.
    pub arena: &'a mut [u8],
    /// Few, and not overlapping; searched in order, the last hit first.
    pub windows: &'a [Window],
    /// Words on which handlers of this card wait; the engine adds to them.
    pub watched: &'a mut Watched,
}

/// A [`Memory`] in use: it remembers the last window that was read and the last that was written.
///
/// What is remembered of a shared window holds no watched word, so that accesses to those are noticed at no cost to all
/// others. While the handler may be waiting ([`Attention`]) nothing of shared windows is remembered.
pub(crate) struct View<'a> {
    arena: &'a mut [u8],
    windows: &'a [Window],
    watched: &'a mut Watched,
    pub attention: Attention,
    read: Window,
    written: Window,
    /// Accesses to watched words may happen now.
    pub granted: bool,
    /// The access that failed was to a watched word.
    pub synchronises: bool,
    /// Address and bytes of the access that failed.
    pub denied: (u32, u32),
}

impl<'a> View<'a> {
    pub fn new(memory: &'a mut Memory<'_>, attention: Attention) -> View<'a> {
        View {
            arena: memory.arena,
            windows: memory.windows,
            watched: memory.watched,
            attention,
            read: Window::default(),
            written: Window::default(),
            granted: false,
            synchronises: false,
            denied: (0, 0),
        }
    }

    /// The bytes at `address`; `None` (and [`View::denied`] is set) when they are not the handler's, or not yet
    /// ([`View::synchronises`]).
    #[inline(always)]
    pub fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        let window = if holds(&self.read, address, N) { self.read } else { self.find(address, N, false)? };
        let start = window.offset + address.wrapping_sub(window.base) as usize;
        self.arena.get(start..)?.first_chunk().copied()
    }

    /// Writes `bytes` at `address`; `None` (and [`View::denied`] is set) when that is not allowed, or not yet
    /// ([`View::synchronises`]).
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> Option<()> {
        let window = if holds(&self.written, address, N) { self.written } else { self.find(address, N, true)? };
        let start = window.offset + address.wrapping_sub(window.base) as usize;
        *self.arena.get_mut(start..)?.first_chunk_mut()? = bytes;
        Some(())
    }

    #[cold]
    fn find(&mut self, address: u32, len: usize, write: bool) -> Option<Window> {
        let arena = self.arena.len();
        let inside = |w: &&Window| w.offset.checked_add(w.len as usize).is_some_and(|end| end <= arena);
        let allowed = |w: &&Window| holds(w, address, len) && (w.write || !write);
        self.denied = (address, len as u32);
        let window = *self.windows.iter().filter(inside).find(allowed)?;
        let known = match window.sharing {
            Sharing::Private => window,
            Sharing::Input => {
                self.attention.distract();
                window
            }
            Sharing::Shared => match self.shared(window, address, len as u32, write)? {
                Some(part) => part,
                None => return Some(window),
            },
        };
        *(if write { &mut self.written } else { &mut self.read }) = known;
        Some(known)
    }

    /// An access to shared memory: nothing when it must wait for its time, otherwise the part of the window that may be
    /// remembered, if any.
    fn shared(&mut self, window: Window, address: u32, len: u32, write: bool) -> Option<Option<Window>> {
        if self.granted {
            return Some(None);
        }
        if write {
            self.attention.distract();
        } else if self.attention.is_on() {
            self.attention.load(address, len, self.watched);
        }
        if self.watched.touches(address, len) {
            self.synchronises = true;
            return None;
        }
        Some((write || !self.attention.is_on()).then(|| self.watched.free_part(window, address)))
    }
}

#[inline(always)]
fn holds(window: &Window, address: u32, len: usize) -> bool {
    u64::from(address.wrapping_sub(window.base)) + len as u64 <= u64::from(window.len)
}
