//! The decisions: each takes what was received and the present, and returns an enum that names the next step.
//!
//! | module | decides | by |
//! | --- | --- | --- |
//! | [`accept`] | what to ask for, and whether a response is of such a type | RFC 9110, 12.5.1 |
//! | [`address`] | whether an address may be asked at all | the registries of special-purpose addresses |
//! | [`cache_policy`] | what is stored, reused, validated and invalidated | RFC 9111 |
//! | [`host`] | when the next request to a host may start | RFC 9110, 10.2.3; RFC 6585, 4 |
//! | [`preferences`] | what a site wishes to be done with a page | X-Robots-Tag, Content-Usage, Content-Signal, TDM |
//! | [`retry_after`] | how long a response asks to wait | RFC 9110, 10.2.3 |
//! | [`robots_txt`] | what a response to `/robots.txt` means, and for how long | RFC 9309, 2.3 and 2.4 |

pub mod accept;
pub mod address;
pub mod cache_policy;
pub mod host;
pub mod preferences;
pub mod retry_after;
pub mod robots_txt;
