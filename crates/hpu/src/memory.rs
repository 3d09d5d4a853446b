use crate::watch::{Attention, Watched};
use crate::window::{Sharing, Window};

/// The memory that one handler invocation may access. Any other access, or one that crosses the end of a window, is a
/// fault.
pub struct Memory<'a> {
    /// The bytes of the card's memories.
    pub arena: &'a mut [u8],
    /// The accessible ranges, which are few and do not overlap. The list is searched in order; the window that was
    /// found last is tried first.
    pub windows: &'a [Window],
    /// Words on which handlers of this card wait; the engine adds to them.
    pub watched: &'a mut Watched,
}

/// A [`Memory`] in use: a cache of the last window that was read and of the last that was written.
///
/// The cached part of a shared window contains no watched word, so accesses to watched words take the slow path and all
/// others cost nothing extra. While the handler may be waiting ([`Attention`]), shared windows are not cached at all.
pub struct View<'a> {
    arena: &'a mut [u8],
    windows: &'a [Window],
    watched: &'a mut Watched,
    pub(crate) attention: Attention,
    read: Window,
    written: Window,
    /// Whether accesses to watched words may happen now.
    pub(crate) granted: bool,
    /// Whether the access that failed was to a watched word.
    pub(crate) synchronises: bool,
    /// Address and size in bytes of the access that failed.
    pub(crate) denied: (u32, u32),
    /// Wants to know each access to shared memory.
    pub(crate) watcher: Option<&'a mut dyn Watcher>,
    /// Whether the instruction orders memory: an atomic operation, or an access next to a fence.
    pub(crate) orders: bool,
}

/// Watches a thread that runs instruction by instruction
/// ([`Engine::run_stepwise`](crate::Engine::run_stepwise)).
pub trait Watcher {
    /// Whether the thread stops before its instruction at `pc`.
    fn stops(&mut self, pc: u32) -> bool;

    /// Whether it wants to know accesses.
    fn wants_accesses(&self) -> bool;

    /// The instruction accesses memory that handlers share. `orders` says whether it is an atomic operation, or next to a fence.
    fn accesses(&mut self, address: u32, bytes: u32, write: bool, orders: bool);
}

impl<'a> View<'a> {
    pub(crate) fn new(memory: &'a mut Memory<'_>, attention: Attention) -> View<'a> {
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
            watcher: None,
            orders: false,
        }
    }

    /// A view of a single window, for an access whose place is known.
    pub(crate) fn of_window(arena: &'a mut [u8], window: Window, nothing: &'a mut Watched) -> View<'a> {
        let none = Window::default();
        // An empty window is found nowhere, so an access outside the window is denied.
        let read = if window.offset.checked_add(window.len as usize).is_some_and(|end| end <= arena.len()) {
            window
        } else {
            none
        };
        View {
            arena,
            windows: &[],
            watched: nothing,
            attention: Attention::default(),
            read,
            written: if window.write { read } else { none },
            granted: false,
            synchronises: false,
            denied: (0, 0),
            watcher: None,
            orders: false,
        }
    }

    /// Records the access of a misaligned atomic operation, which fails with
    /// [`Flow::Misaligned`](crate::isa::Flow::Misaligned).
    pub fn deny(&mut self, address: u32, len: u32) {
        self.denied = (address, len);
    }

    /// Returns the bytes at `address`. `None` means that the handler may not read them, or that it may not read them
    /// yet because a handler waits for them; the semantic function then returns [`Flow::Load`](crate::isa::Flow::Load).
    #[inline(always)]
    pub fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        let window = if holds(&self.read, address, N) { self.read } else { self.find(address, N, false)? };
        let start = window.offset + address.wrapping_sub(window.base) as usize;
        self.arena.get(start..)?.first_chunk().copied()
    }

    /// Writes `bytes` at `address`. `None` means that the handler may not write there, or that it may not write there
    /// yet because a handler waits for them; the semantic function then returns
    /// [`Flow::Store`](crate::isa::Flow::Store).
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
        let inside = |w: &Window| w.offset.checked_add(w.len as usize).is_some_and(|end| end <= arena);
        let allowed = |w: &Window| holds(w, address, len) && (w.write || !write);
        self.denied = (address, len as u32);
        let window = *self.windows.iter().find(|window| allowed(window) && inside(window))?;
        let is_watched = self.watcher.as_ref().is_some_and(|watcher| watcher.wants_accesses());
        if is_watched && window.sharing == Sharing::Shared {
            self.shared(window, address, len as u32, write)?;
            let orders = self.orders;
            self.watcher.as_mut()?.accesses(address, len as u32, write, orders);
            return Some(window);
        }
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
        match write {
            true => {
                self.written = known;
                // What a handler writes it reads soon: a search less, and of no other consequence.
                if self.read.len == 0 {
                    self.read = known;
                }
            }
            false => self.read = known,
        }
        Some(known)
    }

    /// Handles an access to shared memory. Returns `None` when the access must wait for its time, and otherwise the
    /// part of the window that may be cached, if any.
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
