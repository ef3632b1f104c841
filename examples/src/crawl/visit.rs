//! One visit: ask for a URL, read what comes, and find what it leads to.

mod lists;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etiquette_core::accept::{Accept, Preset};
use etiquette_discovery::html::HtmlScanner;
use etiquette_discovery::reference::resolve;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use tower_etiquette::client::{Client, Error as ClientError, RequestBody, ResponseBody};
use tower_etiquette::conditional_cache::CacheStatus;
use tower_etiquette::disk::DiskStore;
use tower_etiquette::identity::Identity;
use tower_etiquette::{Clock, Facts, HostPolicy, Hosts, Origin, Refusal, TokioClock};
use tower_etiquette_redis::RedisStore;

use super::frontier::{Found, Kind, Read, Target};
use super::nofollow::forbids_following;
use super::record::{From, Record, Refused, date, millis};
use super::{Args, Error};
pub(super) use lists::Listed;

/// The most of a page that is read. What is longer is dropped, and its links are not looked for.
const MOST_OCTETS: usize = 4 << 20;

/// A polite client and the name that it bears. Clones share everything.
#[derive(Clone)]
pub(super) struct Visitor {
    client: Client,
    hosts: Hosts,
    token: String,
}

/// What a visit came to.
#[derive(Debug)]
pub(super) struct Visited {
    pub(super) record: Record,
    /// As of when the site has said what the URL holds, by its own clock where it tells the time: a change after that
    /// is news. `None` if nothing came that could change.
    pub(super) current_at: Option<SystemTime>,
    /// The copy that answered is fresh.
    pub(super) fresh: bool,
    /// The sitemaps that the site's robots.txt names, if its rules are known.
    pub(super) maps_of_site: Option<Vec<Uri>>,
    /// The target of a redirect.
    pub(super) moved_to: Option<Uri>,
    /// Sitemaps and feeds that a start page announces.
    pub(super) announced: Vec<(Uri, Kind)>,
    /// Sitemaps that a sitemap names.
    pub(super) maps: Vec<Listed>,
    /// Pages that a sitemap or a feed names.
    pub(super) entries: Vec<Listed>,
    /// Pages that may be followed.
    pub(super) links: Vec<Uri>,
}

impl Visitor {
    pub(super) fn new(
        args: &Args,
        identity: Identity,
        min_gap: Option<Duration>,
    ) -> Result<Self, Error> {
        let mut policy = HostPolicy::new()
            .places(args.places)
            .max_wait(args.max_wait);
        if let Some(gap) = min_gap {
            policy = policy.min_gap(gap);
        }
        if args.urls.is_empty() {
            // What the program's own site takes to answer says how busy this machine is, and nothing about that site.
            policy = policy.latency_factor(0);
        }
        let mut hosts = Hosts::builder().policy(policy);
        let shared = match &args.redis {
            Some(url) => {
                let store = RedisStore::builder(url.as_str()).build();
                Some(store.map_err(|error| Error::Client(error.into()))?)
            }
            None => None,
        };
        if let Some(shared) = &shared {
            hosts = hosts.store(Arc::new(shared.clone()));
        }
        let hosts = hosts.build();
        let token = identity.token().to_string();
        // Hops are visits of their own here: one that leads to another host is not made.
        let mut builder = Client::builder(identity)
            .hosts(hosts.clone())
            .max_redirects(0)
            .public_addresses_only(!args.allow_private && !args.urls.is_empty());
        for told in &args.resolve {
            builder = builder.resolve(&told.host, told.port, told.addr);
        }
        let client = match (&args.cache, shared) {
            (None, None) => builder.build(),
            (None, Some(store)) => {
                let rules = Arc::new(store.clone());
                builder
                    .store(store)
                    .stack(|stack| stack.robots(|robots| robots.store(rules)))
                    .build()
            }
            (Some(folder), _) => {
                let store = DiskStore::open(folder).map_err(|error| Error::Client(error.into()))?;
                builder.keep_in(store).build()
            }
        }
        .map_err(|error| Error::Client(error.into()))?;
        Ok(Self {
            client,
            hosts,
            token,
        })
    }

    /// What is known about the hosts.
    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Asks for `target` and reads what comes. It ends well, whatever happens: the record says it.
    pub(super) async fn visit(&self, target: &Target) -> Visited {
        let mut visited = Visited {
            record: Record::new(target.uri.to_string(), target.found),
            current_at: None,
            fresh: false,
            maps_of_site: None,
            moved_to: None,
            announced: Vec::new(),
            maps: Vec::new(),
            entries: Vec::new(),
            links: Vec::new(),
        };
        let mut answer = self.client.request(request(target, target.read)).await;
        if target.read == Read::Copy {
            match &answer {
                Err(error) if is_not_stored(error) => {
                    if target.kind == Kind::Page {
                        visited.record.unchanged = true;
                        return visited;
                    }
                    // What a list says is needed, so it is asked for after all.
                    answer = self.client.request(request(target, Read::Ask)).await;
                }
                Err(_) => {}
                Ok(_) => visited.record.unchanged = target.kind == Kind::Page,
            }
        }
        match answer {
            Ok(response) => self.read(target, response, &mut visited).await,
            Err(error) => refused(&error, &mut visited.record),
        }
        visited
    }

