use std::fmt::Debug;

use bytemuck::Pod;

/// What orders events of the same time: given when something is inserted, ascending.
pub(super) trait Number: Copy + Ord + Debug + Pod {
    /// Given to nothing.
    const NONE: Self;
}

impl Number for u32 {
    const NONE: u32 = u32::MAX;
}
