//! Records as bytes, for stores that keep them outside the process: numbers in big-endian order, times and byte strings.
//!
//! **Flow**: an [`Encoder`] appends values, a [`Decoder`] takes them back in the same order. There are no tags: a record
//! begins with a byte that names its format, and one that is cut, damaged or of another format reads as `None`, which a
//! store takes for "nothing is stored".
//!
//! **Non-goals**: checksums, which a store adds where its medium needs them; formats that last: nothing reads records of
//! another version of this crate.

use std::time::{Duration, SystemTime};

/// Appends values to a record.
#[derive(Debug, Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// A record that begins with the number of its format.
    #[must_use]
    pub fn new(format: u8) -> Self {
        let mut out = Vec::with_capacity(256);
        out.push(format);
        Self(out)
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// A number of two bytes.
    pub fn u16(&mut self, number: u16) {
        self.0.extend(number.to_be_bytes());
    }

    /// A number of four bytes.
    pub fn u32(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    /// A number of eight bytes.
    pub fn u64(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    /// How many items follow. More than 4 billion are written as that many, and the record is not read back.
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Bytes, their count in front.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A span, to the nanosecond.
    pub fn duration(&mut self, span: Duration) {
        self.u64(span.as_secs());
        self.u32(span.subsec_nanos());
    }

    /// A time; one before 1970 is written as 1970.
    pub fn time(&mut self, time: SystemTime) {
        self.duration(
            time.duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        );
    }

    /// Whether there is a value, and the value by `write`.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// The record.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values from a record. After a `None` its position means nothing.
#[derive(Debug)]
pub struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    /// The record in `bytes`, if it is of this format.
    #[must_use]
    pub fn new(bytes: &'a [u8], format: u8) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        (*first == format).then_some(Self(rest))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    /// As [`Encoder::byte`].
    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// As [`Encoder::u16`].
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// As [`Encoder::u32`].
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// As [`Encoder::u64`].
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// As [`Encoder::count`]; never more than the bytes that are left, so that room may be made for so many items.
    pub fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    /// As [`Encoder::bytes`].
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// As [`Encoder::bytes`], if they are UTF-8.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// As [`Encoder::duration`].
    pub fn duration(&mut self) -> Option<Duration> {
        let seconds = self.u64()?;
        let nanos = self.u32()?;
        (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
    }

    /// As [`Encoder::time`].
    pub fn time(&mut self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(self.duration()?)
    }

    /// As [`Encoder::option`], the value by `read`.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => read(self).map(Some),
            _ => None,
        }
    }

    /// `record` if all bytes have been read.
    pub fn finish<T>(self, record: T) -> Option<T> {
        self.0.is_empty().then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_796_076_000, 7);
        let mut out = Encoder::new(9);
        out.byte(1);
        out.u16(2);
        out.u32(3);
        out.u64(4);
        out.bytes(b"five");
        out.duration(Duration::new(6, 7));
        out.time(time);
        out.time(SystemTime::UNIX_EPOCH - Duration::from_secs(1));
        out.option(Some(8), Encoder::u16);
        out.option(None, Encoder::u64);
        let bytes = out.finish();
        assert!(Decoder::new(&bytes, 8).is_none());
        let mut rest = Decoder::new(&bytes, 9).unwrap();
        assert_eq!(rest.byte(), Some(1));
        assert_eq!(rest.u16(), Some(2));
        assert_eq!(rest.u32(), Some(3));
        assert_eq!(rest.u64(), Some(4));
        assert_eq!(rest.text(), Some("five"));
        assert_eq!(rest.duration(), Some(Duration::new(6, 7)));
        assert_eq!(rest.time(), Some(time));
        assert_eq!(rest.time(), Some(SystemTime::UNIX_EPOCH));
        assert_eq!(rest.option(Decoder::u16), Some(Some(8)));
        assert_eq!(rest.option(Decoder::u64), Some(None));
        assert_eq!(rest.finish(()), Some(()));
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>, steps in proptest::collection::vec(0_u8..8, 0..20)) {
            let Some(mut rest) = Decoder::new(&bytes, 1) else { return Ok(()) };
            for step in steps {
                let left = rest.0.len();
                let _ = match step {
                    0 => rest.byte().is_some(),
                    1 => rest.u16().is_some(),
                    2 => rest.u64().is_some(),
                    3 => rest.bytes().is_some_and(|bytes| bytes.len() <= left),
                    4 => rest.text().is_some(),
                    5 => rest.time().is_some(),
                    6 => rest.count().is_some_and(|count| count <= left),
                    _ => rest.option(Decoder::duration).is_some(),
                };
                prop_assert!(rest.0.len() <= left);
            }
        }
    }
}
