//! What a site saw: one entry for each request, in the order of arrival.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use tokio::time::Instant;

use super::answer::Arrival;

/// The log of one site. Clones share it.
#[derive(Clone, Debug)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    began_wall: SystemTime,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    run: u32,
    connections: u64,
    open: usize,
    most_open: usize,
    entries: Vec<Entry>,
}

/// One request and its answer, as the site saw them. Times count from the start of the log, by the clock of tokio: where
/// it is paused, they are exact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The run that it belongs to: 1, and one more after each [`Log::next_run`].
    pub run: u32,
    /// The TCP connection that it came on, counted from 1.
    pub connection: u64,
    /// When its head had arrived.
    pub at: Duration,
    /// The wall time of the arrival.
    pub wall: SystemTime,
    /// The version of HTTP.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// The URI as it came: over a socket usually the path alone, without sockets the whole URL.
    pub uri: Uri,
    /// Path and query.
    pub target: String,
    /// The authority that was asked for.
    pub host: String,
    /// The header fields of the request.
    pub headers: HeaderMap,
    /// The status of the answer, once there is one.
    pub status: Option<StatusCode>,
    /// The header fields of the answer.
    pub answer: HeaderMap,
    /// When the head of the answer was handed to the connection.
    pub answered: Option<Duration>,
    /// When the last byte of the body was handed to the connection, or the exchange was given up.
    pub ended: Option<Duration>,
    /// The bytes of the body that were handed to the connection.
    pub bytes: u64,
}

/// Where the entry of a request is found, to complete it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index(usize);

impl Entry {
    /// A request of `target` that arrived at `at`, not answered yet, for logs made by hand.
    #[must_use]
    pub fn new(at: Duration, target: &str) -> Self {
        Self {
            run: 1,
            connection: 1,
            at,
            wall: SystemTime::UNIX_EPOCH + at,
            version: Version::HTTP_11,
            method: Method::GET,
            uri: Uri::default(),
            target: target.to_owned(),
            host: "localhost".to_owned(),
            headers: HeaderMap::new(),
            status: None,
            answer: HeaderMap::new(),
            answered: None,
            ended: None,
            bytes: 0,
        }
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether robots.txt was asked for.
    #[must_use]
    pub fn is_robots_txt(&self) -> bool {
        self.path() == "/robots.txt"
    }

    /// The User-Agent, empty if there is none that can be read.
    #[must_use]
    pub fn user_agent(&self) -> &str {
        text(&self.headers, &header::USER_AGENT)
    }

    /// Whether it was asked with a validator.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.headers.contains_key(header::IF_NONE_MATCH)
            || self.headers.contains_key(header::IF_MODIFIED_SINCE)
    }

    /// The pause that the answer asked for: a 429 or 503 with a Retry-After that can be read, from the moment at which
    /// it was handed over to the moment before which nothing may arrive.
    #[must_use]
    pub fn pause(&self) -> Option<(Duration, Duration)> {
        let status = self.status?.as_u16();
        let from = self.answered?;
        if status != 429 && status != 503 {
            return None;
        }
        let value = text(&self.answer, &header::RETRY_AFTER);
        let length = match value.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let until = httpdate::parse_http_date(value).ok()?;
                until.duration_since(self.wall).ok()?
            }
        };
        Some((from, from.saturating_add(length)))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The line of an access log: the combined format of web servers, with milliseconds.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self
            .wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .subsec_millis();
        // "Tue, 01 Dec 2026 01:12:00 GMT"
        let date = httpdate::fmt_http_date(self.wall);
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        write!(
            f,
            "127.0.0.1 - - [{day}/{month}/{year}:{time}.{millis:03} +0000] \"{} {} {:?}\" ",
            self.method, self.target, self.version
        )?;
        match self.status {
            Some(status) => write!(f, "{} {}", status.as_u16(), self.bytes)?,
            None => f.write_str("- -")?,
        }
        write!(f, " \"-\" \"{}\"", self.user_agent())
    }
}

