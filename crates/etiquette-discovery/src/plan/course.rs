//! The plan: the next request, and what its response changes.

use etiquette_core::decide::robots_txt::{RobotsPolicy, RobotsResponse};
use etiquette_robots::{ProductToken, Robots};
use http::{StatusCode, Uri};

use super::findings::{Findings, InvalidStart, RobotsAccess};
use super::request::{PlannedRequest, RequestKind};
use super::response::PlannedResponse;
use super::want::Want;
use crate::html::{DEFAULT_LIMIT, HtmlScanner};
use crate::reference::resolve;
use crate::source::{Source, Via, from_html, from_link_header, from_robots, ranked, same_origin};

/// Probes that one discovery makes at most, whatever is asked for.
pub const MAX_PROBES: u8 = 3;

/// How much of the response to a probe is read: enough to see that it is no error page.
pub(super) const PROBE_BYTES: usize = 16 * 1024;

/// The course of one discovery.
///
/// ```
/// use etiquette_discovery::plan::{Plan, PlannedResponse};
///
/// let mut plan = Plan::new(&"https://www.example.com/".parse().unwrap())?;
/// while let Some(request) = plan.next_request() {
///     // Nothing but 404 here.
///     plan.response(PlannedResponse {
///         uri: &request.uri,
///         status: http::StatusCode::NOT_FOUND,
///         headers: &http::HeaderMap::new(),
///         body: b"",
///     });
/// }
/// let findings = plan.finish();
/// assert_eq!(findings.requests.len(), 2);
/// assert!(findings.sources.is_empty());
/// # Ok::<(), etiquette_discovery::plan::InvalidStart>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Plan {
    start: Uri,
    /// An address of the origin whose robots.txt counts.
    site: Uri,
    tokens: Vec<ProductToken>,
    policy: RobotsPolicy,
    wants: Vec<Want>,
    probes_left: u8,
    robots: RobotsAccess,
    rules: Option<Robots>,
    stage: Stage,
    sources: Vec<Source>,
    requests: Vec<Uri>,
    start_uri: Option<Uri>,
    start_status: Option<StatusCode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    RobotsTxt,
    Start,
    /// The place in `wants` of the next probe.
    Probes(usize),
}

impl Plan {
    /// A discovery that starts at the page `start`.
    ///
    /// # Errors
    /// [`InvalidStart`] when `start` is no absolute `http` or `https` URI.
    pub fn new(start: &Uri) -> Result<Self, InvalidStart> {
        let start = resolve(start, "").map_err(|_| InvalidStart::NotAbsolute)?;
        Ok(Self {
            site: start.clone(),
            start,
            tokens: Vec::new(),
            policy: RobotsPolicy::default(),
            wants: Vec::new(),
            probes_left: 0,
            robots: RobotsAccess::Unknown,
            rules: None,
            stage: Stage::RobotsTxt,
            sources: Vec::new(),
            requests: Vec::new(),
            start_uri: None,
            start_status: None,
        })
    }

    /// The crawler whose rules in robots.txt count. Without one, those for `*` do.
    pub fn token(mut self, token: ProductToken) -> Self {
        self.tokens = vec![token];
        self
    }

    /// Also worth a probe, in this order, if [`max_probes`](Self::max_probes) allows any.
    pub fn want(mut self, want: Want) -> Self {
        if !self.wants.contains(&want) {
            self.wants.push(want);
        }
        self
    }

    /// Makes at most this many probes: none by default, [`MAX_PROBES`] at most.
    pub fn max_probes(mut self, probes: u8) -> Self {
        self.probes_left = probes.min(MAX_PROBES);
        self
    }

    /// The site's robots.txt is known already: it is not requested.
    pub fn robots(mut self, robots: Robots) -> Self {
        if self.stage == Stage::RobotsTxt {
            self.keep_rules(&self.robots_uri(), robots);
        }
        self
    }

    /// The client below reads robots.txt and obeys it, as the layers of `tower-etiquette` do: the plan does not request
    /// it a second time and leaves verdicts to the client. Hand it on with [`learn_robots`](Self::learn_robots) so that
    /// its Sitemap lines count.
    pub fn client_obeys_robots(mut self) -> Self {
        if self.stage == Stage::RobotsTxt {
            self.robots = RobotsAccess::LeftToClient;
            self.stage = Stage::Start;
        }
        self
    }

    /// The robots.txt that a client below has read, of the origin of `uri`, the start after redirects. Call it before the
    /// response that it came with. From then on that origin is the site.
    pub fn learn_robots(&mut self, uri: &Uri, robots: Robots) {
        if self.rules.is_none()
            && let Ok(robots_uri) = resolve(uri, "/robots.txt")
        {
            self.site = uri.clone();
            self.add(from_robots(&robots_uri, &robots));
            self.rules = Some(robots);
            self.robots = RobotsAccess::Rules;
        }
    }

