//! A request of a caller with a queue and a client of its own.

use http::{HeaderMap, StatusCode};

use super::permit::Permit;

/// A request that was started by [`Hosts::try_start`](super::Hosts::try_start) and holds a permit of its host. Drop it when
/// the body has ended.
#[derive(Debug)]
#[must_use = "dropping it says that the request is over"]
pub struct Start(pub(super) Permit);

impl Start {
    /// Records the head of the response.
    pub fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        let answer = self.0.read(status, headers);
        self.0.answered(answer);
    }

    /// Records that no response came.
    pub fn failed(&mut self) {
        self.0.failed();
    }

    /// Waits until what was recorded is in the journal of these hosts, if they have one: at most 5 s. Wait for it before
    /// the response is handed on, or a crash could undo the pause that somebody heard of. Needs a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropped, the record goes on its way.
    pub async fn kept(&mut self) {
        self.0.kept().await;
    }
}
