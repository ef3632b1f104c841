//! A feed's life: when to ask for it again, and when never.
//!
//! # Flow
//! After each poll the caller hands [`FeedState::record`] what came of it, and gets [`Next`]: a time, or the end.
//! [`FeedState`] is a plain value to keep between runs. [`Hints::of`] reads what the feed itself says about its pace.
//! The polls themselves go through a client with a conditional cache, so that an unchanged feed costs a 304.
//!
//! # Pace
//! | Poll | Next |
//! |---|---|
//! | a feed, with hints | after the longest of `ttl`, `updatePeriod`/`updateFrequency` and what is left of `max-age`: 10 minutes at least, a week at most |
//! | a feed, without hints | after 1 hour; twice as long with each unchanged poll in a row after the third, up to 12 hours |
//! | 404, 401, 403, 451 | 2 hours, then twice as long each time, up to a week |
//! | 410 | never (RFC 9110, 15.5.11) |
//! | 429, 5xx, no response | 1 hour, then twice as long each time, up to a day |
//!
//! None of these is ever before `Retry-After`, nor in an hour or on a day that `skipHours` and `skipDays` name (GMT).
//! A week caps a `max-age` that was set for pictures and caught the feed too; whether a poll then costs a request is the
//! cache's decision.
//!
//! # Non-goals
//! The content of feeds, but for the feature `feed-rs`, which reads entries; WebSub.

mod hints;
#[cfg(feature = "feed-rs")]
#[cfg_attr(docsrs, doc(cfg(feature = "feed-rs")))]
mod parse;
mod state;
mod week;

pub use hints::Hints;
#[cfg(feature = "feed-rs")]
pub use parse::{Feed, FeedEntry, MAX_FEED, NotAFeed, parse};
pub use state::{FASTEST, FeedState, Next, Poll, UNHINTED};
