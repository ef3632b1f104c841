//! One variant in bytes: its head, and where its body is.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::StoredResponse;
use etiquette_core::store::codec::{Decoder, Encoder};

/// The format of a record. Others are not read.
const FORMAT: u8 = 1;

pub(super) struct Record {
    url: Box<str>,
    pub(super) head: StoredResponse,
    pub(super) length: u64,
    /// What the pieces of the body are stored under.
    pub(super) body: String,
    /// The body itself, if it is small.
    pub(super) small: Option<Bytes>,
    /// Milliseconds of the wall clock, to tell which variant is the newest.
    pub(super) stored: u64,
}

impl Record {
    pub(super) fn new(url: &str, head: StoredResponse, body: &Bytes, small: usize) -> Self {
        Self {
            small: (body.len() <= small).then(|| body.clone()),
            ..Self::apart(url, head, new_body(), body.len() as u64)
        }
    }

    /// A record whose body is stored beside it, under the name of [`new_body`].
    pub(super) fn apart(url: &str, head: StoredResponse, body: String, length: u64) -> Self {
        Self {
            url: url.into(),
            length,
            body,
            small: None,
            stored: millis(head.initial_age().response_time),
            head,
        }
    }

    /// The field of the hash: one for each set of selecting fields.
    pub(super) fn field(&self) -> Vec<u8> {
        let mut out = Encoder::new(FORMAT);
        for (name, value) in self.head.selecting().fields() {
            out.bytes(name.as_bytes());
            out.option(value, Encoder::bytes);
        }
        out.finish()
    }

    /// The record as bytes, the same for the same record: an update compares them.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(FORMAT);
        out.bytes(self.url.as_bytes());
        out.bytes(&self.head.encode());
        out.u64(self.length);
        out.bytes(self.body.as_bytes());
        out.u64(self.stored);
        out.option(self.small.as_deref(), Encoder::bytes);
        out.finish()
    }

    /// `None` for what is not a record of this URL.
    pub(super) fn decode(bytes: &[u8], url: &str) -> Option<Self> {
        let mut rest = Decoder::new(bytes, FORMAT)?;
        if rest.text()? != url {
            return None;
        }
        let record = Self {
            url: url.into(),
            head: StoredResponse::decode(rest.bytes()?)?,
            length: rest.u64()?,
            body: rest.text()?.to_owned(),
            stored: rest.u64()?,
            small: rest.option(Decoder::bytes)?.map(Bytes::copy_from_slice),
        };
        let whole = |small: &Bytes| small.len() as u64 == record.length;
        let sound = record.small.as_ref().is_none_or(whole);
        rest.finish(record).filter(|_| sound)
    }
}

/// A name that no other body has.
pub(super) fn new_body() -> String {
    use std::hash::{BuildHasher, RandomState};
    let id = RandomState::new();
    format!("{:016x}{:016x}", id.hash_one(0_u8), id.hash_one(1_u8))
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etiquette_core::decide::cache_policy::{Extent, InitialAge, Selecting};
    use http::{HeaderMap, HeaderValue, StatusCode, Version};

    use super::*;

    const URL: &str = "http://site.example/a";

    fn sample(body: &'static [u8], small: usize) -> Record {
        let mut headers = HeaderMap::new();
        headers.insert("etag", HeaderValue::from_static("\"a\""));
        let selecting = Selecting::from_fields([
            ("accept".into(), Some(b"text/html".as_slice().into())),
            ("cookie".into(), None),
        ]);
        let initial_age = InitialAge {
            response_time: UNIX_EPOCH + Duration::from_nanos(1_796_076_000_123_456_789),
            age: Duration::from_secs(7),
        };
        let head = StoredResponse::restore(
            StatusCode::OK,
            Version::HTTP_11,
            headers,
            selecting,
            Extent::Whole,
            initial_age,
        );
        Record::new(URL, head, &Bytes::from_static(body), small)
    }

    #[test]
    fn a_record_is_read_back_and_written_the_same_again() {
        for small in [0, 8] {
            let before = sample(b"body", small);
            let bytes = before.encode();
            let after = Record::decode(&bytes, URL).unwrap();
            assert_eq!(after.small, before.small);
            assert_eq!(after.length, 4);
            assert_eq!(after.head.initial_age(), before.head.initial_age());
            assert_eq!(after.field(), before.field());
            assert_eq!(after.encode(), bytes);
            assert!(Record::decode(&bytes, "http://site.example/b").is_none());
        }
    }

    #[test]
    fn nothing_that_is_cut_damaged_or_longer_is_read() {
        let whole = sample(b"body", 8).encode();
        for end in 0..whole.len() {
            assert!(Record::decode(&whole[..end], URL).is_none(), "{end}");
        }
        assert!(Record::decode(&[&whole[..], b"x"].concat(), URL).is_none());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            // Whatever it is read as, it is no panic and no longer body than it says.
            if let Some(record) = Record::decode(&damaged, URL) {
                assert!(
                    record
                        .small
                        .is_none_or(|small| small.len() as u64 == record.length)
                );
            }
        }
    }
}
