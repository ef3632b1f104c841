//! What is known of a robots.txt in the form that a store keeps, across restarts or processes.
//!
//! Instants are wall time: a monotonic clock means nothing to another process. A record from the future, after a wall
//! clock that jumped, is old: it is read again sooner, never trusted longer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use super::record::{FetchFailure, Validators};

/// What is known of one robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRobots {
    /// The last outcome.
    pub copy: Option<StoredCopy>,
    /// The failed readings since then.
    pub failing: Option<StoredFailing>,
}

/// The outcome of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    /// What it was.
    pub outcome: StoredOutcome,
    /// For a conditional re-read.
    pub validators: Validators,
    /// When it was read or confirmed.
    pub confirmed: SystemTime,
    /// How long it lives from then on.
    pub life: Duration,
}

/// What a reading found.
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

/// Failed readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFailing {
    /// Why the last one failed.
    pub cause: FetchFailure,
    /// How many in a row.
    pub failures: u32,
    /// Not read again before this.
    pub retry_at: SystemTime,
}

impl StoredRobots {
    /// All but the bytes of the file, as lines of `name value`. [`StoredRobots::decode`] reads it back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut line = |name: &str, value: &[u8]| {
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
            out.extend_from_slice(value);
            out.push(b'\n');
        };
        if let Some(copy) = &self.copy {
            let outcome = match copy.outcome {
                StoredOutcome::Rules(_) => "rules".to_owned(),
                StoredOutcome::Unavailable => "unavailable".to_owned(),
                StoredOutcome::Closed(status) => status.as_u16().to_string(),
            };
            line("outcome", outcome.as_bytes());
            line("confirmed", millis(copy.confirmed).to_string().as_bytes());
            line("life", copy.life.as_millis().to_string().as_bytes());
            if let Some(etag) = &copy.validators.etag {
                line("etag", etag.as_bytes());
            }
            if let Some(date) = &copy.validators.last_modified {
                line("last-modified", date.as_bytes());
            }
        }
        if let Some(failing) = &self.failing {
            line("failure", failing.cause.code().as_bytes());
            line("failures", failing.failures.to_string().as_bytes());
            line("retry-at", millis(failing.retry_at).to_string().as_bytes());
        }
        out
    }

    /// Reads what [`StoredRobots::encode`] wrote, beside the bytes of the file. Whatever cannot be read is left out:
    /// it is read from the site again.
    #[must_use]
    pub fn decode(lines: &[u8], bytes: Option<Bytes>) -> Self {
        let field = |name: &str| {
            lines.split(|&b| b == b'\n').find_map(|line| {
                line.strip_prefix(name.as_bytes())
                    .and_then(|rest| rest.strip_prefix(b" "))
            })
        };
        let text = |name| field(name).and_then(|value| std::str::from_utf8(value).ok());
        let number = |name| text(name).and_then(|value| value.parse::<u64>().ok());
        let header = |name| field(name).and_then(|value| HeaderValue::from_bytes(value).ok());
        let copy = || {
            let outcome = match text("outcome")? {
                "rules" => StoredOutcome::Rules(Some(bytes?)),
                "unavailable" => StoredOutcome::Unavailable,
                status => StoredOutcome::Closed(StatusCode::from_bytes(status.as_bytes()).ok()?),
            };
            Some(StoredCopy {
                outcome,
                validators: Validators {
                    etag: header("etag"),
                    last_modified: header("last-modified"),
                },
                confirmed: time(number("confirmed")?)?,
                life: Duration::from_millis(number("life")?),
            })
        };
        let failing = || {
            Some(StoredFailing {
                cause: FetchFailure::from_code(text("failure")?)?,
                failures: number("failures")?.try_into().ok()?,
                retry_at: time(number("retry-at")?)?,
            })
        };
        Self {
            failing: failing(),
            copy: copy(),
        }
    }
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
}

fn time(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

impl FetchFailure {
    /// A short stable name.
    fn code(&self) -> String {
        match self {
            Self::Later(status) => format!("later {}", status.as_u16()),
            Self::Status(status) => format!("status {}", status.as_u16()),
            Self::NoResponse => "no-response".to_owned(),
            Self::Cut => "cut".to_owned(),
            Self::Coded => "coded".to_owned(),
            Self::Redirects => "redirects".to_owned(),
            Self::NotPublic(address) => format!("not-public {address}"),
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        let status = |text: &str| StatusCode::from_bytes(text.as_bytes()).ok();
        Some(match code.split_once(' ') {
            Some(("later", text)) => Self::Later(status(text)?),
            Some(("status", text)) => Self::Status(status(text)?),
            Some(("not-public", text)) => Self::NotPublic(text.parse().ok()?),
            Some(_) => return None,
            None => match code {
                "no-response" => Self::NoResponse,
                "cut" => Self::Cut,
                "coded" => Self::Coded,
                "redirects" => Self::Redirects,
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let at = UNIX_EPOCH + Duration::from_millis(1_796_076_000_123);
        let bytes = Some(Bytes::from_static(b"User-agent: *\n"));
        for cause in [
            FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS),
            FetchFailure::Status(StatusCode::BAD_GATEWAY),
            FetchFailure::NoResponse,
            FetchFailure::Cut,
            FetchFailure::Coded,
            FetchFailure::Redirects,
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
                failing: Some(StoredFailing {
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
}
