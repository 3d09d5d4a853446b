/// The numbers of the packet buffers of a unit.
#[derive(Clone, Debug)]
pub struct Buffers {
    count: u32,
    /// Free buffers that have been used; the one that was freed last is used next.
    free: Vec<u32>,
    /// The first buffer that, like those after it, has never been used.
    fresh: u32,
}

impl Buffers {
    /// A set of `count` free buffers.
    pub fn new(count: u32) -> Buffers {
        Buffers { count, free: Vec::new(), fresh: 0 }
    }

    /// Takes a free buffer, if there is one.
    pub fn take(&mut self) -> Option<u32> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        let buffer = self.fresh;
        (buffer < self.count).then(|| {
            self.fresh += 1;
            buffer
        })
    }

    /// Frees a buffer.
    pub fn free(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Whether no buffer is in use.
    pub fn all_free(&self) -> bool {
        self.free.len() == self.fresh as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_before_fresh_ones() {
        let mut buffers = Buffers::new(2);
        assert!(buffers.all_free());
        assert_eq!((buffers.take(), buffers.take(), buffers.take()), (Some(0), Some(1), None));
        buffers.free(0);
        assert!(!buffers.all_free());
        assert_eq!((buffers.take(), buffers.take()), (Some(0), None));
        buffers.free(1);
        buffers.free(0);
        assert!(buffers.all_free());
    }
}
