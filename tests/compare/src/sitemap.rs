//! Sitemaps: reading one as large as the protocol allows against quick-xml's bare event loop over the same bytes.
//!
//! The bare loop has the document in memory and looks at nothing; the reader gets it in pieces as a network brings
//! them, and gives out locations, dates, frequencies and priorities. Memory is counted in a run that makes the pieces as
//! it goes, so that the document is nowhere as a whole.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use etiquette_discovery::sitemap::{Item, SitemapReader};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::json;

use crate::heap;

/// As large as the protocol allows.
const BYTES: usize = 50 * 1024 * 1024;

const ROUNDS: usize = 31;

pub(crate) fn run(as_json: bool) -> ExitCode {
    let (most, (entries, bytes)) = heap::most(|| read(pieces()));
    let document: Vec<u8> = pieces().flatten().collect();
    let text = std::str::from_utf8(&document).expect("the document is ASCII");
    // In turns, so that what else the machine does meets both; the ratio is the median of all turns.
    let rounds: Vec<(f64, f64)> = (0..ROUNDS)
        .map(|_| {
            let bare = seconds(|| bare(text));
            let ours = seconds(|| read(document.chunks(16 * 1024)).0);
            (bare, ours)
        })
        .collect();
    let mut ratios: Vec<f64> = rounds.iter().map(|(bare, ours)| ours / bare).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ROUNDS / 2];
    let best = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    let (bare, ours) = (best(|round| round.0), best(|round| round.1));
    let speed = |seconds: f64| bytes as f64 / seconds / 1e6;
    if as_json {
        let speed = json!({
            "case": "sitemap-50-MiB", "what": "read", "ours": speed(ours), "unit": "MB/s",
            "peer": "quick-xml, events alone", "theirs": speed(bare), "ratio": ratio,
        });
        let memory = json!({
            "case": "sitemap-50-MiB", "what": "heap", "ours": most / 1e6, "unit": "MB",
            "peer": "the document", "theirs": bytes as f64 / 1e6, "entries": entries,
        });
        println!("{speed}\n{memory}");
    } else {
        println!("{entries} entries in {:.1} MB", bytes as f64 / 1e6);
        println!("quick-xml, events alone  {:>6.0} MB/s", speed(bare));
        println!(
            "SitemapReader            {:>6.0} MB/s, {:.2} times as long",
            speed(ours),
            ratio
        );
        println!(
            "SitemapReader            {:>6.2} MB of heap at most",
            most / 1e6
        );
    }
    ExitCode::SUCCESS
}

fn seconds(mut run: impl FnMut() -> u64) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

/// The document in pieces.
fn pieces() -> impl Iterator<Item = Vec<u8>> {
    let start = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
    let pages = (0..).map(|first: usize| {
        (first * 64..first * 64 + 64)
            .map(|page| {
                format!(
                    "  <url>\n    <loc>https://www.example.com/articles/2026/11/entry-{page}.html?lang=en&amp;page={page}</loc>\n    \
                     <lastmod>2026-11-0{}T12:00:00+00:00</lastmod>\n    <changefreq>weekly</changefreq>\n    \
                     <priority>0.8</priority>\n  </url>\n",
                    page % 9 + 1
                )
            })
            .collect::<String>()
    });
    let mut bytes = 0;
    let pages = pages.take_while(move |piece| {
        bytes += piece.len();
        bytes < BYTES
    });
    std::iter::once(start.to_owned())
        .chain(pages)
        .chain(std::iter::once("</urlset>\n".to_owned()))
        .map(String::into_bytes)
}

fn bare(document: &str) -> u64 {
    let mut reader = Reader::from_str(document);
    let mut events = 0;
    while let Ok(event) = reader.read_event() {
        if matches!(event, Event::Eof) {
            break;
        }
        black_box(&event);
        events += 1;
    }
    events
}

/// How many entries, in how many bytes.
fn read<P: AsRef<[u8]>>(pieces: impl Iterator<Item = P>) -> (u64, u64) {
    let uri = "https://www.example.com/sitemap.xml".parse();
    let mut reader = SitemapReader::new(&uri.expect("a URI"));
    let mut entries = 0;
    let mut on = |item: Item<'_>| {
        black_box(&item);
        entries += 1;
    };
    for piece in pieces {
        reader
            .feed(piece.as_ref(), &mut on)
            .expect("it is a sitemap");
    }
    let summary = reader.finish(&mut on).expect("it is a sitemap");
    (entries, summary.bytes)
}
