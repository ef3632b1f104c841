//! Storing a response of the origin (RFC 9111, 3), and letting others read it.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    CacheStatus, ContentRange, Extent, Selecting, StoredResponse, has_validator, is_anonymous,
    is_for_anybody,
};
use etiquette_core::store::{BodyWriter, ResponseStore};
use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Method, Response, StatusCode};
use http_body::Body;

use super::super::body::{Framing, ResponseBody, Sink, StoreBody, Storing, Tee, UpstreamBody};
use super::super::context::CacheContext;
use super::super::delivery::Delivery;
use super::super::lookup::mark;
use super::super::singleflight::{FetchOutcome, FlightGuard};
use super::super::store::STORE;
use super::combine::combined;
use super::fetch::Fetch;
use super::upstream::Fetched;
use crate::events;

impl<St: ResponseStore> Fetch<St> {
    /// Stores the response while it is read, lets others read it, or leaves it to its caller.
    pub(super) async fn store(&self, fetched: Fetched, guard: FlightGuard) -> FetchOutcome {
        let status = fetched.response.status();
        let storable = self.may_store(&fetched.response, &guard);
        let stored = storable.is_some();
        let selecting = storable.or_else(|| self.shareable(&fetched.response, &guard));
        if !stored {
            self.invalidate_stored(status).await;
        }
        let Some(selecting) = selecting else {
            return self.pass(fetched.response);
        };
        let head = self.head(&fetched, selecting);
        let framing = self.framing(&fetched.response);
        let guard = Arc::new(guard);
        let storage = self.storage(&head, stored, &guard);
        if fetched.response.body().is_end_stream() {
            if !stored || framing.declared.is_some_and(|length| length != 0) {
                return self.pass(fetched.response);
            }
            storage.store(Bytes::new()).await;
            let response = fetched.response.map(ResponseBody::upstream);
            return self.deliver(response, true, None);
        }
        let Some(sink) = Sink::open(storage, framing.declared, framing.max) else {
            if stored {
                self.invalidate_stored(status).await;
            }
            return self.pass(fetched.response);
        };
        let (parts, body) = fetched.response.into_parts();
        let (tee, reader) = Tee::new(head, framing, body, sink);
        guard.share_body(&tee);
        let response = Response::from_parts(parts, ResponseBody::tee(reader));
        self.deliver(response, stored, Some(tee))
    }

    /// Whether the response may be stored by RFC 9111, 3: the fields that select it.
    pub(super) fn storable(&self, status: StatusCode, headers: &HeaderMap) -> Option<Selecting> {
        let (policy, parts) = (self.context.policy(), &self.parts);
        policy.may_store(&parts.method, &parts.uri, &parts.headers, status, headers)
    }

    /// Whether the response is stored here: the URL has not changed meanwhile, and where heads are stored without their
    /// bodies, it is a success that a 304 can confirm.
    fn may_store<B>(&self, response: &Response<B>, guard: &FlightGuard) -> Option<Selecting> {
        let (status, headers) = (response.status(), response.headers());
        let confirmable =
            status.is_success() && status != StatusCode::PARTIAL_CONTENT && has_validator(headers);
        if guard.is_invalidated() || (self.context.stores_heads_only() && !confirmable) {
            return None;
        }
        self.storable(status, headers)
    }

    /// Whether other people may read a response that is not stored while it comes.
    fn shareable<B>(&self, response: &Response<B>, guard: &FlightGuard) -> Option<Selecting> {
        let (request, headers) = (&self.parts.headers, response.headers());
        // Whoever is to come back later is told so by the host's pause, with the time.
        let excluded = matches!(
            response.status(),
            StatusCode::NOT_MODIFIED
                | StatusCode::PARTIAL_CONTENT
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::SERVICE_UNAVAILABLE
        );
        let fits = self.context.partition.is_personal()
            && self.parts.method == Method::GET
            && !guard.is_invalidated()
            && !excluded
            && is_anonymous(request)
            && is_for_anybody(headers);
        fits.then(|| self.context.policy().selecting(request, headers))
            .flatten()
    }

