use abi::portals::Handle;

use super::entry::Entry;

/// What an entry that has taken an unexpected header wants to be told about it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Interface of the entry.
    pub interface: u8,
    /// `user_ptr` of the entry.
    pub user_ptr: u64,
    /// Options of the entry.
    pub options: u32,
    /// Counter of the entry.
    pub ct: Handle,
    /// Whether an AUTO_UNLINK follows.
    pub unlink: bool,
}

impl Claim {
    /// The claim of an entry; `unlink`: the header uses it up.
    pub fn of(interface: u8, entry: &Entry, unlink: bool) -> Claim {
        Claim { interface, user_ptr: entry.user_ptr, options: entry.options, ct: entry.ct, unlink }
    }
}

/// What became of an entry that was offered to the unexpected headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is used up and never linked.
    UsedUp,
    /// It is to be linked.
    Link,
}
