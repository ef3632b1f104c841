//! The scan: bytes to tokens, tokens to links, links to URIs.

use std::borrow::Cow;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tokenizer, TokenizerOpts};
use http::Uri;

use super::charset;
use super::page::{Anchor, Page, PageLink};
use super::sink::{Found, Kind, Sink};
use crate::reference::BaseUrl;

/// Bytes read by default: the first 128 KiB, where every head lies.
pub const DEFAULT_LIMIT: usize = 128 * 1024;

const MAX_URI_BYTES: usize = 4 * 1024 * 1024;
const CHUNK: usize = 4 * 1024;
/// Comparisons of attribute names that one page may cost.
const MAX_COMPARISONS: u64 = 1 << 28;

/// Scans one page; a small value that is made per page.
#[derive(Clone, Debug)]
#[must_use]
pub struct HtmlScanner<'a> {
    uri: &'a Uri,
    content_type: Option<&'a str>,
    limit: usize,
}

impl<'a> HtmlScanner<'a> {
    /// A scanner for the page at `uri`, which is its address *after* redirects.
    pub fn new(uri: &'a Uri) -> Self {
        Self {
            uri,
            content_type: None,
            limit: DEFAULT_LIMIT,
        }
    }

    /// The value of the `Content-Type` field, whose `charset` comes before what the page says about itself.
    pub fn content_type(mut self, value: &'a str) -> Self {
        self.content_type = Some(value);
        self
    }

    /// Reads at most this many bytes of the body, [`DEFAULT_LIMIT`] unless told. A crawler that follows links of long
    /// pages wants more; the head alone is enough to find feeds.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Scans `body`, the bytes as they are after content decoding.
    #[must_use]
    pub fn scan(&self, body: &[u8]) -> Page {
        let mut truncated = body.len() > self.limit;
        let body = &body[..body.len().min(self.limit)];
        let encoding = charset::of(self.content_type, body);

        let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
        let input = BufferQueue::default();
        let mut decoder = encoding.new_decoder();
        let mut attributes = 0u64;
        let mut comparisons = 0u64;
        let mut chunks = body.chunks(CHUNK).peekable();
        let mut complete = true;
        while let Some(chunk) = chunks.next() {
            let last = chunks.peek().is_none();
            let mut text = String::new();
            // The exact need is known only for lengths far from overflow, which a chunk is.
            text.reserve(
                decoder
                    .max_utf8_buffer_length(chunk.len())
                    .unwrap_or(4 * CHUNK),
            );
            let _ = decoder.decode_to_string(chunk, &mut text, last);
            input.push_back(StrTendril::from(text));
            let seen = tokenizer.sink.tokens();
            // The sink never asks for a pause, so this reads all of the input.
            let _ = tokenizer.feed(&input);

            // The tokenizer compares each attribute with all before it in the tag.
            let separators = chunk.iter().filter(|b| is_separator(**b)).count() as u64;
            if tokenizer.sink.tokens() == seen {
                let longer = attributes + separators;
                comparisons += (longer * longer - attributes * attributes) / 2;
                attributes = longer;
            } else {
                attributes = separators;
            }
            if comparisons > MAX_COMPARISONS {
                complete = false;
                break;
            }
        }
        if complete {
            tokenizer.end();
        }
        truncated |= !complete;

        let found = tokenizer.sink.into_found();
        self.resolve(found, encoding, truncated)
    }

