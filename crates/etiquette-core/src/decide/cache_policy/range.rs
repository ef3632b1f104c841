//! Byte ranges: which bytes a request asks for, and which ones a response has (RFC 9110, 14).

use http::HeaderMap;
use http::header::{CONTENT_RANGE, HeaderValue, RANGE};

/// The bytes of the whole representation that a stored body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// All of them.
    Whole,
    /// The bytes from `first`, as many as the body has, of `total`.
    Part {
        /// The position of the first byte.
        first: u64,
        /// The length of the whole representation, if it is known.
        total: Option<u64>,
    },
    /// None: only the head is stored, for its validators. Whoever asked for it has the body.
    Bare,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// The whole: no range, several of them, another unit, or a range that cannot be read (all of which may be
    /// answered with the whole).
    Whole,
    /// From one position to another, both included, or to the end.
    From(u64, Option<u64>),
    /// As many bytes from the end.
    Last(u64),
}

/// What of a wanted range a body can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given {
    /// These bytes of the whole representation, both ends included.
    Range(u64, u64),
    /// The range lies behind the end: 416.
    Unsatisfiable,
    /// The body does not hold all of it.
    Missing,
}

/// Reads Range.
#[must_use]
pub fn wanted(request: &HeaderMap) -> Wanted {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Wanted::Whole;
    };
    let line = line.as_bytes();
    if line.len() < 6 || !line[..6].eq_ignore_ascii_case(b"bytes=") {
        return Wanted::Whole;
    }
    let spec = line[6..].trim_ascii();
    let Some(dash) = spec.iter().position(|&c| c == b'-') else {
        return Wanted::Whole;
    };
    match (position(&spec[..dash]), position(&spec[dash + 1..])) {
        (Some(Some(first)), Some(last)) if last.is_none_or(|last| first <= last) => {
            Wanted::From(first, last)
        }
        (Some(None), Some(Some(count))) => Wanted::Last(count),
        _ => Wanted::Whole,
    }
}

/// Digits, or nothing; `None` for anything else.
fn position(text: &[u8]) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    text.iter()
        .try_fold(0_u64, |sum, digit| {
            digit.is_ascii_digit().then(|| {
                sum.saturating_mul(10)
                    .saturating_add(u64::from(digit - b'0'))
            })
        })
        .map(Some)
}

impl Wanted {
    /// What of it a body of `length` bytes gives that holds `extent`.
    #[must_use]
    pub fn of(self, extent: Extent, length: u64) -> Given {
        let (start, total) = match extent {
            Extent::Whole => (0, Some(length)),
            Extent::Part { first, total } => (first, total),
            Extent::Bare => return Given::Missing,
        };
        let Some((first, last)) = self.resolve(total) else {
            return match total {
                Some(_) => Given::Unsatisfiable,
                None => Given::Missing,
            };
        };
        let Some(last) = last else {
            return Given::Missing;
        };
        if length > 0 && first >= start && last < start.saturating_add(length) {
            Given::Range(first, last)
        } else {
            Given::Missing
        }
    }

    /// First and last byte; no last one where it depends on an unknown length; `None` when it lies behind the end.
    fn resolve(self, total: Option<u64>) -> Option<(u64, Option<u64>)> {
        match (self, total) {
            (Self::Whole, Some(total)) => Some((0, Some(total.checked_sub(1)?))),
            (Self::Whole, None) => Some((0, None)),
            (Self::From(first, last), Some(total)) => {
                let end = total.checked_sub(1)?;
                (first <= end).then(|| (first, Some(last.map_or(end, |last| last.min(end)))))
            }
            (Self::From(first, last), None) => Some((first, last)),
            (Self::Last(count), Some(total)) => {
                let end = total.checked_sub(1)?;
                (count > 0).then(|| (total.saturating_sub(count), Some(end)))
            }
            (Self::Last(_), None) => None,
        }
    }
}

/// What a 206 holds: one range in bytes, which must agree with the `length` of its body where that is known.
#[must_use]
pub fn part(response: &HeaderMap, length: Option<u64>) -> Option<Extent> {
    let mut lines = response.get_all(CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return None;
    };
    let text = line.as_bytes();
    if text.len() < 6 || !text[..6].eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    let text = &text[6..];
    let dash = text.iter().position(|&c| c == b'-')?;
    let slash = text.iter().position(|&c| c == b'/')?;
    let first = position(&text[..dash])??;
    let last = position(text.get(dash + 1..slash)?)??;
    let total = match &text[slash + 1..] {
        b"*" => None,
        digits => Some(position(digits)??),
    };
    let sound = first <= last
        && total.is_none_or(|total| last < total)
        && length.is_none_or(|length| length == last - first + 1);
    sound.then_some(Extent::Part { first, total })
}

