use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::sitemap::*;

const URI: &str = "https://www.example.com/sitemap.xml";

#[derive(Debug, Default, PartialEq)]
struct Read {
    pages: Vec<String>,
    sitemaps: Vec<String>,
    foreign: Vec<String>,
    outcome: Option<Result<Summary, SitemapError>>,
}

impl Read {
    fn summary(&self) -> &Summary {
        self.outcome.as_ref().unwrap().as_ref().unwrap()
    }
}

fn read_in_pieces(reader: SitemapReader, body: &[u8], size: usize) -> Read {
    let mut reader = reader;
    let mut read = Read::default();
    let mut on = |item: Item<'_>| match item {
        Item::Page(entry) => read.pages.push(entry.uri().to_string()),
        Item::Sitemap(entry) => read.sitemaps.push(entry.uri().to_string()),
        Item::Foreign(location) => read.foreign.push(location.to_owned()),
    };
    for piece in body.chunks(size) {
        if reader.feed(piece, &mut on).is_err() {
            break;
        }
    }
    let mut outcome = reader.finish(&mut on);
    if let Ok(summary) = &mut outcome {
        // What follows the root is counted or not, depending on when it came.
        summary.bytes = 0;
    }
    read.outcome = Some(outcome);
    read
}

fn read(body: impl AsRef<[u8]>) -> Read {
    let whole = read_in_pieces(
        SitemapReader::new(&URI.parse().unwrap()),
        body.as_ref(),
        usize::MAX,
    );
    // However the body arrives, it says the same.
    for size in [1, 7, 1000] {
        let pieces = read_in_pieces(
            SitemapReader::new(&URI.parse().unwrap()),
            body.as_ref(),
            size,
        );
        assert_eq!(pieces, whole);
    }
    whole
}

fn urlset(inner: &str) -> String {
    format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{inner}</urlset>")
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn page(path: &str) -> String {
    format!("https://www.example.com/{path}")
}

#[test]
fn everything_an_entry_says() {
    let body = urlset(
        "<url><loc>https://www.example.com/a</loc><lastmod>2026-11-01</lastmod><changefreq>Daily</changefreq>\
         <priority>0.8</priority></url>",
    );
    let mut reader = SitemapReader::new(&URI.parse().unwrap());
    let mut seen = 0;
    let mut on = |item: Item<'_>| {
        let Item::Page(entry) = item else {
            panic!("{item:?}")
        };
        assert_eq!(entry.last_mod, LastMod::parse("2026-11-01"));
        assert_eq!(entry.change_frequency, Some(ChangeFrequency::Daily));
        assert_eq!(entry.priority, Some(0.8));
        assert_eq!(entry.extensions, None);
        let visit = httpdate::parse_http_date("Tue, 03 Nov 2026 00:00:00 GMT").unwrap();
        assert_eq!(entry.changed_since(visit), Change::Denied);
        let visit = httpdate::parse_http_date("Sun, 01 Nov 2026 18:00:00 GMT").unwrap();
        assert_eq!(entry.changed_since(visit), Change::Likely);
        seen += 1;
    };
    reader.feed(body.as_bytes(), &mut on).unwrap();
    reader.finish(&mut on).unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn other_vocabularies_on_request() {
    let body = urlset(
        "<url><loc>https://www.example.com/a</loc>\
         <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://www.example.com/de/?a=1&amp;b=2\"/>\
         <image:image><image:loc>https://cdn.example/i.png</image:loc><image:title>not a news title</image:title></image:image>\
         <video:video><video:player_loc>https://v.example/p</video:player_loc><video:content_loc>https://v.example/f</video:content_loc></video:video>\
         <news:news><news:publication><news:name>N</news:name></news:publication>\
         <news:publication_date>2026-11-01</news:publication_date><news:title>T &amp; U</news:title></news:news>\
         </url><url><loc>https://www.example.com/b</loc></url>",
    );
    let mut reader = SitemapReader::new(&URI.parse().unwrap()).with_extensions();
    let mut all = Vec::new();
    let mut on = |item: Item<'_>| {
        let Item::Page(entry) = item else {
            panic!("{item:?}")
        };
        all.push(entry.extensions.unwrap().clone());
    };
    reader.feed(body.as_bytes(), &mut on).unwrap();
    reader.finish(&mut on).unwrap();
    let [first, second] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        first.alternates,
        [(
            "de".to_owned(),
            "https://www.example.com/de/?a=1&b=2".to_owned()
        )]
    );
    assert_eq!(first.images, ["https://cdn.example/i.png"]);
    assert_eq!(first.videos, ["https://v.example/f"]);
    let news = first.news.as_ref().unwrap();
    assert_eq!(news.title.as_deref(), Some("T & U"));
    assert_eq!(news.published, LastMod::parse("2026-11-01"));
    assert_eq!(second, &Extensions::default());
}

