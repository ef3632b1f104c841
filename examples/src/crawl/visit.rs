//! One visit: ask for a URL, read what comes, and find what it leads to.

mod lists;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etiquette_core::decide::accept::{Accept, Preset};
use etiquette_core::store::ResponseStore;
use etiquette_discovery::html::HtmlScanner;
use etiquette_discovery::reference::resolve;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use tower_etiquette::client::{
    Client, ClientBuilder, Error as ClientError, RequestBody, ResponseBody,
};
use tower_etiquette::conditional_cache::CacheStatus;
use tower_etiquette::disk::DiskStore;
use tower_etiquette::identity::Identity;
use tower_etiquette::preferences::Directives;
use tower_etiquette::{Clock, Facts, HostPolicy, Hosts, Origin, Refusal, TokioClock};
use tower_etiquette_redis::RedisStore;

use super::frontier::{Found, Kind, Read, Target};
use super::published;
use super::record::{From, Record, Refused, date, millis};
use super::{Args, BadLink, Error};
use crate::cli::chain;
pub(super) use lists::Listed;

/// The most of a page that is read. What is longer is dropped, and its links are not looked for.
const MOST_BYTES: usize = 4 << 20;

/// A polite client and the name that it bears. Clones share everything.
#[derive(Clone)]
pub(super) struct Visitor {
    client: Client,
    /// The same client, but it follows redirects: for the page behind the name, which is no part of the crawl.
    following: Client,
    hosts: Hosts,
    identity: Identity,
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
        delay: Option<Duration>,
    ) -> Result<Self, Error> {
        let mut policy = HostPolicy::new()
            .max_in_flight(args.max_in_flight)
            .max_wait(args.max_wait);
        if let Some(delay) = delay {
            policy = policy.min_delay(delay);
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
        let mut builder = Client::builder(identity.clone())
            .hosts(hosts.clone())
            .public_addresses_only(!args.allow_private && !args.urls.is_empty());
        for resolve in &args.resolve {
            builder = builder.resolve(&resolve.host, resolve.port, resolve.addr);
        }
        let (client, following) = match (&args.cache, shared) {
            (None, None) => both(builder),
            (None, Some(store)) => {
                let rules = Arc::new(store.clone());
                let builder = builder.store(store);
                both(builder.stack(|stack| stack.robots(|robots| robots.store(rules))))
            }
            (Some(folder), _) => {
                let store = DiskStore::open(folder).map_err(|error| Error::Client(error.into()))?;
                both(builder.keep_in(store))
            }
        }
        .map_err(|error| Error::Client(error.into()))?;
        Ok(Self {
            client,
            following,
            hosts,
            identity,
        })
    }

    /// What is known about the hosts.
    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Whether the page behind the name names it.
    pub(super) async fn check_published(&self) -> Result<(), BadLink> {
        published::check(&self.identity, &self.following).await
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
        // What X-Robots-Tag says to this crawler; a page may say more.
        let mut directives = facts
            .preferences()
            .map(|wishes| wishes.directives().clone())
            .unwrap_or_default();
        let ok = parts.status == StatusCode::OK;
        let read = match target.kind {
            Kind::Sitemap if ok => lists::read_sitemap(target, body, visited).await,
            Kind::Feed if ok => lists::read_feed(&target.uri, body, visited).await,
            _ => {
                self.read_page(target, &parts.headers, body, &mut directives, visited)
                    .await
            }
        };
        visited.record.noindex = directives.has("noindex");
        if directives.has("nofollow") {
            visited.announced.clear();
            visited.maps.clear();
            visited.entries.clear();
            visited.links.clear();
        }
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
        directives: &mut Directives,
        visited: &mut Visited,
    ) -> Result<(), String> {
        let bytes = body.bytes(MOST_BYTES).await.map_err(|e| e.to_string())?;
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let is_page = visited.record.status == Some(200) && is_html(kind);
        if is_page {
            let page = HtmlScanner::new(&target.uri)
                .content_type(kind)
                .limit(MOST_BYTES)
                .scan(&bytes);
            let token = self.identity.token().as_str();
            for meta in page.meta_robots() {
                directives.add_meta(&meta.name, &meta.content, token);
            }
            // Read as leniently as the scanner does: blanks for commas forbid as well.
            for (said, rule) in [
                (page.no_follow(token), "nofollow"),
                (page.no_index(token), "noindex"),
            ] {
                if said {
                    directives.add_meta("robots", rule, token);
                }
            }
            visited.links.extend(page.followable(token).cloned());
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

/// Two clients that share all that they know: one hands redirects on, so that hops are visits of their own and none
/// leads to another host, and one follows them.
fn both<St: ResponseStore + Clone>(
    builder: ClientBuilder<St>,
) -> Result<(Client, Client), ClientError> {
    Ok((builder.clone().max_redirects(0).build()?, builder.build()?))
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
