//! What a request asks of its host before it starts, and what it is told.

use std::time::Instant;

use crate::vocabulary::purpose::ApiLimit;

/// Which of a host's limits a request waits for. Pauses hold every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartOptions {
    /// Only pauses hold it, and the learnt delay after them: no permit, no delay.
    pub pauses_only: bool,
    /// Another layer keeps the delay, or it is a further step of a visit that has taken its delay already.
    pub delay_taken: bool,
    /// The limit of an API takes the place of delay and permits. Stores that several processes share are not asked for it.
    pub api: Option<ApiQuota>,
}

impl StartOptions {
    /// A permit and the delay, as each request of a budget does.
    #[must_use]
    pub fn pace() -> Self {
        Self::default()
    }

    /// Pauses only.
    #[must_use]
    pub fn pauses() -> Self {
        Self {
            pauses_only: true,
            ..Self::default()
        }
    }

    /// A permit and a token of an API.
    #[must_use]
    pub fn api(api: ApiQuota) -> Self {
        Self {
            api: Some(api),
            ..Self::default()
        }
    }
}

/// The API that a request is for, and the limit that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiQuota {
    /// Tells the APIs of one host apart.
    pub number: u64,
    /// What the site documents. Where declarations of one API differ, each request is held to its own.
    pub limit: ApiLimit,
}

impl ApiQuota {
    /// The API `number` of a host, under `limit`.
    #[must_use]
    pub fn new(number: u64, limit: ApiLimit) -> Self {
        Self { number, limit }
    }
}

/// Whether a request may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It may.
    Admit,
    /// Not before this.
    Wait(Instant),
    /// Not before a permit is free, and not before this.
    Full(Instant),
}
