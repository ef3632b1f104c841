//! What is known of a robots.txt in the form that a store keeps, across restarts or processes.
//!
//! Instants are wall time: a monotonic clock means nothing to another process. A record from the future, after a wall
//! clock that jumped, is old: it is fetched again sooner, never trusted longer.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use super::failure::FetchFailure;
use super::validators::Validators;
use crate::store::codec::{Decoder, Encoder};

/// What is known of one robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRobots {
    /// The last outcome.
    pub copy: Option<StoredCopy>,
    /// The failed fetches since then.
    pub failure: Option<StoredFailure>,
}

/// The outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    /// What it was.
    pub outcome: StoredOutcome,
    /// For a conditional re-read.
    pub validators: Validators,
    /// When it was fetched or confirmed.
    pub confirmed: SystemTime,
    /// How long it lives from then on.
    pub life: Duration,
}

/// What a fetch found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredOutcome {
    /// These bytes; `None` leaves those that are stored, for a file that was confirmed unchanged.
    Rules(Option<Bytes>),
    /// No robots.txt.
    Unavailable,
    /// This 401 or 403, which closes the site.
    Closed(StatusCode),
}

/// Failed fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFailure {
    /// Why the last one failed.
    pub cause: FetchFailure,
    /// How many in a row.
    pub failures: u32,
    /// Not fetched again before this.
    pub retry_at: SystemTime,
}

const FORMAT: u8 = 1;

impl StoredRobots {
    /// All but the bytes of the file. [`StoredRobots::decode`] reads it back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(FORMAT);
        out.option(self.copy.as_ref(), |out, copy| {
            match copy.outcome {
                StoredOutcome::Rules(_) => out.byte(0),
                StoredOutcome::Unavailable => out.byte(1),
                StoredOutcome::Closed(status) => {
                    out.byte(2);
                    out.u16(status.as_u16());
                }
            }
            let validators = &copy.validators;
            for value in [&validators.etag, &validators.last_modified] {
                out.option(value.as_ref().map(HeaderValue::as_bytes), Encoder::bytes);
            }
            out.time(copy.confirmed);
            out.duration(copy.life);
        });
        out.option(self.failure.as_ref(), |out, failure| {
            encode_cause(out, &failure.cause);
            out.u32(failure.failures);
            out.time(failure.retry_at);
        });
        out.finish()
    }

    /// Reads what [`StoredRobots::encode`] wrote, beside the bytes of the file. What cannot be read is left out, as is a
    /// copy of rules without those bytes: the file is fetched again.
    #[must_use]
    pub fn decode(record: &[u8], bytes: Option<Bytes>) -> Self {
        Self::read(record, bytes).unwrap_or_default()
    }

    fn read(record: &[u8], bytes: Option<Bytes>) -> Option<Self> {
        let mut rest = Decoder::new(record, FORMAT)?;
        let header = |rest: &mut Decoder<'_>| HeaderValue::from_bytes(rest.bytes()?).ok();
        let copy = rest.option(|rest| {
            Some(StoredCopy {
                outcome: match rest.byte()? {
                    0 => StoredOutcome::Rules(bytes),
                    1 => StoredOutcome::Unavailable,
                    2 => StoredOutcome::Closed(StatusCode::from_u16(rest.u16()?).ok()?),
                    _ => return None,
                },
                validators: Validators {
                    etag: rest.option(header)?,
                    last_modified: rest.option(header)?,
                },
                confirmed: rest.time()?,
                life: rest.duration()?,
            })
        })?;
        let failure = rest.option(|rest| {
            Some(StoredFailure {
                cause: decode_cause(rest)?,
                failures: rest.u32()?,
                retry_at: rest.time()?,
            })
        })?;
        rest.finish(Self {
            copy: copy.filter(|copy| copy.outcome != StoredOutcome::Rules(None)),
            failure,
        })
    }
}

