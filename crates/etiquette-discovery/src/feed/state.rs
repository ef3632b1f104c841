//! What is known about a feed between two polls, and what the next one is.

use std::time::{Duration, SystemTime};

use etiquette_core::RetryAfter;
use etiquette_core::decide::cache_policy::ResponseDirectives;
use http::{HeaderMap, StatusCode, Uri, header};

use super::hints::Hints;
use super::week::{DAY, HOUR, WEEK};
use crate::reference::resolve;

/// The pace without any hint.
pub const UNHINTED: Duration = HOUR;
/// The fastest pace that a hint can ask for.
pub const FASTEST: Duration = Duration::from_secs(600);

/// Unchanged polls in a row after which a feed without hints is asked for less often.
const PATIENCE: u32 = 3;

/// What is known about a feed between two polls. A plain value, to be kept wherever the caller keeps things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedState {
    /// When to poll next; none before the first poll.
    pub next_poll_at: Option<SystemTime>,
    /// Where the feed moved for good (301 or 308): ask there from now on, and keep that address.
    pub moved_to: Option<Uri>,
    /// Whether the feed is gone for good: it is not to be asked for again.
    pub stopped: bool,
    /// What the feed said about its pace when it was read last.
    pub hints: Hints,
    /// Polls in a row that brought nothing new.
    pub unchanged: u32,
    /// Polls in a row that found no feed (404, 401, 403, 451).
    pub missing: u32,
    /// Polls in a row that found no working server.
    pub failed: u32,
}

/// What came of a poll.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Poll<'a> {
    /// A response.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its fields.
        headers: &'a HeaderMap,
        /// What the feed says about its pace; none for a response without a feed, such as a 304.
        hints: Option<Hints>,
        /// Whether it brought something new.
        changed: bool,
    },
    /// A redirect from this address; the caller asks there next.
    Redirect {
        /// Its status.
        status: StatusCode,
        /// Its fields.
        headers: &'a HeaderMap,
        /// The address that redirects.
        from: &'a Uri,
    },
    /// No response: the network failed.
    NoResponse,
    /// A refusal before anything was sent, for example because the host pauses; and until when, if that is known.
    Refused {
        /// When to come back.
        retry_at: Option<SystemTime>,
    },
}

/// What to do next about a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Poll again at this time.
    At(SystemTime),
    /// Follow the redirect now, as one more request of this poll.
    Follow(Uri),
    /// Never again.
    Stop,
}

impl FeedState {
    /// A feed that was never polled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came of a poll at the wall time `now` and says what is next.
    ///
    /// A caller that is told to [`Follow`](Next::Follow) more than five times in a row records [`Poll::NoResponse`].
    pub fn record(&mut self, poll: Poll<'_>, now: SystemTime) -> Next {
        if self.stopped {
            return Next::Stop;
        }
        match poll {
            Poll::Response {
                status,
                headers,
                hints,
                changed,
            } => self.response(status, headers, hints, changed, now),
            Poll::Redirect {
                status,
                headers,
                from,
            } => self.redirect(status, headers, from, now),
            Poll::NoResponse => self.failure(None, now),
            Poll::Refused { retry_at } => {
                // Nothing was sent, so nothing was learnt but the time, if that: a rule has none.
                let at = match retry_at {
                    Some(at) => at.max(self.earliest(FASTEST, now)),
                    None => self.earliest(UNHINTED, now),
                };
                self.at(at)
            }
        }
    }

    fn response(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        hints: Option<Hints>,
        changed: bool,
        now: SystemTime,
    ) -> Next {
        let asked = asked_wait(headers, now);
        match status.as_u16() {
            200..=299 | 304 => {
                self.missing = 0;
                self.failed = 0;
                self.unchanged = if changed {
                    0
                } else {
                    self.unchanged.saturating_add(1)
                };
                if let Some(hints) = hints {
                    self.hints = hints;
                }
                let wait = match self.hints.pace().max(fresh_for(headers)) {
                    Some(hinted) => hinted.clamp(FASTEST, WEEK),
                    None => doubled(UNHINTED, self.unchanged.saturating_sub(PATIENCE), 12 * HOUR),
                };
                self.wait(wait, asked, now)
            }
            410 => {
                self.stopped = true;
                self.next_poll_at = None;
                Next::Stop
            }
            401 | 403 | 404 | 451 => {
                self.failed = 0;
                self.missing = self.missing.saturating_add(1);
                self.wait(doubled(HOUR, self.missing, WEEK), asked, now)
            }
            _ => self.failure(asked, now),
        }
    }

