//! What a store knows of robots.txt, from before a restart or from another process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::decide::robots_txt::{FetchFailure, RobotsStatus, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFailed};
use http::StatusCode;
use tokio::time::{Instant, sleep, timeout};

use super::request::RobotsRequest;
use crate::events;

/// How long a store may take for one call before it counts as failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The store of a layer, asked for one request. A store that fails is as good as none.
pub(super) struct StoredCopy<'a> {
    request: &'a RobotsRequest,
    store: &'a Arc<dyn RobotsStore>,
    key: RobotsKey,
    epoch: u64,
}

impl<'a> StoredCopy<'a> {
    /// `None` where the layer has no store.
    pub(super) fn of(request: &'a RobotsRequest, epoch: u64) -> Option<Self> {
        let store = request.config.store.as_ref()?;
        let key = RobotsKey {
            origin: request.key.origin.clone(),
            token: request.key.tokens.crawl.clone(),
        };
        Some(Self {
            request,
            store,
            key,
            epoch,
        })
    }

    /// Whether the store knows what holds; the record then does, too. While another process fetches the file this one
    /// waits for it, but not longer than a fetch may take.
    pub(super) async fn load(&self) -> bool {
        self.wait_for_end_of_pause().await;
        let end = Instant::now() + self.request.config.policy.get_timeout();
        let mut claimed = false;
        loop {
            let loaded = within_timeout(self.store.load(&self.key)).await;
            let loaded = events::store_result("robots", "look up robots.txt", loaded).flatten();
            if let Some(known) = loaded.and_then(|stored| self.restore(stored)) {
                if claimed {
                    // The claim ends with it.
                    self.save_as("give up a fetch", known).await;
                }
                return true;
            }
            if claimed {
                return false;
            }
            let claim = within_timeout(self.store.claim(&self.key)).await;
            match events::store_result("robots", "claim a fetch", claim) {
                Some(Claim::Taken(wait)) if Instant::now() + wait < end => sleep(wait).await,
                // Another process may have ended its fetch between load and claim: load once more.
                Some(Claim::Granted) => claimed = true,
                _ => return false,
            }
        }
    }

    /// Saves what the record knows now, with the file's bytes where they are new.
    pub(super) async fn save(&self, bytes: Option<Bytes>) {
        let now = self.request.config.clock.now();
        let known = self.request.slot.lock().record.to_stored(now, bytes);
        self.save_as("keep robots.txt", known).await;
    }

    async fn save_as(&self, doing: &'static str, known: StoredRobots) {
        let saved = within_timeout(self.store.save(&self.key, known)).await;
        events::store_result("robots", doing, saved);
    }

    /// Puts a stored copy into the record. Returns what is known then, if that holds.
    fn restore(&self, stored: StoredRobots) -> Option<StoredRobots> {
        let request = self.request;
        let now = request.config.clock.now();
        let delay = request.delay();
        let epoch = self.epoch_of(&stored, now);
        let record = &mut request.slot.lock().record;
        record.restore(stored, |bytes| request.parse(bytes), now, epoch);
        let holds = match record.status(now.monotonic, delay, self.epoch) {
            RobotsStatus::Fetch => false,
            // The pause that came with the 429 holds the next fetch back: this one may wait for it.
            RobotsStatus::Closed {
                failure: FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS),
                ..
            } => request.config.hosts.is_none(),
            _ => true,
        };
        holds.then(|| record.to_stored(now, None))
    }

    /// A copy that was confirmed before the host's last pause began is of an earlier epoch, whoever has fetched it.
    fn epoch_of(&self, stored: &StoredRobots, now: Now) -> u64 {
        let hosts = self.request.config.hosts.as_ref();
        let began = hosts.and_then(|hosts| hosts.epoch_began(&self.request.key.origin));
        match (&stored.copy, began) {
            (Some(copy), Some(began)) if copy.confirmed < now.wall_at(began) => {
                self.epoch.wrapping_sub(1)
            }
            _ => self.epoch,
        }
    }

    /// While the host is paused the file cannot be fetched: a claim on it would end before its turn, and each process
    /// would fetch it after the pause. A pause that is longer than a request may wait is for the queue to refuse.
    async fn wait_for_end_of_pause(&self) {
        let config = &self.request.config;
        let Some(hosts) = &config.hosts else {
            return;
        };
        let max_wait = hosts.policy().max_wait_for(self.request.purpose);
        loop {
            let now = config.clock.now().monotonic;
            let until = hosts.paused_until(&self.request.key.origin, now);
            let left = until.map(|until| until - now);
            match left.filter(|left| *left <= max_wait) {
                Some(left) => sleep(left).await,
                None => return,
            }
        }
    }
}

/// A call of a store that took too long has failed.
async fn within_timeout<T>(call: impl Future<Output = Result<T, StoreFailed>>) -> Result<T, ()> {
    timeout(STORE_TIMEOUT, call)
        .await
        .map_err(drop)?
        .map_err(drop)
}
