//! What an operator of the store wants to know.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError};

pub(crate) type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// A change in how the server can be used. Told once for each change, not for each call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The server cannot be used. Requests wait, or go on more slowly.
    Failing {
        /// Why.
        cause: Cause,
        /// What the server or the system said.
        detail: String,
    },
    /// It can be used again, after so long.
    Recovered {
        /// Since the first failure.
        after: Duration,
    },
    /// It remembers nothing, or is another one than before: nothing starts for the time of a lease.
    Forgot,
}

/// Why the server cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It cannot be reached, or hung up.
    Unreachable,
    /// It did not answer in time.
    Slow,
    /// It is out of memory.
    Full,
    /// It does not let this client do that: credentials or ACL.
    Denied,
    /// A key of ours holds something else. Only that host is affected.
    WrongType,
    /// Anything else, such as a server that is loading or read-only.
    Other,
}

impl Cause {
    pub(crate) fn of(error: &RedisError) -> Self {
        match error.code() {
            Some("OOM") => Self::Full,
            Some("NOPERM" | "NOAUTH" | "WRONGPASS") => Self::Denied,
            Some("WRONGTYPE") => Self::WrongType,
            _ if error.kind() == ErrorKind::AuthenticationFailed => Self::Denied,
            _ if error.is_timeout() => Self::Slow,
            _ if error.is_io_error() || error.is_connection_dropped() => Self::Unreachable,
            // An error inside of a script carries the code of the command in its text.
            _ => {
                let text = error.to_string();
                if text.contains("WRONGTYPE") {
                    Self::WrongType
                } else if text.contains("OOM") {
                    Self::Full
                } else if text.contains("NOPERM")
                    || text.contains("can't run this command")
                    // A long command of one who has not given a password.
                    || text.contains("unauthenticated")
                {
                    Self::Denied
                } else {
                    Self::Other
                }
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "it cannot be reached",
            Self::Slow => "it does not answer in time",
            Self::Full => "it is out of memory",
            Self::Denied => "it denies access",
            Self::WrongType => "a key holds something else",
            Self::Other => "it failed",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failing { cause, detail } => {
                write!(
                    f,
                    "the shared store cannot be used, {}: {detail}",
                    cause.name()
                )
            }
            Self::Recovered { after } => {
                write!(
                    f,
                    "the shared store is back after {:.1} s",
                    after.as_secs_f64()
                )
            }
            Self::Forgot => f.write_str("the shared store remembers nothing"),
        }
    }
}
