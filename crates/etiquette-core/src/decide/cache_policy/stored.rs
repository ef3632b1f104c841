//! A stored response without its body: what it says, when it came, how old it is.

use std::time::{Duration, Instant, SystemTime};

use http::header::{AGE, DATE, EXPIRES, HeaderMap, HeaderValue, LAST_MODIFIED};
use http::{StatusCode, Version};

use super::connection::remove_connection_fields;
use super::directives::{ResponseDirectives, Scope, members, seconds};
use super::range::Extent;
use super::vary::Selecting;
use crate::Now;
use crate::field::date::{self, parse_strict};

/// When a response was asked for and when its head came.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// When the request was handed to the inner service.
    pub asked: Now,
    /// When the head of the response came.
    pub received: Now,
    /// How much of the time between was spent in our own queue, before the request left.
    pub queued: Duration,
}

/// A stored response without its body.
///
/// Its headers hold what may be stored (RFC 9111, 3.1): no hop-by-hop fields, and a Date always.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
    selecting: Selecting,
    extent: Extent,
    received: SystemTime,
    /// Absent once the response comes from another process: the wall clock must do.
    clock: Option<Instant>,
    age_then: Duration,
    directives: ResponseDirectives,
    date: SystemTime,
}

/// What a store keeps outside the process, beside status, headers, selecting fields and extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The wall time at which the head came.
    pub at: SystemTime,
    /// How old the response was then.
    pub age: Duration,
}

/// How long a response is fresh, and where that comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifetime {
    /// The origin said so.
    Explicit(Duration),
    /// It said nothing.
    Unsaid,
}

/// The first member of Age, if it is a number (RFC 9111, 5.1).
fn age_field(headers: &HeaderMap) -> Duration {
    headers
        .get(AGE)
        .and_then(|line| members(line.as_bytes()).next())
        .and_then(|first| seconds(first.trim_ascii()))
        .unwrap_or(Duration::ZERO)
}

impl StoredResponse {
    /// The stored form of a response. `shared` leaves out the fields that are for one user only.
    #[must_use]
    pub fn new(
        status: StatusCode,
        version: Version,
        headers: &HeaderMap,
        selecting: Selecting,
        extent: Extent,
        exchange: &Exchange,
        shared: bool,
    ) -> Self {
        let mut headers = headers.clone();
        remove_connection_fields(&mut headers);
        let directives = ResponseDirectives::of(&headers);
        if let (true, Scope::Fields(names)) = (shared, &directives.private) {
            for name in names {
                headers.remove(name);
            }
        }
        let received = exchange.received.wall;
        let date = stated_date(&headers, received);
        // RFC 9111, 4.2.3, without the time in our own queue, in which no response can have aged.
        let delay = exchange
            .received
            .monotonic
            .saturating_duration_since(exchange.asked.monotonic)
            .saturating_sub(exchange.queued);
        let apparent = date
            .and_then(|date| received.duration_since(date).ok())
            .unwrap_or(Duration::ZERO);
        // A date has whole seconds: what is left of one is no age.
        let apparent = Duration::from_secs(apparent.as_secs());
        let age_then = apparent.max(age_field(&headers) + delay);
        headers.remove(AGE);
        if date.is_none() {
            headers.insert(DATE, http_date(received));
        }
        Self {
            status,
            version,
            headers,
            selecting,
            extent,
            received,
            clock: Some(exchange.received.monotonic),
            age_then,
            directives,
            date: date.unwrap_or(received),
        }
    }

    /// Puts together what a store kept outside the process.
    #[must_use]
    pub fn restore(
        status: StatusCode,
        version: Version,
        headers: HeaderMap,
        selecting: Selecting,
        extent: Extent,
        received: Received,
    ) -> Self {
        Self {
            status,
            version,
            selecting,
            extent,
            received: received.at,
            clock: None,
            age_then: received.age,
            directives: ResponseDirectives::of(&headers),
            date: stated_date(&headers, received.at).unwrap_or(received.at),
            headers,
        }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The version of the message that carried it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The stored fields, without Age.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The request fields that selected it.
    #[must_use]
    pub fn selecting(&self) -> &Selecting {
        &self.selecting
    }

    /// Which bytes of the representation its body has.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// When it was received and how old it was then.
    #[must_use]
    pub fn received(&self) -> Received {
        Received {
            at: self.received,
            age: self.age_then,
        }
    }

    /// What its Cache-Control says.
    #[must_use]
    pub fn directives(&self) -> &ResponseDirectives {
        &self.directives
    }

    /// The bytes that its head occupies in memory, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        let fields: usize = self
            .headers
            .iter()
            .map(|(name, value)| 64 + name.as_str().len() + value.len())
            .sum();
        256 + fields + self.selecting.weight()
    }

    /// The time since its head came; `None` when the wall clock went back behind that moment and no other clock knows.
    #[must_use]
    pub fn resident(&self, now: &Now) -> Option<Duration> {
        match self.clock {
            Some(then) => Some(now.monotonic.saturating_duration_since(then)),
            None => now.wall.duration_since(self.received).ok(),
        }
    }

