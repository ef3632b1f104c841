//! Dates as sitemaps and feeds write them: a span of time, since most name a day and not an instant.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etiquette_core::field::date::{checked_days, days, month_by_name, zone_by_name};

/// Where no zone is told, the instant may lie this far on either side: zones reach from UTC−12 to UTC+14.
const WEST: i64 = 12 * 3600;
const EAST: i64 = 14 * 3600;

/// When something changed last, as exactly as it was told.
///
/// `2026-11` is a month and `2026-11-01` a day, somewhere on earth: [`earliest`](Self::earliest) and
/// [`latest`](Self::latest) bound the instant that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastMod {
    earliest: i64,
    latest: i64,
}

impl LastMod {
    /// Reads a date of the W3C profile of ISO 8601 in each of its forms: year, month, day, minute, second, fraction.
    ///
    /// Lenient where generators are careless: a space or a small `t` between date and time, no zone, a zone without
    /// colon. `None` for what is no date, and for dates before 1971, which programs write when they do not know.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = Cursor(text.trim().as_bytes());
        let year = rest.number(4)?;
        if rest.is_empty() {
            return Self::span(days(year, 1, 1), days(year + 1, 1, 1));
        }
        rest.expect(b"-")?;
        let month = rest.number(2).filter(|month| (1..=12).contains(month))?;
        if rest.is_empty() {
            return Self::span(days(year, month, 1), days(year, month + 1, 1));
        }
        rest.expect(b"-")?;
        let day = rest.number(2)?;
        let midnight = checked_days(year, month, day)?;
        if rest.is_empty() {
            return Self::span(midnight, midnight + 1);
        }
        rest.expect(b"Tt ")?;
        rest.skip(b' ');
        let clock = Clock::read(&mut rest)?;
        rest.skip(b' ');
        Self::instant(midnight, clock, rest.zone()?)
    }

    /// Reads a date as RSS has it (RFC 822 and its successors): `Sun, 01 Nov 2026 10:00:00 GMT`.
    ///
    /// Weekday, seconds and zone may be missing and the year may have two digits; a date of the W3C profile is read as
    /// well, since many feeds have it there.
    #[must_use]
    pub fn parse_rss(text: &str) -> Option<Self> {
        if let Some(date) = Self::parse(text) {
            return Some(date);
        }
        let text = text.trim();
        let text = text.split_once(',').map_or(text, |(_, after)| after);
        let mut words = text.split_ascii_whitespace();
        let mut day = words.next()?;
        if day.bytes().all(|b| b.is_ascii_alphabetic()) {
            day = words.next()?;
        }
        let day = Cursor(day.as_bytes()).digits(1, 2)?;
        let month = month_by_name(words.next()?.get(..3)?)?;
        let year = words.next()?;
        let short = year.len() == 2;
        let year = Cursor(year.as_bytes()).digits(2, 4)?;
        let year = match (short, year) {
            (true, 0..=49) => year + 2000,
            (true, _) => year + 1900,
            (false, _) => year,
        };
        let midnight = checked_days(year, month, day)?;
        let Some(clock) = words.next() else {
            return Self::span(midnight, midnight + 1);
        };
        let mut clock = Cursor(clock.as_bytes());
        let time = Clock::read(&mut clock)?;
        let zone = match words.next() {
            None => clock.zone()?,
            Some(zone) => zone_by_name(zone).or_else(|| Cursor(zone.as_bytes()).zone()?),
        };
        Self::instant(midnight, time, zone)
    }

    /// The whole days from `from` up to, not including, `to`, in any zone.
    fn span(from: i64, to: i64) -> Option<Self> {
        Self {
            earliest: from * 86_400 - EAST,
            latest: to * 86_400 - 1 + WEST,
        }
        .plausible()
    }

    fn instant(midnight: i64, clock: Clock, zone: Option<i64>) -> Option<Self> {
        let (from, to) = match zone {
            Some(offset) => (-offset, -offset),
            None => (-EAST, WEST),
        };
        let start = midnight * 86_400 + clock.start;
        Self {
            earliest: start + from,
            latest: start + clock.length - 1 + to,
        }
        .plausible()
    }

    fn plausible(self) -> Option<Self> {
        (self.earliest >= days(1971, 1, 1) * 86_400 - EAST).then_some(self)
    }

    /// The first instant that may be meant.
    #[must_use]
    pub fn earliest(&self) -> SystemTime {
        time(self.earliest)
    }

    /// The last instant that may be meant, to the second.
    #[must_use]
    pub fn latest(&self) -> SystemTime {
        time(self.latest)
    }

    /// Whether the change may have come after `since`, typically the last visit.
    ///
    /// A day on which we visited counts as changed, because the change may have come later that day.
    #[must_use]
    pub fn is_after(&self, since: SystemTime) -> bool {
        self.latest() >= since
    }
}

/// An instant that something else than a sitemap told, such as a feed, to the second in which it lies.
impl From<SystemTime> for LastMod {
    fn from(at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Self {
            earliest: seconds,
            latest: seconds,
        }
    }
}

