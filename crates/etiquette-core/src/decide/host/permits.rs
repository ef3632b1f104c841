//! The requests in flight, from the grant of a permit to the end of the body.

/// The permits of a host, or of one of its APIs, that are in use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Permits {
    in_flight: u32,
    /// How many of them belong to requests that have not started yet.
    granted: u32,
}

impl Permits {
    /// Takes a permit for a request that is about to start. [`Permits::start`] or [`Permits::unreserve`] follows.
    pub(super) fn reserve(&mut self) {
        self.in_flight += 1;
        self.granted += 1;
    }

    /// Returns a permit that was reserved and not used.
    pub(super) fn unreserve(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.granted = self.granted.saturating_sub(1);
    }

    /// The request whose permit was reserved has started.
    pub(super) fn start(&mut self) {
        self.granted = self.granted.saturating_sub(1);
    }

    /// Returns the permit of a started request.
    pub(super) fn finish(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn in_flight(self) -> u32 {
        self.in_flight
    }

    pub(super) fn granted(self) -> u32 {
        self.granted
    }
}