    fn resolve(
        &self,
        found: Found,
        encoding: &'static encoding_rs::Encoding,
        mut truncated: bool,
    ) -> Page {
        let encode: &dyn Fn(&str) -> Cow<'_, [u8]> =
            &|query| charset::encode_query(encoding, query);
        let own = BaseUrl::new(self.uri).ok();
        let said = own
            .as_ref()
            .zip(found.base)
            .and_then(|(own, href)| own.resolve_with(&href, encode).ok());
        let base = said.unwrap_or_else(|| self.uri.clone());
        let base_url = BaseUrl::new(&base).ok();
        truncated |= found.overflow;
        let mut links = Vec::new();
        let mut anchors = Vec::new();
        let mut bytes = 0;
        for item in found.items {
            let uri = base_url
                .as_ref()
                .and_then(|base| base.resolve_with(&item.href, encode).ok());
            let Some(uri) = uri else {
                continue;
            };
            bytes += base.path().len() + item.href.len();
            if bytes > MAX_URI_BYTES {
                truncated = true;
                break;
            }
            match item.kind {
                Kind::Anchor => anchors.push(Anchor { uri, rel: item.rel }),
                // An empty reference is the page itself, which is no other form of the page.
                Kind::Link if item.href.trim().is_empty() => {}
                Kind::Link => links.push(PageLink {
                    uri,
                    rel: item.rel,
                    media_type: item.media_type,
                    hreflang: item.hreflang,
                    title: item.title,
                }),
            }
        }
        Page {
            base,
            links,
            anchors,
            robots: found.robots,
            truncated,
        }
    }
}