    /// The same head to be kept without its body.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.extent = Extent::Bare;
        self
    }

    /// Its age (RFC 9111, 4.2.3). Where no clock knows, it is as old as can be.
    #[must_use]
    pub fn age(&self, now: &Now) -> Duration {
        match self.resident(now) {
            Some(resident) => self.age_then.saturating_add(resident),
            None => Duration::MAX,
        }
    }

    /// How long the origin says that it is fresh (RFC 9111, 4.2.1).
    #[must_use]
    pub fn lifetime(&self, shared: bool) -> Lifetime {
        let stated = self.directives.s_maxage.filter(|_| shared);
        if let Some(explicit) = stated.or(self.directives.max_age) {
            return Lifetime::Explicit(explicit);
        }
        match self.headers.get(EXPIRES) {
            Some(expires) => Lifetime::Explicit(
                parse_strict(expires.as_bytes(), self.received)
                    .and_then(|end| end.duration_since(self.date).ok())
                    .unwrap_or(Duration::ZERO),
            ),
            None => Lifetime::Unsaid,
        }
    }

    /// How long it had not been changed when it was sent, if it says so.
    #[must_use]
    pub fn unchanged_for(&self) -> Option<Duration> {
        let modified = self.headers.get(LAST_MODIFIED)?;
        let modified = parse_strict(modified.as_bytes(), self.received)?;
        self.date.duration_since(modified).ok()
    }

    /// A head of the same age with another status, other fields and other bytes.
    pub(super) fn with(&self, status: StatusCode, headers: HeaderMap, extent: Extent) -> Self {
        Self {
            status,
            extent,
            directives: ResponseDirectives::of(&headers),
            date: stated_date(&headers, self.received).unwrap_or(self.received),
            headers,
            ..self.clone()
        }
    }
}

fn stated_date(headers: &HeaderMap, now: SystemTime) -> Option<SystemTime> {
    parse_strict(headers.get(DATE)?.as_bytes(), now)
}

/// The field value of a wall time.
#[must_use]
pub fn http_date(at: SystemTime) -> HeaderValue {
    HeaderValue::from_str(&date::format(at)).expect("a date is a field value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::cache_policy::samples::{at, exchange, stored};

    #[test]
    fn age_is_the_worst_of_date_and_age() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        assert_eq!(stored(&[date]).age(&at(5)).as_secs(), 15);
        assert_eq!(stored(&[date, ("age", "30")]).age(&at(5)).as_secs(), 35);
        assert_eq!(stored(&[("age", "30, 5")]).age(&at(0)).as_secs(), 30);
        for ignored in ["x", "-30", "30.0", "30;a=b"] {
            assert_eq!(
                stored(&[("age", ignored)]).age(&at(0)).as_secs(),
                0,
                "{ignored}"
            );
        }
        let queued = Exchange {
            queued: Duration::from_secs(8),
            ..exchange(0, 10)
        };
        let slow = StoredResponse::new(
            StatusCode::OK,
            Version::HTTP_11,
            &HeaderMap::new(),
            Selecting::default(),
            Extent::Whole,
            &queued,
            false,
        );
        assert_eq!(slow.age(&at(10)).as_secs(), 2);
    }

    #[test]
    fn age_outlives_the_process_by_the_wall_clock() {
        let before = stored(&[]);
        let after = StoredResponse::restore(
            before.status(),
            before.version(),
            before.headers().clone(),
            Selecting::default(),
            Extent::Whole,
            before.received(),
        );
        assert_eq!(after.age(&at(7)).as_secs(), 7);
        let back = Now {
            monotonic: at(7).monotonic,
            wall: at(0).wall - Duration::from_secs(1),
        };
        assert_eq!(after.age(&back), Duration::MAX);
        assert_eq!(before.age(&back).as_secs(), 7);
    }

    #[test]
    fn lifetimes_in_their_order() {
        let explicit = |s| Lifetime::Explicit(Duration::from_secs(s));
        let both = stored(&[("cache-control", "max-age=1, s-maxage=2")]);
        assert_eq!(both.lifetime(true), explicit(2));
        assert_eq!(both.lifetime(false), explicit(1));
        let date = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        let expires = ("expires", "Sun, 06 Nov 1994 08:49:57 GMT");
        assert_eq!(stored(&[date, expires]).lifetime(true), explicit(30));
        assert_eq!(
            stored(&[("date", "?"), expires]).lifetime(true),
            explicit(20)
        );
        assert_eq!(stored(&[("expires", "0")]).lifetime(true), explicit(0));
        assert_eq!(stored(&[]).lifetime(true), Lifetime::Unsaid);
    }

    #[test]
    fn connection_fields_are_not_stored() {
        let kept = stored(&[
            ("connection", "a, close"),
            ("a", "1"),
            ("keep-alive", "5"),
            ("b", "2"),
            ("cache-control", "private=\"c\""),
            ("c", "3"),
        ]);
        let names: Vec<_> = kept
            .headers()
            .keys()
            .map(http::HeaderName::as_str)
            .collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(kept.headers().contains_key("b") && kept.headers().contains_key("date"));
    }
}