#[test]
fn ampersands_as_sites_write_them() {
    let body = urlset(
        "<url><loc>https://www.example.com/?a=1&b=2&amp;c=3&#38;d&x;e&</loc></url>\
         <url><loc>https://www.example.com/?<![CDATA[a&amp;b]]></loc></url>",
    );
    assert_eq!(
        read(body).pages,
        [page("?a=1&b=2&c=3&d&x;e&"), page("?a&amp;b")]
    );
}

#[test]
fn no_entity_expands() {
    let body = format!(
        "<!DOCTYPE urlset [<!ENTITY a \"{0}\"><!ENTITY b \"&a;&a;&a;\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]>{1}",
        "https://www.example.com/",
        urlset("<url><loc>https://www.example.com/&b;&c;</loc></url>")
    );
    assert_eq!(read(body).pages, [page("&b;&c;")]);
}

#[test]
fn feeds_that_serve_as_sitemaps() {
    let rss = read(
        "<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\
         <link>https://www.example.com/</link><atom:link href=\"https://www.example.com/rss\" rel=\"self\"/>\
         <item><title>A</title><link>https://www.example.com/a</link><pubDate>Sun, 01 Nov 2026 12:00:00 GMT</pubDate></item>\
         <item><guid>https://www.example.com/b</guid></item>\
         <item><guid isPermaLink=\"false\">17</guid></item></channel></rss>",
    );
    assert_eq!(rss.pages, [page("a"), page("b")]);
    assert_eq!(rss.summary().kind, SitemapKind::Rss);

    let atom = read(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"https://www.example.com/\"/>\
         <entry><link rel=\"edit\" href=\"/edit\"/><link href=\"/a\"/><updated>2026-11-01T12:00:00Z</updated></entry>\
         <entry><link rel=\"alternate\" href=\"https://www.example.com/b\"/></entry></feed>",
    );
    assert_eq!(atom.pages, [page("a"), page("b")]);
    assert_eq!(atom.summary().kind, SitemapKind::Atom);

    let rdf = read(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">\
         <channel rdf:about=\"https://www.example.com/\"><link>https://www.example.com/</link></channel>\
         <item rdf:about=\"https://www.example.com/a\"><link>https://www.example.com/a</link></item>\
         <item rdf:about=\"https://www.example.com/b\"></item></rdf:RDF>",
    );
    assert_eq!(rdf.pages, [page("a"), page("b")]);
    assert_eq!(rdf.summary().kind, SitemapKind::Rdf);
}

#[test]
fn gzip_is_told_by_its_bytes() {
    let body = gzip(urlset("<url><loc>https://www.example.com/a</loc></url>").as_bytes());
    let plain = read(&body);
    assert_eq!(plain.pages, [page("a")]);
    assert!(plain.summary().gunzipped && !plain.summary().truncated);

    // Two members, then padding, as tape tools leave it.
    let mut members = gzip(b"https://www.example.com/a\n");
    members.extend(gzip(b"https://www.example.com/b\n"));
    members.extend([0; 100]);
    assert_eq!(read(&members).pages, [page("a"), page("b")]);

    let cut = read(
        &gzip(
            &urlset(&"<url><loc>https://www.example.com/a</loc></url>".repeat(10_000)).into_bytes(),
        )[..1000],
    );
    assert!(cut.summary().truncated);
    assert!(!cut.pages.is_empty());

    // One layer only.
    assert_eq!(
        read(gzip(&body)).outcome,
        Some(Err(SitemapError::NotASitemap))
    );
}

#[test]
fn encodings_other_than_the_one_that_is_due() {
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>https://www.example.com/\xE4</loc></url></urlset>";
    assert_eq!(read(latin).pages, [page("%C3%A4")]);
    let wide: Vec<u8> = "\u{feff}<urlset><url><loc>https://www.example.com/ä</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(read(wide).pages, [page("%C3%A4")]);
    let malformed = b"\xEF\xBB\xBF<urlset><url><loc>https://www.example.com/\xE4\xC3\xA4\xE2\x82\xAC</loc></url></urlset>\xC3";
    assert_eq!(read(malformed).pages, [page("%EF%BF%BD%C3%A4%E2%82%AC")]);
}

