//! [`Upstream`]: the inner service, its types erased.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etiquette_core::decide::cache_policy::ResponseTimes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::super::body::{UpstreamBody, boxed};
use crate::ready::send;
use crate::{BoxError, Clock, Facts};

/// Who sends requests towards the origin.
pub(crate) trait Upstream: Send + Sized + 'static {
    /// Sends a request on an instance that was made ready for it.
    ///
    /// # Cancel safety
    /// Dropping it drops the request.
    fn send(&mut self, parts: Parts) -> impl Future<Output = Result<Fetched, BoxError>> + Send;

    /// One for a further request. It takes the body of the caller's request along, which is empty.
    fn fork(&mut self) -> Self;
}

/// A response of the origin.
pub(crate) struct Fetched {
    pub(crate) response: Response<UpstreamBody>,
    pub(crate) times: ResponseTimes,
}

/// The inner service, and the body of the caller's request until it is sent. Further requests have an empty one.
pub(crate) struct InnerService<S, ReqBody> {
    pub(crate) service: S,
    pub(crate) body: Option<ReqBody>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<S, ReqBody, ResBody> Upstream for InnerService<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Error: Into<BoxError>,
{
    async fn send(&mut self, parts: Parts) -> Result<Fetched, BoxError> {
        let request = Request::from_parts(parts, self.body.take().unwrap_or_default());
        let request_time = self.clock.now();
        let response = send(&mut self.service, request).await?;
        let facts = response.extensions().get::<Facts>();
        let times = ResponseTimes {
            request_time,
            response_time: self.clock.now(),
            queued: facts.map_or(Duration::ZERO, Facts::waited),
        };
        Ok(Fetched {
            response: response.map(boxed),
            times,
        })
    }

    fn fork(&mut self) -> Self {
        Self {
            service: self.service.clone(),
            body: self.body.take(),
            clock: Arc::clone(&self.clock),
        }
    }
}
