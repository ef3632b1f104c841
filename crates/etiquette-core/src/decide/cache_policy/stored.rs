//! A stored response without its body: what it says, when it came, how old it is.

use std::time::{Duration, Instant, SystemTime};

use http::header::{AGE, DATE, HeaderMap, HeaderValue};
use http::{StatusCode, Version};

use super::connection::remove_connection_fields;
use super::directives::{Qualifiable, ResponseDirectives, members, seconds};
use super::range::Extent;
use super::vary::Selecting;
use crate::Now;
use crate::field::date::{self, parse_strict};

/// The times from which the age of a response is calculated (RFC 9111, 4.2.3).
#[derive(Clone, Copy, Debug)]
pub struct ResponseTimes {
    /// When the request was handed to the inner service.
    pub request_time: Now,
    /// When the head of the response came.
    pub response_time: Now,
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
    initial_age: InitialAge,
    /// The response time by the monotonic clock. Absent once the response comes from another process: the wall clock must
    /// do.
    since: Option<Instant>,
    directives: ResponseDirectives,
    date: SystemTime,
}

/// How old a response was when it came (RFC 9111, 4.2.3): what a store keeps outside the process, beside status, headers,
/// selecting fields and extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialAge {
    /// The wall time at which the head came: `response_time`.
    pub response_time: SystemTime,
    /// How old the response was then: `corrected_initial_age`.
    pub age: Duration,
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
        times: &ResponseTimes,
        shared: bool,
    ) -> Self {
        let mut headers = headers.clone();
        remove_connection_fields(&mut headers);
        let directives = ResponseDirectives::of(&headers);
        if let (true, Qualifiable::Qualified(names)) = (shared, &directives.private) {
            for name in names {
                headers.remove(name);
            }
        }
        let response_time = times.response_time.wall;
        let date = stated_date(&headers, response_time);
        let age = corrected_initial_age(&headers, date, times);
        headers.remove(AGE);
        if date.is_none() {
            headers.insert(DATE, http_date(response_time));
        }
        Self {
            status,
            version,
            headers,
            selecting,
            extent,
            initial_age: InitialAge { response_time, age },
            since: Some(times.response_time.monotonic),
            directives,
            date: date.unwrap_or(response_time),
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
        initial_age: InitialAge,
    ) -> Self {
        let response_time = initial_age.response_time;
        Self {
            status,
            version,
            selecting,
            extent,
            initial_age,
            since: None,
            directives: ResponseDirectives::of(&headers),
            date: stated_date(&headers, response_time).unwrap_or(response_time),
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

    /// When it came and how old it was then.
    #[must_use]
    pub fn initial_age(&self) -> InitialAge {
        self.initial_age
    }

    /// Its Date, or when it came.
    pub(super) fn date(&self) -> SystemTime {
        self.date
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

    /// The same head to be stored without its body.
    #[must_use]
    pub fn head_only(mut self) -> Self {
        self.extent = Extent::HeadOnly;
        self
    }

    /// The time since its head came (RFC 9111, 4.2.3); `None` when the wall clock went back behind that moment and no other
    /// clock knows.
    #[must_use]
    pub fn resident_time(&self, now: &Now) -> Option<Duration> {
        match self.since {
            Some(then) => Some(now.monotonic.saturating_duration_since(then)),
            None => now.wall.duration_since(self.initial_age.response_time).ok(),
        }
    }

    /// Its age: `current_age` (RFC 9111, 4.2.3). Where no clock knows, it is as old as can be.
    #[must_use]
    pub fn age(&self, now: &Now) -> Duration {
        match self.resident_time(now) {
            Some(resident) => self.initial_age.age.saturating_add(resident),
            None => Duration::MAX,
        }
    }

    /// A head of the same age with another status, other fields and other bytes.
    pub(super) fn with(&self, status: StatusCode, headers: HeaderMap, extent: Extent) -> Self {
        let response_time = self.initial_age.response_time;
        Self {
            status,
            extent,
            directives: ResponseDirectives::of(&headers),
            date: stated_date(&headers, response_time).unwrap_or(response_time),
            headers,
            ..self.clone()
        }
    }
}

/// How old a response was when it came (RFC 9111, 4.2.3), without the time in our own queue, in which no response can have
/// aged.
fn corrected_initial_age(
    headers: &HeaderMap,
    date: Option<SystemTime>,
    times: &ResponseTimes,
) -> Duration {
    let response_delay = times
        .response_time
        .monotonic
        .saturating_duration_since(times.request_time.monotonic)
        .saturating_sub(times.queued);
    let apparent_age = date
        .and_then(|date| times.response_time.wall.duration_since(date).ok())
        .unwrap_or(Duration::ZERO);
    // A date has whole seconds: what is left of one is no age.
    let apparent_age = Duration::from_secs(apparent_age.as_secs());
    apparent_age.max(age_field(headers) + response_delay)
}

/// The first member of Age, if it is a number (RFC 9111, 5.1).
fn age_field(headers: &HeaderMap) -> Duration {
    headers
        .get(AGE)
        .and_then(|line| members(line.as_bytes()).next())
        .and_then(|first| seconds(first.trim_ascii()))
        .unwrap_or(Duration::ZERO)
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
    use crate::decide::cache_policy::samples::{at, stored, times};

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
        let queued = ResponseTimes {
            queued: Duration::from_secs(8),
            ..times(0, 10)
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
            before.initial_age(),
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
