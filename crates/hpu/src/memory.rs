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
    read: Span,
    written: Span,
    /// Whether accesses to watched words may happen now.
    pub(crate) granted: bool,
    /// Whether the access that failed was to a watched word.
    pub(crate) synchronises: bool,
    /// Address and size in bytes of the access that failed.
    pub(crate) denied: (u32, u32),
    /// How many operations of its block are behind the one that failed.
    pub(crate) behind: usize,
    /// Wants to know each access to shared memory.
    pub(crate) watcher: Option<&'a mut dyn Watcher>,
    /// Whether the instruction orders memory: an atomic operation, or an access next to a fence.
    pub(crate) orders: bool,
}

/// The part of a window that a [`View`] keeps at hand: addresses, and the place of the first in the arena. The default holds nothing.
#[derive(Clone, Copy, Default)]
struct Span {
    base: u32,
    len: u32,
    offset: usize,
}

impl Span {
    /// Where the `bytes` at `address` begin in the arena, if all of them are in the span.
    #[inline(always)]
    fn place(self, address: u32, bytes: usize) -> Option<usize> {
        let skipped = address.wrapping_sub(self.base);
        (u64::from(skipped) + bytes as u64 <= u64::from(self.len)).then_some(self.offset.wrapping_add(skipped as usize))
    }
}

impl From<Window> for Span {
    #[inline]
    fn from(Window { base, len, offset, .. }: Window) -> Span {
        Span { base, len, offset }
    }
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
            read: Span::default(),
            written: Span::default(),
            granted: false,
            synchronises: false,
            denied: (0, 0),
            behind: 0,
            watcher: None,
            orders: false,
        }
    }

    /// A view of a single window, for an access whose place is known.
    pub(crate) fn of_window(arena: &'a mut [u8], window: Window, nothing: &'a mut Watched) -> View<'a> {
        // An empty span holds nothing, so an access outside the window is denied.
        let read = if is_inside(&window, arena) { Span::from(window) } else { Span::default() };
        View {
            arena,
            windows: &[],
            watched: nothing,
            attention: Attention::default(),
            read,
            written: if window.write { read } else { Span::default() },
            granted: false,
            synchronises: false,
            denied: (0, 0),
            behind: 0,
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
        let place = match self.read.place(address, N) {
            Some(place) => place,
            None => self.find(address, N, false)?,
        };
        self.arena.get(place..)?.first_chunk().copied()
    }

    /// Writes `bytes` at `address`. `None` means that the handler may not write there, or that it may not write there
    /// yet because a handler waits for them; the semantic function then returns
    /// [`Flow::Store`](crate::isa::Flow::Store).
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> Option<()> {
        let place = match self.written.place(address, N) {
            Some(place) => place,
            None => self.find(address, N, true)?,
        };
        *self.arena.get_mut(place..)?.first_chunk_mut()? = bytes;
        Some(())
    }

    /// Searches the windows for an access that the cached parts do not hold. Returns its place in the arena.
    #[cold]
    fn find(&mut self, address: u32, len: usize, write: bool) -> Option<usize> {
        self.denied = (address, len as u32);
        let (window, place) = self.windows.iter().find_map(|window| {
            let place = Span::from(*window).place(address, len)?;
            ((window.write || !write) && is_inside(window, self.arena)).then_some((window, place))
        })?;
        let known = match window.sharing {
            Sharing::Private => Span::from(*window),
            Sharing::Input => {
                self.attention.distract();
                Span::from(*window)
            }
            Sharing::Shared if self.watcher.as_ref().is_some_and(|watcher| watcher.wants_accesses()) => {
                self.shared(window, address, len as u32, write)?;
                let orders = self.orders;
                self.watcher.as_mut()?.accesses(address, len as u32, write, orders);
                return Some(place);
            }
            Sharing::Shared => match self.shared(window, address, len as u32, write)? {
                Some(part) => part,
                None => return Some(place),
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
        Some(place)
    }

    /// Handles an access to shared memory. Returns `None` when the access must wait for its time, and otherwise the
    /// part of the window that may be cached, if any.
    #[inline]
    fn shared(&mut self, window: &Window, address: u32, len: u32, write: bool) -> Option<Option<Span>> {
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
        Some((write || !self.attention.is_on()).then(|| self.watched.free_part(window, address).into()))
    }
}

/// Whether the arena has the bytes of the window.
#[inline]
fn is_inside(window: &Window, arena: &[u8]) -> bool {
    window.offset.checked_add(window.len as usize).is_some_and(|end| end <= arena.len())
}
