//! The thin drivers: a [`Plan`] or a sitemap over any tower service.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;

use bytes::{Buf, Bytes};
use etiquette_core::Refusal;
use etiquette_robots::{ProductToken, Robots};
use http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service;

use crate::plan::{
    Findings, InvalidStart, Plan, PlannedRequest, PlannedResponse, RequestKind, Want,
};
use crate::sitemap::{Item, SitemapError, SitemapReader, SitemapTask, Summary};

type BoxError = Box<dyn Error + Send + Sync>;

/// Finds what a site offers machines, through a service that does the waiting and the refusing.
///
/// Costs two requests, robots.txt and the start page, and up to [`max_probes`](Self::max_probes) more. See
/// [`plan`](crate::plan) for what is requested and when; use that module to drive a discovery by other means.
///
/// ```
/// use etiquette_discovery::{Discovery, SourceKind};
/// use http::{Request, Response, header};
/// use http_body_util::Full;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), etiquette_discovery::DiscoveryError> {
/// // In real life this is a polite client.
/// let site = tower::service_fn(|request: Request<Full<bytes::Bytes>>| async move {
///     let response = match request.uri().path() {
///         "/" => Response::builder()
///             .header(header::CONTENT_TYPE, "text/html")
///             .body(Full::<bytes::Bytes>::from("<link rel=alternate type=application/atom+xml href=/feed>")),
///         _ => Response::builder().status(404).body(Full::from("")),
///     };
///     Ok::<_, std::convert::Infallible>(response.unwrap())
/// });
/// let start = "https://www.example.com/".parse().unwrap();
/// let found = Discovery::new(site).run(&start).await?;
/// assert_eq!(found.sources[0].kind, SourceKind::FeedAtom);
/// assert_eq!(found.sources[0].uri, "https://www.example.com/feed");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Discovery<S> {
    service: S,
    token: Option<ProductToken>,
    wants: Vec<Want>,
    max_probes: u8,
    robots: Option<Robots>,
    final_uri: Option<FinalUri>,
    robots_of: Option<RobotsOf>,
}

/// Reads the robots.txt that a client obeyed out of the extensions of a response.
type RobotsOf = fn(&Extensions) -> Option<Robots>;

/// Reads the address that a response came from out of its extensions.
type FinalUri = fn(&Extensions) -> Option<Uri>;

impl<S> Discovery<S> {
    /// A discovery over `service`, which should be a polite client: see the crate `tower-etiquette`.
    pub fn new(service: S) -> Self {
        Self {
            service,
            token: None,
            wants: Vec::new(),
            max_probes: 0,
            robots: None,
            final_uri: None,
            robots_of: None,
        }
    }

    /// The crawler whose rules count, as in [`Plan::token`].
    pub fn token(mut self, token: ProductToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Worth a probe, as in [`Plan::want`].
    pub fn want(mut self, want: Want) -> Self {
        self.wants.push(want);
        self
    }

    /// How many probes are made at most, as in [`Plan::max_probes`]: none by default.
    pub fn max_probes(mut self, probes: u8) -> Self {
        self.max_probes = probes;
        self
    }

    /// The robots.txt of the site, which is then not requested. For callers that have read it.
    pub fn robots(mut self, robots: Robots) -> Self {
        self.robots = Some(robots);
        self
    }

    /// The client below reads robots.txt and obeys it; `of` reads it out of the extensions of a response.
    ///
    /// robots.txt is then not requested a second time, verdicts are the client's, and the requests that are reported are
    /// those that came after it. With the layers of `tower-etiquette` this is
    /// `|e| e.get::<Facts>()?.robots()?.robots().cloned()`.
    pub fn client_obeys_robots(mut self, of: fn(&Extensions) -> Option<Robots>) -> Self {
        self.robots_of = Some(of);
        self
    }

    /// How to learn the address of a response after redirects, to which its links are relative.
    ///
    /// Clients that follow redirects put it into the extensions of the response, each in its own type. Without this the
    /// address of the request is taken.
    pub fn final_uri(mut self, of: fn(&Extensions) -> Option<Uri>) -> Self {
        self.final_uri = Some(of);
        self
    }

    /// The service.
    pub fn get_ref(&self) -> &S {
        &self.service
    }

    /// The service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.service
    }

