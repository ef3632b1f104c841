//! One request to the origin, and what its answer is about: what is stored, or something new.

use std::sync::Arc;
use std::time::Duration;

use etiquette_core::decide::cache_policy::{
    CacheStatus, Forward, ResponseTimes, Selecting, StaleIfError, make_conditional,
    make_conditional_on_any, names_tag_of,
};
use etiquette_core::store::{ResponseKey, ResponseStore, Variant};
use etiquette_core::{Now, Refusal};
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::request::Parts;
use http::{Extensions, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::flights::{Failure, Landed, Own, Ticket};
use super::layer::Shared;
use super::scope::Scope;
use crate::ready::ready;
use crate::{BoxError, Facts};

/// A request to the origin.
pub(super) struct Fetch<St> {
    pub(super) shared: Arc<Shared<St>>,
    pub(super) scope: Scope<St>,
    pub(super) key: ResponseKey,
    /// The caller's request.
    pub(super) parts: Parts,
    /// What is asked about, if anything is stored.
    pub(super) stored: Option<Variant>,
    pub(super) forward: Forward,
    /// What the stored response is good for when this fails.
    pub(super) stale_if_error: StaleIfError,
    /// What is left of its life.
    pub(super) ttl: i64,
    /// The stored responses that a new one replaces.
    pub(super) replaced: Vec<Selecting>,
    pub(super) hints: Hints,
}

/// What is stored beside what could answer the request, and may spare the origin bytes.
#[derive(Default)]
pub(super) struct Hints {
    /// A part of what the request asks for.
    pub(super) part: Option<Variant>,
    /// What other requests for the URL were answered.
    pub(super) others: Vec<Variant>,
}

/// When an answer was asked for and came.
pub(super) fn exchange(asked: Now, received: Now, extensions: &Extensions) -> ResponseTimes {
    ResponseTimes {
        request_time: asked,
        response_time: received,
        queued: extensions
            .get::<Facts>()
            .map_or(Duration::ZERO, Facts::waited),
    }
}

impl<St: ResponseStore> Fetch<St> {
    /// Asks the origin, once or, when its 304 is about something else, twice.
    ///
    /// # Cancel safety
    /// Dropping it drops the request; the store is as it was, or has the whole of a change.
    pub(super) async fn land<S, ReqBody, ResBody>(
        self,
        mut inner: S,
        body: ReqBody,
        ticket: Ticket,
    ) -> Landed
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ReqBody: Body + Default + Send + 'static,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let mut parts = self.parts.clone();
        let asks = self
            .stored
            .as_ref()
            .is_some_and(|stored| make_conditional(&mut parts.headers, stored.head.headers()));
        let held = self.request_missing_range(&mut parts.headers).await;
        let others = self.hints.others.iter().map(|other| other.head.headers());
        let asks_which =
            !asks && held.is_none() && make_conditional_on_any(&mut parts.headers, others);
        let asked = self.shared.clock.now();
        let response = match call(&mut inner, Request::from_parts(parts, body)).await {
            Ok(response) => response,
            Err(error) => return self.failed(error),
        };
        let exchange = exchange(asked, self.shared.clock.now(), response.extensions());
        let status = response.status();
        if self.stale_if_error.covers(status)
            && let Some(variant) = &self.stored
        {
            return Landed::Stored {
                variant: variant.clone(),
                status: CacheStatus::StaleOnError {
                    status: Some(status),
                    ttl: self.ttl,
                },
                facts: facts(&response),
            };
        }
        if let Some((part, bytes)) = held {
            if status == StatusCode::RANGE_NOT_SATISFIABLE {
                drop(response);
                return self.again(inner, ticket).await;
            }
            if status != StatusCode::PARTIAL_CONTENT {
                return self.arrived(response, &exchange, ticket).await;
            }
            return match self.completed(&part, &bytes, response, &exchange) {
                Some(whole) => self.arrived(whole, &exchange, ticket).await,
                None => self.again(inner, ticket).await,
            };
        }
        if asks_which && status == StatusCode::NOT_MODIFIED {
            let facts = facts(&response);
            let (head, _) = response.into_parts();
            let chosen = self.chosen(&head.headers, facts, &exchange, &ticket);
            return match chosen.await {
                Some(landed) => landed,
                None => self.again(inner, ticket).await,
            };
        }
        let Some(variant) = self.stored.clone().filter(|_| asks) else {
            return self.arrived(response, &exchange, ticket).await;
        };
        if status != StatusCode::NOT_MODIFIED {
            return self.arrived(response, &exchange, ticket).await;
        }
        if let Some(head) = self.news(&variant.head, response.headers(), &exchange) {
            let facts = facts(&response);
            drop(response);
            return self.validated(&variant, head, facts).await;
        }
        // Not about the stored response, but an answer to the caller's own condition.
        let is_for_the_caller = names_tag_of(&self.parts.headers, response.headers());
        self.forget(&variant).await;
        if is_for_the_caller {
            return self.arrived(response, &exchange, ticket).await;
        }
        drop(response);
        self.again(inner, ticket).await
    }

    /// Asks once more, without any condition.
    async fn again<S, ReqBody, ResBody>(mut self, mut inner: S, ticket: Ticket) -> Landed
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ReqBody: Body + Default + Send + 'static,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.stored = None;
        let mut parts = self.parts.clone();
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE] {
            parts.headers.remove(condition);
        }
        let asked = self.shared.clock.now();
        match call(&mut inner, Request::from_parts(parts, ReqBody::default())).await {
            Ok(response) => {
                let exchange = exchange(asked, self.shared.clock.now(), response.extensions());
                self.arrived(response, &exchange, ticket).await
            }
            Err(error) => self.failed(error),
        }
    }

    pub(super) async fn forget(&self, variant: &Variant) {
        self.scope.remove(&self.key, variant.head.selecting()).await;
    }

    /// There is no answer.
    fn failed(&self, error: BoxError) -> Landed {
        // A refusal of our own layers is no silence of the origin: its caller is to hear the reason.
        if let Some(variant) = &self.stored
            && self.stale_if_error.unreachable
            && Refusal::find(&*error).is_none()
        {
            return Landed::Stored {
                variant: variant.clone(),
                status: CacheStatus::StaleOnError {
                    status: None,
                    ttl: self.ttl,
                },
                facts: Box::default(),
            };
        }
        Landed::Failed {
            others: Failure::of(&error),
            own: Own::new(error),
        }
    }
}

/// One request, on the instance that was made ready for it.
async fn call<S, ReqBody, ResBody>(
    inner: &mut S,
    request: Request<ReqBody>,
) -> Result<Response<ResBody>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    ready(inner).await.map_err(Into::into)?;
    inner.call(request).await.map_err(Into::into)
}

fn facts<B>(response: &Response<B>) -> Box<Facts> {
    Box::new(Facts::of(response).cloned().unwrap_or_default())
}
