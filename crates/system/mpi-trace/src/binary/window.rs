// SPDX-License-Identifier: Apache-2.0
//! Records of one-sided calls.

use super::reader::{
    NONBLOCKING, RMA, RMA_REQUEST, Reader, WIN_COMPLETE, WIN_CREATE, WIN_FENCE, WIN_FLUSH, WIN_FLUSH_LOCAL, WIN_FREE,
    WIN_LOCK, WIN_POST, WIN_START, WIN_UNLOCK, WIN_WAIT,
};
use crate::error::Damage;
use crate::event::{Access, What, WindowCall};

impl Reader<'_> {
    /// Reads a record of a kind from [`RMA`] to [`WIN_FLUSH_LOCAL`], or [`RMA_REQUEST`].
    pub(super) fn window(&mut self, kind: u8) -> Result<(), Damage> {
        let window = self.comm_place()?;
        let call = match kind {
            RMA | RMA_REQUEST => return self.access(window, kind & NONBLOCKING != 0),
            WIN_CREATE => WindowCall::Create,
            WIN_FREE => WindowCall::Free,
            WIN_FENCE => WindowCall::Fence,
            WIN_POST => WindowCall::Post(self.numbers.group(self.start.ranks)?),
            WIN_START => WindowCall::Start(self.numbers.group(self.start.ranks)?),
            WIN_COMPLETE => WindowCall::Complete,
            WIN_WAIT => WindowCall::Wait,
            WIN_LOCK => WindowCall::Lock(self.peer()?),
            WIN_UNLOCK => WindowCall::Unlock(self.peer()?),
            WIN_FLUSH => WindowCall::Flush(self.peer()?),
            WIN_FLUSH_LOCAL => WindowCall::FlushLocal(self.peer()?),
            _ => return Err(self.numbers.damage(format!("a record of unknown kind {kind}"))),
        };
        self.trace.has_windows = true;
        self.push(What::Window(window, Box::new(call)));
        Ok(())
    }

    fn access(&mut self, window: u32, has_request: bool) -> Result<(), Damage> {
        let request = if has_request { Some(self.numbers.number()?) } else { None };
        let target = self.peer()?;
        let members = &self.trace.comms[window as usize].local;
        let is_there = |rank: &u32| members.get(*rank as usize) == Some(rank) || members.contains(rank);
        let Some(target) = target.filter(is_there) else {
            return Err(self.numbers.damage("an access to a rank that the window does not have".into()));
        };
        let bytes = self.numbers.bytes()?;
        let back = match self.numbers.number()? {
            0 => None,
            back => Some(self.numbers.size(back - 1)?),
        };
        self.push(What::Access(Box::new(Access { window, target, bytes, back })));
        match request {
            Some(request) => self.opened(request, self.trace.events.len() - 1),
            None => Ok(()),
        }
    }
}