    /// The service back.
    pub fn into_inner(self) -> S {
        self.service
    }

    /// Finds what the site of `start` offers.
    ///
    /// A robots.txt that cannot be read, a start page that robots.txt forbids and an error page are findings and not
    /// errors; so is a probe that is refused.
    ///
    /// # Errors
    /// [`DiscoveryError`] when `start` is no absolute URI, or when the service fails on robots.txt or the start page.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request in flight and all that was found.
    pub async fn run<ReqBody, ResBody>(&mut self, start: &Uri) -> Result<Findings, DiscoveryError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
        ResBody::Error: Into<BoxError>,
    {
        let mut plan = Plan::new(start)
            .map_err(DiscoveryError::Start)?
            .max_probes(self.max_probes);
        if let Some(token) = &self.token {
            plan = plan.token(token.clone());
        }
        if let Some(robots) = &self.robots {
            plan = plan.robots(robots.clone());
        }
        if self.robots_of.is_some() {
            plan = plan.client_obeys_robots();
        }
        for want in &self.wants {
            plan = plan.want(*want);
        }
        while let Some(request) = plan.next_request() {
            match self.fetch(&request).await {
                Ok(fetched) => {
                    if let Some(robots) = fetched.robots {
                        plan.learn_robots(&fetched.uri, robots);
                    }
                    plan.response(PlannedResponse {
                        uri: &fetched.uri,
                        status: fetched.status,
                        headers: &fetched.headers,
                        body: &fetched.body,
                    });
                }
                Err(error) => match request.kind {
                    RequestKind::RobotsTxt => return Err(DiscoveryError::RobotsTxt(error)),
                    RequestKind::Start => return Err(DiscoveryError::StartPage(error)),
                    RequestKind::Probe(_) => plan.no_response(Refusal::find(&*error).is_none()),
                },
            }
        }
        Ok(plan.finish())
    }

    async fn fetch<ReqBody, ResBody>(
        &mut self,
        request: &PlannedRequest,
    ) -> Result<Fetched, BoxError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
        ResBody::Error: Into<BoxError>,
    {
        let response = send(&mut self.service, &request.uri, request.accept).await?;
        let (head, body) = response.into_parts();
        let mut body = std::pin::pin!(body);
        let mut bytes = Vec::new();
        while bytes.len() < request.max_bytes {
            match body.frame().await {
                None => break,
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        bytes.extend_from_slice(&rest(data));
                    }
                }
                // A rule may have stood in what is missing.
                Some(Err(error)) if request.kind == RequestKind::RobotsTxt => {
                    return Err(error.into());
                }
                Some(Err(_)) => break,
            }
        }
        bytes.truncate(request.max_bytes);
        let uri = self
            .final_uri
            .and_then(|of| of(&head.extensions))
            .unwrap_or_else(|| request.uri.clone());
        Ok(Fetched {
            robots: self.robots_of.and_then(|of| of(&head.extensions)),
            uri,
            status: head.status,
            headers: head.headers,
            body: bytes,
        })
    }
}

