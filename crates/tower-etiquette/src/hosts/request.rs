//! What a layer asks for: a request, why it is made, and how it may wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::StartOptions;
use etiquette_core::vocabulary::purpose::Api;
use etiquette_core::{Now, Origin, PurposeKind, Refusal};

use super::queue::{Class, Denied, QueuedRequest, UnreadBodyTimeout};
use super::registry::refuse;
use super::target::Target;
use crate::context::Context;
use crate::events::EventScope;
use crate::start_check::StartCheck;
use crate::visit::Visit;

/// How a layer lets requests wait.
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

/// Who asks, under which rules, and what layers further out have done already.
#[derive(Debug)]
pub(super) struct Requester {
    pub(super) origin: Origin,
    pub(super) contact: Option<Arc<str>>,
    pub(super) start_check: Option<Arc<dyn StartCheck>>,
    pub(super) visit: Option<Visit>,
    /// It does not read robots.txt.
    pub(super) page: bool,
    /// A layer on the same hosts has counted the start.
    counted: bool,
    /// The delay of a budget elsewhere that has started the request.
    pub(super) outer_delay: Duration,
}

impl Requester {
    pub(super) fn new(origin: &Origin, context: Option<&Context>, hosts: u32) -> Self {
        Self {
            origin: origin.clone(),
            contact: context.and_then(Context::contact),
            start_check: context.and_then(|context| context.start_check.clone()),
            visit: context.and_then(|context| context.visit.clone()),
            page: !context.is_some_and(|context| context.fetches_robots_txt),
            counted: context.is_some_and(|context| context.counted_by.contains(hosts)),
            outer_delay: context.map_or(Duration::ZERO, |context| context.delay),
        }
    }

    pub(super) fn refuse(
        &self,
        scope: EventScope,
        host: &str,
        now: Now,
        denied: Denied,
    ) -> Refusal {
        refuse(
            scope,
            host,
            &self.origin,
            self.contact.as_ref(),
            now,
            denied,
        )
    }

    /// The request as the queue of its target knows it.
    pub(super) fn queued(
        &self,
        target: &Target,
        options: &AcquireOptions,
        now: Now,
    ) -> QueuedRequest {
        let class = match options.purpose {
            _ if !self.page => Class::RobotsTxt,
            PurposeKind::UserFetch => Class::UserFetch,
            _ => Class::Crawl,
        };
        let mut start = StartOptions::pace();
        start.pauses_only = options.pauses_only;
        start.delay_taken = options.paced_elsewhere;
        start.api = target.api.as_ref().map(|slot| slot.quota);
        // A store knows no limits of APIs: the request keeps the host's shared budget, and its own limit as a delay.
        let limit = options.api.as_ref().filter(|_| target.api.is_none());
        let max_wait = target.registry.policy().max_wait_for(options.purpose);
        QueuedRequest {
            position: target.host.position(class),
            options: start,
            policy: limit.map(|api| Box::new(target.host.policy.within(api.limit()))),
            visit_start: None,
            deadline: if options.never_wait {
                now.monotonic
            } else {
                now.after(max_wait)
            },
            never_wait: options.never_wait,
            counted: self.counted,
            returning: false,
            unread: UnreadBodyTimeout::default(),
        }
    }
}
