//! What to do with a request, given what is stored for its URL.

use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{
    Extent, Forward, RequestDirectives, Reuse, StaleIfError, is_conditional, make_conditional,
};
use etiquette_core::store::Variant;
use http::Method;
use http::header::RANGE;
use http::request::Parts;

use super::answer::Shape;
use super::layer::Shared;

/// The next step.
pub(super) enum Step<'a> {
    /// This stored response answers it.
    Answer {
        variant: &'a Variant,
        shape: Shape,
        ttl: i64,
    },
    /// This one answers it, and the origin is asked meanwhile.
    AnswerAndAsk {
        variant: &'a Variant,
        shape: Shape,
        stale_if_error: StaleIfError,
        ttl: i64,
    },
    /// The origin is asked, with the validators of the stored response if there is one.
    Ask {
        stored: Option<&'a Variant>,
        forward: Forward,
        stale_if_error: StaleIfError,
        ttl: i64,
    },
    /// The caller does not want the origin to be asked.
    Refuse,
}

/// Asks in the name of a caller that keeps its bodies itself: it has what it was given before, so that the stored
/// validators are its own condition, and a 304 is its answer.
pub(super) fn ask_as_owner(parts: &mut Parts, variants: &[Variant]) {
    let has_wishes = is_conditional(&parts.headers) || parts.headers.contains_key(RANGE);
    if parts.method != Method::GET || has_wishes {
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

pub(super) fn consider<'a, St>(
    shared: &Shared<St>,
    parts: &Parts,
    variants: &'a [Variant],
    now: &Now,
) -> Step<'a> {
    let wishes = RequestDirectives::of(&parts.headers);
    let selected = |whole: bool| {
        variants.iter().find(|variant| {
            (variant.head.extent() == Extent::Whole) == whole
                && variant.head.selecting().matches(&parts.headers)
        })
    };
    let shaped = |variant: &'a Variant| {
        let shape = Shape::of(
            &variant.head,
            variant.length,
            &parts.method,
            &parts.headers,
            now,
        );
        shape.map(|shape| (variant, shape))
    };
    let part = selected(false);
    let found = selected(true)
        .and_then(shaped)
        .or_else(|| part.and_then(shaped));
    let Some((variant, shape)) = found else {
        let forward = match (variants.is_empty(), part) {
            (true, _) => Forward::UriMiss,
            (false, Some(_)) => Forward::Partial,
            (false, None) => Forward::VaryMiss,
        };
        return if wishes.only_if_cached {
            Step::Refuse
        } else {
            Step::Ask {
                stored: None,
                forward,
                stale_if_error: StaleIfError::default(),
                ttl: 0,
            }
        };
    };
    match shared.policy.reuse(&wishes, &variant.head, now) {
        Reuse::Fresh { ttl } => Step::Answer {
            variant,
            shape,
            ttl,
        },
        Reuse::StaleWhileRevalidate {
            stale_if_error,
            ttl,
        } if !wishes.only_if_cached => Step::AnswerAndAsk {
            variant,
            shape,
            stale_if_error,
            ttl,
        },
        // It may be used while somebody asks; this caller wants nobody to ask.
        Reuse::StaleWhileRevalidate { ttl, .. } => Step::Answer {
            variant,
            shape,
            ttl,
        },
        _ if wishes.only_if_cached => Step::Refuse,
        Reuse::Validate {
            forward,
            stale_if_error,
            ttl,
        } => Step::Ask {
            stored: Some(variant),
            forward,
            stale_if_error,
            ttl,
        },
        _ => Step::Ask {
            stored: Some(variant),
            forward: Forward::Stale,
            stale_if_error: StaleIfError::default(),
            ttl: 0,
        },
    }
}
