//! A stored response as bytes, for stores that keep it outside the process.
//!
//! Written for this crate's own reading: a version, then fields with their lengths. Whatever cannot be read back, of
//! another version or damaged, is no response; a store takes it for a miss.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::range::Extent;
use super::stored::{InitialAge, StoredResponse};
use super::vary::Selecting;
use crate::store::codec::{Decoder, Encoder};

const FORMAT: u8 = 1;

impl StoredResponse {
    /// The head as bytes. [`StoredResponse::decode`] reads it back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(FORMAT);
        out.u16(self.status().as_u16());
        out.byte(match self.version() {
            Version::HTTP_10 => 10,
            Version::HTTP_2 => 20,
            Version::HTTP_3 => 30,
            _ => 11,
        });
        let initial_age = self.initial_age();
        out.time(initial_age.response_time);
        out.duration(initial_age.age);
        match self.extent() {
            Extent::Whole => out.byte(0),
            Extent::Part { first, total } => {
                out.byte(1);
                out.u64(first);
                out.option(total, Encoder::u64);
            }
            Extent::HeadOnly => out.byte(2),
        }
        let selecting = self.selecting().fields();
        out.count(selecting.len());
        for (name, value) in selecting {
            out.bytes(name.as_bytes());
            out.option(value, Encoder::bytes);
        }
        out.count(self.headers().len());
        for (name, value) in self.headers() {
            out.bytes(name.as_str().as_bytes());
            out.bytes(value.as_bytes());
        }
        out.finish()
    }

    /// Reads what [`StoredResponse::encode`] wrote, all of `bytes`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Decoder::new(bytes, FORMAT)?;
        let status = StatusCode::from_u16(rest.u16()?).ok()?;
        let version = match rest.byte()? {
            10 => Version::HTTP_10,
            11 => Version::HTTP_11,
            20 => Version::HTTP_2,
            30 => Version::HTTP_3,
            _ => return None,
        };
        let initial_age = InitialAge {
            response_time: rest.time()?,
            age: rest.duration()?,
        };
        let extent = match rest.byte()? {
            0 => Extent::Whole,
            1 => Extent::Part {
                first: rest.u64()?,
                total: rest.option(Decoder::u64)?,
            },
            2 => Extent::HeadOnly,
            _ => return None,
        };
        let mut selecting = Vec::new();
        for _ in 0..rest.count()? {
            let name = rest.text()?.into();
            let value = rest.option(Decoder::bytes)?.map(Into::into);
            selecting.push((name, value));
        }
        let mut headers = HeaderMap::new();
        for _ in 0..rest.count()? {
            let name = HeaderName::from_bytes(rest.bytes()?).ok()?;
            let value = HeaderValue::from_bytes(rest.bytes()?).ok()?;
            headers.try_append(name, value).ok()?;
        }
        let selecting = Selecting::from_fields(selecting);
        rest.finish(Self::restore(
            status,
            version,
            headers,
            selecting,
            extent,
            initial_age,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime};

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
