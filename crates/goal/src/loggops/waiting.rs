use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    classes: Vec<Class>,
    /// Time and number with which the queue of events will come back to this rank.
    pub wake: Option<(u64, u32)>,
}

/// Those with the same needs: number in the upper half, event in the lower.
#[derive(Debug)]
struct Class {
    needs: Needs,
    /// Came in the order of their numbers, as most do.
    in_turn: VecDeque<u64>,
    /// All others.
    out_of_turn: BinaryHeap<Reverse<u64>>,
}

impl Class {
    #[inline]
    fn first(&self) -> Option<u64> {
        let (one, other) = (self.in_turn.front().copied(), self.out_of_turn.peek().map(|other| other.0));
        if other.is_none() { one } else { one.into_iter().chain(other).min() }
    }
}

impl Waiting {
    #[inline]
    pub fn add(&mut self, needs: Needs, number: u32, event: u32) {
        let entry = u64::from(number) << 32 | u64::from(event);
        let Some(class) = self.classes.iter_mut().find(|class| class.needs == needs) else {
            self.classes.push(Class { needs, in_turn: VecDeque::from([entry]), out_of_turn: BinaryHeap::new() });
            return;
        };
        if class.in_turn.back().is_none_or(|&last| last < entry) {
            class.in_turn.push_back(entry);
        } else {
            class.out_of_turn.push(Reverse(entry));
        }
    }

    /// Who goes first: time, number, event, and place of its class.
    #[inline]
    pub fn first(&self, free: &[u64]) -> Option<(u64, u32, u32, usize)> {
        let heads = self.classes.iter().enumerate().filter_map(|(place, class)| {
            let head = class.first()?;
            let at = free[class.needs.cpu].max(free[class.needs.nic]);
            Some((at, (head >> 32) as u32, head as u32, place))
        });
        heads.min()
    }

    /// Takes out the first of a class. The class stays: its needs come again.
    #[inline]
    pub fn take(&mut self, place: usize) {
        let class = &mut self.classes[place];
        if class.in_turn.front().copied() == class.first() {
            class.in_turn.pop_front();
        } else {
            class.out_of_turn.pop();
        }
    }

    /// Where the classes are; for prefetching.
    #[inline]
    pub fn place(&self) -> *const u8 {
        self.classes.as_ptr().cast()
    }
}
