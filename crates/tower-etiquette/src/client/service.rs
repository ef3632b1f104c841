use std::task::{Context, Poll};

use http::{Method, Request, Response, Uri};
use tower_service::Service;

use super::body::{RequestBody, ResponseBody};
use super::error::Error;
use super::future::ClientFuture;
use crate::macros::opaque_debug;
use crate::ready::ready;
use crate::{BoxError, BoxedService, Purpose};

/// A polite HTTPS client. Cloning is cheap; clones share connections, cache, rules and budgets.
///
/// It is a tower `Service` too.
#[derive(Clone)]
pub struct Client {
    service: BoxedService<RequestBody>,
    max_body: u64,
}

impl Client {
    pub(super) fn with_service(service: BoxedService<RequestBody>, max_body: u64) -> Self {
        Self { service, max_body }
    }

    /// GETs `url`, following redirects.
    ///
    /// # Errors
    /// [`Error::refusal`] tells which layer refused it, why, and when to come back; other errors are those of the
    /// connection.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the host's queue or gives its permit back.
    pub async fn get(&self, url: &str) -> Result<Response<ResponseBody>, Error> {
        self.get_for(url, Purpose::default()).await
    }

    /// GETs `url` for `purpose`, following redirects.
    ///
    /// # Errors
    /// As [`Client::get`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn get_for(
        &self,
        url: &str,
        purpose: Purpose,
    ) -> Result<Response<ResponseBody>, Error> {
        let uri: Uri = url
            .parse()
            .map_err(|error| Error::new(BoxError::from(http::Error::from(error))))?;
        let mut request = Request::new(RequestBody::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri;
        request.extensions_mut().insert(purpose);
        self.request(request).await
    }

    /// Sends `request`, following redirects.
    ///
    /// # Errors
    /// As [`Client::get`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn request(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut client = self.clone();
        ready(&mut client).await?;
        client.call(request).await
    }
}

impl Service<Request<RequestBody>> for Client {
    type Response = Response<ResponseBody>;
    type Error = Error;
    type Future = ClientFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.service.poll_ready(cx).map_err(Error::new)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        ClientFuture::new(self.service.call(request), self.max_body)
    }
}

opaque_debug!(Client);