    /// The head to be stored.
    fn head(&self, fetched: &Fetched, selecting: Selecting) -> StoredResponse {
        let response = &fetched.response;
        let range = content_range(response);
        StoredResponse::new(
            response.status(),
            response.version(),
            response.headers(),
            selecting,
            range.map_or(Extent::Whole, |range| range.extent()),
            &fetched.times,
            self.context.policy().shared,
        )
    }

    fn framing(&self, response: &Response<UpstreamBody>) -> Framing {
        let declared = response.headers().get(CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
        Framing {
            declared: declared.or_else(|| response.body().size_hint().exact()),
            promised: content_range(response).map(|range| range.length()),
            max: self.context.cache.settings.max_body,
        }
    }

    /// How the body is stored.
    fn storage(
        &self,
        head: &StoredResponse,
        stored: bool,
        guard: &Arc<FlightGuard>,
    ) -> Box<dyn StoreBody> {
        let stored = stored.then(|| head.clone());
        let head = match self.context.stores_heads_only() {
            true => stored.map(StoredResponse::head_only),
            false => stored,
        };
        Box::new(Storage {
            context: Arc::clone(&self.context),
            head,
            replaced: self.replaced.clone(),
            guard: Arc::clone(guard),
        })
    }

    /// The origin has sent something new that is not stored: what is stored is not right any more.
    async fn invalidate_stored(&self, status: StatusCode) {
        let new = status.is_success()
            || (status.is_redirection() && status != StatusCode::NOT_MODIFIED)
            || matches!(status.as_u16(), 404 | 410);
        if let (true, Some(variant)) = (new, &self.forwarding.stored) {
            self.remove(variant).await;
        }
    }

    /// The response is for its caller, and not stored.
    fn pass(&self, response: Response<UpstreamBody>) -> FetchOutcome {
        self.deliver(response.map(ResponseBody::upstream), false, None)
    }

    fn deliver(
        &self,
        response: Response<ResponseBody>,
        stored: bool,
        tee: Option<Arc<Tee>>,
    ) -> FetchOutcome {
        let status = CacheStatus::forwarded(self.forwarding.reason, stored);
        let response = Delivery::new(mark(response, status));
        FetchOutcome::Received { response, tee }
    }
}

/// The part that a 206 holds.
fn content_range<B>(response: &Response<B>) -> Option<ContentRange> {
    ContentRange::of(response.headers())
        .filter(|_| response.status() == StatusCode::PARTIAL_CONTENT)
}

/// Stores the body of `head`, or nothing where it only is read by others while it comes. The guard goes with it; the caller
/// has the body whether it is stored or not.
struct Storage<St> {
    context: Arc<CacheContext<St>>,
    head: Option<StoredResponse>,
    replaced: Vec<Selecting>,
    guard: Arc<FlightGuard>,
}

impl<St: ResponseStore> StoreBody for Storage<St> {
    fn needs_body(&self) -> bool {
        let extent = self.head.as_ref().map(StoredResponse::extent);
        extent != Some(Extent::HeadOnly)
    }

    fn store(self: Box<Self>, body: Bytes) -> Storing<()> {
        Box::pin(async move {
            let (context, replaced) = (&self.context, &self.replaced);
            let (head, body) = match self.head {
                None => return,
                Some(head) => match head.extent() {
                    Extent::Part { .. } => combined(context, replaced, head, body).await,
                    Extent::HeadOnly => (head, Bytes::new()),
                    _ => (head, body),
                },
            };
            if !self.guard.is_invalidated() {
                context.partition.put(head, body, replaced).await;
            }
        })
    }

    fn begin(&self, length: Option<u64>) -> Option<Box<dyn BodyWriter>> {
        self.head.as_ref()?;
        self.context.partition.write(length)
    }

    fn finish(self: Box<Self>, writer: Box<dyn BodyWriter>) -> Storing<()> {
        Box::pin(async move {
            if let Some(head) = self.head
                && !self.guard.is_invalidated()
            {
                let finished = writer.finish(head, self.replaced).await;
                events::store_result(STORE, "keep a response", finished);
            }
        })
    }
}
