//! Parts that become wholes, variants that the origin selects, and answers to POST that answer a GET.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{CacheStatus, Forward};
use http::header::{HeaderMap, HeaderName};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use tokio::time::sleep;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;

use super::super::{ConditionalCacheLayer, ResponseBody};
use crate::{BoxError, Facts};

const WHOLE: &str = "0123456789";

/// An origin that knows ranges, tags and languages.
#[derive(Clone)]
struct Site {
    state: Arc<Mutex<State>>,
}

struct State {
    tag: &'static str,
    body: &'static str,
    /// Answers each range with these bytes and this Content-Range.
    wrong: Option<(&'static str, &'static str)>,
    knows_ranges: bool,
    seen: Vec<(Method, HeaderMap)>,
}

impl Site {
    fn new() -> Self {
        Self::tagged("\"a\"")
    }

    fn tagged(tag: &'static str) -> Self {
        let state = State {
            tag,
            body: WHOLE,
            wrong: None,
            knows_ranges: true,
            seen: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    fn asked(&self) -> usize {
        self.state.lock().unwrap().seen.len()
    }

    fn last(&self, name: &str) -> String {
        let state = self.state.lock().unwrap();
        let lines = state.seen.last().unwrap().1.get_all(name).iter();
        let lines: Vec<_> = lines.map(|line| line.to_str().unwrap()).collect();
        lines.join(", ")
    }

    async fn answer(
        self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        sleep(Duration::from_secs(1)).await;
        let mut state = self.state.lock().unwrap();
        state
            .seen
            .push((request.method().clone(), request.headers().clone()));
        let field = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
        let language = field("accept-language").filter(|_| request.uri().path() == "/language");
        let (tag, body) = match language {
            Some("de, en") => ("\"de\"".to_owned(), "hallo".to_owned()),
            Some(other) => (format!("\"{other}\""), format!("in {other}")),
            None => (state.tag.to_owned(), state.body.to_owned()),
        };
        let mut response = Response::builder()
            .header("cache-control", "max-age=60")
            .header("etag", &tag);
        if language.is_some() {
            response = response.header("vary", "accept-language");
        }
        if request.method() == Method::POST {
            response = response.header("content-location", request.uri().path());
        }
        let mut tags = request.headers().get_all("if-none-match").iter();
        if tags.any(|line| *line == *tag) {
            return Ok(response.status(304).body(Full::default()).unwrap());
        }
        let same = field("if-range").is_none_or(|condition| condition == tag);
        if let (Some(range), true, true) = (field("range"), same, state.knows_ranges) {
            let (bytes, place) = match state.wrong {
                Some((bytes, place)) => (bytes.to_owned(), place.to_owned()),
                None => {
                    let (first, last) = range
                        .strip_prefix("bytes=")
                        .unwrap()
                        .split_once('-')
                        .unwrap();
                    let (first, end) = (first.parse().unwrap(), body.len());
                    let last = last
                        .parse()
                        .map_or(end - 1, |last: usize| last.min(end - 1));
                    (
                        body[first..=last].to_owned(),
                        format!("bytes {first}-{last}/{end}"),
                    )
                }
            };
            response = response.status(206).header("content-range", place);
            return Ok(response.body(Full::from(bytes)).unwrap());
        }
        Ok(response.body(Full::from(body)).unwrap())
    }
}

type Answered = Response<ResponseBody>;

struct Client {
    layer: ConditionalCacheLayer,
    site: Site,
}

impl Client {
    fn of(site: &Site) -> Self {
        Self {
            layer: ConditionalCacheLayer::new(),
            site: site.clone(),
        }
    }

    /// Whether no request is under way.
    fn is_idle(&self) -> bool {
        self.layer.config.cache.flights.table(false).is_idle()
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        fields: &[(&'static str, &'static str)],
    ) -> Answered {
        let site = self.site.clone();
        let service = self
            .layer
            .layer(service_fn(move |request| site.clone().answer(request)));
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method;
        *request.uri_mut() = format!("http://site.example{path}").parse().unwrap();
        for (name, value) in fields {
            request
                .headers_mut()
                .append(HeaderName::from_static(name), value.parse().unwrap());
        }
        service.oneshot(request).await.unwrap()
    }

    async fn get(&self, fields: &[(&'static str, &'static str)]) -> (u16, String) {
        let response = self.send(Method::GET, "/page", fields).await;
        let status = response.status().as_u16();
        (status, text(response).await.unwrap())
    }
}

async fn text(response: Answered) -> Result<String, BoxError> {
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

fn status<B>(response: &Response<B>) -> CacheStatus {
    Facts::of(response).unwrap().cache_status().unwrap()
}

fn part(body: &str) -> (u16, String) {
    (206, body.to_owned())
}

fn whole(body: &str) -> (u16, String) {
    (200, body.to_owned())
}

#[tokio::test(start_paused = true)]
async fn parts_that_callers_asked_for_become_a_whole() {
    let site = Site::new();
    let client = Client::of(&site);
    assert_eq!(client.get(&[("range", "bytes=6-9")]).await, part("6789"));
    assert_eq!(client.get(&[("range", "bytes=7-8")]).await, part("78"));
    assert_eq!(site.asked(), 1);
    assert_eq!(client.get(&[("range", "bytes=0-6")]).await, part("0123456"));
    assert_eq!(client.get(&[]).await, whole(WHOLE));
    assert_eq!(client.get(&[("range", "bytes=5-6")]).await, part("56"));
    assert_eq!(site.asked(), 2);
    assert!(client.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_whole_asks_for_the_rest_of_a_part_only() {
    for (range, body, rest) in [
        ("bytes=0-3", "0123", "bytes=4-"),
        ("bytes=4-", "456789", "bytes=0-3"),
    ] {
        let site = Site::new();
        let client = Client::of(&site);
        assert_eq!(client.get(&[("range", range)]).await, part(body));
        // Nothing is handed out for whole that is not.
        let head = client.send(Method::HEAD, "/page", &[]).await;
        assert!(!status(&head).is_from_store());
        let response = client.send(Method::GET, "/page", &[]).await;
        assert_eq!(
            (site.last("range"), site.last("if-range")),
            (rest.into(), "\"a\"".into())
        );
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-length"], "10");
        assert!(!response.headers().contains_key("content-range"));
        let forward = Forward::Partial;
        let completed = CacheStatus::Forwarded {
            forward,
            stored: true,
            collapsed: false,
        };
        assert_eq!(status(&response), completed);
        assert_eq!(text(response).await.unwrap(), WHOLE);
        assert_eq!(client.get(&[]).await, whole(WHOLE));
        assert_eq!(site.asked(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn many_who_want_the_whole_complete_it_once() {
    let site = Site::new();
    let client = Client::of(&site);
    client.get(&[("range", "bytes=0-3")]).await;
    let (a, b, c) = tokio::join!(client.get(&[]), client.get(&[]), client.get(&[]));
    assert_eq!([a, b, c], [whole(WHOLE), whole(WHOLE), whole(WHOLE)]);
    assert_eq!(site.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_version_is_never_mixed_in() {
    let changed = |state: &mut State| (state.tag, state.body) = ("\"b\"", "abcdefghij");
    let site = Site::new();
    let client = Client::of(&site);
    client.get(&[("range", "bytes=0-3")]).await;
    site.change(changed);
    assert_eq!(client.get(&[]).await, whole("abcdefghij"));
    assert_eq!(site.asked(), 2);

    // Asked for by a caller: the newer part stands alone.
    let site = Site::new();
    let client = Client::of(&site);
    client.get(&[("range", "bytes=0-3")]).await;
    site.change(changed);
    assert_eq!(client.get(&[("range", "bytes=4-9")]).await, part("efghij"));
    assert_eq!(client.get(&[]).await, whole("abcdefghij"));
    assert_eq!(site.last("if-range"), "\"b\"");

    // No strong tag, no mixing, and no range that could not be used.
    for tag in ["W/\"a\"", "a"] {
        let site = Site::tagged(tag);
        let client = Client::of(&site);
        client.get(&[("range", "bytes=0-3")]).await;
        assert_eq!(client.get(&[]).await, whole(WHOLE), "{tag}");
        assert_eq!(site.last("range"), "", "{tag}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_the_rest_is_asked_for_anew_as_a_whole() {
    for wrong in [
        ("456", "bytes 4-6/10"),
        ("56789", "bytes 5-9/10"),
        ("456789", "bytes 4-9/11"),
    ] {
        let site = Site::new();
        let client = Client::of(&site);
        client.get(&[("range", "bytes=0-3")]).await;
        site.change(|state| state.wrong = Some(wrong));
        assert_eq!(client.get(&[]).await, whole(WHOLE), "{wrong:?}");
        assert_eq!(
            (site.last("range"), site.asked()),
            (String::new(), 3),
            "{wrong:?}"
        );
        assert_eq!(client.get(&[]).await, whole(WHOLE), "{wrong:?}");
        assert_eq!(site.asked(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rest_of_another_length_than_promised_is_an_error_and_not_stored() {
    for bytes in ["4567", "456789x"] {
        let site = Site::new();
        let client = Client::of(&site);
        client.get(&[("range", "bytes=0-3")]).await;
        site.change(|state| state.wrong = Some((bytes, "bytes 4-9/10")));
        let response = client.send(Method::GET, "/page", &[]).await;
        assert!(text(response).await.is_err(), "{bytes}");
        site.change(|state| state.wrong = None);
        let asked = site.asked();
        assert_eq!(client.get(&[]).await, whole(WHOLE));
        assert_eq!(site.asked(), asked + 1);
        // A part that breaks its word is no part of anything either.
        let client = Client::of(&site);
        site.change(|state| state.wrong = Some((bytes, "bytes 4-9/10")));
        client.get(&[("range", "bytes=4-9")]).await;
        assert!(client.layer.get_store().is_empty(), "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_origin_without_ranges_is_asked_as_ever() {
    let site = Site::new();
    let client = Client::of(&site);
    client.get(&[("range", "bytes=0-3")]).await;
    site.change(|state| state.knows_ranges = false);
    assert_eq!(client.get(&[]).await, whole(WHOLE));
    assert_eq!(site.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_would_be_too_long_is_not_put_together() {
    let site = Site::new();
    let mut client = Client::of(&site);
    client.layer = client.layer.max_body(6);
    client.get(&[("range", "bytes=0-3")]).await;
    client.get(&[("range", "bytes=4-9")]).await;
    assert_eq!(client.get(&[("range", "bytes=5-8")]).await, part("5678"));
    assert_eq!(site.asked(), 2);
    assert_eq!(client.get(&[("range", "bytes=0-3")]).await, part("0123"));
    assert_eq!(site.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn if_range_decides_between_a_part_and_the_whole() {
    let site = Site::new();
    let client = Client::of(&site);
    client.get(&[]).await;
    let with = |condition| [("range", "bytes=2-4"), ("if-range", condition)];
    assert_eq!(client.get(&with("\"a\"")).await, part("234"));
    assert_eq!(client.get(&with("\"b\"")).await, whole(WHOLE));
    assert_eq!(client.get(&with("W/\"a\"")).await, whole(WHOLE));
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_keeps_a_part_under_way_out() {
    let site = Site::new();
    let client = Client::of(&site);
    let reading = client
        .send(Method::GET, "/page", &[("range", "bytes=0-3")])
        .await;
    client.send(Method::DELETE, "/page", &[]).await;
    text(reading).await.unwrap();
    assert!(client.layer.get_store().is_empty());
    assert!(client.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_selects_nothing_asks_which_variant_fits() {
    let site = Site::new();
    let client = Client::of(&site);
    let ask = async |fields: &[(&'static str, &'static str)]| {
        client.send(Method::GET, "/language", fields).await
    };
    for language in ["de", "en"] {
        text(ask(&[("accept-language", language)]).await)
            .await
            .unwrap();
    }
    let response = ask(&[("accept-language", "de, en")]).await;
    assert_eq!(site.last("if-none-match"), "\"en\", \"de\"");
    let forward = Forward::VaryMiss;
    assert_eq!(
        status(&response),
        CacheStatus::Validated {
            forward,
            collapsed: false
        }
    );
    assert_eq!(
        (response.status().as_u16(), &*text(response).await.unwrap()),
        (200, "in de")
    );
    // It is stored under both.
    for language in ["de, en", "de"] {
        let response = ask(&[("accept-language", language)]).await;
        assert_eq!(text(response).await.unwrap(), "in de");
    }
    assert_eq!(site.asked(), 3);
    let response = ask(&[("accept-language", "fr")]).await;
    assert_eq!(text(response).await.unwrap(), "in fr");
    // A caller with conditions of its own, or one with a name of its own, brings nobody else's tags.
    ask(&[("accept-language", "it"), ("if-none-match", "\"x\"")]).await;
    assert_eq!(site.last("if-none-match"), "\"x\"");
    ask(&[("accept-language", "es"), ("authorization", "secret")]).await;
    ask(&[("accept-language", "es"), ("authorization", "other")]).await;
    assert!(
        !site.last("if-none-match").contains("es"),
        "{}",
        site.last("if-none-match")
    );
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_post_answers_a_get_where_it_says_so() {
    let site = Site::new();
    let client = Client::of(&site);
    let posted = client.send(Method::POST, "/page", &[]).await;
    let forward = Forward::Method;
    let stored = CacheStatus::Forwarded {
        forward,
        stored: true,
        collapsed: false,
    };
    assert_eq!(status(&posted), stored);
    assert_eq!(text(posted).await.unwrap(), WHOLE);
    assert_eq!(client.get(&[]).await, whole(WHOLE));
    assert_eq!(site.asked(), 1);
    // Another change meanwhile: which came first at the origin is not known.
    let client = Client::of(&site);
    let (posted, _) = tokio::join!(
        client.send(Method::POST, "/page", &[]),
        client.send(Method::DELETE, "/page", &[])
    );
    text(posted).await.unwrap();
    assert!(client.layer.get_store().is_empty());
}
