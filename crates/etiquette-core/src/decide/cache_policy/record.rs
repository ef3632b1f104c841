//! A stored response as bytes, for stores that keep it outside the process.
//!
//! Written for this crate's own reading: a version, then fields with their lengths. Whatever cannot be read back, of
//! another version or damaged, is no response; a store takes it for a miss.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::range::Extent;
use super::stored::{InitialAge, StoredResponse};
use super::vary::Selecting;

const FORMAT: u8 = 1;

impl StoredResponse {
    /// The head as bytes. [`StoredResponse::decode`] reads it back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        out.push(FORMAT);
        out.extend(self.status().as_u16().to_be_bytes());
        out.push(match self.version() {
            Version::HTTP_10 => 10,
            Version::HTTP_2 => 20,
            Version::HTTP_3 => 30,
            _ => 11,
        });
        let initial_age = self.initial_age();
        let since = initial_age
            .response_time
            .duration_since(SystemTime::UNIX_EPOCH);
        put_span(&mut out, since.unwrap_or_default());
        put_span(&mut out, initial_age.age);
        match self.extent() {
            Extent::Part { first, total } => {
                out.push(if total.is_some() { 2 } else { 1 });
                out.extend(first.to_be_bytes());
                out.extend(total.unwrap_or(0).to_be_bytes());
            }
            Extent::Whole => out.push(0),
            Extent::HeadOnly => out.push(3),
        }
        let selecting = self.selecting().fields();
        put_count(&mut out, selecting.len());
        for (name, value) in selecting {
            put(&mut out, name.as_bytes());
            match value {
                Some(value) => {
                    out.push(1);
                    put(&mut out, value);
                }
                None => out.push(0),
            }
        }
        put_count(&mut out, self.headers().len());
        for (name, value) in self.headers() {
            put(&mut out, name.as_str().as_bytes());
            put(&mut out, value.as_bytes());
        }
        out
    }

    /// Reads what [`StoredResponse::encode`] wrote, all of `bytes`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        if rest.byte()? != FORMAT {
            return None;
        }
        let status = StatusCode::from_u16(u16::from_be_bytes(rest.array()?)).ok()?;
        let version = match rest.byte()? {
            10 => Version::HTTP_10,
            11 => Version::HTTP_11,
            20 => Version::HTTP_2,
            30 => Version::HTTP_3,
            _ => return None,
        };
        let since = rest.span()?;
        let initial_age = InitialAge {
            response_time: SystemTime::UNIX_EPOCH.checked_add(since)?,
            age: rest.span()?,
        };
        let extent = match rest.byte()? {
            0 => Extent::Whole,
            3 => Extent::HeadOnly,
            kind @ (1 | 2) => {
                let first = u64::from_be_bytes(rest.array()?);
                let total = u64::from_be_bytes(rest.array()?);
                Extent::Part {
                    first,
                    total: (kind == 2).then_some(total),
                }
            }
            _ => return None,
        };
        let mut selecting = Vec::new();
        for _ in 0..rest.count()? {
            let name = std::str::from_utf8(rest.bytes()?).ok()?;
            let value = match rest.byte()? {
                0 => None,
                1 => Some(rest.bytes()?.into()),
                _ => return None,
            };
            selecting.push((name.into(), value));
        }
        let mut headers = HeaderMap::new();
        for _ in 0..rest.count()? {
            let name = HeaderName::from_bytes(rest.bytes()?).ok()?;
            let value = HeaderValue::from_bytes(rest.bytes()?).ok()?;
            headers.try_append(name, value).ok()?;
        }
        rest.0.is_empty().then(|| {
            let selecting = Selecting::from_fields(selecting);
            Self::restore(status, version, headers, selecting, extent, initial_age)
        })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// A length; what no header map holds is cut, and then not read back.
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_span(out: &mut Vec<u8>, span: Duration) {
    out.extend(span.as_secs().to_be_bytes());
    out.extend(span.subsec_nanos().to_be_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number of things to come, each of which takes a byte at least.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(u32::from_be_bytes(self.array()?)).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn span(&mut self) -> Option<Duration> {
        let seconds = u64::from_be_bytes(self.array()?);
        let nanos = u32::from_be_bytes(self.array()?);
        (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::Now;
    use crate::decide::cache_policy::ResponseTimes;

    fn sample(extent: Extent) -> StoredResponse {
        let now = Now {
            monotonic: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_250),
        };
        let times = ResponseTimes {
            request_time: now,
            response_time: now,
            queued: Duration::ZERO,
        };
        let headers: HeaderMap = [
            ("link", "<a>"),
            ("link", "<b>"),
            ("age", "7"),
            ("etag", "\"\u{fc}\""),
        ]
        .into_iter()
        .map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
        })
        .collect();
        let selecting = Selecting::from_fields([
            ("accept".into(), Some(b"text/html".as_slice().into())),
            ("cookie".into(), None),
        ]);
        let status = StatusCode::from_u16(599).unwrap();
        StoredResponse::new(
            status,
            Version::HTTP_2,
            &headers,
            selecting,
            extent,
            &times,
            false,
        )
    }

    #[test]
    fn what_is_written_is_read_back() {
        let part = |total| Extent::Part { first: 5, total };
        for extent in [Extent::Whole, Extent::HeadOnly, part(Some(9)), part(None)] {
            let before = sample(extent);
            let after = StoredResponse::decode(&before.encode()).unwrap();
            assert_eq!(after.status(), before.status());
            assert_eq!(after.version(), before.version());
            assert_eq!(after.headers(), before.headers());
            assert_eq!(after.selecting(), before.selecting());
            assert_eq!(after.extent(), before.extent());
            assert_eq!(after.initial_age(), before.initial_age());
        }
    }

    #[test]
    fn nothing_that_is_cut_or_longer_is_read() {
        let whole = sample(Extent::Whole).encode();
        for end in 0..whole.len() {
            assert!(StoredResponse::decode(&whole[..end]).is_none(), "{end}");
        }
        assert!(StoredResponse::decode(&[&whole[..], b"x"].concat()).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>, place in 0_usize..200, byte: u8) {
            let _ = StoredResponse::decode(&bytes);
            let mut damaged = sample(Extent::Whole).encode();
            let place = place % damaged.len();
            damaged[place] = byte;
            let _ = StoredResponse::decode(&damaged);
        }
    }
}