struct Fetched {
    robots: Option<Robots>,
    uri: Uri,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// What `Accept` says for a sitemap.
const SITEMAP: &str =
    "application/xml, text/xml, application/gzip;q=0.9, application/x-gzip;q=0.9, text/plain;q=0.5";

/// Reads the sitemap of a [`SitemapWalk`](crate::sitemap::SitemapWalk) over a service, piece by piece as it arrives.
///
/// The download ends as soon as nothing more can come of it.
///
/// # Errors
/// [`FetchSitemapError`]; what `on` was called with until then holds.
///
/// # Cancel safety
/// Dropping the future drops the request in flight; what `on` was called with until then holds.
pub async fn fetch_sitemap<S, ReqBody, ResBody>(
    service: &mut S,
    task: &SitemapTask,
    mut on: impl FnMut(Item<'_>),
) -> Result<Summary, FetchSitemapError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ReqBody: Default,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    let response = send(service, &task.uri, SITEMAP)
        .await
        .map_err(FetchSitemapError::NoResponse)?;
    if response.status() != StatusCode::OK {
        return Err(FetchSitemapError::Status(response.status()));
    }
    let mut reader = SitemapReader::new(&task.uri);
    if let Some(origin) = &task.named_by {
        reader = reader.named_by(origin);
    }
    let mut body = std::pin::pin!(response.into_body());
    let mut cut = false;
    while reader.wants_more() {
        match body.frame().await {
            None => break,
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    reader
                        .feed(&rest(data), &mut on)
                        .map_err(FetchSitemapError::Content)?;
                }
            }
            Some(Err(_)) => {
                cut = true;
                break;
            }
        }
    }
    let mut summary = reader.finish(on).map_err(FetchSitemapError::Content)?;
    summary.truncated |= cut;
    Ok(summary)
}

/// What is left in a buffer, without a copy where the buffer can.
fn rest(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

async fn send<S, ReqBody, ResBody>(
    service: &mut S,
    uri: &Uri,
    accept: &'static str,
) -> Result<Response<ResBody>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ReqBody: Default,
{
    let mut request = Request::new(ReqBody::default());
    *request.uri_mut() = uri.clone();
    let accept = header::HeaderValue::from_static(accept);
    request.headers_mut().insert(header::ACCEPT, accept);
    poll_fn(|cx| service.poll_ready(cx))
        .await
        .map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

/// Why a discovery did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The start is no address.
    Start(InvalidStart),
    /// The service failed on robots.txt.
    RobotsTxt(BoxError),
    /// The service failed on the start page, or refused it.
    StartPage(BoxError),
}

impl fmt::Display for DiscoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start(_) => "the discovery cannot start",
            Self::RobotsTxt(_) => "robots.txt could not be fetched",
            Self::StartPage(_) => "the start page could not be fetched",
        })
    }
}

impl Error for DiscoveryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::RobotsTxt(error) | Self::StartPage(error) => Some(&**error),
        }
    }
}

/// Why a sitemap was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchSitemapError {
    /// The service failed or refused.
    NoResponse(BoxError),
    /// Another status than 200.
    Status(StatusCode),
    /// The body is none of a sitemap, or too long.
    Content(SitemapError),
}

impl fmt::Display for FetchSitemapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponse(_) => f.write_str("the sitemap could not be fetched"),
            Self::Status(status) => write!(f, "the sitemap could not be fetched: status {status}"),
            Self::Content(_) => f.write_str("the sitemap could not be read"),
        }
    }
}

