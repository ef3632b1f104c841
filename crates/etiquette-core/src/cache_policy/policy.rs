//! The decisions: may this answer be stored, may that stored response be used.

use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::{Method, StatusCode, Uri};

use super::directives::{RequestDirectives, ResponseDirectives, Scope};
use super::outdates::names_itself;
use super::range::part;
use super::status::{Forward, ttl};
use super::stored::{Lifetime, StoredResponse};
use super::validators::has_validator;
use super::vary::Selecting;
use crate::Now;

/// How a lifetime is guessed for a response that states none (RFC 9111, 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heuristic {
    /// The percentage of the time for which the response had not been changed.
    pub percent: u8,
    /// Never longer than this.
    pub at_most: Duration,
}

impl Heuristic {
    /// A tenth of the time since Last-Modified, at most a day: what most caches do.
    #[must_use]
    pub fn tenth() -> Self {
        Self {
            percent: 10,
            at_most: Duration::from_secs(86_400),
        }
    }

    /// Another percentage and another limit.
    #[must_use]
    pub fn new(percent: u8, at_most: Duration) -> Self {
        Self { percent, at_most }
    }
}

/// The settings of a cache and the decisions that follow from them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CachePolicy {
    /// The cache serves several users (RFC 9111, 1.1). Default: no.
    pub shared: bool,
    /// How to guess a lifetime from Last-Modified. Default: not at all.
    pub heuristic: Option<Heuristic>,
    /// The lifetime of heuristically cacheable responses that state none. Default: none.
    pub default_ttl: Option<Duration>,
    /// "Not again within": a response younger than this is used whatever it says, short of `no-store`. Default: none.
    pub floor: Option<Duration>,
    /// No response is fresh for longer. Default: none.
    pub ceiling: Option<Duration>,
    /// How long after the end of its life a response may stand in when the origin does not answer at all and the
    /// response does not forbid it (RFC 9111, 4.2.4: "disconnected"). Default: a day.
    pub stale_if_unreachable: Duration,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            shared: false,
            heuristic: None,
            default_ttl: None,
            floor: None,
            ceiling: None,
            stale_if_unreachable: Duration::from_secs(86_400),
        }
    }
}

/// What may be done with a stored response when asking the origin fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// It may replace a 500, 502, 503 or 504 (RFC 5861, 4).
    pub on_error: bool,
    /// It may stand in when there is no answer.
    pub on_silence: bool,
}

impl Trouble {
    /// Whether a stored response may replace an answer of this status.
    #[must_use]
    pub fn covers(&self, status: StatusCode) -> bool {
        self.on_error && matches!(status.as_u16(), 500 | 502 | 503 | 504)
    }
}

/// What a stored response is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reuse {
    /// It answers the request. `ttl` is negative when the caller accepted a stale one.
    Fresh {
        /// What is left of its life, in seconds.
        ttl: i64,
    },
    /// It answers the request, and the origin is asked meanwhile (RFC 5861, 3).
    StaleWhileRevalidate {
        /// What may be done if nobody can ask meanwhile, and asking first fails.
        trouble: Trouble,
        /// What is left of its life, in seconds: less than one.
        ttl: i64,
    },
    /// The origin is asked first.
    Validate {
        /// Why.
        forward: Forward,
        /// What may be done if that fails.
        trouble: Trouble,
        /// What is left of its life, in seconds.
        ttl: i64,
    },
}

/// Whether an answer is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storing {
    /// Yes, selected by these fields.
    Store(Selecting),
    /// No.
    Pass,
}

const OWN_CREDENTIALS: [HeaderName; 1] = [AUTHORIZATION];