fn time(seconds: i64) -> SystemTime {
    // Years have four digits, which every platform's clock can hold; 1971 and later, so nothing is negative.
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// A time of day and how long the span is that it names: a minute or a second.
#[derive(Clone, Copy)]
struct Clock {
    start: i64,
    length: i64,
}

impl Clock {
    fn read(rest: &mut Cursor<'_>) -> Option<Self> {
        let hour = rest.digits(1, 2).filter(|hour| *hour <= 24)?;
        rest.expect(b":")?;
        let minute = rest.number(2).filter(|minute| *minute <= 59)?;
        let start = hour * 3600 + minute * 60;
        if rest.expect(b":").is_none() {
            return Some(Self { start, length: 60 });
        }
        // Leap seconds are written as 60.
        let second = rest.number(2).filter(|second| *second <= 60)?;
        if rest.expect(b".,").is_some() {
            while rest.0.first().is_some_and(u8::is_ascii_digit) {
                rest.0 = &rest.0[1..];
            }
        }
        Some(Self {
            start: start + second,
            length: 1,
        })
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn expect(&mut self, one_of: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        one_of.contains(first).then(|| self.0 = rest)
    }

    fn skip(&mut self, byte: u8) {
        while let Some(rest) = self.0.strip_prefix(&[byte]) {
            self.0 = rest;
        }
    }

    /// A number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        self.digits(digits, digits)
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self
            .0
            .iter()
            .take(most)
            .take_while(|b| b.is_ascii_digit())
            .count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
    }

    /// The offset from UTC in seconds, `Some(None)` where none is told, `None` for what is no zone.
    fn zone(&mut self) -> Option<Option<i64>> {
        let sign = match self.0.split_first() {
            None => return Some(None),
            Some((b'Z' | b'z', [])) => return Some(Some(0)),
            Some((b'+', rest)) => {
                self.0 = rest;
                1
            }
            Some((b'-', rest)) => {
                self.0 = rest;
                -1
            }
            Some(_) => return None,
        };
        let hours = self.number(2).filter(|hours| *hours <= 24)?;
        let _ = self.expect(b":");
        let minutes = if self.is_empty() { 0 } else { self.number(2)? };
        (self.is_empty() && minutes <= 59).then(|| Some(sign * (hours * 3600 + minutes * 60)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        httpdate::parse_http_date(text).unwrap()
    }

    #[test]
    fn instants_are_exact() {
        let noon = at("Sun, 01 Nov 2026 12:00:00 GMT");
        for text in [
            "2026-11-01T12:00:00Z",
            " 2026-11-01T12:00:00.25+00:00\n",
            "2026-11-01 12:00:00Z",
            "2026-11-01T14:00:00+02:00",
            "2026-11-01T06:30:00-0530",
            "2026-11-01t12:00:00z",
        ] {
            let date = LastMod::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((date.earliest(), date.latest()), (noon, noon), "{text}");
        }
        let minute = LastMod::parse("2026-11-01T12:00+00:00").unwrap();
        assert_eq!(minute.latest(), noon + Duration::from_secs(59));
    }

    #[test]
    fn days_months_and_years_are_spans_in_any_zone() {
        let day = LastMod::parse("2024-02-29").unwrap();
        assert_eq!(day.earliest(), at("Wed, 28 Feb 2024 10:00:00 GMT"));
        assert_eq!(day.latest(), at("Fri, 01 Mar 2024 11:59:59 GMT"));
        let month = LastMod::parse("2026-12").unwrap();
        assert_eq!(month.latest(), at("Fri, 01 Jan 2027 11:59:59 GMT"));
        let year = LastMod::parse("2026").unwrap();
        assert_eq!(year.earliest(), at("Wed, 31 Dec 2025 10:00:00 GMT"));
        let local = LastMod::parse("2026-11-01T12:00:00").unwrap();
        assert_eq!(local.latest(), at("Mon, 02 Nov 2026 00:00:00 GMT"));
    }

    #[test]
    fn a_visit_on_the_day_of_the_change_may_have_come_before_it() {
        let day = LastMod::parse("2026-11-01").unwrap();
        assert!(day.is_after(at("Sun, 01 Nov 2026 18:00:00 GMT")));
        assert!(!day.is_after(at("Mon, 02 Nov 2026 12:00:00 GMT")));
    }

    #[test]
    fn dates_of_feeds() {
        let noon = at("Sun, 01 Nov 2026 12:00:00 GMT");
        for text in [
            "Sun, 01 Nov 2026 12:00:00 GMT",
            "1 Nov 2026 12:00:00 +0000",
            "Sunday, 1 November 26 12:00:00 UT",
            "Sun 01 Nov 2026 07:00:00 EST",
            "2026-11-01T12:00:00Z",
        ] {
            let date = LastMod::parse_rss(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.earliest(), noon, "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "x",
            "20261101",
            "2026-13",
            "2026-02-29",
            "2026-11-31",
            "2026-11-01T",
            "2026-11-01T25:00Z",
            "2026-11-01T12",
            "2026-11-01T12:00:00+9",
            "2026-11-01T12:00:00 CET+",
            "2026-1-1",
            "0000-00-00",
            "0001-01-01T00:00:00",
            "1970-01-01",
            "2026-11-01x",
            "99999-01-01",
            "+2026",
            "2026-11-01T12:00:00Zx",
        ] {
            assert_eq!(LastMod::parse(text), None, "{text}");
        }
        for text in [
            "Sun, 01 Foo 2026 12:00:00 GMT",
            "01 Nov",
            "é Nov 2026",
            "Sun, 40 Nov 2026 12:00:00 GMT",
        ] {
            assert_eq!(LastMod::parse_rss(text), None, "{text}");
        }
    }
}