/// The bytes that a sound Content-Range promises.
#[must_use]
pub fn part_length(response: &HeaderMap) -> Option<u64> {
    part(response, None)?;
    let text = response.get(CONTENT_RANGE)?.as_bytes();
    let dash = text.iter().position(|&c| c == b'-')?;
    let slash = text.iter().position(|&c| c == b'/')?;
    let first = position(&text[6..dash])??;
    let last = position(&text[dash + 1..slash])??;
    Some(last - first + 1)
}

/// Content-Range of a 206.
#[must_use]
pub fn content_range(first: u64, last: u64, total: Option<u64>) -> HeaderValue {
    let text = match total {
        Some(total) => format!("bytes {first}-{last}/{total}"),
        None => format!("bytes {first}-{last}/*"),
    };
    HeaderValue::from_str(&text).expect("digits and punctuation are a field value")
}

/// Content-Range of a 416.
#[must_use]
pub fn unsatisfied_range(total: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("bytes */{total}"))
        .expect("digits and punctuation are a field value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(range: &str) -> Wanted {
        wanted(&[(RANGE, range.parse().unwrap())].into_iter().collect())
    }

    fn holds(range: &str, length: Option<u64>) -> Option<Extent> {
        part(
            &[(CONTENT_RANGE, range.parse().unwrap())]
                .into_iter()
                .collect(),
            length,
        )
    }

    #[test]
    fn ranges_of_a_whole_body() {
        for (range, length, expected) in [
            ("bytes=0-3", 10, Given::Range(0, 3)),
            ("Bytes=4-", 10, Given::Range(4, 9)),
            ("bytes=8-20", 10, Given::Range(8, 9)),
            ("bytes=-3", 10, Given::Range(7, 9)),
            ("bytes=-30", 10, Given::Range(0, 9)),
            ("bytes=-0", 10, Given::Unsatisfiable),
            ("bytes=10-", 10, Given::Unsatisfiable),
            ("bytes=0-", 0, Given::Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Given::Unsatisfiable),
        ] {
            assert_eq!(ask(range).of(Extent::Whole, length), expected, "{range}");
        }
        for other in [
            "lines=0-3",
            "bytes=0-1,4-5",
            "bytes=3-1",
            "bytes=",
            "bytes=-",
            "bytes=a-",
        ] {
            assert_eq!(ask(other), Wanted::Whole, "{other}");
        }
    }

    #[test]
    fn ranges_of_a_part() {
        let extent = Extent::Part {
            first: 4,
            total: Some(10),
        };
        for (range, expected) in [
            ("bytes=5-6", Given::Range(5, 6)),
            ("bytes=-2", Given::Range(8, 9)),
            ("bytes=6-", Given::Range(6, 9)),
            ("bytes=3-6", Given::Missing),
            ("bytes=12-", Given::Unsatisfiable),
        ] {
            assert_eq!(ask(range).of(extent, 6), expected, "{range}");
        }
        assert_eq!(ask("bytes=0-").of(Extent::Bare, 0), Given::Missing);
        assert_eq!(Wanted::Whole.of(Extent::Bare, 0), Given::Missing);
        let open = Extent::Part {
            first: 4,
            total: None,
        };
        assert_eq!(ask("bytes=6-").of(open, 6), Given::Missing);
        assert_eq!(ask("bytes=4-9").of(open, 6), Given::Range(4, 9));
        assert_eq!(Wanted::Whole.of(extent, 6), Given::Missing);
    }

    #[test]
    fn parts_must_agree_with_their_length() {
        let part = Extent::Part {
            first: 4,
            total: Some(10),
        };
        assert_eq!(holds("bytes 4-9/10", Some(6)), Some(part));
        assert_eq!(
            holds("bytes 4-9/*", None),
            Some(Extent::Part {
                first: 4,
                total: None
            })
        );
        for broken in [
            "bytes 4-9/10x",
            "bytes 9-4/10",
            "bytes 4-10/10",
            "bytes */10",
            "lines 1-2/3",
            "bytes /-",
        ] {
            assert_eq!(holds(broken, None), None, "{broken}");
        }
        assert_eq!(holds("bytes 4-9/10", Some(5)), None);
    }
}
