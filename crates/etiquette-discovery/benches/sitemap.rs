//! How fast sitemaps are read beside quick-xml's bare event loop, and in how much memory: `cargo bench -p
//! etiquette-discovery`.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use etiquette_discovery::sitemap::{Item, SitemapReader};
use quick_xml::Reader;
use quick_xml::events::Event;

/// As large as the protocol allows.
const OCTETS: usize = 50 * 1024 * 1024;
const RUNS: u32 = 5;

fn main() {
    // First, while nothing else has taken memory: a document that is nowhere as a whole.
    let before = most_memory();
    let (entries, octets) = read(pieces());
    if let (Some(before), Some(after)) = (before, most_memory()) {
        println!(
            "{entries} entries in {:.1} MB, read in {:.1} MB of memory beyond the {:.1} MB of the program",
            octets as f64 / 1e6,
            (after - before) as f64 / 1e3,
            before as f64 / 1e3
        );
    }

    let document: Vec<u8> = pieces().flatten().collect();
    let text = std::str::from_utf8(&document).expect("the document is ASCII");
    let bare = best(|| bare(text));
    let ours = best(|| read(document.chunks(16 * 1024).map(<[u8]>::to_vec)).0);
    let speed = |time: Duration| document.len() as f64 / time.as_secs_f64() / 1e6;
    println!("quick-xml, events alone  {:>6.0} MB/s", speed(bare));
    println!(
        "SitemapReader            {:>6.0} MB/s, {:.2} times as long",
        speed(ours),
        ours.as_secs_f64() / bare.as_secs_f64()
    );
}

/// The most memory that this process has had, in kB, where the system tells.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

/// A sitemap as large as the protocol allows, in the pieces in which a network might bring it.
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
    let mut octets = 0;
    let pages = pages.take_while(move |piece| {
        octets += piece.len();
        octets < OCTETS
    });
    std::iter::once(start.to_owned())
        .chain(pages)
        .chain(std::iter::once("</urlset>\n".to_owned()))
        .map(String::into_bytes)
}

fn best(mut run: impl FnMut() -> u64) -> Duration {
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
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

/// How many entries, in how many octets.
fn read(pieces: impl Iterator<Item = Vec<u8>>) -> (u64, u64) {
    let uri = "https://www.example.com/sitemap.xml"
        .parse()
        .expect("a URI");
    let mut reader = SitemapReader::new(&uri);
    let mut entries = 0;
    let mut on = |item: Item<'_>| {
        black_box(&item);
        entries += 1;
    };
    for piece in pieces {
        reader.feed(&piece, &mut on).expect("it is a sitemap");
    }
    let summary = reader.finish(&mut on).expect("it is a sitemap");
    (entries, summary.octets)
}
