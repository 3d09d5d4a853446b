// SPDX-License-Identifier: Apache-2.0
//! Memory accesses of handlers: protection, watched words, and a cache of the last window.

use std::cell::Cell;

use crate::watch::{WaitDetector, Watched};
use crate::window::{Sharing, Window};

/// Memory that one handler invocation may access. Any other access, or one across the end of a window, is a fault.
pub struct Memory<'a> {
    /// Bytes of the card's memories.
    pub arena: &'a mut [u8],
    /// Accessible ranges: few, without overlap. They are searched in order, after the window found last.
    pub windows: &'a [Window],
    /// Words on which handlers of this card wait; the engine adds to them.
    pub watched: &'a mut Watched,
}

/// A [`Memory`] in use: a cache of the last read and the last written window.
///
/// The cached part of a shared window contains no watched word, so accesses to watched words take the slow path and all
/// others cost nothing extra. While the handler may be waiting ([`WaitDetector`]), shared windows are not cached.
pub struct View<'a> {
    read: Span<'a>,
    written: Span<'a>,
    arena: &'a [Cell<u8>],
    windows: &'a [Window],
    watched: &'a mut Watched,
    /// True if accesses to watched words may execute now.
    pub(crate) granted: bool,
    /// True if the denied access was to a watched word.
    pub(crate) synchronises: bool,
    /// Address and size in bytes of the denied access.
    pub(crate) denied: (u32, u32),
    /// Number of operations in the block after the failed one.
    pub(crate) behind: usize,
    /// Observer of accesses to shared memory.
    pub(crate) watcher: Option<&'a mut dyn Watcher>,
    /// True if the instruction orders memory: an atomic operation, or an access next to a fence.
    pub(crate) orders: bool,
}

/// Cached part of a window in a [`View`]: first address and bytes. The default is empty.
#[derive(Clone, Copy, Default)]
struct Span<'a> {
    base: u32,
    bytes: &'a [Cell<u8>],
}

impl<'a> Span<'a> {
    /// Returns the bytes of a window, if all are in the arena.
    #[inline(always)]
    fn of(window: &Window, arena: &'a [Cell<u8>]) -> Option<Span<'a>> {
        let bytes = arena.get(window.offset..)?.get(..window.len as usize)?;
        Some(Span { base: window.base, bytes })
    }

    /// Returns the `len` bytes at `address`, if all are in the span.
    #[inline(always)]
    fn bytes(self, address: u32, len: usize) -> Option<&'a [Cell<u8>]> {
        let skipped = address.wrapping_sub(self.base) as usize;
        self.bytes.get(skipped..skipped + len)
    }
}

/// Observes a thread that runs instruction by instruction ([`Engine::run_stepwise`](crate::Engine::run_stepwise)).
pub trait Watcher {
    /// Returns true if the thread stops before its instruction at `pc`.
    fn stops(&mut self, pc: u32) -> bool;

    /// Returns true if the watcher observes accesses.
    fn wants_accesses(&self) -> bool;

    /// Observes an access to memory that handlers share. `orders` is true for an atomic operation or an access next to
    /// a fence.
    fn accesses(&mut self, address: u32, bytes: u32, write: bool, orders: bool);
}

