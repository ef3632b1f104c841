//! What a site answers: one response, a list of them, or a function of what arrived.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

/// A request as the site sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// When it arrived, since the log of the site began.
    pub at: Duration,
    /// The method.
    pub method: Method,
    /// The URI as it came: over a socket usually the path alone, without sockets the whole URL.
    pub uri: Uri,
    /// Path and query.
    pub target: String,
    /// The authority that was asked for: of the URI, or else of the Host field.
    pub host: String,
    /// The header fields.
    pub headers: HeaderMap,
    /// What travels with a request inside the process; empty over a socket. It goes with the request, and is not in the
    /// log: the layers may keep stores alive with it.
    pub extensions: Extensions,
}

impl Arrival {
    /// What `request` is to a site, at the beginning of its log.
    pub(super) fn of<B>(request: &http::Request<B>) -> Self {
        let uri = request.uri();
        let host = request.headers().get(header::HOST);
        Self {
            at: Duration::ZERO,
            method: request.method().clone(),
            uri: uri.clone(),
            target: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), ToString::to_string),
            host: uri
                .authority()
                .map(ToString::to_string)
                .or_else(|| host?.to_str().ok().map(str::to_owned))
                .unwrap_or_default(),
            headers: request.headers().clone(),
            extensions: request.extensions().clone(),
        }
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether robots.txt is asked for.
    #[must_use]
    pub fn is_robots_txt(&self) -> bool {
        self.path() == "/robots.txt"
    }
}

/// One response, with the times that it takes.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) before_head: Duration,
    pub(super) body: Vec<Piece>,
    /// How long the end of the body comes after its last piece.
    pub(super) before_end: Duration,
    pub(super) fault: Option<Fault>,
    /// The length of the body is not known before its end.
    pub(super) chunked: bool,
    /// Given as it is to conditional requests, too.
    pub(super) literal: bool,
}