#[test]
fn locations_get_their_one_form() {
    let body = urlset(
        "<url><loc>HTTPS://WWW.EXAMPLE.COM/a b#c</loc></url><url><loc>/d/../e</loc></url>\
         <url><loc>https://www.example.com/f/./g</loc></url><url><loc>http://www.example.com:80/h</loc></url>\
         <url><loc>mailto:x@example.com</loc></url><url><lastmod>2026</lastmod></url>",
    );
    let read = read(body);
    assert_eq!(
        read.pages,
        [
            page("a%20b"),
            page("e"),
            page("f/g"),
            "http://www.example.com/h".into()
        ]
    );
    assert_eq!(read.summary().warnings, [Warning::BadLocation]);
}

#[test]
fn ends_that_are_missing_cost_one_entry_at_most() {
    let body = urlset(
        "<url><loc>https://www.example.com/a</url><url><loc>https://www.example.com/b</loc><x></url><url><loc>https://www.example.com/c</loc></url></x>",
    );
    assert_eq!(read(body).pages, [page("a"), page("b"), page("c")]);
    let cut = "<urlset><url><loc>https://www.example.com/a</loc><lastmod>20";
    let read = read(cut);
    assert_eq!(read.pages, [page("a")]);
    assert!(read.summary().truncated);
}

#[test]
fn what_is_no_sitemap() {
    for body in [
        "",
        " \n ",
        "Not found",
        "{\"error\": 404}",
        "<html><a href=\"https://www.example.com/\">x</a></html>",
        "<!-- nothing else -->",
        "\u{1f}\u{8b}",
        "ftp://www.example.com/\n",
    ] {
        assert_eq!(
            read(body).outcome,
            Some(Err(SitemapError::NotASitemap)),
            "{body}"
        );
    }
}

#[test]
fn limits_warn_and_stop() {
    let many = "https://www.example.com/a\n".repeat(usize::try_from(PROTOCOL_ENTRIES).unwrap() + 1);
    let all = read_in_pieces(
        SitemapReader::new(&URI.parse().unwrap()),
        many.as_bytes(),
        4096,
    );
    assert_eq!(all.pages.len(), 50_001);
    assert_eq!(all.summary().warnings, [Warning::ManyEntries]);

    let reader = SitemapReader::new(&URI.parse().unwrap()).limits(Limits::default().entries(10));
    let some = read_in_pieces(reader, many.as_bytes(), 4096);
    assert_eq!(some.pages.len(), 10);
    assert!(some.summary().truncated);

    // A bomb: a thousand times smaller on the wire, stopped before it is read.
    let bomb = gzip(&vec![b' '; 8 * 1024 * 1024]);
    assert!(bomb.len() < 16 * 1024);
    let mut reader =
        SitemapReader::new(&URI.parse().unwrap()).limits(Limits::default().bytes(1024 * 1024));
    assert_eq!(
        reader.feed(&bomb, |_| {}),
        Err(SitemapError::TooLarge { limit: 1024 * 1024 })
    );
    assert!(reader.window.capacity() < 2 * 1024 * 1024);

    let long = urlset(&format!(
        "<url><loc>https://www.example.com/{}</loc></url>",
        "a".repeat(3000)
    ));
    assert_eq!(read(long).summary().warnings, [Warning::LongLocation]);
}

#[test]
fn a_token_without_end_is_not_waited_for() {
    let mut reader = SitemapReader::new(&URI.parse().unwrap());
    let mut body = b"<urlset><url><loc>https://www.example.com/a</loc></url><!--".to_vec();
    body.resize(4 * MAX_TOKEN, b'x');
    let mut pages = 0;
    for piece in body.chunks(1000) {
        reader.feed(piece, |_| pages += 1).unwrap();
    }
    assert!(!reader.wants_more());
    assert_eq!(pages, 1);
    assert!(reader.finish(|_| {}).unwrap().truncated);
}

#[test]
fn what_is_kept_does_not_grow_with_the_document() {
    let entry =
        "<url><loc>https://www.example.com/a?b&amp;c</loc><lastmod>2026-11-01</lastmod></url>\n";
    let piece = entry.repeat(200).into_bytes();
    let mut reader = SitemapReader::new(&URI.parse().unwrap());
    reader.feed(b"<urlset>", |_| {}).unwrap();
    let mut most = 0;
    let mut entries = 0;
    for _ in 0..200 {
        reader.feed(&piece, |_| entries += 1).unwrap();
        most = most.max(reader.window.capacity());
    }
    assert!(entries > 39_000);
    assert!(most < 256 * 1024, "{most}");
}