impl Error for FetchSitemapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoResponse(error) => Some(&**error),
            Self::Status(_) => None,
            Self::Content(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll};

    use http_body::Frame;
    use http_body_util::Empty;

    use super::*;
    use crate::sitemap::SitemapWalk;

    /// A body of pieces that counts how many were taken.
    struct Pieces {
        left: VecDeque<Result<Bytes, &'static str>>,
        taken: Arc<Mutex<usize>>,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            *self.taken.lock().unwrap() += 1;
            Poll::Ready(self.left.pop_front().map(|piece| piece.map(Frame::data)))
        }
    }

    /// A site whose every response has the same body; `taken` counts how many pieces of it were taken.
    fn site(
        pieces: Vec<Result<Bytes, &'static str>>,
        taken: &Arc<Mutex<usize>>,
    ) -> impl Service<Request<Empty<Bytes>>, Response = Response<Pieces>, Error = Infallible> + use<>
    {
        let taken = taken.clone();
        tower::service_fn(move |_| {
            let body = Pieces {
                left: pieces.clone().into(),
                taken: taken.clone(),
            };
            let response = Response::builder()
                .header(header::CONTENT_TYPE, "text/html")
                .body(body);
            async { Ok(response.unwrap()) }
        })
    }

    fn task() -> SitemapTask {
        let mut walk = SitemapWalk::new();
        walk.add("https://www.example.com/sitemap.xml".parse().unwrap(), None)
            .unwrap();
        walk.next_task().unwrap()
    }

    #[tokio::test]
    async fn a_page_is_read_up_to_the_bound_and_dropped() {
        let taken = Arc::default();
        let service = site(vec![Ok(Bytes::from(vec![b' '; 64 * 1024])); 100], &taken);
        let robots = Robots::parse(b"");
        let start = "https://www.example.com/".parse().unwrap();
        let found = Discovery::new(service)
            .robots(robots)
            .run(&start)
            .await
            .unwrap();
        assert_eq!(found.start_status, Some(StatusCode::OK));
        assert_eq!(*taken.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn what_a_client_says_about_a_response_counts() {
        #[derive(Clone)]
        struct FromClient(Uri, Robots);
        let site = tower::service_fn(|request: Request<Empty<Bytes>>| async move {
            assert_eq!(request.uri().path(), "/old/");
            let uri = Uri::from_static("https://www.example.com/new/");
            let from_client = FromClient(uri, Robots::parse(b"Sitemap: s.xml\n"));
            let response = Response::builder()
                .header(header::CONTENT_TYPE, "text/html")
                .extension(from_client)
                .body(http_body_util::Full::from("<link rel=feed href=f>"));
            Ok::<_, Infallible>(response.unwrap() as Response<http_body_util::Full<Bytes>>)
        });
        let start = "https://www.example.com/old/".parse().unwrap();
        let found = Discovery::new(site)
            .client_obeys_robots(|extensions| Some(extensions.get::<FromClient>()?.1.clone()))
            .final_uri(|extensions| Some(extensions.get::<FromClient>()?.0.clone()))
            .run(&start)
            .await
            .unwrap();
        let sources: Vec<_> = found
            .sources
            .iter()
            .map(|source| source.uri.to_string())
            .collect();
        assert_eq!(
            sources,
            [
                "https://www.example.com/new/f",
                "https://www.example.com/s.xml"
            ]
        );
        assert_eq!(found.requests, [start]);
    }

    #[tokio::test]
    async fn a_robots_txt_that_breaks_off_is_an_error() {
        let pieces = vec![Ok(Bytes::from("User-agent: *\n")), Err("broken off")];
        let service = site(pieces, &Arc::default());
        let start = "https://www.example.com/".parse().unwrap();
        let error = Discovery::new(service).run(&start).await.unwrap_err();
        assert!(matches!(error, DiscoveryError::RobotsTxt(_)));
        assert_eq!(error.source().unwrap().to_string(), "broken off");
    }

    #[tokio::test]
    async fn the_download_of_an_error_page_stops() {
        let page = Bytes::from(format!("<html>{}", " ".repeat(64 * 1024)));
        let taken = Arc::default();
        let mut service = site(vec![Ok(page); 100], &taken);
        let error = fetch_sitemap(&mut service, &task(), |_| {})
            .await
            .unwrap_err();
        assert!(matches!(
            error,
            FetchSitemapError::Content(SitemapError::NotASitemap)
        ));
        assert_eq!(*taken.lock().unwrap(), 1);
    }

    #[tokio::test]
    async fn what_came_before_a_cut_is_kept() {
        let beginning = "<urlset><url><loc>https://www.example.com/a</loc></url>";
        let pieces = vec![Ok(Bytes::from(beginning)), Err("broken off")];
        let mut service = site(pieces, &Arc::default());
        let mut pages = 0;
        let summary = fetch_sitemap(&mut service, &task(), |_| pages += 1)
            .await
            .unwrap();
        assert_eq!(pages, 1);
        assert!(summary.truncated);
    }
}
