//! What is answered at which path, and where it is noted.

use std::collections::HashMap;

use super::answer::{Answer, Arrival, Script};
use super::log::Log;

/// The answers of a site.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) scripts: HashMap<String, Script>,
    pub(super) otherwise: Script,
    pub(super) log: Log,
}

impl Pages {
    pub(super) fn answer(&self, arrival: &Arrival) -> Answer {
        let script = self.scripts.get(arrival.path());
        script.unwrap_or(&self.otherwise).next(arrival)
    }
}
