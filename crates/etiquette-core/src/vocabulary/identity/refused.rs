//! Why a request may not be sent under the name that it would carry.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::judge::Verdict;
use crate::Origin;

/// The request would not go under the identity's name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// What is wrong with the name.
    pub why: NameRefusal,
    /// Where the client's operator can be reached.
    pub contact: Option<Arc<str>>,
}

/// What is wrong with a request's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameRefusal {
    /// The caller set a User-Agent, and this is what it says.
    Judged(Verdict),
    /// The caller set more than one User-Agent.
    SeveralNames,
    /// A person asked for the page, but the identity has no token for such requests.
    NoUserToken,
    /// No layer gave the request an identity.
    NoIdentity,
}

impl NameRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Judged(verdict) => verdict.kind(),
            Self::SeveralNames => "several_names",
            Self::NoUserToken => "no_user_token",
            Self::NoIdentity => "no_identity",
        }
    }
}

impl NameRefused {
    /// A refusal because of `why`.
    #[must_use]
    pub fn new(origin: Option<Origin>, why: NameRefusal, contact: Option<Arc<str>>) -> Self {
        Self {
            origin,
            why,
            contact,
        }
    }
}

impl fmt::Display for NameRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            NameRefusal::Judged(Verdict::Ok) => "the User-Agent is in order",
            NameRefusal::Judged(Verdict::Incomplete) => {
                "the User-Agent names this client, but has no link or is not well-formed"
            }
            NameRefusal::Judged(Verdict::Hybrid) => {
                "the User-Agent names this client and a browser"
            }
            NameRefusal::Judged(Verdict::Disguise) => "the User-Agent is a browser's",
            NameRefusal::Judged(Verdict::Impersonation) => "the User-Agent names another agent",
            NameRefusal::Judged(Verdict::Unidentified) => {
                "the User-Agent does not have this client's token"
            }
            NameRefusal::Judged(Verdict::Malformed) => {
                "the User-Agent has control characters or is not ASCII"
            }
            NameRefusal::SeveralNames => "the request has more than one User-Agent",
            NameRefusal::NoUserToken => "the identity has no user token, which a user fetch needs",
            NameRefusal::NoIdentity => "the request has no identity",
        })
    }
}

impl Error for NameRefused {}
