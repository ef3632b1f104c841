//! The course of a discovery, without the requests themselves.
//!
//! # Flow
//! [`Plan::next_request`] names the next request, [`Plan::answer`] or [`Plan::no_answer`] takes what came of it, until
//! there is none left; [`Plan::finish`] gives the [`Findings`]. [`Discovery`](crate::Discovery) is the loop that does
//! this with a service.
//!
//! # Requests
//! robots.txt, then the start page, both of which any visit costs. Probes of well-known addresses come after them, only
//! for what is wanted, only where nothing of the kind is known, only where robots.txt allows it, and only up to
//! [`Plan::max_probes`], which is none unless asked for: a guess costs the operator a request and a line in the log.
//!
//! # Non-goals
//! Asking for what was found.

use std::fmt;

use etiquette_core::decide::robots_txt::{RobotsPolicy, RobotsResponse};
use etiquette_robots::{ProductToken, Robots};
use http::{HeaderMap, StatusCode, Uri, header};

use crate::html::{DEFAULT_LIMIT, HtmlScanner};
use crate::reference::resolve;
use crate::source::{
    Source, Via, essence, from_html, from_link_header, from_robots, ranked, same_origin,
};

#[cfg(test)]
mod tests;
mod want;

pub use want::Want;

/// Probes that one discovery makes at most, whatever is asked for.
pub const MAX_PROBES: u8 = 3;

/// How much of the answer to a probe is read: enough to see that it is no error page.
const PROBE_BYTES: usize = 16 * 1024;

/// A request that the plan asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedRequest {
    /// The address; the method is GET.
    pub uri: Uri,
    /// What it is for.
    pub what: What,
    /// The value of `Accept`.
    pub accept: &'static str,
    /// How many bytes of the body are of use. The caller reads so much and drops the rest unread.
    pub max_bytes: usize,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// The site's robots.txt.
    RobotsTxt,
    /// The page that discovery starts from.
    Start,
    /// A guess at a well-known address.
    Probe(Want),
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The address of the response after redirects.
    pub uri: &'a Uri,
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// The beginning of its body, content codings removed.
    pub body: &'a [u8],
}

impl Answer<'_> {
    fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE)?.to_str().ok()
    }

    fn media_type(&self) -> String {
        self.content_type().map(essence).unwrap_or_default()
    }
}

/// Why a plan cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidStart {
    /// The start has no `http` or `https` scheme or no host.
    NotAbsolute,
}

impl fmt::Display for InvalidStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the start is no absolute http or https uri")
    }
}

impl std::error::Error for InvalidStart {}

/// What became of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobotsOutcome {
    /// It was not asked for yet.
    Unknown,
    /// Its rules hold.
    Rules,
    /// There is none: nothing is forbidden (RFC 9309, 2.3.1.3).
    None,
    /// It could not be read: everything is forbidden for now (RFC 9309, 2.3.1.4).
    Unreachable,
    /// The client below reads and obeys it, and did not hand it on.
    LeftToClient,
}

/// What a discovery found, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The sources, most useful first, one of each address.
    pub sources: Vec<Source>,
    /// The requests that the plan made, in order. What a client below makes on its own, such as reading robots.txt or
    /// following redirects, is not among them.
    pub requests: Vec<Uri>,
    /// What became of robots.txt.
    pub robots: RobotsOutcome,
    /// Whether robots.txt lets the crawler have the start page. Where it does not, the page was not asked for.
    pub start_allowed: bool,
    /// The address of the start page after redirects, if it was asked for and answered.
    pub start_uri: Option<Uri>,
    /// The status of the start page, if it was asked for and answered.
    pub start_status: Option<StatusCode>,
}

