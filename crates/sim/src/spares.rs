/// The number of entries for which an empty list keeps capacity.
const KEPT: usize = 256;
/// The number of larger buffers that are kept for later bursts. Allocating them anew would dominate the cost of a
/// burst.
const SPARES: usize = 4;

/// A pool of buffers for many lists, such as the slots of a queue, of which only a few are long at any time.
#[derive(Clone, Debug)]
pub struct Spares<T> {
    /// The buffers, with the largest at the end.
    rooms: Vec<Vec<T>>,
}

impl<T> Default for Spares<T> {
    /// Makes an empty pool.
    fn default() -> Spares<T> {
        Spares { rooms: Vec::new() }
    }
}

impl<T> Spares<T> {
    /// Moves a full list to a larger buffer of the pool, if there is one. Call it before a list grows.
    #[inline(always)]
    pub fn widen(&mut self, list: &mut Vec<T>) {
        if list.len() == list.capacity() && list.len() >= KEPT {
            self.exchange(list);
        }
    }

    #[cold]
    fn exchange(&mut self, list: &mut Vec<T>) {
        if let Some(mut room) = self.rooms.pop_if(|room| room.capacity() > list.capacity()) {
            room.append(list);
            *list = room;
        }
    }

    /// Returns the buffer that an emptied list keeps. A large buffer goes to the pool instead.
    #[inline]
    pub fn keep(&mut self, room: Vec<T>) -> Vec<T> {
        if room.capacity() <= KEPT {
            return room;
        }
        let place = self.rooms.partition_point(|other| other.capacity() < room.capacity());
        self.rooms.insert(place, room);
        if self.rooms.len() > SPARES {
            self.rooms.remove(0);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_room_goes_to_others() {
        let mut spares = Spares::default();
        assert_eq!(spares.keep(Vec::<u8>::with_capacity(KEPT)).capacity(), KEPT);
        for size in [5000, 1000, 4000, 2000, 3000] {
            assert_eq!(spares.keep(Vec::with_capacity(size)).capacity(), 0);
        }
        let mut list = Vec::with_capacity(KEPT);
        list.resize(KEPT, 7);
        spares.widen(&mut list);
        assert_eq!((list.capacity(), &list[..]), (5000, &[7; KEPT][..]));
        // The list is not full, then it has more capacity than the pool's buffers.
        spares.widen(&mut list);
        list.resize(5000, 7);
        spares.widen(&mut list);
        assert_eq!(list.capacity(), 5000);
        // The smallest of five buffers was freed.
        assert_eq!(spares.rooms.iter().map(Vec::capacity).collect::<Vec<_>>(), [2000, 3000, 4000]);
    }
}
