//! Entries of feeds of all kinds, read by `feed-rs`.

use std::fmt;
use std::time::SystemTime;

use http::Uri;

use super::hints::Hints;
use crate::reference::resolve;

/// The longest feed that is read, in bytes: 8 MiB. The parser holds all of it.
pub const MAX_FEED: usize = 8 * 1024 * 1024;

/// A feed's entries and what it says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feed {
    /// Its title.
    pub title: Option<String>,
    /// Its entries, in the order of the feed.
    pub entries: Vec<FeedEntry>,
    /// What it says about its pace.
    pub hints: Hints,
}

/// One entry of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedEntry {
    /// What tells it from the others; the same in every poll.
    pub id: String,
    /// The page it leads to, absolute.
    pub uri: Option<Uri>,
    /// Its title.
    pub title: Option<String>,
    /// When it was published.
    pub published: Option<SystemTime>,
    /// When it changed last.
    pub updated: Option<SystemTime>,
}

/// The body is no feed, or is longer than [`MAX_FEED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFeed;

impl fmt::Display for NotAFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is not a feed that can be read")
    }
}

impl std::error::Error for NotAFeed {}

/// Reads the feed at `uri`, its address after redirects: Atom, RSS, RDF or JSON Feed.
///
/// # Errors
/// [`NotAFeed`] says no more than that: what is wrong with a feed is its operator's business.
pub fn parse(uri: &Uri, body: &[u8]) -> Result<Feed, NotAFeed> {
    if body.len() > MAX_FEED {
        return Err(NotAFeed);
    }
    let parser = feed_rs::parser::Builder::new()
        .base_uri(Some(uri.to_string()))
        .build();
    let feed = parser.parse(body).map_err(|_| NotAFeed)?;
    let entries = feed
        .entries
        .into_iter()
        .map(|entry| {
            // The page itself rather than a comment page, a source or an attachment.
            let link = entry
                .links
                .iter()
                .find(|link| link.rel.as_deref().is_none_or(|rel| rel == "alternate"))
                .or_else(|| entry.links.first());
            FeedEntry {
                uri: link.and_then(|link| resolve(uri, &link.href).ok()),
                id: entry.id,
                title: entry.title.map(|title| title.content),
                published: entry.published.map(SystemTime::from),
                updated: entry.updated.map(SystemTime::from),
            }
        })
        .collect();
    Ok(Feed {
        title: feed.title.map(|title| title.content),
        entries,
        hints: Hints::of(body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Feed {
        let uri = "https://www.example.com/dir/feed".parse().unwrap();
        parse(&uri, body.as_bytes()).unwrap()
    }

    #[test]
    fn entries_of_all_kinds() {
        let atom = read(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><id>f</id><updated>2026-11-01T12:00:00Z</updated>\
             <entry><id>e</id><title>A</title><link rel='replies' href='/c'/><link href='a'/>\
             <updated>2026-11-01T12:00:00Z</updated></entry></feed>",
        );
        assert_eq!(atom.title.as_deref(), Some("T"));
        let [entry] = &atom.entries[..] else {
            panic!("{atom:?}")
        };
        assert_eq!(entry.uri.as_ref().unwrap(), "https://www.example.com/dir/a");
        let noon = httpdate::parse_http_date("Sun, 01 Nov 2026 12:00:00 GMT").unwrap();
        assert_eq!(entry.updated, Some(noon));

        let rss = read(
            "<rss version='2.0'><channel><title>T</title><ttl>90</ttl><item><title>A</title>\
             <link>https://www.example.com/a</link><guid>17</guid></item></channel></rss>",
        );
        assert_eq!(rss.entries[0].id, "17");
        assert_eq!(rss.hints.ttl, Some(std::time::Duration::from_secs(5400)));

        let json = read(
            "{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"T\", \
             \"items\": [{\"id\": \"1\", \"url\": \"https://www.example.com/a\", \"content_text\": \"x\"}]}",
        );
        assert_eq!(
            json.entries[0].uri.as_ref().unwrap(),
            "https://www.example.com/a"
        );
    }

    #[test]
    fn what_is_no_feed() {
        let uri = "https://www.example.com/feed".parse().unwrap();
        assert_eq!(parse(&uri, b"<html>"), Err(NotAFeed));
        assert_eq!(parse(&uri, &vec![b' '; MAX_FEED + 1]), Err(NotAFeed));
    }
}
