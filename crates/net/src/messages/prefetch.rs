use super::network::{Event, MessageNetwork};

/// See [`Fabric`](crate::fabric): what coming events need is fetched in three steps.
impl MessageNetwork {
    /// The first step fetches what the event names.
    #[inline]
    pub fn prefetch(&self, event: Event) {
        match event {
            Event::Fabric(event) => self.fabric.prefetch(event),
            Event::Send(host) => {
                self.hosts.prefetch(host);
                self.fabric.prefetch_host(host);
            }
            Event::Sent(message) | Event::Arrived(message) => self.hosts.messages.prefetch(message),
        }
    }

    /// The second step fetches where packets go.
    #[inline]
    pub fn prefetch_next(&self, event: Event) {
        match event {
            Event::Fabric(event) => self.fabric.prefetch_next(event),
            Event::Send(host) => self.hosts.prefetch_first(host),
            Event::Sent(_) | Event::Arrived(_) => {}
        }
    }

    /// The third step fetches where packets go next, or the message of one on its last link. Returns the token of a message
    /// that has arrived.
    #[inline]
    pub fn prefetch_last(&self, event: Event) -> Option<u32> {
        match event {
            Event::Fabric(event) => {
                if let Some(message) = self.fabric.prefetch_last(event) {
                    self.hosts.messages.prefetch(message);
                }
                None
            }
            Event::Arrived(message) | Event::Sent(message) => Some(self.hosts.messages[message].token),
            Event::Send(_) => None,
        }
    }
}
