use std::sync::Arc;
use std::time::Duration;

use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::{Origin, PurposeKind};
use etiquette_robots::Robots;

use super::layer::RobotsConfig;
use super::table::{Key, Slot, Tokens};
use crate::visit::Visit;

/// What the check of a request and a fetch of robots.txt for it know of the request.
pub(super) struct RobotsRequest {
    pub(super) config: Arc<RobotsConfig>,
    pub(super) slot: Arc<Slot>,
    pub(super) key: Key,
    pub(super) identity: Identity,
    pub(super) purpose: PurposeKind,
    /// Of a page that a person asked for: fetching robots.txt is a part of the same visit and takes no delay of its own.
    pub(super) visit: Option<Visit>,
}

impl RobotsRequest {
    pub(super) fn new(
        config: Arc<RobotsConfig>,
        origin: Origin,
        identity: Identity,
        purpose: PurposeKind,
        visit: Option<Visit>,
    ) -> Self {
        let tokens = Tokens {
            crawl: identity.token().clone(),
            user: identity.user_token().cloned(),
        };
        let key = Key { origin, tokens };
        Self {
            slot: config.table.slot(&key),
            config,
            key,
            identity,
            purpose,
            visit: visit.filter(|_| purpose == PurposeKind::UserFetch),
        }
    }

    /// The rules of a file for the tokens of the request's identity.
    pub(super) fn parse(&self, bytes: &[u8]) -> Robots {
        let tokens = std::iter::once(&self.key.tokens.crawl).chain(&self.key.tokens.user);
        Robots::builder()
            .tokens(tokens.cloned())
            .max_bytes(self.config.policy.get_max_bytes())
            .parse(bytes)
    }

    /// Where the client can be reached.
    pub(super) fn contact(&self) -> Option<Arc<str>> {
        Some(Arc::clone(self.identity.help()))
    }

    /// Differs after each pause and each run of refusals of the host.
    pub(super) fn epoch(&self) -> u64 {
        let hosts = self.config.hosts.as_ref();
        hosts.map_or(0, |hosts| hosts.epoch(&self.key.origin))
    }

    /// The delay of the host as known now.
    pub(super) fn delay(&self) -> Duration {
        let hosts = self.config.hosts.as_ref();
        hosts.map_or(Duration::ZERO, |hosts| hosts.delay(&self.key.origin))
    }
}
