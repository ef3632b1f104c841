//! What to do with a request, given what is stored for its URL (RFC 9111, 4).

use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{
    CachePolicy, CacheStatus, Extent, Forward, RequestDirectives, Reuse, StaleIfError,
    is_conditional, make_conditional,
};
use etiquette_core::store::Variant;
use http::header::RANGE;
use http::request::Parts;
use http::{Method, Response};

use super::super::body::ResponseBody;
use super::reply::{Reply, respond};

/// The next step.
pub(crate) enum Plan<'a> {
    /// This stored response satisfies it.
    Reuse(Selected<'a>),
    /// The origin is asked.
    Forward(Forwarding),
    /// The caller wants nothing but a stored response, and none satisfies it (RFC 9111, 5.2.1.7).
    GatewayTimeout,
}

/// A stored response that satisfies a request.
pub(crate) struct Selected<'a> {
    pub(crate) variant: &'a Variant,
    pub(crate) reply: Reply,
    /// What is left of its lifetime, in seconds.
    pub(crate) ttl: i64,
    /// It is stale, and validated meanwhile (RFC 5861, 3). When it may be served all the same where it is validated first.
    pub(crate) revalidate: Option<StaleIfError>,
}

/// Why a request is forwarded, and what a stored response is good for then.
pub(crate) struct Forwarding {
    pub(crate) reason: Forward,
    /// The stored response that is to be validated.
    pub(crate) stored: Option<Variant>,
    /// When that one may be served all the same.
    pub(crate) stale_if_error: StaleIfError,
    /// What is left of its lifetime, in seconds.
    pub(crate) ttl: i64,
}

impl Forwarding {
    /// Nothing that is stored is of use.
    pub(crate) fn new(reason: Forward) -> Self {
        Self {
            reason,
            stored: None,
            stale_if_error: StaleIfError::default(),
            ttl: 0,
        }
    }
}

impl Selected<'_> {
    /// Its body, if it is in memory.
    pub(crate) fn body_in_memory(&self) -> Option<ResponseBody> {
        match &self.variant.body {
            Some(body) => Some(self.reply.cut(self.variant, body)),
            None => self
                .reply
                .bytes(self.variant)
                .is_none()
                .then(ResponseBody::empty),
        }
    }

    pub(crate) fn respond(&self, body: ResponseBody, now: &Now) -> Response<ResponseBody> {
        let status = CacheStatus::Hit { ttl: self.ttl };
        respond(self.variant, &self.reply, body, status, now)
    }

    /// It is validated before it is served (RFC 9111, 4.3).
    pub(crate) fn validate(self) -> Forwarding {
        Forwarding {
            reason: Forward::Stale,
            stored: Some(self.variant.clone()),
            stale_if_error: self.revalidate.unwrap_or_default(),
            ttl: self.ttl,
        }
    }
}

/// Adds the stored validators to the request of a caller that keeps its bodies itself: it has what it was given before, so
/// that they are its own condition, and a 304 satisfies it.
pub(crate) fn add_callers_validators(parts: &mut Parts, variants: &[Variant]) {
    let has_own = is_conditional(&parts.headers) || parts.headers.contains_key(RANGE);
    if parts.method != Method::GET || has_own {
        return;
    }
    let had = variants.iter().find(|variant| {
        variant.head.extent() == Extent::HeadOnly
            && variant.head.selecting().matches(&parts.headers)
    });
    if let Some(variant) = had {
        make_conditional(&mut parts.headers, variant.head.headers());
    }
}

/// Selects the stored response for a request (RFC 9111, 4 and 4.1).
pub(crate) fn select<'a>(
    policy: &CachePolicy,
    parts: &Parts,
    variants: &'a [Variant],
    now: &Now,
) -> Plan<'a> {
    let request = RequestDirectives::of(&parts.headers);
    let selected = |whole: bool| {
        variants.iter().find(|variant| {
            (variant.head.extent() == Extent::Whole) == whole
                && variant.head.selecting().matches(&parts.headers)
        })
    };
    let reply = |variant: &'a Variant| Some((variant, Reply::of(variant, parts, now)?));
    let found = selected(true)
        .and_then(reply)
        .or_else(|| selected(false).and_then(reply));
    let Some((variant, reply)) = found else {
        let reason = match selected(false) {
            _ if request.only_if_cached => return Plan::GatewayTimeout,
            _ if variants.is_empty() => Forward::UriMiss,
            Some(_) => Forward::Partial,
            None => Forward::VaryMiss,
        };
        return Plan::Forward(Forwarding::new(reason));
    };
    let mut selected = Selected {
        variant,
        reply,
        ttl: 0,
        revalidate: None,
    };
    match policy.reuse(&request, &variant.head, now) {
        Reuse::Fresh { ttl } => selected.ttl = ttl,
        Reuse::StaleWhileRevalidate {
            stale_if_error,
            ttl,
        } => {
            selected.ttl = ttl;
            // It may be served while it is validated, and where the caller does not want the origin to be asked.
            selected.revalidate = (!request.only_if_cached).then_some(stale_if_error);
        }
        _ if request.only_if_cached => return Plan::GatewayTimeout,
        Reuse::Validate {
            forward: reason,
            stale_if_error,
            ttl,
        } => {
            return Plan::Forward(Forwarding {
                reason,
                stored: Some(variant.clone()),
                stale_if_error,
                ttl,
            });
        }
        _ => return Plan::Forward(selected.validate()),
    }
    Plan::Reuse(selected)
}