/// What can stand between two attributes.
fn is_separator(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' | b'/' | b'"' | b'\''
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::MAX_LINKS;

    fn scan(html: &str) -> Page {
        HtmlScanner::new(&"https://www.example.com/dir/page".parse().unwrap()).scan(html.as_bytes())
    }

    fn targets(html: &str) -> Vec<String> {
        scan(html)
            .anchors()
            .iter()
            .map(|a| a.uri.to_string())
            .collect()
    }

    #[test]
    fn links_as_pages_write_them() {
        assert_eq!(
            targets(
                "<a href=x><A HREF='y'>z</a><area href=\"/z?a=1&amp;b=2\"><a name=top><a href=mailto:x@y>"
            ),
            [
                "https://www.example.com/dir/x",
                "https://www.example.com/dir/y",
                "https://www.example.com/z?a=1&b=2"
            ]
        );
    }

    #[test]
    fn what_is_no_markup_links_nowhere() {
        let html = "<!-- <a href=1> --><script>'<a href=2>'</script><style><a href=3></style>\
            <textarea><a href=4></textarea><title><a href=5></title><noframes><a href=6></noframes>\
            <template><a href=7><link rel=alternate href=7></template><iframe><a href=8></iframe><a href=9>";
        assert_eq!(targets(html), ["https://www.example.com/dir/9"]);
        assert_eq!(scan(html).links(), []);
    }

    #[test]
    fn without_scripts_noscript_counts() {
        assert_eq!(
            targets("<noscript><a href=1></noscript>"),
            ["https://www.example.com/dir/1"]
        );
    }

    #[test]
    fn other_vocabularies_have_no_raw_text() {
        let html = "<svg><style><a href=1></style><title><a href=2></title><![CDATA[<a href=3>]]></svg><a href=4>";
        assert_eq!(
            targets(html),
            [1, 2, 4].map(|n| format!("https://www.example.com/dir/{n}"))
        );
        // A paragraph ends an open drawing, and scripts are raw again.
        let html = "<svg><p><script>'<a href=1>'</script><a href=2>";
        assert_eq!(targets(html), ["https://www.example.com/dir/2"]);
    }

    #[test]
    fn the_first_base_holds_for_the_whole_page() {
        let html = "<a href=1><base target=x><base href='/b/'><base href='/c/'><a href=2>";
        let page = scan(html);
        assert_eq!(page.base(), "https://www.example.com/b/");
        assert_eq!(
            targets(html),
            ["https://www.example.com/b/1", "https://www.example.com/b/2"]
        );
        assert_eq!(
            targets("<base href='javascript:x'><a href=1>"),
            ["https://www.example.com/dir/1"]
        );
    }

    #[test]
    fn link_elements_keep_what_describes_them() {
        let page = scan(
            "<link rel='Alternate  FEED' type='application/rss&#43;xml' hreflang=de title='Neues' href=f><link href=''>",
        );
        let [link] = page.links() else {
            panic!("{:?}", page.links())
        };
        assert!(link.has_rel("alternate") && link.has_rel("feed") && !link.has_rel("fee"));
        assert_eq!(link.media_type.as_deref(), Some("application/rss+xml"));
        assert_eq!(link.hreflang.as_deref(), Some("de"));
        assert_eq!(link.title.as_deref(), Some("Neues"));
    }

    #[test]
    fn pages_say_what_not_to_follow() {
        let html = "<a rel='noopener NoFollow' href=1><a href=2>";
        let page = scan(html);
        assert_eq!(page.anchors().len(), 2);
        let followed: Vec<_> = page
            .followable("ExampleBot")
            .map(ToString::to_string)
            .collect();
        assert_eq!(followed, ["https://www.example.com/dir/2"]);

        let page = scan("<meta name=Robots content='index, NOFOLLOW'><a href=1>");
        assert_eq!(page.followable("ExampleBot").count(), 0);
        assert!(!page.no_index("ExampleBot"));

        let page = scan("<meta name=examplebot content=none><a href=1>");
        assert!(page.no_index("ExampleBot") && page.no_follow("ExampleBot"));
        assert!(!page.no_index("OtherBot"));
        assert_eq!(page.followable("OtherBot").count(), 1);
    }

    #[test]
    fn the_encoding_is_the_fields_then_the_pages_then_a_guess() {
        let uri = "https://www.example.com/".parse().unwrap();
        let first = |content_type, body: &[u8]| {
            let mut scanner = HtmlScanner::new(&uri);
            if let Some(value) = content_type {
                scanner = scanner.content_type(value);
            }
            scanner.scan(body).anchors()[0].uri.to_string()
        };
        let e4 = b"<a href='\xE4?\xE4'>";
        assert_eq!(first(None, e4), "https://www.example.com/%C3%A4?%E4");
        assert_eq!(
            first(Some("text/html; Charset=\"windows-1251\""), e4),
            "https://www.example.com/%D0%B4?%E4"
        );
        assert_eq!(
            first(None, b"<!-- --><meta><meta http-equiv=Content-Type content='text/html; charset = koi8-r'><a href='\xE4'>"),
            "https://www.example.com/%D0%94"
        );
        assert_eq!(
            first(None, "<a href='ä?ä'>".as_bytes()),
            "https://www.example.com/%C3%A4?%C3%A4"
        );
        let wide: Vec<u8> = "\u{feff}<a href='ä'>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(first(None, &wide), "https://www.example.com/%C3%A4");
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        let html = "<a href=1><a href=2>";
        let uri = "https://www.example.com/".parse().unwrap();
        let page = HtmlScanner::new(&uri).limit(15).scan(html.as_bytes());
        assert_eq!(page.anchors().len(), 1);
        assert!(page.is_truncated());
        assert!(!HtmlScanner::new(&uri).scan(html.as_bytes()).is_truncated());
        let many = "<a href=x>".repeat(MAX_LINKS + 1);
        let page = HtmlScanner::new(&uri).scan(many.as_bytes());
        assert!(page.is_truncated());
        assert_eq!(page.anchors().len(), MAX_LINKS);
    }

    #[test]
    fn a_tag_of_attributes_without_end_ends_the_scan() {
        let mut html = String::from("<a ");
        for n in 0..400_000 {
            html.push_str(&format!("{n:x} "));
        }
        html.push_str("><a href=x>");
        let uri = "https://www.example.com/".parse().unwrap();
        let page = HtmlScanner::new(&uri)
            .limit(html.len())
            .scan(html.as_bytes());
        assert!(page.is_truncated());
        assert_eq!(page.anchors(), []);

        // A long picture in an attribute is none of that.
        let html = format!(
            "<img src='data:image/png;base64,{}'><a href=x>",
            "Ab+/".repeat(10_000)
        );
        assert_eq!(targets(&html).len(), 1);
    }

    #[test]
    fn a_query_is_in_the_encoding_of_the_page() {
        let uri = "https://www.example.com/".parse().unwrap();
        let page = HtmlScanner::new(&uri)
            .content_type("text/html; charset=windows-1252")
            .scan(b"<a href='\xe4?q=\xe4&amp;x=&#x4e00;'>");
        assert_eq!(
            page.anchors()[0].uri,
            "https://www.example.com/%C3%A4?q=%E4&x=%26%2319968%3B"
        );
    }
}
