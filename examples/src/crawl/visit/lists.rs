//! Sitemaps and feeds: what announces them, and what they name.

use etiquette_discovery::feed;
use etiquette_discovery::html::Page;
use etiquette_discovery::sitemap::{Item, LastMod, SitemapReader};
use etiquette_discovery::{SourceGroup, from_html, from_link_header};
use http::{HeaderMap, Uri};
use http_body_util::BodyExt;
use tower_etiquette::client::ResponseBody;

use super::Visited;
use crate::crawl::frontier::{Kind, Target};

/// The most URLs that are taken from one list: what the protocol of sitemaps allows.
const MOST_ENTRIES: usize = 50_000;

/// A URL that a list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::crawl) struct Listed {
    pub(in crate::crawl) uri: Uri,
    /// When it changed last, as the list says.
    pub(in crate::crawl) date: Option<LastMod>,
}

/// The sitemaps and feeds that a page announces in its head and in its Link fields.
pub(super) fn announced(uri: &Uri, headers: &HeaderMap, page: &Page) -> Vec<(Uri, Kind)> {
    let sources = from_link_header(uri, headers).into_iter();
    let sources = sources.chain(from_html(uri, page));
    let kinds = sources.filter_map(|source| match source.kind.group() {
        SourceGroup::Sitemap => Some((source.uri, Kind::Sitemap)),
        SourceGroup::Feed => Some((source.uri, Kind::Feed)),
        _ => None,
    });
    kinds.collect()
}

pub(super) async fn read_sitemap(
    target: &Target,
    mut body: ResponseBody,
    visited: &mut Visited,
) -> Result<(), String> {
    let mut reader = SitemapReader::new(&target.uri);
    if let Some(origin) = &target.named_by {
        reader = reader.named_by(origin);
    }
    let Visited {
        maps,
        entries,
        links,
        ..
    } = visited;
    let mut take = |item: Item<'_>| {
        if maps.len() + entries.len() + links.len() >= MOST_ENTRIES {
            return;
        }
        match item {
            Item::Sitemap(entry) => maps.push(Listed {
                uri: entry.uri(),
                date: entry.last_mod,
            }),
            Item::Page(entry) => entries.push(Listed {
                uri: entry.uri(),
                date: entry.last_mod,
            }),
            // What a sitemap says about another host counts as much as a link does, and leads as far.
            Item::Foreign(location) => links.extend(location.parse::<Uri>()),
            _ => {}
        }
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(bytes) = frame.into_data() {
            reader
                .feed(&bytes, &mut take)
                .map_err(|error| error.to_string())?;
        }
    }
    reader
        .finish(&mut take)
        .map_err(|error| error.to_string())?;
    Ok(())
}

pub(super) async fn read_feed(
    uri: &Uri,
    body: ResponseBody,
    visited: &mut Visited,
) -> Result<(), String> {
    let bytes = body.bytes(feed::MAX_FEED).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    let feed = feed::parse(uri, &bytes).map_err(|error| error.to_string())?;
    let entries = feed.entries.into_iter().take(MOST_ENTRIES);
    visited.entries.extend(entries.filter_map(|entry| {
        Some(Listed {
            date: entry.updated.or(entry.published).map(LastMod::from),
            uri: entry.uri?,
        })
    }));
    Ok(())
}
