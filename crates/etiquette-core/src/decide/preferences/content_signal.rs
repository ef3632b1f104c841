//! Content-Signal, in robots.txt and in responses (contentsignals.org).
//!
//! No grammar is published. Read are `key=value` pairs between commas, without regard to case, with the keys `search`,
//! `ai-input` and `ai-train` and the values `yes` and `no`; what is anything else says nothing. Of two values for one
//! key the restrictive one holds. A form with a path is not read.

use etiquette_robots::Group;

use super::wish::{Wish, Wishes};
use crate::field::joined;

/// Reads the lines of the response header.
#[must_use]
pub fn from_header<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Wishes {
    read(&joined(lines))
}

/// Reads the group of robots.txt that binds the client. What it says holds for the whole site, and grants no crawl.
#[must_use]
pub fn from_robots(group: &Group<'_>) -> Wishes {
    group
        .records()
        .filter(|record| record.name() == "content-signal")
        .map(|record| read(record.bytes()))
        .fold(Wishes::default(), Wishes::and)
}

fn read(field: &[u8]) -> Wishes {
    let mut wishes = Wishes::default();
    for pair in field.to_ascii_lowercase().split(|&byte| byte == b',') {
        let mut parts = pair.splitn(2, |&byte| byte == b'=');
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else {
            continue;
        };
        let wish = match value.trim_ascii() {
            b"yes" => Wish::Allow,
            b"no" => Wish::Disallow,
            _ => continue,
        };
        let kept = match key.trim_ascii() {
            b"search" => &mut wishes.search,
            b"ai-input" => &mut wishes.ai_input,
            b"ai-train" => &mut wishes.train_ai,
            _ => continue,
        };
        *kept = kept.and(wish);
    }
    wishes
}
