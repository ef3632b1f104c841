//! robots.txt as RFC 9309 says: parse, match and explain. No I/O, no clock, no dependencies.
//!
//! **Flow**: the bytes of a file become lines ([`RobotsBuilder::parse`]), lines become groups, and groups become a
//! sorted form ([`Robots`]) that answers for any crawler ([`Robots::group`]) whether a URL may be fetched
//! ([`Group::check`]). The [`Verdict`] names the rule and its line.
//!
//! **Scope**: RFC 9309 sections 2.2 and 2.5 with its errata; misspellings that the field forgives; Crawl-delay,
//! Request-rate, Sitemap and other records, kept for those who want them; a [`lint`] for operators.
//! [`robots_url`] and [`path_to_match`] are for the caller's side of section 2.3.
//!
//! **Non-goals**: fetching the file, and what an answer to that request means. The robots layer of `tower-etiquette`
//! does both.
//!
//! ```
//! use etiquette_robots::{ProductToken, Robots};
//!
//! let robots = Robots::parse(b"User-agent: *\nAllow: /docs/\nDisallow: /*.pdf$\n");
//! let token = ProductToken::try_from("ExampleBot")?;
//!
//! let verdict = robots.group(&token).check(b"/files/a.pdf");
//! assert!(!verdict.allowed());
//! let rule = verdict.rule().expect("a rule decided");
//! assert_eq!((rule.text().as_ref(), rule.line()), ("/*.pdf$", 3));
//! # Ok::<(), etiquette_robots::InvalidToken>(())
//! ```
//!
//! # Decisions where the field disagrees
//!
//! - A token on a user-agent line is what its first letters, `_` and `-` make; it must equal ours, case aside. A part
//!   of a name is no match.
//! - Only a rule ends a list of user-agent lines, not a blank line and not another record (2.2.4).
//! - A rule must start with `/` or `*`. A full URL or a bare word matches nothing; the lint says so.
//! - `/dir/` is not opened by `Allow: /dir/index.html`, though some crawlers read it so.
//! - Of two rules of equal length, Allow decides; the length is that of the percent-encoded rule, wildcards included.
//!
//! # Limits
//!
//! The first 512,000 bytes count, to the end of a line ([`RobotsBuilder::max_bytes`]). In one file 10,000 rules with
//! inner wildcards, and in one rule 64 wildcards, are matched in full; beyond that a Disallow closes more than it says,
//! and an Allow is dropped ([`Robots::rules_over_limit`]). 1,000 records of unknown name are kept. Parsing takes
//! O(n log n) for n bytes; a check takes the logarithm of the number of rules without inner wildcards, and at worst
//! time linear in the bytes of the others and of the URL.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod canon;
mod draft;
mod kept;
mod key;
mod lex;
pub mod lint;
mod pattern;
mod record;
mod robots;
mod rule_kind;
mod token;
mod unusable;
mod url;
mod verdict;

pub use pattern::Pattern;
pub use record::{Record, RequestRate};
pub use robots::{Group, MAX_BYTES, MAX_MAX_BYTES, Robots, RobotsBuilder};
pub use rule_kind::RuleKind;
pub use token::{InvalidToken, ProductToken, leading_token};
pub use unusable::Unusable;
pub use url::{path_to_match, resolve, robots_url};
pub use verdict::{Cause, Rule, Verdict};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