/// Some bytes of a body, and how long they come after what is before them.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) after: Duration,
    pub(super) bytes: Bytes,
}

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no head: the connection is closed.
    HangUp,
    /// There is no head: nothing comes.
    Never,
    /// There is no head: the service panics.
    Panic,
    /// The body breaks off where it should end.
    BrokenBody,
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
            before_head: Duration::ZERO,
            body: Vec::new(),
            before_end: Duration::ZERO,
            fault: None,
            chunked: false,
            literal: false,
        }
    }

    fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::status(200)
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
        Self::retry_after(429, seconds.into()).body("later, please\n")
    }

    /// An answer of `status` with `Retry-After` in seconds.
    pub fn retry_after(status: u16, seconds: u64) -> Self {
        Self::status(status).header(header::RETRY_AFTER.as_str(), &seconds.to_string())
    }

    /// 302 to `location`.
    pub fn redirect(location: &str) -> Self {
        Self::status(302).header(header::LOCATION.as_str(), location)
    }

    /// No answer: the connection is closed.
    pub fn hang_up() -> Self {
        Self::fault(Fault::HangUp)
    }

    /// No answer: the service panics, without a message. Over a socket this closes the connection.
    pub fn panic() -> Self {
        Self::fault(Fault::Panic)
    }

    /// No answer, ever.
    pub fn never() -> Self {
        Self::fault(Fault::Never)
    }

    /// The same with another status.
    ///
    /// # Panics
    /// When `status` is not a status code.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).expect("a test names a status code");
        self
    }

    /// Its status.
    #[must_use]
    pub fn get_status(&self) -> u16 {
        self.status.as_u16()
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

    /// Adds header fields.
    pub fn headers(mut self, fields: &HeaderMap) -> Self {
        for (name, value) in fields {
            self.headers.append(name.clone(), value.clone());
        }
        self
    }

    /// Sets the body, in one piece.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        self.pieces([body], Duration::ZERO)
    }

    /// Sets the body in pieces, each of which comes `every` after what is before it.
    pub fn pieces<B: Into<Bytes>>(
        mut self,
        pieces: impl IntoIterator<Item = B>,
        every: Duration,
    ) -> Self {
        let piece = |bytes: B| Piece {
            after: every,
            bytes: bytes.into(),
        };
        let pieces = pieces.into_iter().map(piece);
        self.body = pieces.filter(|piece| !piece.bytes.is_empty()).collect();
        self
    }

    /// Lets the end of the body come `time` after its last byte.
    pub fn ends_after(mut self, time: Duration) -> Self {
        self.before_end = time;
        self
    }

    /// Lets the body break off with an error after its bytes.
    pub fn breaks_off(mut self) -> Self {
        self.fault = Some(Fault::BrokenBody);
        self
    }

    /// Does not tell how long the body is before it ends.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Answers as it says whatever the client has: a conditional request is not answered 304.
    pub fn literally(mut self) -> Self {
        self.literal = true;
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
        let mut first = Bytes::from(self.body.drain(..).fold(Vec::new(), |mut all, piece| {
            all.extend_from_slice(&piece.bytes);
            all
        }));
        let second = first.split_off(first.len() / 2);
        let mut halves = self.pieces([first, second], Duration::ZERO);
        if let Some(last) = halves.body.last_mut() {
            last.after = time;
        }
        halves
    }

    /// How many bytes the body has, if that is known before its end.
    pub(super) fn length(&self) -> Option<u64> {
        let known = self.fault.is_none() && self.before_end.is_zero() && !self.chunked;
        let bytes = self.body.iter().map(|piece| piece.bytes.len() as u64);
        known.then(|| bytes.sum())
    }

    /// The head alone, as a HEAD request, a 204 or a 304 has it.
    pub(super) fn without_body(mut self) -> Self {
        self.body.clear();
        self.before_end = Duration::ZERO;
        self.chunked = false;
        self.fault = self.fault.filter(|fault| *fault != Fault::BrokenBody);
        self
    }

    /// This answer as it is given to `arrival`: 304 where the client's copy is good (RFC 9110, 13.2.2).
    pub(super) fn to(&self, arrival: &Arrival) -> Self {
        let reads = arrival.method == Method::GET || arrival.method == Method::HEAD;
        let conditional = reads && self.status == StatusCode::OK && !self.literal;
        if !conditional || !self.is_known_to(&arrival.headers) {
            return self.clone();
        }
        let mut not_modified = self.clone().without_body();
        not_modified.status = StatusCode::NOT_MODIFIED;
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
pub struct Script(Answers);

enum Answers {
    List {
        answers: Vec<Answer>,
        next: AtomicUsize,
    },
    Call(Box<dyn Fn(&Arrival) -> Answer + Send + Sync>),
}

impl Script {
    /// Asks `answer` each time.
    pub fn call(answer: impl Fn(&Arrival) -> Answer + Send + Sync + 'static) -> Self {
        Self(Answers::Call(Box::new(answer)))
    }

    /// The answer to `arrival`, which is the next request of this path.
    pub(super) fn next(&self, arrival: &Arrival) -> Answer {
        let answer = match &self.0 {
            Answers::List { answers, next } => {
                let at = next.fetch_add(1, Ordering::Relaxed);
                answers[at.min(answers.len() - 1)].clone()
            }
            Answers::Call(answer) => answer(arrival),
        };
        answer.to(arrival)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Answers::List { answers, .. } => f.debug_tuple("Script").field(answers).finish(),
            Answers::Call(_) => f.write_str("Script(..)"),
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
        Vec::from(answers).into()
    }
}

/// One after the other; the last one is repeated.
impl From<Vec<Answer>> for Script {
    fn from(answers: Vec<Answer>) -> Self {
        assert!(!answers.is_empty(), "a script needs an answer");
        Self(Answers::List {
            answers,
            next: AtomicUsize::new(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(fields: &[(HeaderName, &str)]) -> Arrival {
        let mut request = http::Request::get("http://localhost/").body(()).unwrap();
        for (name, value) in fields {
            let value = value.parse().unwrap();
            request.headers_mut().insert(name.clone(), value);
        }
        Arrival::of(&request)
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
        let literal = page.clone().literally();
        let known = literal.to(&arrival(&[(IF_NONE_MATCH, "\"a\"")]));
        assert_eq!(known.status.as_u16(), 200);
    }

    #[test]
    fn the_last_answer_is_repeated() {
        let script = Script::from([Answer::too_many(3), Answer::status(204)]);
        let seen: Vec<u16> = (0..3)
            .map(|_| script.next(&arrival(&[])).status.as_u16())
            .collect();
        assert_eq!(seen, [429, 204, 204]);
    }
}
