//! Sitemaps: nothing panics, and in pieces a body says what it says as a whole.
#![no_main]

use etiquette_discovery::sitemap::{Item, Limits, SitemapReader};
use libfuzzer_sys::fuzz_target;

fn read(body: &[u8], size: usize) -> Option<Vec<String>> {
    let uri = "https://www.example.com/sitemap.xml".parse().expect("a URI");
    let limits = Limits::default().bytes(4 * 1024 * 1024);
    let mut reader = SitemapReader::new(&uri).limits(limits).with_extensions();
    let mut found = Vec::new();
    let mut on = |item: Item<'_>| {
        if let Item::Page(entry) | Item::Sitemap(entry) = item {
            found.push(entry.uri().to_string());
        }
    };
    for piece in body.chunks(size) {
        reader.feed(piece, &mut on).ok()?;
    }
    reader.finish(&mut on).ok()?;
    Some(found)
}

fuzz_target!(|body: &[u8]| {
    let size = usize::from(body.first().copied().unwrap_or(0)) + 1;
    let whole = read(body, usize::MAX);
    let pieces = read(body, size);
    if let (Some(whole), Some(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces);
    }
});
