use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A resource class: who needs the same CPU and the same side of the same NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Places in the table of free times of all ranks.
    pub cpu: usize,
    /// The same as `cpu` when no NIC is needed.
    pub nic: usize,
}

/// Those of one rank who found their CPU or NIC busy.
///
/// All with the same needs become free to go at the same time, so only the one with the smallest number is of interest.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    classes: Vec<(Needs, BinaryHeap<Reverse<u64>>)>,
    /// Time and number with which the queue of events will come back to this rank.
    pub wake: Option<(u64, u32)>,
}

impl Waiting {
    #[inline]
    pub fn add(&mut self, needs: Needs, number: u32, event: u32) {
        let entry = Reverse(u64::from(number) << 32 | u64::from(event));
        match self.classes.iter_mut().find(|class| class.0 == needs) {
            Some(class) => class.1.push(entry),
            None => self.classes.push((needs, BinaryHeap::from([entry]))),
        }
    }

    /// Who goes first: time, number, event, and place of its class.
    #[inline]
    pub fn first(&self, free: &[u64]) -> Option<(u64, u32, u32, usize)> {
        let heads = self.classes.iter().enumerate().filter_map(|(place, (needs, waiters))| {
            let Reverse(head) = *waiters.peek()?;
            let at = free[needs.cpu].max(free[needs.nic]);
            Some((at, (head >> 32) as u32, head as u32, place))
        });
        heads.min()
    }

    /// Takes out the first of a class. The class stays: its needs come again.
    #[inline]
    pub fn take(&mut self, place: usize) {
        self.classes[place].1.pop();
    }

    /// Where the classes are; for prefetching.
    #[inline]
    pub fn place(&self) -> *const u8 {
        self.classes.as_ptr().cast()
    }
}
