//! How a layer lets requests wait.

use std::time::Instant;

use etiquette_core::PurposeKind;
use etiquette_core::vocabulary::purpose::Api;

#[derive(Clone, Debug)]
pub(crate) struct AcquireOptions {
    /// Why the request is made.
    pub(crate) purpose: PurposeKind,
    /// The API that it uses, to keep its limit.
    pub(crate) api: Option<Api>,
    /// Only pauses hold requests: no permits, no delay.
    pub(crate) pauses_only: bool,
    /// A budget on other hosts keeps the delay already.
    pub(crate) paced_elsewhere: bool,
    /// Refuse rather than wait.
    pub(crate) never_wait: bool,
    /// Not before this, whatever the host allows.
    pub(crate) not_before: Option<Instant>,
}
