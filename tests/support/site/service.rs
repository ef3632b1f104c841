//! A site without sockets: a tower service, for tests on paused time.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, Response, Version};
use tower_service::Service;

use super::answer::Arrival;
use super::body::{Exchange, SiteBody, respond};
use super::log::Log;
use super::pages::Pages;

/// A site as the innermost service of a stack. It answers and keeps a log as a [`Site`](super::Site) does, for whatever
/// host is asked.
///
/// It holds its callers to the contract of tower: an instance that is called without having been ready panics, and a clone
/// of a ready one is not ready. Clones share the answers and the log.
#[derive(Debug)]
pub struct SiteService {
    ready: bool,
    pages: Arc<Pages>,
}

/// The answer of a [`SiteService`].
pub struct ResponseFuture(
    Pin<Box<dyn Future<Output = Result<Response<SiteBody>, io::Error>> + Send>>,
);

impl SiteService {
    pub(super) fn new(pages: Pages) -> Self {
        Self {
            ready: false,
            pages: Arc::new(pages),
        }
    }

    /// What the site has seen so far.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.pages.log
    }
}

impl Clone for SiteService {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            pages: Arc::clone(&self.pages),
        }
    }
}

impl<B> Service<Request<B>> for SiteService {
    type Response = Response<SiteBody>;
    type Error = io::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    /// # Panics
    /// When this instance has not been ready since its last call.
    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        let ready = std::mem::take(&mut self.ready);
        assert!(ready, "called without being ready");
        let mut arrival = Arrival::of(&request);
        let log = self.pages.log.clone();
        let index = log.arrived(0, Version::HTTP_11, &mut arrival);
        let exchange = Exchange { log, index };
        let mut answer = self.pages.answer(&arrival);
        if arrival.method == Method::HEAD {
            answer = answer.without_body();
        }
        ResponseFuture(Box::pin(respond(answer, exchange)))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<SiteBody>, io::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body::Body;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::super::{Answer, Site};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn get(path: &str) -> Request<()> {
        let url = format!("http://site.example{path}");
        Request::get(url).body(()).unwrap()
    }

    /// It tells an instance that was ready from its clone.
    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "called without being ready")]
    async fn a_clone_of_a_ready_instance_is_not_ready() {
        let mut ready = Site::builder().in_process();
        ServiceExt::<Request<()>>::ready(&mut ready).await.unwrap();
        let mut clone = ready.clone();
        ready.call(get("/")).await.unwrap();
        drop(clone.call(get("/")));
    }

    #[tokio::test(start_paused = true)]
    async fn everything_comes_at_its_time_and_is_noted() {
        let pieces = Answer::status(200).pieces(["1234", "56"], SECOND);
        let site = Site::builder()
            .at("/pieces", pieces.after(SECOND).ends_after(SECOND))
            .at("/broken", Answer::text("123").breaks_off())
            .at("/gone", Answer::hang_up())
            .at("/page", Answer::text("123"))
            .in_process();
        let response = site.clone().oneshot(get("/pieces?x")).await.unwrap();
        let body = response.into_body();
        assert_eq!(body.size_hint().exact(), None);
        assert_eq!(site.log().in_flight(), 1);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "123456");
        let broken = site.clone().oneshot(get("/broken")).await.unwrap();
        assert!(broken.into_body().collect().await.is_err());
        assert!(site.clone().oneshot(get("/gone")).await.is_err());
        let page = site.clone().oneshot(get("/page")).await.unwrap();
        assert_eq!(page.body().size_hint().exact(), Some(3));
        drop(page);

        let log = site.log().entries();
        let noted: Vec<_> = log
            .iter()
            .map(|e| (e.target.as_str(), e.at, e.ended.unwrap(), e.bytes))
            .collect();
        let end = 4 * SECOND;
        let expected = [
            ("/pieces?x", Duration::ZERO, end, 6),
            ("/broken", end, end, 3),
            ("/gone", end, end, 0),
            ("/page", end, end, 0),
        ];
        assert_eq!(noted, expected);
        assert_eq!(log[0].answered, Some(SECOND));
        assert_eq!(log[0].host, "site.example");
        assert_eq!(site.log().in_flight(), 0);
    }
}
