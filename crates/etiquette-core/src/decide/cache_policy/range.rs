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
    HeadOnly,
}

/// What a request asks for by Range (RFC 9110, 14.1.2 and 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestedRange {
    /// The whole: no range, several of them, another unit, or a range that cannot be read (all of which the
    /// whole may satisfy).
    Whole,
    /// An int-range: from one position to another, both included, or to the end.
    Int(u64, Option<u64>),
    /// A suffix-range: as many bytes from the end.
    Suffix(u64),
}

/// How a stored body satisfies a requested range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeOutcome {
    /// These bytes of the whole representation, both ends included.
    Satisfied(u64, u64),
    /// The range lies behind the end: 416.
    Unsatisfiable,
    /// The stored body does not hold all of it.
    NotStored,
}

/// Reads Range.
#[must_use]
pub fn requested_range(request: &HeaderMap) -> RequestedRange {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return RequestedRange::Whole;
    };
    let line = line.as_bytes();
    if line.len() < 6 || !line[..6].eq_ignore_ascii_case(b"bytes=") {
        return RequestedRange::Whole;
    }
    let spec = line[6..].trim_ascii();
    let Some(dash) = spec.iter().position(|&c| c == b'-') else {
        return RequestedRange::Whole;
    };
    match (position(&spec[..dash]), position(&spec[dash + 1..])) {
        (Some(Some(first)), Some(last)) if last.is_none_or(|last| first <= last) => {
            RequestedRange::Int(first, last)
        }
        (Some(None), Some(Some(count))) => RequestedRange::Suffix(count),
        _ => RequestedRange::Whole,
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

impl RequestedRange {
    /// What a stored body of `length` bytes that holds `extent` gives of it.
    #[must_use]
    pub fn of(self, extent: Extent, length: u64) -> RangeOutcome {
        let (start, total) = match extent {
            Extent::Whole => (0, Some(length)),
            Extent::Part { first, total } => (first, total),
            Extent::HeadOnly => return RangeOutcome::NotStored,
        };
        let Some((first, last)) = self.resolve(total) else {
            return match total {
                Some(_) => RangeOutcome::Unsatisfiable,
                None => RangeOutcome::NotStored,
            };
        };
        let Some(last) = last else {
            return RangeOutcome::NotStored;
        };
        if length > 0 && first >= start && last < start.saturating_add(length) {
            RangeOutcome::Satisfied(first, last)
        } else {
            RangeOutcome::NotStored
        }
    }

    /// First and last byte; no last one where it depends on an unknown length; `None` when it lies behind the end.
    fn resolve(self, total: Option<u64>) -> Option<(u64, Option<u64>)> {
        match (self, total) {
            (Self::Whole, Some(total)) => Some((0, Some(total.checked_sub(1)?))),
            (Self::Whole, None) => Some((0, None)),
            (Self::Int(first, last), Some(total)) => {
                let end = total.checked_sub(1)?;
                (first <= end).then(|| (first, Some(last.map_or(end, |last| last.min(end)))))
            }
            (Self::Int(first, last), None) => Some((first, last)),
            (Self::Suffix(count), Some(total)) => {
                let end = total.checked_sub(1)?;
                (count > 0).then(|| (total.saturating_sub(count), Some(end)))
            }
            (Self::Suffix(_), None) => None,
        }
    }
}

/// Content-Range of a 206: one range of bytes (RFC 9110, 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentRange {
    /// The position of the first byte.
    pub first: u64,
    /// The position of the last byte.
    pub last: u64,
    /// The length of the whole representation, if it is known.
    pub total: Option<u64>,
}

impl ContentRange {
    /// The bytes from `first` to `last`, both included.
    #[must_use]
    pub fn new(first: u64, last: u64, total: Option<u64>) -> Self {
        Self { first, last, total }
    }

    /// Reads Content-Range; `None` unless it is one sound range of bytes.
    #[must_use]
    pub fn of(response: &HeaderMap) -> Option<Self> {
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
        let sound = first <= last && total.is_none_or(|total| last < total);
        sound.then_some(Self { first, last, total })
    }

    /// The bytes that a body with it holds.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent::Part {
            first: self.first,
            total: self.total,
        }
    }

    /// The length that it promises for its body.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }

    /// The field value.
    #[must_use]
    pub fn value(&self) -> HeaderValue {
        let Self { first, last, total } = self;
        field_value(&match total {
            Some(total) => format!("bytes {first}-{last}/{total}"),
            None => format!("bytes {first}-{last}/*"),
        })
    }
}

/// Content-Range of a 416 (RFC 9110, 15.5.17).
#[must_use]
pub fn unsatisfied_range(total: u64) -> HeaderValue {
    field_value(&format!("bytes */{total}"))
}

fn field_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and punctuation are a field value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(range: &str) -> RequestedRange {
        requested_range(&[(RANGE, range.parse().unwrap())].into_iter().collect())
    }

    fn holds(range: &str, length: Option<u64>) -> Option<Extent> {
        let headers = [(CONTENT_RANGE, range.parse().unwrap())];
        ContentRange::of(&headers.into_iter().collect())
            .filter(|range| length.is_none_or(|length| length == range.length()))
            .map(|range| range.extent())
    }

    #[test]
    fn ranges_of_a_whole_body() {
        for (range, length, expected) in [
            ("bytes=0-3", 10, RangeOutcome::Satisfied(0, 3)),
            ("Bytes=4-", 10, RangeOutcome::Satisfied(4, 9)),
            ("bytes=8-20", 10, RangeOutcome::Satisfied(8, 9)),
            ("bytes=-3", 10, RangeOutcome::Satisfied(7, 9)),
            ("bytes=-30", 10, RangeOutcome::Satisfied(0, 9)),
            ("bytes=-0", 10, RangeOutcome::Unsatisfiable),
            ("bytes=10-", 10, RangeOutcome::Unsatisfiable),
            ("bytes=0-", 0, RangeOutcome::Unsatisfiable),
            (
                "bytes=99999999999999999999999-",
                10,
                RangeOutcome::Unsatisfiable,
            ),
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
            assert_eq!(ask(other), RequestedRange::Whole, "{other}");
        }
    }

    #[test]
    fn ranges_of_a_part() {
        let extent = Extent::Part {
            first: 4,
            total: Some(10),
        };
        for (range, expected) in [
            ("bytes=5-6", RangeOutcome::Satisfied(5, 6)),
            ("bytes=-2", RangeOutcome::Satisfied(8, 9)),
            ("bytes=6-", RangeOutcome::Satisfied(6, 9)),
            ("bytes=3-6", RangeOutcome::NotStored),
            ("bytes=12-", RangeOutcome::Unsatisfiable),
        ] {
            assert_eq!(ask(range).of(extent, 6), expected, "{range}");
        }
        assert_eq!(
            ask("bytes=0-").of(Extent::HeadOnly, 0),
            RangeOutcome::NotStored
        );
        assert_eq!(
            RequestedRange::Whole.of(Extent::HeadOnly, 0),
            RangeOutcome::NotStored
        );
        let open = Extent::Part {
            first: 4,
            total: None,
        };
        assert_eq!(ask("bytes=6-").of(open, 6), RangeOutcome::NotStored);
        assert_eq!(ask("bytes=4-9").of(open, 6), RangeOutcome::Satisfied(4, 9));
        assert_eq!(RequestedRange::Whole.of(extent, 6), RangeOutcome::NotStored);
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