impl CachePolicy {
    /// The request fields that select every response, named by Vary or not: a private cache keeps what each
    /// Authorization was given apart, since one client may act for several users.
    fn always_selecting(&self) -> &'static [HeaderName] {
        if self.shared { &[] } else { &OWN_CREDENTIALS }
    }

    /// The fields of `request` that select `response`; `None` where it answers only its own request.
    #[must_use]
    pub fn selecting(&self, request: &HeaderMap, response: &HeaderMap) -> Option<Selecting> {
        Selecting::of(request, response, self.always_selecting())
    }

    /// How long a response stays fresh, by its own word or by these settings.
    #[must_use]
    pub fn fresh_for(&self, stored: &StoredResponse) -> Duration {
        let life = match stored.lifetime(self.shared) {
            Lifetime::Explicit(life) => life,
            Lifetime::Unsaid if may_guess(stored.status(), stored.directives()) => {
                self.guess(stored)
            }
            Lifetime::Unsaid => Duration::ZERO,
        };
        life.min(self.ceiling.unwrap_or(Duration::MAX))
    }

    fn guess(&self, stored: &StoredResponse) -> Duration {
        let tenth = self.heuristic.and_then(|heuristic| {
            let unchanged = stored.unchanged_for()?;
            let share = unchanged
                .as_secs()
                .saturating_mul(u64::from(heuristic.percent))
                / 100;
            Some(Duration::from_secs(share).min(heuristic.at_most))
        });
        tenth.or(self.default_ttl).unwrap_or(Duration::ZERO)
    }

    /// Judges a stored response, which the request's fields select, at `now`.
    #[must_use]
    pub fn reuse(&self, wishes: &RequestDirectives, stored: &StoredResponse, now: &Now) -> Reuse {
        let says = stored.directives();
        let age = stored.age(now);
        let life = self.fresh_for(stored);
        let ttl = ttl(life, age);
        let ask = |forward, trouble| Reuse::Validate {
            forward,
            trouble,
            ttl,
        };
        let on_request = ask(Forward::Request, Trouble::default());
        if wishes.no_cache || wishes.max_age == Some(Duration::ZERO) {
            return on_request;
        }
        let young = |floor| stored.resident(now).is_some_and(|since| since < floor);
        if self.floor.is_some_and(young) {
            return Reuse::Fresh { ttl };
        }
        if says.no_cache == Scope::All {
            return ask(Forward::Stale, Trouble::default());
        }
        let too_old = wishes.max_age.is_some_and(|limit| age > limit);
        let left = life.saturating_sub(age);
        if age < life {
            let too_short = wishes.min_fresh.is_some_and(|wish| left < wish);
            return if too_old || too_short {
                on_request
            } else {
                Reuse::Fresh { ttl }
            };
        }
        let staleness = age.saturating_sub(life);
        let never = says.never_stale(self.shared);
        if never || too_old || wishes.min_fresh.is_some() {
            return ask(Forward::Stale, Trouble::default());
        }
        if wishes.max_stale.is_some_and(|limit| staleness <= limit) {
            return Reuse::Fresh { ttl };
        }
        let within = |window: Option<Duration>| window.is_some_and(|window| staleness <= window);
        let on_error = within(says.stale_if_error) || within(wishes.stale_if_error);
        let trouble = Trouble {
            on_error,
            on_silence: on_error || within(Some(self.stale_if_unreachable)),
        };
        if within(says.stale_while_revalidate) {
            return Reuse::StaleWhileRevalidate { trouble, ttl };
        }
        ask(Forward::Stale, trouble)
    }

    /// Whether the answer to a request is stored (RFC 9111, 3).
    #[must_use]
    pub fn storing(
        &self,
        method: &Method,
        uri: &Uri,
        request: &HeaderMap,
        status: StatusCode,
        answer: &HeaderMap,
    ) -> Storing {
        let says = ResponseDirectives::of(answer);
        let explicit = says.max_age.is_some()
            || (self.shared && says.s_maxage.is_some())
            || answer.contains_key(http::header::EXPIRES);
        let fits = if *method == Method::GET {
            true
        } else {
            *method == Method::POST
                && status == StatusCode::OK
                && explicit
                && names_itself(uri, answer)
        };
        let final_status = !status.is_informational() && status != StatusCode::NOT_MODIFIED;
        if !fits || !final_status {
            return Storing::Pass;
        }
        if status == StatusCode::PARTIAL_CONTENT && part(answer, None).is_none() {
            return Storing::Pass;
        }
        let understood = status.canonical_reason().is_some();
        let forbidden = if says.must_understand {
            !understood
        } else {
            says.no_store
        };
        if forbidden || RequestDirectives::of(request).no_store {
            return Storing::Pass;
        }
        if self.shared {
            let for_one_user = says.private == Scope::All;
            let for_all = says.public || says.must_revalidate || says.s_maxage.is_some();
            if for_one_user || (request.contains_key(AUTHORIZATION) && !for_all) {
                return Storing::Pass;
            }
        }
        let permitted =
            explicit || may_guess(status, &says) || (!self.shared && says.private != Scope::Absent);
        if !permitted || !self.is_of_use(&says, explicit, answer) {
            return Storing::Pass;
        }
        match self.selecting(request, answer) {
            Some(selecting) => Storing::Store(selecting),
            None => Storing::Pass,
        }
    }

    /// Whether a stored copy could ever spare the origin anything.
    fn is_of_use(&self, says: &ResponseDirectives, explicit: bool, answer: &HeaderMap) -> bool {
        let lives = match (self.shared, says.s_maxage, says.max_age) {
            (true, Some(life), _) | (_, _, Some(life)) => !life.is_zero(),
            _ => explicit || self.default_ttl.is_some(),
        };
        lives
            || has_validator(answer)
            || says.stale_while_revalidate.is_some()
            || says.stale_if_error.is_some()
            || self.floor.is_some()
    }

    /// Whether an answer that has just come may also answer another request, made while it was under way: it is fresh,
    /// or says nothing about its life. One that demands validation answers its own request only.
    #[must_use]
    pub fn shareable(
        &self,
        wishes: &RequestDirectives,
        stored: &StoredResponse,
        now: &Now,
    ) -> bool {
        match self.reuse(wishes, stored, now) {
            Reuse::Fresh { .. } => true,
            Reuse::Validate {
                forward: Forward::Stale,
                ..
            } => {
                stored.directives().no_cache != Scope::All
                    && stored.lifetime(self.shared) == Lifetime::Unsaid
            }
            _ => false,
        }
    }
}

