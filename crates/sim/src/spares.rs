/// Entries that an empty list keeps room for.
const KEPT: usize = 256;
/// So much more room is kept for the next bursts: fresh memory for each would cost more than all else.
const SPARES: usize = 4;

/// Room of the bursts of many lists, such as the slots of a queue, which are long one after the other.
#[derive(Clone, Debug)]
pub struct Spares<T> {
    /// The largest last.
    rooms: Vec<Vec<T>>,
}

impl<T> Default for Spares<T> {
    /// None so far.
    fn default() -> Spares<T> {
        Spares { rooms: Vec::new() }
    }
}

impl<T> Spares<T> {
    /// Exchanges a full list's room for more, if there is any; for a list that gets longer.
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

    /// What an emptied list keeps of its room. If that is much, other lists get it.
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
        // Not full, then with more room than there is.
        spares.widen(&mut list);
        list.resize(5000, 7);
        spares.widen(&mut list);
        assert_eq!(list.capacity(), 5000);
        // The smallest of five was given up.
        assert_eq!(spares.rooms.iter().map(Vec::capacity).collect::<Vec<_>>(), [2000, 3000, 4000]);
    }
}
