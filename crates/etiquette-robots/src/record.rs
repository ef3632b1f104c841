//! Records besides the rules: what RFC 9309, 2.2.4 leaves to the crawler.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

/// A record that is no rule, user-agent, sitemap or crawl-delay line, as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'r> {
    name: &'r str,
    value: &'r [u8],
    line: u32,
}

impl<'r> Record<'r> {
    pub(crate) const fn new(name: &'r str, value: &'r [u8], line: u32) -> Self {
        Self { name, value, line }
    }

    /// The name in lower case: `content-signal`.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// The value without the white space around it and without a comment.
    #[must_use]
    pub const fn bytes(&self) -> &'r [u8] {
        self.value
    }

    /// The value as text. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn value(&self) -> Cow<'r, str> {
        String::from_utf8_lossy(self.value)
    }

    /// The number of its line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }
}

/// The longest delay read. More than anybody waits, and still a time that can be added to another.
const LONGEST_DELAY: Duration = Duration::from_secs(u32::MAX as u64);

/// Reads a Crawl-delay: seconds, with or without a fraction. No sign, no unit, no exponent: no other parser reads those.
pub(crate) fn crawl_delay(value: &[u8]) -> Option<Duration> {
    let dot = value.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match dot {
        Some(at) => (&value[..at], &value[at + 1..]),
        None => (value, &[][..]),
    };
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds = number(whole).unwrap_or(u64::MAX);
    let mut nanos = 0;
    let mut unit = 100_000_000;
    for digit in fraction {
        nanos += u32::from(digit - b'0') * unit;
        unit /= 10;
    }
    Some(if seconds >= LONGEST_DELAY.as_secs() {
        LONGEST_DELAY
    } else {
        Duration::new(seconds, nanos)
    })
}

/// Reads decimal digits; `None` for anything else and for numbers beyond `u64`.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A `Request-rate`: so many requests in such a time, perhaps at some hours of the day only.
///
/// No standard has it. Read are `1/5`, `1/10s`, `30/1m`, `5/2h`, each with an optional ` 0900-1730` (hours in UTC) or
/// `0900 - 1730` behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    requests: NonZeroU32,
    per: Duration,
    hours: Option<(u16, u16)>,
}

impl RequestRate {
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let (rate, hours) = match text.split_once([' ', '\t']) {
            Some((rate, hours)) => (rate, Some(hours)),
            None => (text, None),
        };
        let (requests, per) = rate.split_once('/')?;
        let (count, unit) = match per.as_bytes() {
            [count @ .., b's' | b'S'] => (count, 1),
            [count @ .., b'm' | b'M'] => (count, 60),
            [count @ .., b'h' | b'H'] => (count, 3_600),
            [count @ .., b'd' | b'D'] => (count, 86_400),
            count => (count, 1),
        };
        let count = if count.is_empty() { 1 } else { number(count)? };
        let per = Duration::from_secs(count.checked_mul(unit)?).min(LONGEST_DELAY);
        let hours = match hours {
            Some(hours) => {
                let (from, to) = hours.split_once('-')?;
                Some((clock(from.trim())?, clock(to.trim())?))
            }
            None => None,
        };
        let requests = number(requests.as_bytes()).filter(|_| !requests.is_empty())?;
        Some(Self {
            requests: NonZeroU32::new(u32::try_from(requests).ok()?)?,
            per,
            hours,
        })
    }

    /// How many requests.
    #[must_use]
    pub const fn requests(&self) -> NonZeroU32 {
        self.requests
    }

    /// In which time.
    #[must_use]
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// The time from one request to the next at this rate.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.per / self.requests.get()
    }

    /// Start and end of the hours it is for, in minutes since midnight UTC; `None`: always.
    #[must_use]
    pub const fn hours(&self) -> Option<(u16, u16)> {
        self.hours
    }
}

/// `HHMM` or `HH:MM` in minutes since midnight.
fn clock(text: &str) -> Option<u16> {
    let digits = text.replacen(':', "", 1);
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u16 = digits.parse().ok()?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours <= 24 && minutes < 60).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(text: &str) -> Option<f64> {
        crawl_delay(text.as_bytes()).map(|delay| delay.as_secs_f64())
    }

    #[test]
    fn delays_are_plain_decimals() {
        assert_eq!(delay("10"), Some(10.0));
        assert_eq!(delay("2.5"), Some(2.5));
        assert_eq!(delay(".5"), Some(0.5));
        assert_eq!(delay("5."), Some(5.0));
        assert_eq!(delay("0"), Some(0.0));
        assert_eq!(delay("0.00000000001"), Some(0.0));
        for text in [
            "", ".", "-1", "+1", "1e3", "NaN", "inf", "10s", "1,5", "1.2.3", "1 2",
        ] {
            assert_eq!(delay(text), None, "{text}");
        }
    }

    #[test]
    fn endless_delays_are_long_and_finite() {
        for text in ["99999999999", "99999999999999999999999999999999.9"] {
            assert_eq!(crawl_delay(text.as_bytes()), Some(LONGEST_DELAY));
        }
    }

    #[test]
    fn request_rates() {
        let rate = |text: &str| RequestRate::parse(text.as_bytes());
        assert_eq!(rate("1/10s").unwrap().delay(), Duration::from_secs(10));
        assert_eq!(rate("30/1m").unwrap().delay(), Duration::from_secs(2));
        assert_eq!(rate("1/5").unwrap().hours(), None);
        assert_eq!(rate("1/5m 0900-1730").unwrap().hours(), Some((540, 1050)));
        assert_eq!(rate("1/5m 0900 - 1730").unwrap().hours(), Some((540, 1050)));
        for text in [
            "",
            "1",
            "/",
            "0/5",
            "/5",
            "1/x",
            "1/5 noon",
            "1/5 0900-2561",
            "99999999999/1",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
