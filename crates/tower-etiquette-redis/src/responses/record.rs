//! A head in bytes: pieces, each with its length in front.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Extent, InitialAge, Selecting, StoredResponse};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

/// The layout of a record. Others are not read.
const LAYOUT: &[u8] = b"1";

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
        let mut out = Vec::new();
        write_selecting(&mut out, self.head.selecting());
        out
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let head = &self.head;
        let initial_age = head.initial_age();
        write(&mut out, LAYOUT);
        write(&mut out, self.url.as_bytes());
        write(&mut out, head.status().as_str().as_bytes());
        write(&mut out, version_name(head.version()).as_bytes());
        number(&mut out, millis(initial_age.response_time));
        number(&mut out, span(initial_age.age));
        match head.extent() {
            Extent::Part { first, total } => {
                write(&mut out, b"part");
                number(&mut out, first);
                number(&mut out, total.unwrap_or(u64::MAX));
            }
            Extent::HeadOnly => write(&mut out, b"bare"),
            _ => write(&mut out, b"whole"),
        }
        number(&mut out, self.length);
        write(&mut out, self.body.as_bytes());
        number(&mut out, self.stored);
        match &self.small {
            Some(body) => {
                write(&mut out, b"here");
                write(&mut out, body);
            }
            None => write(&mut out, b"apart"),
        }
        let mut selecting = Vec::new();
        write_selecting(&mut selecting, head.selecting());
        write(&mut out, &selecting);
        for (name, value) in head.headers() {
            write(&mut out, name.as_str().as_bytes());
            write(&mut out, value.as_bytes());
        }
        out
    }

    /// `None` for what is not a record of this URL.
    pub(super) fn decode(bytes: &[u8], url: &str) -> Option<Self> {
        let mut pieces = Pieces(bytes);
        if pieces.next()? != LAYOUT || pieces.next()? != url.as_bytes() {
            return None;
        }
        let status = StatusCode::from_bytes(pieces.next()?).ok()?;
        let version = version_of(pieces.next()?)?;
        let at = UNIX_EPOCH.checked_add(Duration::from_millis(pieces.number()?))?;
        let age = Duration::from_millis(pieces.number()?);
        let extent = match pieces.next()? {
            b"whole" => Extent::Whole,
            b"bare" => Extent::HeadOnly,
            b"part" => Extent::Part {
                first: pieces.number()?,
                total: Some(pieces.number()?).filter(|total| *total != u64::MAX),
            },
            _ => return None,
        };
        let length = pieces.number()?;
        let body = std::str::from_utf8(pieces.next()?).ok()?.to_owned();
        let stored = pieces.number()?;
        let small = match pieces.next()? {
            b"here" => Some(Bytes::copy_from_slice(pieces.next()?)),
            _ => None,
        };
        if small
            .as_ref()
            .is_some_and(|small| small.len() as u64 != length)
        {
            return None;
        }
        let selecting = read_selecting(pieces.next()?)?;
        let mut headers = HeaderMap::new();
        while !pieces.0.is_empty() {
            let name = HeaderName::from_bytes(pieces.next()?).ok()?;
            let value = HeaderValue::from_bytes(pieces.next()?).ok()?;
            headers.try_append(name, value).ok()?;
        }
        let initial_age = InitialAge {
            response_time: at,
            age,
        };
        let head =
            StoredResponse::restore(status, version, headers, selecting, extent, initial_age);
        Some(Self {
            url: url.into(),
            head,
            length,
            body,
            small,
            stored,
        })
    }
}

/// A name that no other body has.
pub(super) fn new_body() -> String {
    use std::hash::{BuildHasher, RandomState};
    let id = RandomState::new();
    format!("{:016x}{:016x}", id.hash_one(0_u8), id.hash_one(1_u8))
}

struct Pieces<'a>(&'a [u8]);

impl<'a> Pieces<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let piece = rest.get(..length)?;
        self.0 = &rest[length..];
        Some(piece)
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.next()?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }
}

fn write(out: &mut Vec<u8>, piece: &[u8]) {
    let length = u32::try_from(piece.len()).expect("a head and a small body are under 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(piece);
}

fn number(out: &mut Vec<u8>, number: u64) {
    write(out, &number.to_be_bytes());
}

fn write_selecting(out: &mut Vec<u8>, selecting: &Selecting) {
    for (name, value) in selecting.fields() {
        write(out, name.as_bytes());
        match value {
            Some(value) => {
                write(out, b"+");
                write(out, value);
            }
            None => write(out, b"-"),
        }
    }
}

fn read_selecting(bytes: &[u8]) -> Option<Selecting> {
    let mut pieces = Pieces(bytes);
    let mut fields = Vec::new();
    while !pieces.0.is_empty() {
        let name = std::str::from_utf8(pieces.next()?).ok()?;
        let value = match pieces.next()? {
            b"+" => Some(pieces.next()?.into()),
            b"-" => None,
            _ => return None,
        };
        fields.push((name.into(), value));
    }
    Some(Selecting::from_fields(fields))
}

fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn version_of(name: &[u8]) -> Option<Version> {
    Some(match name {
        b"0.9" => Version::HTTP_09,
        b"1.0" => Version::HTTP_10,
        b"1.1" => Version::HTTP_11,
        b"2" => Version::HTTP_2,
        b"3" => Version::HTTP_3,
        _ => return None,
    })
}

fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, span)
}

fn span(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
