use super::queue::Entry;

/// Gives ascending numbers to events when they are inserted. Events of the same time are executed in the order of their
/// numbers.
pub(super) trait Order {
    /// Whether numbers are final as soon as they are given.
    const IS_FINAL: bool;
    /// An event that may insert others is executed: `number` at the time `at`.
    fn begin(&mut self, at: u64, number: u32);
    /// Returns the number of the event that is inserted next.
    fn next(&mut self) -> u32;
    /// Returns whether an event must not be inserted yet, because its number is not final and will be before `at`.
    fn is_early(&mut self, at: u64, number: u32) -> bool;
    /// Keeps an event of `rank` that has just got its number for later, if it must not be inserted yet. Returns whether it
    /// was kept.
    fn keeps(&mut self, rank: u32, entry: Entry) -> bool;
    /// The operation with this number begins to wait for its resources.
    fn waits(&mut self, number: u32, op: u32);
}

/// One thread executes all ranks, so numbers are final.
#[derive(Debug, Default)]
pub(super) struct Alone(u32);

impl Order for Alone {
    const IS_FINAL: bool = true;

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