    fn redirect(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        from: &Uri,
        now: SystemTime,
    ) -> Next {
        let target = headers
            .get(header::LOCATION)
            .and_then(|location| std::str::from_utf8(location.as_bytes()).ok())
            .and_then(|location| resolve(from, location).ok());
        let Some(target) = target else {
            return self.failure(asked_wait(headers, now), now);
        };
        // Only as long as every hop so far was for good is the new address the feed's own.
        let first = self.moved_to.is_none() || self.moved_to.as_ref() == Some(from);
        if matches!(status.as_u16(), 301 | 308) && first {
            self.moved_to = Some(target.clone());
        }
        Next::Follow(target)
    }

    fn failure(&mut self, asked: Option<Duration>, now: SystemTime) -> Next {
        self.failed = self.failed.saturating_add(1);
        self.wait(doubled(HOUR, self.failed - 1, DAY), asked, now)
    }

    /// The next poll after `wait`, or after what the server asked for if that is longer.
    fn wait(&mut self, wait: Duration, asked: Option<Duration>, now: SystemTime) -> Next {
        let wait = asked.map_or(wait, |asked| asked.max(wait));
        let at = self.earliest(wait, now);
        self.at(at)
    }

    fn earliest(&self, wait: Duration, now: SystemTime) -> SystemTime {
        // A Retry-After of centuries is beyond what some platforms' clocks can hold: as late as can be said.
        let at = now
            .checked_add(wait)
            .unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 3600));
        self.hints.not_skipped(at)
    }

    fn at(&mut self, at: SystemTime) -> Next {
        let at = self.hints.not_skipped(at);
        self.next_poll_at = Some(at);
        Next::At(at)
    }
}

/// `unit × 2^times`, capped.
fn doubled(unit: Duration, times: u32, cap: Duration) -> Duration {
    2u32.checked_pow(times)
        .and_then(|factor| unit.checked_mul(factor))
        .map_or(cap, |wait| wait.min(cap))
}

fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    RetryAfter::of(headers, now).wait()
}