    /// The next request, or `None` when the discovery is over. The same one until its response is there.
    pub fn next_request(&mut self) -> Option<PlannedRequest> {
        let (uri, kind, accept, max_bytes) = match self.stage {
            Stage::RobotsTxt => (
                self.robots_uri(),
                RequestKind::RobotsTxt,
                "text/plain",
                self.policy.get_max_bytes(),
            ),
            Stage::Start if self.allows(&self.start) => (
                self.start.clone(),
                RequestKind::Start,
                "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
                DEFAULT_LIMIT,
            ),
            Stage::Start => {
                self.stage = Stage::Probes(0);
                return self.next_request();
            }
            Stage::Probes(at) => {
                let want = *self.wants.get(at)?;
                let uri = self.well_known(want.path());
                let known = self.sources.iter().any(|source| want.is_met_by(source));
                if self.probes_left == 0 || known || !self.allows(&uri) {
                    self.stage = Stage::Probes(at + 1);
                    return self.next_request();
                }
                (uri, RequestKind::Probe(want), want.accept(), PROBE_BYTES)
            }
        };
        Some(PlannedRequest {
            uri,
            kind,
            accept,
            max_bytes,
        })
    }

    /// Takes the response to the request that [`next_request`](Self::next_request) named.
    pub fn response(&mut self, response: PlannedResponse<'_>) {
        let Some(request) = self.next_request() else {
            return;
        };
        self.requests.push(request.uri.clone());
        match request.kind {
            RequestKind::RobotsTxt => {
                match RobotsResponse::read(response.status, response.headers, &self.policy) {
                    RobotsResponse::Rules => {
                        let robots = Robots::parse(response.body);
                        self.keep_rules(response.uri, robots);
                    }
                    RobotsResponse::Unavailable => {
                        self.robots = RobotsAccess::None;
                        self.stage = Stage::Start;
                    }
                    _ => self.close(),
                }
            }
            RequestKind::Start => {
                self.start_status = Some(response.status);
                self.start_uri = Some(response.uri.clone());
                self.stage = Stage::Probes(0);
                if response.status.is_success() {
                    self.read_start(&response);
                }
            }
            RequestKind::Probe(want) => {
                self.probes_left -= 1;
                if response.status == StatusCode::OK && want.fits(&request.uri, &response) {
                    self.add([Source {
                        kind: want.kind(),
                        uri: request.uri,
                        via: Via::WellKnown,
                        cross_origin: false,
                        title: None,
                    }]);
                }
                self.next_probe();
            }
        }
    }

    /// The request that [`next_request`](Self::next_request) named got no response, or was refused before it was sent.
    /// `sent` says whether it left.
    pub fn no_response(&mut self, sent: bool) {
        let Some(request) = self.next_request() else {
            return;
        };
        if sent {
            self.requests.push(request.uri);
        }
        match request.kind {
            RequestKind::RobotsTxt => self.close(),
            RequestKind::Start => self.stage = Stage::Probes(0),
            RequestKind::Probe(_) => {
                self.probes_left -= u8::from(sent);
                self.next_probe();
            }
        }
    }

    /// What was found so far, ranked.
    #[must_use]
    pub fn finish(self) -> Findings {
        Findings {
            start_allowed: self.allows(&self.start),
            sources: ranked(self.sources),
            requests: self.requests,
            robots: self.robots,
            start_uri: self.start_uri,
            start_status: self.start_status,
        }
    }

    fn read_start(&mut self, response: &PlannedResponse<'_>) {
        self.add(from_link_header(response.uri, response.headers));
        let media_type = response.media_type();
        let markup = match media_type.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            // RFC 9110, 8.3: without a type the data may tell.
            "" => response.body.trim_ascii_start().starts_with(b"<"),
            _ => false,
        };
        if markup {
            let mut scanner = HtmlScanner::new(response.uri);
            if let Some(content_type) = response.content_type() {
                scanner = scanner.content_type(content_type);
            }
            self.add(from_html(response.uri, &scanner.scan(response.body)));
        }
    }

    fn keep_rules(&mut self, uri: &Uri, robots: Robots) {
        self.add(from_robots(uri, &robots));
        self.rules = Some(robots);
        self.robots = RobotsAccess::Rules;
        self.stage = Stage::Start;
    }

    /// Adds sources, flagged by the origin whose robots.txt was read.
    fn add(&mut self, sources: impl IntoIterator<Item = Source>) {
        for mut source in sources {
            source.cross_origin = !same_origin(&self.site, &source.uri);
            self.sources.push(source);
        }
    }

    fn close(&mut self) {
        self.robots = RobotsAccess::Unreachable;
        self.stage = Stage::Probes(self.wants.len());
    }

    fn next_probe(&mut self) {
        if let Stage::Probes(at) = &mut self.stage {
            *at += 1;
        }
    }

    fn allows(&self, uri: &Uri) -> bool {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        match (self.robots, &self.rules) {
            (RobotsAccess::None | RobotsAccess::LeftToClient, _) => true,
            (RobotsAccess::Rules, Some(rules)) => rules
                .group_of(&self.tokens)
                .check(target.as_bytes())
                .allowed(),
            _ => false,
        }
    }

    fn robots_uri(&self) -> Uri {
        self.well_known("/robots.txt")
    }

    fn well_known(&self, path: &'static str) -> Uri {
        resolve(&self.site, path).expect("a fixed path of a valid address resolves")
    }
}
