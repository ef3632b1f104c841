//! Reuse and storing, rule by rule and against a plain reading of the RFC.

use std::time::{Duration, Instant, SystemTime};

use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode, Uri, Version};

use crate::Now;
use crate::decide::cache_policy::{
    CachePolicy, Extent, Forward, Heuristic, RequestDirectives, ResponseTimes, Reuse, Selecting,
    StaleIfError, StoredResponse, http_date,
};

fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap()))
        .collect()
}

struct Case {
    policy: CachePolicy,
    start: Now,
}

impl Case {
    fn new(policy: CachePolicy) -> Self {
        Self {
            policy,
            start: Now {
                monotonic: Instant::now(),
                wall: SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777),
            },
        }
    }

    fn at(&self, seconds: u64) -> Now {
        let span = Duration::from_secs(seconds);
        Now {
            monotonic: self.start.monotonic + span,
            wall: self.start.wall + span,
        }
    }

    /// How a response with this Cache-Control is reused after so many seconds.
    fn reuse(&self, says: &str, wish: &str, after: u64) -> Reuse {
        let times = ResponseTimes {
            request_time: self.start,
            response_time: self.start,
            queued: Duration::ZERO,
        };
        let stored = StoredResponse::new(
            StatusCode::OK,
            Version::HTTP_11,
            &map(&[
                ("cache-control", says),
                ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT"),
            ]),
            Selecting::default(),
            Extent::Whole,
            &times,
            self.policy.shared,
        );
        let wishes = RequestDirectives::of(&map(&[("cache-control", wish)]));
        self.policy.reuse(&wishes, &stored, &self.at(after))
    }

    fn stores(
        &self,
        status: u16,
        request: &[(&'static str, &str)],
        answer: &[(&'static str, &str)],
    ) -> bool {
        let selecting = self.policy.may_store(
            &Method::GET,
            &Uri::from_static("http://h/r"),
            &map(request),
            StatusCode::from_u16(status).unwrap(),
            &map(answer),
        );
        selecting.is_some()
    }
}

fn private() -> Case {
    Case::new(CachePolicy::default())
}

fn shared() -> Case {
    Case::new(CachePolicy {
        shared: true,
        ..CachePolicy::default()
    })
}

fn stale_if_error(reuse: Reuse) -> (bool, bool) {
    match reuse {
        Reuse::Validate { stale_if_error, .. } => {
            (stale_if_error.server_error, stale_if_error.unreachable)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn fresh_until_the_lifetime_is_reached() {
    let fresh = |reuse| matches!(reuse, Reuse::Fresh { .. });
    let case = private();
    assert_eq!(case.reuse("max-age=10", "", 9), Reuse::Fresh { ttl: 1 });
    assert!(!fresh(case.reuse("max-age=10", "", 10)));
    assert!(!fresh(case.reuse("max-age=10, no-cache", "", 1)));
    assert!(fresh(case.reuse("max-age=10, no-cache=\"x\"", "", 1)));
    for wish in ["no-cache", "max-age=0", "max-age=3", "min-fresh=7"] {
        let reuse = case.reuse("max-age=10", wish, 4);
        let asked = Reuse::Validate {
            forward: Forward::Request,
            stale_if_error: StaleIfError::default(),
            ttl: 6,
        };
        assert_eq!(reuse, asked, "{wish}");
    }
    assert!(fresh(case.reuse("max-age=10", "max-age=4, min-fresh=6", 4)));
}

#[test]
fn stale_only_where_it_is_granted() {
    let case = private();
    assert_eq!(
        stale_if_error(case.reuse("max-age=1", "", 5)),
        (false, true)
    );
    assert_eq!(
        stale_if_error(case.reuse("max-age=1, stale-if-error=9", "", 5)),
        (true, true)
    );
    assert_eq!(
        stale_if_error(case.reuse("max-age=1, stale-if-error=3", "", 5)),
        (false, true)
    );
    assert_eq!(
        stale_if_error(case.reuse("max-age=1", "stale-if-error=9", 5)),
        (true, true)
    );
    assert_eq!(
        stale_if_error(case.reuse("max-age=1", "", 90_000)),
        (false, false)
    );
    for never in ["must-revalidate", "no-cache"] {
        let says = format!("max-age=1, stale-if-error=600, stale-while-revalidate=600, {never}");
        assert_eq!(
            stale_if_error(case.reuse(&says, "max-stale", 5)),
            (false, false),
            "{never}"
        );
    }
    for never in ["proxy-revalidate", "s-maxage=1"] {
        let says = format!("max-age=1, stale-if-error=600, {never}");
        assert_eq!(
            stale_if_error(shared().reuse(&says, "", 5)),
            (false, false),
            "{never}"
        );
        assert_eq!(
            stale_if_error(case.reuse(&says, "", 5)),
            (true, true),
            "{never}"
        );
    }
    let swr = "max-age=1, stale-while-revalidate=4";
    assert!(matches!(
        case.reuse(swr, "", 5),
        Reuse::StaleWhileRevalidate { ttl: -4, .. }
    ));
    assert_eq!(stale_if_error(case.reuse(swr, "", 6)), (false, true));
    assert_eq!(
        case.reuse("max-age=1", "max-stale=4", 5),
        Reuse::Fresh { ttl: -4 }
    );
    assert!(matches!(
        case.reuse("max-age=1", "max-stale=3", 5),
        Reuse::Validate { .. }
    ));
}

#[test]
fn guessed_floored_and_cut_lifetimes() {
    let mut case = private();
    assert!(matches!(case.reuse("", "", 1), Reuse::Validate { .. }));
    case.policy.heuristic = Some(Heuristic::tenth());
    // Unchanged for 1,000 s.
    assert_eq!(case.reuse("", "", 1), Reuse::Fresh { ttl: 99 });
    case.policy.ceiling = Some(Duration::from_secs(5));
    assert_eq!(case.reuse("max-age=60", "", 1), Reuse::Fresh { ttl: 4 });
    case.policy.floor = Some(Duration::from_secs(30));
    assert!(matches!(
        case.reuse("max-age=0, no-cache", "", 29),
        Reuse::Fresh { .. }
    ));
    assert!(matches!(
        case.reuse("max-age=0, no-cache", "", 30),
        Reuse::Validate { .. }
    ));
}

#[test]
fn what_is_stored() {
    let fresh = [("cache-control", "max-age=60")];
    let (private, shared) = (private(), shared());
    for status in [200, 203, 204, 299, 302, 404, 499, 503, 599] {
        assert!(shared.stores(status, &[], &fresh), "{status}");
    }
    assert!(!shared.stores(304, &[], &fresh));
    assert!(!shared.stores(206, &[], &fresh));
    assert!(shared.stores(206, &[], &[fresh[0], ("content-range", "bytes 0-4/10")]));
    assert!(shared.stores(200, &[], &[("etag", "\"a\"")]));
    assert!(!shared.stores(403, &[], &[("etag", "\"a\"")]));
    assert!(!shared.stores(200, &[], &[]));
    assert!(!shared.stores(200, &[], &[("cache-control", "max-age=60, no-store")]));
    assert!(!shared.stores(200, &[("cache-control", "no-store")], &fresh));
    let understand = [("cache-control", "max-age=60, no-store, must-understand")];
    assert!(shared.stores(200, &[], &understand));
    assert!(!shared.stores(599, &[], &understand));
    let one_user = [("cache-control", "max-age=60, private")];
    assert!(private.stores(200, &[], &one_user));
    assert!(!shared.stores(200, &[], &one_user));
    let signed_in = [("authorization", "x")];
    assert!(!shared.stores(200, &signed_in, &fresh));
    assert!(private.stores(200, &signed_in, &fresh));
    for grant in ["public", "must-revalidate", "s-maxage=5"] {
        let says = format!("max-age=60, {grant}");
        assert!(
            shared.stores(200, &signed_in, &[("cache-control", &says)]),
            "{grant}"
        );
    }
    assert!(!shared.stores(200, &[], &[fresh[0], ("vary", "*")]));
}

/// The reading of RFC 9111, 4.2, step by step and in seconds, for what the property test throws at it.
mod by_the_book {
    /// One response and one request for it, in whole seconds.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Situation {
        pub(super) max_age: Option<u64>,
        pub(super) s_maxage: Option<u64>,
        /// Expires, seconds after Date.
        pub(super) expires: Option<i64>,
        /// Date, seconds before the answer came.
        pub(super) date: i64,
        pub(super) age: Option<u64>,
        /// Seconds between request and answer.
        pub(super) delay: u64,
        /// Seconds since the answer came.
        pub(super) resident: u64,
        pub(super) shared: bool,
    }

    pub(super) fn is_fresh(s: &Situation) -> bool {
        // 4.2.1, in its order.
        let lifetime = if let (true, Some(s_maxage)) = (s.shared, s.s_maxage) {
            s_maxage
        } else if let Some(max_age) = s.max_age {
            max_age
        } else if let Some(expires) = s.expires {
            u64::try_from(expires).unwrap_or(0)
        } else {
            0
        };
        // 4.2.3.
        let apparent_age = u64::try_from(s.date).unwrap_or(0);
        let corrected_age_value = s.age.unwrap_or(0) + s.delay;
        let corrected_initial_age = apparent_age.max(corrected_age_value);
        let current_age = corrected_initial_age + s.resident;
        lifetime > current_age
    }
}

proptest::proptest! {
    #[test]
    fn freshness_is_what_the_rfc_says(
        max_age in proptest::option::of(0_u64..40),
        s_maxage in proptest::option::of(0_u64..40),
        expires in proptest::option::of(-20_i64..40),
        date in -20_i64..40,
        age in proptest::option::of(0_u64..40),
        delay in 0_u64..10,
        resident in 0_u64..40,
        shared: bool,
    ) {
        let situation = by_the_book::Situation {
            max_age, s_maxage, expires, date, age, delay, resident, shared,
        };
        let case = Case::new(CachePolicy { shared, ..CachePolicy::default() });
        let dated = |ago: i64| {
            let span = Duration::from_secs(ago.unsigned_abs());
            let came = case.at(delay).wall;
            http_date(if ago < 0 { came + span } else { came - span })
        };
        let mut headers = HeaderMap::new();
        headers.insert("date", dated(date));
        if let Some(expires) = expires {
            headers.insert("expires", dated(date - expires));
        }
        if let Some(age) = age {
            headers.insert("age", age.into());
        }
        for (name, value) in [("max-age", max_age), ("s-maxage", s_maxage)] {
            if let Some(value) = value {
                headers.append("cache-control", format!("{name}={value}").parse().unwrap());
            }
        }
        let times = ResponseTimes {
            request_time: case.start,
            response_time: case.at(delay),
            queued: Duration::ZERO,
        };
        let stored = StoredResponse::new(
            StatusCode::OK,
            Version::HTTP_11,
            &headers,
            Selecting::default(),
            Extent::Whole,
            &times,
            shared,
        );
        let wishes = RequestDirectives::default();
        let fresh = matches!(
            case.policy.reuse(&wishes, &stored, &case.at(delay + resident)),
            Reuse::Fresh { .. }
        );
        proptest::prop_assert_eq!(fresh, by_the_book::is_fresh(&situation), "{:?}", situation);
    }

    #[test]
    fn no_field_breaks_the_policy(
        lines in proptest::collection::vec(("cache-control|vary|expires|date|age|etag|content-range|range|if-none-match|if-modified-since|if-range|accept-language|pragma|last-modified", "[ -~]{0,40}"), 0..12),
        status in 100_u16..1_000,
        shared: bool,
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                headers.append(name, value);
            }
        }
        let case = Case::new(CachePolicy { shared, ..CachePolicy::default() });
        let status = StatusCode::from_u16(status).unwrap();
        let uri = Uri::from_static("http://h/r");
        let selecting = case.policy.may_store(&Method::GET, &uri, &headers, status, &headers);
        let Some(selecting) = selecting else { return Ok(()) };
        let times = ResponseTimes {
            request_time: case.start,
            response_time: case.start,
            queued: Duration::ZERO,
        };
        let stored = StoredResponse::new(status, Version::HTTP_11, &headers, selecting, Extent::Whole, &times, shared);
        proptest::prop_assert!(stored.selecting().matches(&headers));
        let _ = case.policy.reuse(&RequestDirectives::of(&headers), &stored, &case.at(5));
        let _ = stored.freshen(&headers, Selecting::default(), &times, shared, true);
        let read = StoredResponse::decode(&stored.encode());
        proptest::prop_assert!(read.is_some());
    }
}