impl<'a> View<'a> {
    pub(crate) fn new(memory: &'a mut Memory<'_>) -> View<'a> {
        View {
            read: Span::default(),
            written: Span::default(),
            arena: Cell::from_mut(&mut *memory.arena).as_slice_of_cells(),
            windows: memory.windows,
            watched: memory.watched,
            granted: false,
            synchronises: false,
            denied: (0, 0),
            behind: 0,
            watcher: None,
            orders: false,
        }
    }

    /// Creates a view of a single window, for an access with a known location.
    pub(crate) fn of_window(arena: &'a mut [u8], window: Window, nothing: &'a mut Watched) -> View<'a> {
        let arena = Cell::from_mut(arena).as_slice_of_cells();
        // An empty span denies accesses outside the window.
        let read = Span::of(&window, arena).unwrap_or_default();
        View {
            read,
            written: if window.write { read } else { Span::default() },
            arena,
            windows: &[],
            watched: nothing,
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

    /// Returns the bytes at `address` if they are in the cached part of a window.
    #[inline(always)]
    pub(crate) fn load_at_hand<const N: usize>(&self, address: u32) -> Option<[u8; N]> {
        read(self.read.bytes(address, N)?)
    }

    /// Writes `bytes` at `address` if it is in the cached part of a window.
    #[inline(always)]
    pub(crate) fn store_at_hand<const N: usize>(&self, address: u32, bytes: [u8; N]) -> Option<()> {
        write(self.written.bytes(address, N)?, bytes)
    }

    /// Returns the bytes at `address`, outside the cached parts, if the handler may read them.
    #[inline(always)]
    pub(crate) fn load_by_search<const N: usize>(
        &mut self,
        wait_detector: &mut WaitDetector,
        address: u32,
    ) -> Option<[u8; N]> {
        read(self.find::<false>(wait_detector, address, N)?)
    }

    /// Writes `bytes` at `address`, outside the cached parts, if the handler may write there.
    #[inline(always)]
    pub(crate) fn store_by_search<const N: usize>(
        &mut self,
        wait_detector: &mut WaitDetector,
        address: u32,
        bytes: [u8; N],
    ) -> Option<()> {
        write(self.find::<true>(wait_detector, address, N)?, bytes)
    }

    /// Searches the windows for an access outside the cached parts. Returns its position in the arena.
    #[cold]
    fn find<const WRITE: bool>(
        &mut self,
        wait_detector: &mut WaitDetector,
        address: u32,
        len: usize,
    ) -> Option<&'a [Cell<u8>]> {
        self.denied = (address, len as u32);
        let end = |window: &Window| u64::from(address.wrapping_sub(window.base)) + len as u64;
        let allowed = |window: &&Window| end(window) <= u64::from(window.len) && (window.write || !WRITE);
        let window = self.windows.iter().find(allowed)?;
        let known = match window.sharing {
            Sharing::Private => true,
            Sharing::Input => {
                wait_detector.distract();
                true
            }
            Sharing::Shared => {
                if !self.granted && observe(wait_detector, address, len as u32, WRITE) {
                    return self.find_waiting(wait_detector, window, address, len);
                }
                if self.granted || self.watcher.is_some() || !self.watched.is_empty() {
                    return self.find_watched(wait_detector, window, address, len, WRITE);
                }
                WRITE || !wait_detector.is_on()
            }
        };
        let whole = Span::of(window, self.arena)?;
        if known {
            self.keep(whole, WRITE);
        }
        whole.bytes(address, len)
    }

    /// Finds the position of a load by a handler that starts to wait for the word.
    #[cold]
    #[inline(never)]
    fn find_waiting(
        &mut self,
        wait_detector: &mut WaitDetector,
        window: &Window,
        address: u32,
        len: usize,
    ) -> Option<&'a [Cell<u8>]> {
        wait_detector.watch(self.watched);
        self.find_watched(wait_detector, window, address, len, false)
    }

    /// Finds the position of an access to shared memory with watched words or an observer; the access may have to wait
    /// for its time.
    #[cold]
    #[inline(never)]
    fn find_watched(
        &mut self,
        wait_detector: &mut WaitDetector,
        window: &Window,
        address: u32,
        len: usize,
        write: bool,
    ) -> Option<&'a [Cell<u8>]> {
        if !self.granted && self.watched.touches(address, len as u32) {
            self.synchronises = true;
            return None;
        }
        let wants_accesses = self.watcher.as_ref().is_some_and(|watcher| watcher.wants_accesses());
        if wants_accesses && let Some(watcher) = &mut self.watcher {
            watcher.accesses(address, len as u32, write, self.orders);
        } else if !self.granted && (write || !wait_detector.is_on()) {
            self.keep(Span::of(&self.watched.free_part(window, address), self.arena)?, write);
        }
        Span::of(window, self.arena)?.bytes(address, len)
    }

    /// Caches a part of a window.
    #[inline(always)]
    fn keep(&mut self, part: Span<'a>, write: bool) {
        if write {
            self.written = part;
        }
        // A handler soon reads the bytes that it writes; caching them for reads saves a search.
        if !write || self.read.bytes.is_empty() {
            self.read = part;
        }
    }
}

#[inline(always)]
fn read<const N: usize>(place: &[Cell<u8>]) -> Option<[u8; N]> {
    let place: &[_; N] = place.first_chunk()?;
    Some(place.each_ref().map(Cell::get))
}

#[inline(always)]
fn write<const N: usize>(place: &[Cell<u8>], bytes: [u8; N]) -> Option<()> {
    let place: &[_; N] = place.first_chunk()?;
    place.iter().zip(bytes).for_each(|(place, byte)| place.set(byte));
    Some(())
}

/// Records an access to shared memory. Returns true if the handler waits.
#[inline(always)]
fn observe(wait_detector: &mut WaitDetector, address: u32, len: u32, write: bool) -> bool {
    if write {
        wait_detector.distract();
    }
    wait_detector.is_on() && wait_detector.load(address, len)
}