    async fn read(&self, target: &Target, response: Response<ResponseBody>, visited: &mut Visited) {
        let (parts, body) = response.into_parts();
        let facts = parts.extensions.get::<Facts>().cloned().unwrap_or_default();
        visited.record.status = Some(parts.status.as_u16());
        visited.record.from = Some(from(&facts));
        visited.record.waited_ms = millis(facts.waited());
        visited.fresh = matches!(facts.cache_status(), Some(CacheStatus::Hit { ttl }) if ttl > 0);
        visited.maps_of_site = maps_of_site(&facts, &target.uri);
        let answered = TokioClock.now().wall;
        if parts.status.is_redirection() {
            let location = parts.headers.get(header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            visited.moved_to = location.and_then(|to| resolve(&target.uri, to).ok());
        }
        let ok = parts.status == StatusCode::OK;
        let read = match target.kind {
            Kind::Sitemap if ok => lists::read_sitemap(target, body, visited).await,
            Kind::Feed if ok => lists::read_feed(&target.uri, body, visited).await,
            _ => self.read_page(target, &parts.headers, body, visited).await,
        };
        match read {
            Err(error) => visited.record.error = Some(error),
            Ok(()) if ok && target.read != Read::Copy => {
                visited.current_at = Some(current_at(&parts.headers, answered));
            }
            Ok(()) => {}
        }
    }

    /// The body is read to its end whatever it is: a dropped one costs the site a connection, and the next visit
    /// another copy.
    async fn read_page(
        &self,
        target: &Target,
        headers: &HeaderMap,
        body: ResponseBody,
        visited: &mut Visited,
    ) -> Result<(), String> {
        let octets = body.bytes(MOST_OCTETS).await.map_err(|e| e.to_string())?;
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let is_page = visited.record.status == Some(200) && is_html(kind);
        if is_page && !forbids_following(headers, &self.token) {
            let page = HtmlScanner::new(&target.uri)
                .content_type(kind)
                .limit(MOST_OCTETS)
                .scan(&octets);
            visited.links.extend(page.followable(&self.token).cloned());
            if target.found == Found::Start {
                visited.announced = lists::announced(&target.uri, headers, &page);
            }
        }
        Ok(())
    }
}

/// A request for `target` that is answered as `read` says.
fn request(target: &Target, read: Read) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = target.uri.clone();
    let headers = request.headers_mut();
    let preset = match target.kind {
        Kind::Sitemap => Some(Preset::Sitemap),
        Kind::Feed => Some(Preset::Feed),
        Kind::Page => None,
    };
    if let Some(preset) = preset {
        headers.insert(header::ACCEPT, Accept::preset(preset).header().clone());
    }
    let control = match read {
        Read::Ask => None,
        // A copy that is fresh by its own account is asked about all the same.
        Read::Anew => Some("no-cache"),
        // However old the copy is, unless its site said that a stale one may not be used.
        Read::Copy => Some("only-if-cached, max-stale"),
    };
    if let Some(control) = control {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    }
    request
}

fn is_not_stored(error: &ClientError) -> bool {
    matches!(error.refusal(), Some(Refusal::NotStored(_)))
}

/// The Date of an answer that came at `answered`, or that moment, whichever is earlier: what changed after it is news,
/// and the clock that tells of the change is the site's.
fn current_at(headers: &HeaderMap, answered: SystemTime) -> SystemTime {
    let date = headers
        .get(header::DATE)
        .and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    date.map_or(answered, |date| date.min(answered))
}

fn is_html(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
}

fn from(facts: &Facts) -> From {
    match facts.cache_status() {
        Some(CacheStatus::Hit { .. } | CacheStatus::StaleOnError { .. }) => From::Cache,
        Some(CacheStatus::Validated { .. }) => From::Validated,
        _ => From::Network,
    }
}

fn maps_of_site(facts: &Facts, uri: &Uri) -> Option<Vec<Uri>> {
    let rules = facts.robots()?;
    let origin = Origin::of(uri).ok()?;
    let robots = format!("{origin}/robots.txt");
    let urls = rules.robots()?.sitemap_urls(&robots);
    Some(urls.filter_map(|url| url.parse().ok()).collect())
}

fn refused(error: &ClientError, record: &mut Record) {
    match error.refusal() {
        Some(refusal) => record.refusal = Some(why(refusal)),
        None => record.error = Some(chain(error)),
    }
}

fn why(refusal: &Refusal) -> Refused {
    let rule = refusal.rule();
    Refused {
        kind: refusal.kind().to_owned(),
        rule: rule.map(ToString::to_string),
        line: rule.map(|rule| rule.line().into()),
        retry_at: refusal.retry_at().map(date),
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