/// Whether a lifetime may be guessed (RFC 9110, 15.1; RFC 9111, 4.2.2): the status allows it, or the response does.
fn may_guess(status: StatusCode, says: &ResponseDirectives) -> bool {
    says.public
        || matches!(
            status.as_u16(),
            200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
        )
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use http::Version;

    use super::*;
    use crate::cache_policy::{Exchange, Extent, http_date};

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
            let exchange = Exchange {
                asked: self.start,
                received: self.start,
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
                &exchange,
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
            let storing = self.policy.storing(
                &Method::GET,
                &Uri::from_static("http://h/r"),
                &map(request),
                StatusCode::from_u16(status).unwrap(),
                &map(answer),
            );
            storing != Storing::Pass
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

    fn trouble(reuse: Reuse) -> (bool, bool) {
        match reuse {
            Reuse::Validate { trouble, .. } => (trouble.on_error, trouble.on_silence),
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
                trouble: Trouble::default(),
                ttl: 6,
            };
            assert_eq!(reuse, asked, "{wish}");
        }
        assert!(fresh(case.reuse("max-age=10", "max-age=4, min-fresh=6", 4)));
    }

    #[test]
    fn stale_only_where_it_is_granted() {
        let case = private();
        assert_eq!(trouble(case.reuse("max-age=1", "", 5)), (false, true));
        assert_eq!(
            trouble(case.reuse("max-age=1, stale-if-error=9", "", 5)),
            (true, true)
        );
        assert_eq!(
            trouble(case.reuse("max-age=1, stale-if-error=3", "", 5)),
            (false, true)
        );
        assert_eq!(
            trouble(case.reuse("max-age=1", "stale-if-error=9", 5)),
            (true, true)
        );
        assert_eq!(trouble(case.reuse("max-age=1", "", 90_000)), (false, false));
        for never in ["must-revalidate", "no-cache"] {
            let says =
                format!("max-age=1, stale-if-error=600, stale-while-revalidate=600, {never}");
            assert_eq!(
                trouble(case.reuse(&says, "max-stale", 5)),
                (false, false),
                "{never}"
            );
        }
        for never in ["proxy-revalidate", "s-maxage=1"] {
            let says = format!("max-age=1, stale-if-error=600, {never}");
            assert_eq!(
                trouble(shared().reuse(&says, "", 5)),
                (false, false),
                "{never}"
            );
            assert_eq!(trouble(case.reuse(&says, "", 5)), (true, true), "{never}");
        }
        let swr = "max-age=1, stale-while-revalidate=4";
        assert!(matches!(
            case.reuse(swr, "", 5),
            Reuse::StaleWhileRevalidate { ttl: -4, .. }
        ));
        assert_eq!(trouble(case.reuse(swr, "", 6)), (false, true));
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
            let exchange = Exchange {
                asked: case.start,
                received: case.at(delay),
                queued: Duration::ZERO,
            };
            let stored = StoredResponse::new(
                StatusCode::OK,
                Version::HTTP_11,
                &headers,
                Selecting::default(),
                Extent::Whole,
                &exchange,
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
            let storing = case.policy.storing(&Method::GET, &uri, &headers, status, &headers);
            let Storing::Store(selecting) = storing else { return Ok(()) };
            let exchange = Exchange {
                asked: case.start,
                received: case.start,
                queued: Duration::ZERO,
            };
            let stored = StoredResponse::new(status, Version::HTTP_11, &headers, selecting, Extent::Whole, &exchange, shared);
            proptest::prop_assert!(stored.selecting().matches(&headers));
            let _ = case.policy.reuse(&RequestDirectives::of(&headers), &stored, &case.at(5));
            let _ = stored.freshen(&headers, Selecting::default(), &exchange, shared, true);
            let read = StoredResponse::decode(&stored.encode());
            proptest::prop_assert!(read.is_some());
        }
    }
}