#[test]
fn pieces_of_any_size_say_the_same() {
    let mut body = String::from("<!-- > a > comment > -->");
    for n in 0..400 {
        let loc = match n % 4 {
            0 => format!("https://www.example.com/{n}?a&amp;b"),
            1 => format!("<![CDATA[https://www.example.com/{n}?a>b]]>"),
            2 => format!("https://www.example.com/gr\u{fc}n/{n}?a&b"),
            _ => format!("\n  https://www.example.com/{n}\n"),
        };
        let comment = "> ".repeat(n % 50);
        body += &format!(
            "<url a='>'><!--{comment}--><loc>{loc}</loc><lastmod>2026-11-0{}</lastmod></url>\n",
            n % 9 + 1
        );
    }
    let mut body = urlset(&body).into_bytes();
    // One byte that is no UTF-8.
    let place = body.windows(5).position(|w| w == b"/306?").unwrap();
    body[place] = 0xff;
    let whole = read(&body);
    assert_eq!(whole.pages.len(), 400);
    assert!(!whole.summary().truncated);
    for size in [600, 1_021, 4_099, 16_384, 20_011] {
        let pieces = read_in_pieces(SitemapReader::new(&URI.parse().unwrap()), &body, size);
        assert_eq!(pieces, whole, "{size}");
    }
}

#[test]
fn a_byte_order_mark_in_the_middle_is_text() {
    let body = urlset(&format!(
        "<!-- {} --><url><loc>https://www.example.com/a\u{feff}\u{feff}b</loc></url>",
        "x".repeat(600)
    ));
    let whole = read(&body);
    assert_eq!(whole.pages, [page("a%EF%BB%BF%EF%BB%BFb")]);
    let mut reader = SitemapReader::new(&URI.parse().unwrap());
    // Each byte is read by itself, so that a window begins with each of them.
    reader.parse_from = 1;
    assert_eq!(read_in_pieces(reader, body.as_bytes(), 1), whole);
}

#[test]
fn a_walk_ends() {
    let mut walk = SitemapWalk::new().max_depth(1).max_sitemaps(3);
    let uri = |path: &str| page(path).parse::<Uri>().unwrap();
    let entry = |location| Entry {
        location,
        last_mod: LastMod::parse("2026-01-01"),
        change_frequency: None,
        priority: None,
        extensions: None,
    };
    walk.add(uri("index.xml"), None).unwrap();
    assert_eq!(walk.add(uri("index.xml"), None), Err(Refused::Known));
    let index = walk.next_task().unwrap();
    walk.add_from(&index, &entry("https://www.example.com/1.xml"))
        .unwrap();
    assert_eq!(
        walk.add_from(&index, &entry("https://www.example.com/index.xml")),
        Err(Refused::Known)
    );
    let child = walk.next_task().unwrap();
    assert_eq!(
        walk.add_from(&child, &entry("https://www.example.com/2.xml")),
        Err(Refused::TooDeep)
    );
    walk.add_from(&index, &entry("https://www.example.com/3.xml"))
        .unwrap();
    assert_eq!(
        walk.add_from(&index, &entry("https://www.example.com/4.xml")),
        Err(Refused::TooMany)
    );
    let mut walk =
        walk.changed_since(httpdate::parse_http_date("Sun, 01 Nov 2026 12:00:00 GMT").unwrap());
    assert_eq!(
        walk.add_from(&index, &entry("https://www.example.com/5.xml")),
        Err(Refused::Unchanged)
    );
}

proptest! {
    #[test]
    fn no_bytes_panic_and_pieces_change_nothing(
        body in proptest::collection::vec(
            proptest::sample::select(vec![
                "<urlset>", "<url>", "<loc>", "https://www.example.com/", "</loc>", "</url>", "</urlset>", "&amp;", "&", ";",
                "<![CDATA[", "]]>", "<!--", "-->", "<?x ?>", "<a b='c' d=\"e\"/>", "<", ">", "ä", " ", "\n", "\"", "<!DOCTYPE x>",
            ]),
            0..40,
        ),
        size in 1usize..40,
    ) {
        // Longer than what is kept back to tell the encoding.
        let body = format!("{}{}", " ".repeat(500), body.concat());
        let whole = read_in_pieces(SitemapReader::new(&URI.parse().unwrap()), body.as_bytes(), usize::MAX);
        let mut reader = SitemapReader::new(&URI.parse().unwrap());
        reader.parse_from = 1;
        let pieces = read_in_pieces(reader, body.as_bytes(), size);
        prop_assert_eq!(whole, pieces);
    }
}