impl Log {
    // The wall clock of an access log is what its reader compares with his own.
    #[expect(clippy::disallowed_methods)]
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            began: Instant::now(),
            began_wall: SystemTime::now(),
            seen: Mutex::new(Seen {
                run: 1,
                ..Seen::default()
            }),
        }))
    }

    /// All requests so far, in the order of arrival.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.seen().entries.clone()
    }

    /// The requests so far that did not ask for robots.txt.
    #[must_use]
    pub fn pages(&self) -> Vec<Entry> {
        let mut entries = self.entries();
        entries.retain(|entry| !entry.is_robots_txt());
        entries
    }

    /// The targets that were asked for, in the order of arrival.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        let seen = self.seen();
        seen.entries.iter().map(|e| e.target.clone()).collect()
    }

    /// When the requests so far arrived, in milliseconds since the log began.
    #[must_use]
    pub fn arrived_at(&self) -> Vec<u128> {
        let seen = self.seen();
        seen.entries.iter().map(|e| e.at.as_millis()).collect()
    }

    /// How many requests are being answered, or have a body that has neither ended nor been dropped.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let seen = self.seen();
        seen.entries.iter().filter(|e| e.ended.is_none()).count()
    }

    /// How many TCP connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.seen().connections
    }

    /// How many TCP connections were open at the same time at most.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.seen().most_open
    }

    /// How many different connections carried a request.
    #[must_use]
    pub fn used_connections(&self) -> usize {
        let seen = self.seen();
        let used: BTreeSet<u64> = seen.entries.iter().map(|e| e.connection).collect();
        used.len()
    }

    /// What arrives from now on belongs to the next run.
    pub fn next_run(&self) {
        self.seen().run += 1;
    }

    /// The time since the log began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.began.elapsed()
    }

    pub(super) fn opened(&self) -> u64 {
        let mut seen = self.seen();
        seen.connections += 1;
        seen.open += 1;
        seen.most_open = seen.most_open.max(seen.open);
        seen.connections
    }

    pub(super) fn closed(&self) {
        self.seen().open -= 1;
    }

    /// Takes in a request, and tells it when it arrived.
    pub(super) fn arrived(
        &self,
        connection: u64,
        version: Version,
        arrival: &mut Arrival,
    ) -> Index {
        let mut seen = self.seen();
        // Read under the lock, so that the order of entries is the order of their times.
        let at = self.now();
        arrival.at = at;
        let entry = Entry {
            run: seen.run,
            connection,
            wall: self.0.began_wall + at,
            version,
            method: arrival.method.clone(),
            uri: arrival.uri.clone(),
            host: arrival.host.clone(),
            headers: arrival.headers.clone(),
            ..Entry::new(at, &arrival.target)
        };
        seen.entries.push(entry);
        Index(seen.entries.len() - 1)
    }

    pub(super) fn answered(&self, index: Index, status: StatusCode, headers: &HeaderMap) {
        let now = self.now();
        let entry = &mut self.seen().entries[index.0];
        entry.status = Some(status);
        entry.answer = headers.clone();
        entry.answered = Some(now);
    }

    pub(super) fn sent(&self, index: Index, bytes: usize) {
        self.seen().entries[index.0].bytes += bytes as u64;
    }

    pub(super) fn ended(&self, index: Index) {
        let now = self.now();
        self.seen().entries[index.0].ended.get_or_insert(now);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after: &str) -> Entry {
        let mut entry = Entry::new(Duration::from_millis(1_500), "/busy?x=1");
        entry.status = Some(StatusCode::from_u16(status).unwrap());
        entry.answered = Some(Duration::from_secs(2));
        let value = retry_after.parse().unwrap();
        entry.answer.insert(header::RETRY_AFTER, value);
        entry
    }

    #[test]
    fn a_line_of_the_access_log() {
        let mut entry = answered(429, "4");
        let name = "ExampleBot/0.1".parse().unwrap();
        entry.headers.insert(header::USER_AGENT, name);
        entry.bytes = 14;
        assert_eq!(
            entry.to_string(),
            "127.0.0.1 - - [01/Jan/1970:00:00:01.500 +0000] \"GET /busy?x=1 HTTP/1.1\" 429 14 \"-\" \
             \"ExampleBot/0.1\""
        );
    }

    #[test]
    fn the_pause_that_an_answer_asks_for() {
        let seconds = |from, to| Some((Duration::from_secs(from), Duration::from_secs(to)));
        assert_eq!(answered(429, "4").pause(), seconds(2, 6));
        assert_eq!(answered(503, "1").pause(), seconds(2, 3));
        assert_eq!(answered(200, "4").pause(), None);
        assert_eq!(answered(429, "soon").pause(), None);
        // 10 s after the epoch is 8.5 s after the arrival.
        let date = answered(429, "Thu, 01 Jan 1970 00:00:10 GMT").pause();
        assert_eq!(
            date,
            Some((Duration::from_secs(2), Duration::from_millis(10_500)))
        );
    }
}
