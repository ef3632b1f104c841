//! What a site answers: one response, a list of them, or a function of what arrived.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// A request as the site sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The authority that was asked for: of the URI, or else of the Host field.
    pub host: String,
    /// The header fields.
    pub headers: HeaderMap,
}

/// One response, with the times that it takes.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) before_head: Duration,
    pub(super) before_body: Duration,
    pub(super) hang_up: bool,
}

impl Answer {
    /// An answer of `status` without a body.
    ///
    /// # Panics
    /// When `status` is not a status code.
    pub fn status(status: u16) -> Self {
        Self {
            status: StatusCode::from_u16(status).expect("a test names a status code"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            before_head: Duration::ZERO,
            before_body: Duration::ZERO,
            hang_up: false,
        }
    }

    /// 200 with a body of the media type `kind`.
    pub fn of(kind: &str, body: impl Into<Bytes>) -> Self {
        Self::status(200)
            .header(CONTENT_TYPE.as_str(), kind)
            .body(body)
    }

    /// 200 with an HTML page.
    pub fn html(body: &str) -> Self {
        Self::of("text/html; charset=utf-8", body.to_owned())
    }

    /// 200 with plain text.
    pub fn text(body: &str) -> Self {
        Self::of("text/plain; charset=utf-8", body.to_owned())
    }

    /// 404.
    pub fn not_found() -> Self {
        Self::status(404)
            .header(CONTENT_TYPE.as_str(), "text/plain")
            .body("not here\n")
    }

    /// 429 with `Retry-After` in seconds.
    pub fn too_many(seconds: u32) -> Self {
        Self::status(429)
            .header(header::RETRY_AFTER.as_str(), &seconds.to_string())
            .body("later, please\n")
    }

    /// 302 to `location`.
    pub fn redirect(location: &str) -> Self {
        Self::status(302).header(header::LOCATION.as_str(), location)
    }

    /// No answer: the connection is closed.
    pub fn hang_up() -> Self {
        Self {
            hang_up: true,
            ..Self::status(200)
        }
    }

    /// Adds a header field.
    ///
    /// # Panics
    /// When name or value are not valid.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a test names a header field");
        let value = HeaderValue::from_str(value).expect("a test gives a header value");
        self.headers.append(name, value);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds an entity tag, quotes included. A conditional request that knows it is answered 304.
    pub fn etag(self, tag: &str) -> Self {
        self.header(ETAG.as_str(), tag)
    }

    /// Adds the date of the last change. A conditional request that knows it is answered 304.
    pub fn last_modified(self, date: &str) -> Self {
        self.header(LAST_MODIFIED.as_str(), date)
    }

    /// Lets the head take `time`.
    pub fn after(mut self, time: Duration) -> Self {
        self.before_head = time;
        self
    }

    /// Lets the body take `time`: its second half comes that much after its first.
    pub fn trickle(mut self, time: Duration) -> Self {
        self.before_body = time;
        self
    }

    /// This answer as it is given to `arrival`: 304 where the client's copy is good (RFC 9110, 13.2.2).
    pub(super) fn to(&self, arrival: &Arrival) -> Self {
        let reads = arrival.method == Method::GET || arrival.method == Method::HEAD;
        if !reads || self.status != StatusCode::OK || !self.is_known_to(&arrival.headers) {
            return self.clone();
        }
        let mut not_modified = self.clone();
        not_modified.status = StatusCode::NOT_MODIFIED;
        not_modified.body = Bytes::new();
        not_modified.headers.remove(CONTENT_TYPE);
        not_modified
    }

    fn is_known_to(&self, request: &HeaderMap) -> bool {
        let text = |map: &HeaderMap, name: HeaderName| {
            map.get(name)
                .and_then(|v| v.to_str().ok())
                .map(str::to_owned)
        };
        if let Some(known) = text(request, IF_NONE_MATCH) {
            let weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
            return text(&self.headers, ETAG)
                .is_some_and(|tag| known.split(',').any(|one| weak(one) == weak(&tag)));
        }
        let date = |text: Option<String>| -> Option<SystemTime> {
            text.and_then(|t| httpdate::parse_http_date(&t).ok())
        };
        match (
            date(text(request, IF_MODIFIED_SINCE)),
            date(text(&self.headers, LAST_MODIFIED)),
        ) {
            (Some(since), Some(changed)) => changed <= since,
            _ => false,
        }
    }
}

/// How the answers to one path follow each other.
#[must_use]
pub struct Script(Play);

enum Play {
    List {
        answers: Vec<Answer>,
        next: AtomicUsize,
    },
    Call(Box<dyn Fn(&Arrival) -> Answer + Send + Sync>),
}

impl Script {
    /// Asks `answer` each time.
    pub fn call(answer: impl Fn(&Arrival) -> Answer + Send + Sync + 'static) -> Self {
        Self(Play::Call(Box::new(answer)))
    }

    pub(super) fn play(&self, arrival: &Arrival) -> Answer {
        let answer = match &self.0 {
            Play::List { answers, next } => {
                let at = next.fetch_add(1, Ordering::Relaxed);
                answers[at.min(answers.len() - 1)].clone()
            }
            Play::Call(answer) => answer(arrival),
        };
        answer.to(arrival)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Play::List { answers, .. } => f.debug_tuple("Script").field(answers).finish(),
            Play::Call(_) => f.write_str("Script(..)"),
        }
    }
}

impl From<Answer> for Script {
    fn from(answer: Answer) -> Self {
        [answer].into()
    }
}

/// One after the other; the last one is repeated.
impl<const N: usize> From<[Answer; N]> for Script {
    fn from(answers: [Answer; N]) -> Self {
        assert!(N > 0, "a script needs an answer");
        Self(Play::List {
            answers: answers.into(),
            next: AtomicUsize::new(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(fields: &[(HeaderName, &str)]) -> Arrival {
        Arrival {
            method: Method::GET,
            target: "/".to_owned(),
            host: "localhost".to_owned(),
            headers: fields
                .iter()
                .map(|(name, value)| (name.clone(), value.parse().unwrap()))
                .collect(),
        }
    }

    #[test]
    fn a_known_copy_is_answered_304() {
        const OLD: &str = "Tue, 01 Dec 2020 00:00:00 GMT";
        const NEW: &str = "Wed, 02 Dec 2020 00:00:00 GMT";
        let page = Answer::html("x").etag("\"a\"").last_modified(NEW);
        let status = |fields: &[(HeaderName, &str)]| page.to(&arrival(fields)).status.as_u16();
        assert_eq!(status(&[]), 200);
        assert_eq!(status(&[(IF_NONE_MATCH, "\"b\", W/\"a\"")]), 304);
        assert_eq!(status(&[(IF_MODIFIED_SINCE, NEW)]), 304);
        assert_eq!(status(&[(IF_MODIFIED_SINCE, OLD)]), 200);
        // The entity tag decides where both are given (RFC 9110, 13.1.3).
        let both = [(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, NEW)];
        assert_eq!(status(&both), 200);
    }

    #[test]
    fn the_last_answer_is_repeated() {
        let script = Script::from([Answer::too_many(3), Answer::status(204)]);
        let seen: Vec<u16> = (0..3)
            .map(|_| script.play(&arrival(&[])).status.as_u16())
            .collect();
        assert_eq!(seen, [429, 204, 204]);
    }
}