fn encode_cause(out: &mut Encoder, cause: &FetchFailure) {
    match cause {
        FetchFailure::Later(status) => {
            out.byte(0);
            out.u16(status.as_u16());
        }
        FetchFailure::Status(status) => {
            out.byte(1);
            out.u16(status.as_u16());
        }
        FetchFailure::NoResponse => out.byte(2),
        FetchFailure::IncompleteBody => out.byte(3),
        FetchFailure::ContentCoding => out.byte(4),
        FetchFailure::TooManyRedirects => out.byte(5),
        FetchFailure::InvalidRedirect => out.byte(6),
        FetchFailure::NotPublic(address) => {
            out.byte(7);
            out.bytes(address.to_string().as_bytes());
        }
    }
}

fn decode_cause(rest: &mut Decoder<'_>) -> Option<FetchFailure> {
    let status = |rest: &mut Decoder<'_>| StatusCode::from_u16(rest.u16()?).ok();
    Some(match rest.byte()? {
        0 => FetchFailure::Later(status(rest)?),
        1 => FetchFailure::Status(status(rest)?),
        2 => FetchFailure::NoResponse,
        3 => FetchFailure::IncompleteBody,
        4 => FetchFailure::ContentCoding,
        5 => FetchFailure::TooManyRedirects,
        6 => FetchFailure::InvalidRedirect,
        7 => FetchFailure::NotPublic(rest.text()?.parse().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let at = UNIX_EPOCH + Duration::from_millis(1_796_076_000_123);
        let bytes = Some(Bytes::from_static(b"User-agent: *\n"));
        for cause in [
            FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS),
            FetchFailure::Status(StatusCode::BAD_GATEWAY),
            FetchFailure::NoResponse,
            FetchFailure::IncompleteBody,
            FetchFailure::ContentCoding,
            FetchFailure::TooManyRedirects,
            FetchFailure::InvalidRedirect,
            FetchFailure::NotPublic("64:ff9b::a00:1".parse().unwrap()),
        ] {
            let record = StoredRobots {
                copy: Some(StoredCopy {
                    outcome: StoredOutcome::Rules(bytes.clone()),
                    validators: Validators {
                        etag: Some(HeaderValue::from_static("W/\"a b\"")),
                        last_modified: None,
                    },
                    confirmed: at,
                    life: Duration::from_secs(60),
                }),
                failure: Some(StoredFailure {
                    cause,
                    failures: 3,
                    retry_at: at,
                }),
            };
            assert_eq!(
                StoredRobots::decode(&record.encode(), bytes.clone()),
                record
            );
        }
    }

    #[test]
    fn broken_records_are_nothing() {
        for lines in [
            "",
            "outcome",
            "outcome rules\nconfirmed x\n",
            "outcome 9\n",
            "failure never\n",
            "\u{0}\n",
        ] {
            assert_eq!(
                StoredRobots::decode(lines.as_bytes(), None),
                StoredRobots::default()
            );
        }
    }

    #[test]
    fn nothing_that_is_cut_or_longer_is_read() {
        let whole = sample().encode();
        let read = |record: &[u8]| StoredRobots::decode(record, Some(Bytes::new()));
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), StoredRobots::default(), "{end}");
        }
        assert_eq!(read(&[&whole[..], b"x"].concat()), StoredRobots::default());
    }

    #[test]
    fn rules_without_their_file_are_no_copy() {
        let mut record = sample();
        let read = StoredRobots::decode(&record.encode(), None);
        record.copy = None;
        assert_eq!(read, record);
    }

    fn sample() -> StoredRobots {
        StoredRobots {
            copy: Some(StoredCopy {
                outcome: StoredOutcome::Rules(Some(Bytes::new())),
                validators: Validators {
                    etag: Some(HeaderValue::from_static("\"v\"")),
                    last_modified: Some(HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT")),
                },
                confirmed: UNIX_EPOCH + Duration::from_secs(1_796_076_000),
                life: Duration::from_secs(60),
            }),
            failure: Some(StoredFailure {
                cause: FetchFailure::NoResponse,
                failures: 3,
                retry_at: UNIX_EPOCH,
            }),
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>, place in 0_usize..200, byte: u8) {
            let _ = StoredRobots::decode(&bytes, None);
            let mut damaged = sample().encode();
            let place = place % damaged.len();
            damaged[place] = byte;
            let _ = StoredRobots::decode(&damaged, Some(Bytes::new()));
        }
    }
}
