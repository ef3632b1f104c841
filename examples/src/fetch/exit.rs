//! How the program ends. The numbers are curl's where curl has one.

use std::error::Error as StdError;
use std::process::ExitCode;

use tower_etiquette::Refusal;

use super::outcome::Failure;

/// The end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// The page came.
    Done = 0,
    /// The command line does not hold together.
    Usage = 2,
    /// The URL is none.
    Url = 3,
    /// The host has no address.
    NoHost = 6,
    /// No connection.
    NoConnection = 7,
    /// Refused, and not only for now.
    Refused = 9,
    /// An HTTP error, with `--fail`.
    HttpError = 22,
    /// The output could not be written.
    WriteError = 23,
    /// It took too long.
    TooSlow = 28,
    /// Too many redirects.
    TooManyRedirects = 47,
    /// The connection broke.
    Broken = 56,
    /// TLS failed.
    Tls = 60,
    /// The page is too large.
    TooLarge = 63,
    /// Refused for now; the reason says when to come back.
    ComeBack = 75,
    /// The host's address is not public, and `--allow-private` is not given.
    NotPublic = 76,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Failure {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Identity(_) | Self::Roots(_) => Exit::Usage,
            Self::Url(_) => Exit::Url,
            Self::Request(error) => match error.refusal() {
                Some(refusal) if refusal.kind() == "too_many_redirects" => Exit::TooManyRedirects,
                Some(Refusal::Address(_)) => Exit::NotPublic,
                Some(refusal) if refusal.retry_at().is_some() => Exit::ComeBack,
                Some(_) => Exit::Refused,
                None => by_cause(error),
            },
            Self::Body(error) => by_cause(error),
        }
    }
}

/// By what the errors below say. Resolver and TLS have no common error types, so their words count.
fn by_cause(error: &(dyn StdError + 'static)) -> Exit {
    let mut next = Some(error);
    let mut exit = Exit::Broken;
    while let Some(error) = next {
        let text = error.to_string();
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                std::io::ErrorKind::ConnectionRefused => exit = Exit::NoConnection,
                std::io::ErrorKind::TimedOut => exit = Exit::TooSlow,
                _ => {}
            }
        }
        for (word, meaning) in [
            ("in time", Exit::TooSlow),
            ("too long", Exit::TooSlow),
            ("timed out", Exit::TooSlow),
            ("lookup", Exit::NoHost),
            ("redirects", Exit::TooManyRedirects),
            ("certificate", Exit::Tls),
            ("larger", Exit::TooLarge),
            ("too large", Exit::TooLarge),
        ] {
            if text.contains(word) {
                return meaning;
            }
        }
        next = error.source();
    }
    exit
}
