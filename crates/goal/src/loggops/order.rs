use super::queue::Entry;

/// Orders events of the same time by numbers that are given when something is inserted, ascending.
pub(super) trait Order {
    /// What may insert something happens: `number` at the time `at`.
    fn begin(&mut self, at: u64, number: u32);
    /// The number of what is inserted next.
    fn next(&mut self) -> u32;
    /// Whether something is to be inserted only when its number is final, as that is not yet, and at `at` it will be.
    fn is_early(&mut self, at: u64, number: u32) -> bool;
    /// Keeps something that has just got its number, and happens at a rank, if it is too early to insert it.
    fn keeps(&mut self, rank: u32, entry: Entry) -> bool;
    /// Something with this number begins to wait for its resources.
    fn waits(&mut self, number: u32, op: u32);
}

/// All ranks in one thread: numbers are final.
#[derive(Debug, Default)]
pub(super) struct Alone(u32);

impl Order for Alone {
    #[inline(always)]
    fn begin(&mut self, _: u64, _: u32) {}

    #[inline(always)]
    fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0 - 1
    }

    #[inline(always)]
    fn is_early(&mut self, _: u64, _: u32) -> bool {
        false
    }

    #[inline(always)]
    fn keeps(&mut self, _: u32, _: Entry) -> bool {
        false
    }

    #[inline(always)]
    fn waits(&mut self, _: u32, _: u32) {}
}