/// The course of one discovery.
///
/// ```
/// use etiquette_discovery::plan::{Answer, Plan};
///
/// let mut plan = Plan::new(&"https://www.example.com/".parse().unwrap())?;
/// while let Some(request) = plan.next_request() {
///     // Nothing but 404 here.
///     plan.answer(Answer {
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
    robots: RobotsOutcome,
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
            robots: RobotsOutcome::Unknown,
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

    /// The site's robots.txt is known already: it is not asked for.
    pub fn robots(mut self, robots: Robots) -> Self {
        if self.stage == Stage::RobotsTxt {
            self.keep_rules(&self.robots_uri(), robots);
        }
        self
    }

    /// The client below reads robots.txt and obeys it, as the layers of `tower-etiquette` do: the plan does not ask for
    /// it a second time and leaves verdicts to the client. Hand it on with [`learn_robots`](Self::learn_robots) so that
    /// its Sitemap lines count.
    pub fn client_obeys_robots(mut self) -> Self {
        if self.stage == Stage::RobotsTxt {
            self.robots = RobotsOutcome::LeftToClient;
            self.stage = Stage::Start;
        }
        self
    }

    /// The robots.txt that a client below has read, of the origin of `uri`, the start after redirects. Call it before the
    /// answer that it came with. From then on that origin is the site.
    pub fn learn_robots(&mut self, uri: &Uri, robots: Robots) {
        if self.rules.is_none()
            && let Ok(robots_uri) = resolve(uri, "/robots.txt")
        {
            self.site = uri.clone();
            self.add(from_robots(&robots_uri, &robots));
            self.rules = Some(robots);
            self.robots = RobotsOutcome::Rules;
        }
    }

    /// The next request, or `None` when the discovery is over. The same one until it is answered.
    pub fn next_request(&mut self) -> Option<PlannedRequest> {
        let (uri, what, accept, max_bytes) = match self.stage {
            Stage::RobotsTxt => (
                self.robots_uri(),
                What::RobotsTxt,
                "text/plain",
                self.policy.get_max_bytes(),
            ),
            Stage::Start if self.allows(&self.start) => (
                self.start.clone(),
                What::Start,
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
                (uri, What::Probe(want), want.accept(), PROBE_BYTES)
            }
        };
        Some(PlannedRequest {
            uri,
            what,
            accept,
            max_bytes,
        })
    }

    /// Takes the answer to the request that [`next_request`](Self::next_request) named.
    pub fn answer(&mut self, answer: Answer<'_>) {
        let Some(request) = self.next_request() else {
            return;
        };
        self.requests.push(request.uri.clone());
        match request.what {
            What::RobotsTxt => {
                match RobotsResponse::read(answer.status, answer.headers, &self.policy) {
                    RobotsResponse::Rules => {
                        let robots = Robots::parse(answer.body);
                        self.keep_rules(answer.uri, robots);
                    }
                    RobotsResponse::Unavailable => {
                        self.robots = RobotsOutcome::None;
                        self.stage = Stage::Start;
                    }
                    _ => self.close(),
                }
            }
            What::Start => {
                self.start_status = Some(answer.status);
                self.start_uri = Some(answer.uri.clone());
                self.stage = Stage::Probes(0);
                if answer.status.is_success() {
                    self.read_start(&answer);
                }
            }
            What::Probe(want) => {
                self.probes_left -= 1;
                if answer.status == StatusCode::OK && want.fits(&request.uri, &answer) {
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

    /// The request that [`next_request`](Self::next_request) named got no answer, or was refused before it was sent.
    /// `sent` says whether it left.
    pub fn no_answer(&mut self, sent: bool) {
        let Some(request) = self.next_request() else {
            return;
        };
        if sent {
            self.requests.push(request.uri);
        }
        match request.what {
            What::RobotsTxt => self.close(),
            What::Start => self.stage = Stage::Probes(0),
            What::Probe(_) => {
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

    fn read_start(&mut self, answer: &Answer<'_>) {
        self.add(from_link_header(answer.uri, answer.headers));
        let media_type = answer.media_type();
        let markup = match media_type.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            // RFC 9110, 8.3: without a type the data may tell.
            "" => answer.body.trim_ascii_start().starts_with(b"<"),
            _ => false,
        };
        if markup {
            let mut scanner = HtmlScanner::new(answer.uri);
            if let Some(content_type) = answer.content_type() {
                scanner = scanner.content_type(content_type);
            }
            self.add(from_html(answer.uri, &scanner.scan(answer.body)));
        }
    }

    fn keep_rules(&mut self, uri: &Uri, robots: Robots) {
        self.add(from_robots(uri, &robots));
        self.rules = Some(robots);
        self.robots = RobotsOutcome::Rules;
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
        self.robots = RobotsOutcome::Unreachable;
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
            (RobotsOutcome::None | RobotsOutcome::LeftToClient, _) => true,
            (RobotsOutcome::Rules, Some(rules)) => rules
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