/// What is left of the response's freshness, if it has any.
fn fresh_for(headers: &HeaderMap) -> Option<Duration> {
    let max_age = ResponseDirectives::of(headers).max_age?;
    let age = headers
        .get(header::AGE)
        .and_then(|age| age.to_str().ok()?.trim().parse().ok())
        .map_or(Duration::ZERO, Duration::from_secs);
    Some(max_age.saturating_sub(age)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        httpdate::parse_http_date(text).unwrap()
    }

    fn now() -> SystemTime {
        at("Sun, 01 Nov 2026 12:00:00 GMT")
    }

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>()
    }

    fn poll(
        state: &mut FeedState,
        status: u16,
        fields: &[(&'static str, &'static str)],
        hints: &str,
    ) -> Next {
        let headers = headers(fields);
        let poll = Poll::Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
            hints: (!hints.is_empty()).then(|| Hints::of(hints.as_bytes())),
            changed: status == 200,
        };
        state.record(poll, now())
    }

    fn after(minutes: u64) -> Next {
        Next::At(now() + Duration::from_secs(minutes * 60))
    }

    #[test]
    fn never_under_an_hour_without_a_hint() {
        let mut state = FeedState::new();
        assert_eq!(
            poll(&mut state, 200, &[], "<rss><channel></channel></rss>"),
            after(60)
        );
        assert_eq!(
            poll(&mut state, 200, &[("cache-control", "max-age=0")], ""),
            after(60)
        );
        assert_eq!(
            poll(&mut state, 200, &[("cache-control", "no-cache")], ""),
            after(60)
        );
        assert_eq!(state.next_poll_at, Some(now() + HOUR));
    }

    #[test]
    fn a_quiet_feed_without_hints_is_asked_less_often() {
        let mut state = FeedState::new();
        let waits: Vec<_> = (0..9).map(|_| poll(&mut state, 304, &[], "")).collect();
        let expected = [60, 60, 60, 120, 240, 480, 720, 720, 720].map(after);
        assert_eq!(waits, expected);
        assert_eq!(poll(&mut state, 200, &[], ""), after(60));
    }

    #[test]
    fn the_longest_hint_counts_between_ten_minutes_and_a_week() {
        let mut state = FeedState::new();
        let feed = "<rss><channel><ttl>30</ttl></channel></rss>";
        assert_eq!(poll(&mut state, 200, &[], feed), after(30));
        assert_eq!(
            poll(
                &mut state,
                304,
                &[("cache-control", "max-age=7200"), ("age", "600")],
                ""
            ),
            after(110)
        );
        // What the feed said holds until it is read again.
        assert_eq!(poll(&mut state, 304, &[], ""), after(30));
        assert_eq!(
            poll(
                &mut state,
                200,
                &[],
                "<rss><channel><ttl>1</ttl></channel></rss>"
            ),
            after(10)
        );
        assert_eq!(
            poll(
                &mut state,
                200,
                &[("cache-control", "max-age=31536000")],
                "<rss/>"
            ),
            after(7 * 24 * 60)
        );
    }

    #[test]
    fn retry_after_is_never_shortened() {
        let mut state = FeedState::new();
        assert_eq!(
            poll(&mut state, 503, &[("retry-after", "7200")], ""),
            after(120)
        );
        assert_eq!(
            poll(&mut state, 429, &[("retry-after", "60")], ""),
            after(120)
        );
        assert_eq!(
            poll(&mut state, 503, &[("retry-after", "99999999")], ""),
            Next::At(now() + Duration::from_secs(99_999_999))
        );
        let Next::At(_) = poll(
            &mut state,
            503,
            &[("retry-after", "18446744073709551615")],
            "",
        ) else {
            panic!("a time")
        };
    }

    #[test]
    fn gone_is_for_good_and_missing_slows_down() {
        let mut state = FeedState::new();
        let waits: Vec<_> = (0..9).map(|_| poll(&mut state, 404, &[], "")).collect();
        let expected = [2, 4, 8, 16, 32, 64, 128, 168, 168].map(|hours| after(hours * 60));
        assert_eq!(waits, expected);
        assert_eq!(poll(&mut state, 410, &[], ""), Next::Stop);
        assert_eq!(poll(&mut state, 200, &[], ""), Next::Stop);
        assert_eq!(state.next_poll_at, None);
    }

    #[test]
    fn failures_back_off_for_a_day_at_most() {
        let mut state = FeedState::new();
        let waits: Vec<_> = (0..7)
            .map(|_| state.record(Poll::NoResponse, now()))
            .collect();
        let expected = [1, 2, 4, 8, 16, 24, 24].map(|hours| after(hours * 60));
        assert_eq!(waits, expected);
        poll(&mut state, 304, &[], "");
        assert_eq!(state.record(Poll::NoResponse, now()), after(60));
    }

    #[test]
    fn a_refusal_says_when() {
        let mut state = FeedState::new();
        let until = now() + 3 * HOUR;
        let poll = Poll::Refused {
            retry_at: Some(until),
        };
        assert_eq!(state.record(poll, now()), Next::At(until));
        assert_eq!(
            state.record(Poll::Refused { retry_at: None }, now()),
            after(60)
        );
        assert_eq!(state.failed, 0);
    }

    #[test]
    fn only_a_chain_of_permanent_redirects_moves_the_feed() {
        let uri = |path: &str| {
            format!("https://www.example.com{path}")
                .parse::<Uri>()
                .unwrap()
        };
        let mut state = FeedState::new();
        let mut hop = |status: u16, from: &str, to: &'static str| {
            let headers = headers(&[("location", to)]);
            let poll = Poll::Redirect {
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                from: &uri(from),
            };
            (state.record(poll, now()), state.moved_to.clone())
        };
        assert_eq!(
            hop(301, "/a", "/b"),
            (Next::Follow(uri("/b")), Some(uri("/b")))
        );
        assert_eq!(
            hop(308, "/b", "/c"),
            (Next::Follow(uri("/c")), Some(uri("/c")))
        );
        assert_eq!(
            hop(302, "/c", "/d"),
            (Next::Follow(uri("/d")), Some(uri("/c")))
        );
        assert_eq!(
            hop(301, "/d", "/e"),
            (Next::Follow(uri("/e")), Some(uri("/c")))
        );
        let (next, _) = hop(301, "/e", "mailto:x@example.com");
        assert_eq!(next, after(60));
    }
}
