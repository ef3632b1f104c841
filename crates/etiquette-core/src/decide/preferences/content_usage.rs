//! Content-Usage, in responses and in robots.txt (draft-ietf-aipref-attach-05, draft-ietf-aipref-vocab-07).
//!
//! A structured dictionary of `train-ai` and `search` with the tokens `y` and `n`. A field that does not parse says
//! nothing; a member that is no such token says nothing about its use.

use etiquette_robots::{Group, Pattern};

use super::wish::{Wish, Wishes};
use crate::field::joined;
use crate::field::structured::{self, Bare, Value};

/// Reads the lines of the response header.
#[must_use]
pub fn from_header<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Wishes {
    read(&joined(lines))
}

/// The rule of robots.txt for `path_and_query` in the group that binds the client. A rule is `[path] wishes`; without
/// a path it is about everything. The longest path that matches decides alone; equal ones are taken together.
///
/// Whether the path may be fetched at all is for the group's rules to say: a path that is disallowed has no wishes.
#[must_use]
pub fn from_robots(group: &Group<'_>, path_and_query: &[u8]) -> Wishes {
    let mut longest = 0;
    let mut wishes = Wishes::default();
    for record in group.records() {
        if record.name() != "content-usage" {
            continue;
        }
        let (path, value) = split(record.bytes());
        let pattern = Pattern::new(path);
        let length = pattern.specificity();
        if length < longest || !pattern.matches(path_and_query) {
            continue;
        }
        let said = read(value);
        wishes = if length > longest {
            said
        } else {
            wishes.and(said)
        };
        longest = length;
    }
    wishes
}

/// The path of a rule, `/` if it has none, and its wishes.
fn split(rule: &[u8]) -> (&[u8], &[u8]) {
    if rule.first() != Some(&b'/') {
        return (b"/", rule);
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    match rule.iter().position(blank) {
        Some(at) => (&rule[..at], rule[at..].trim_ascii()),
        None => (rule, b""),
    }
}

fn read(field: &[u8]) -> Wishes {
    let mut wishes = Wishes::default();
    for member in structured::dictionary(field).unwrap_or_default() {
        let wish = match &member.value {
            Value::Item(Bare::Token(token)) if token == "y" => Wish::Allow,
            Value::Item(Bare::Token(token)) if token == "n" => Wish::Disallow,
            _ => Wish::Unknown,
        };
        match member.key.as_str() {
            "train-ai" => wishes.train_ai = wish,
            "search" => wishes.search = wish,
            _ => {}
        }
    }
    wishes
}
